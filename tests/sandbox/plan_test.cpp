// SPDX-License-Identifier: Apache-2.0
// The sandbox without Python: filters, cells, refusals, limits.
#include "drk/base/error.h"
#include "drk/sandbox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <functional>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace drk::sandbox {
namespace {

bool has(const Report& report, Feature feature) {
  return std::find(report.enforced.begin(), report.enforced.end(), feature) !=
         report.enforced.end();
}

std::vector<std::string> system_paths() {
  return {"/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache"};
}

/// Runs `body` as process 1 of a new cell; its return value is the exit status.
int run_in_cell(const std::function<int(const Entered&)>& body, Cell cell = {}) {
  if (::geteuid() == 0) cell.host_user = 3'100'000'000U;
  const Plan plan = make_plan(system_paths());
  ::fflush(nullptr);
  Clone clone = clone_into_namespaces(cell);
  if (clone.pid == 0) {
    try {
      const Entered entered = enter(plan, cell, std::move(clone.report));
      // A refused call waits for its answer, so another process must give it.
      ::_exit(body(entered));
    } catch (const Error& error) {
      ::fprintf(stderr, "cell: %s\n", error.what());
      ::_exit(99);
    }
  }
  int status = 0;
  ::waitpid(clone.pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// A child of the cell makes `attempt`; its init answers. Returns "name errno", or "" if allowed.
std::string refusal_of(const Entered& entered, const std::function<long()>& attempt) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(attempt() < 0 ? errno : 0);
  std::string name;
  pollfd pending = {entered.refusals.get(), POLLIN, 0};
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (::poll(&pending, 1, 20) > 0 && (pending.revents & POLLIN) != 0) {
      name = answer_refusal(entered.refusals.get()).value_or("?");
    }
  }
  const int error = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return error == 0 ? "" : name + " " + std::to_string(error);
}

TEST(Plan, CompilesAllFilters) {
  const Plan plan = make_plan({"/usr"});
  EXPECT_GT(plan.filter.size(), 20U);
  EXPECT_GT(plan.tool_filter.size(), 20U);
  EXPECT_GT(plan.late_filter.size(), 5U);
  EXPECT_LT(plan.filter.size(), 4096U) << "the kernel's limit";
}

TEST(Cell, EnforcesEveryFeatureForRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "not root: a user gets no host user of its own";
  EXPECT_EQ(
      run_in_cell([](const Entered& entered) {
        for (const Missing& missing : entered.report.missing) {
          ::fprintf(
              stderr, "missing %d: %s\n", static_cast<int>(missing.feature), missing.why.c_str());
        }
        return static_cast<int>(entered.report.missing.size());
      }),
      0);
}

TEST(Cell, ShowsOnlyWhatIsReadableAndWritesOnlyToScratch) {
  EXPECT_EQ(run_in_cell([](const Entered& entered) {
              if (!has(entered.report, Feature::mount_view)) return 0;
              if (::access("/root", F_OK) == 0 || ::access("/home", F_OK) == 0) return 1;
              if (::access("/usr/bin/env", R_OK) != 0) return 2;
              if (::open("/usr/new", O_CREAT | O_WRONLY, 0644) >= 0) return 3;
              if (::open("/new", O_CREAT | O_WRONLY, 0644) >= 0) return 4;
              if (::open((entered.scratch + "/new").c_str(), O_CREAT | O_WRONLY, 0644) < 0)
                return 5;
              if (::getpid() != 1) return 6;
              return 0;
            }),
            0);
}

TEST(Cell, RefusesTellingCallsAndNamesThem) {
  EXPECT_EQ(run_in_cell([](const Entered& entered) {
              if (!entered.refusals) return 0;
              const auto is = [&](const char* wanted, const std::function<long()>& attempt) {
                const std::string got = refusal_of(entered, attempt);
                if (got == wanted) return true;
                ::fprintf(stderr, "wanted '%s', got '%s'\n", wanted, got.c_str());
                return false;
              };
              const bool ok =
                  is("socket(AF_INET) 1", [] { return ::socket(AF_INET, SOCK_STREAM, 0); }) &&
                  is("socket(AF_NETLINK) 1", [] { return ::socket(AF_NETLINK, SOCK_RAW, 0); }) &&
                  is("", [] { return ::socket(AF_UNIX, SOCK_STREAM, 0); }) &&
                  is("ptrace 1", [] { return ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); }) &&
                  is("unshare 1", [] { return ::unshare(CLONE_NEWUSER); }) &&
                  is("execve 1", [] { return ::execl("/bin/true", "true", nullptr); }) &&
                  is(" 1", [] { return static_cast<long>(::syscall(SYS_memfd_create, "m", 0)); }) &&
                  is(" 1", [] {
                    void* memory =
                        ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
                    return memory == MAP_FAILED ? -1L : 0L;
                  });
              return ok ? 0 : 1;
            }),
            0);
}

TEST(Cell, AToolboxExecutesAndIsRefusedTheRest) {
  Cell cell;
  cell.may_execute = true;
  const auto body = [](const Entered& entered) {
    if (!entered.refusals) return 0;
    const auto attempt = [&](const std::function<long()>& call) {
      return refusal_of(entered, call);
    };
    if (!attempt([] { return ::execl("/bin/true", "true", nullptr); }).empty()) return 1;
    if (attempt([] { return ::socket(AF_INET, SOCK_STREAM, 0); }) != "socket(AF_INET) 1") return 2;
    if (attempt([] { return ::unshare(CLONE_NEWUSER); }) != "unshare 1") return 3;
    // What it executes is under the same filter.
    const std::string script = "import socket; socket.socket()";
    return attempt([&] {
             return ::execl("/usr/bin/python3", "python3", "-c", script.c_str(), nullptr);
           }) == "socket(AF_INET) 1"
               ? 0
               : 4;
  };
  EXPECT_EQ(run_in_cell(body, cell), 0);
}

TEST(Cell, LateFilterRefusesForkAndNewCode) {
  const FilterProgram late = make_plan({}).late_filter;  // made outside: a cell cannot
  EXPECT_EQ(run_in_cell([&](const Entered& /*entered*/) {
              if (!add_filter(late)) return 1;
              if (::fork() >= 0 || errno != EPERM) return 2;
              void* page =
                  ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              if (page == MAP_FAILED) return 3;
              if (::mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0) return 4;
              return 0;
            }),
            0);
}

TEST(Cell, LimitsPrivateMemory) {
  Cell cell;
  cell.limits.memory_bytes = 64U << 20U;
  EXPECT_EQ(
      run_in_cell(
          [](const Entered& /*entered*/) {
            void* memory = ::mmap(
                nullptr, 256U << 20U, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            return memory == MAP_FAILED ? 0 : 1;
          },
          cell),
      0);
}

TEST(Cell, EndsWithItsInitAndTakesOrphansAlong) {
  // The orphan holds the write end of a pipe: end of file proves that it is gone.
  Pipe pipe = make_pipe();
  const int status = run_in_cell([&](const Entered& /*entered*/) {
    if (::fork() == 0) {
      ::setsid();
      ::sleep(60);
      ::_exit(0);
    }
    return 0;
  });
  EXPECT_EQ(status, 0);
  pipe.write.reset();
  char byte = 0;
  pollfd readable = {pipe.read.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&readable, 1, 5000), 1);
  EXPECT_EQ(::read(pipe.read.get(), &byte, 1), 0);
}

}  // namespace
}  // namespace drk::sandbox
