// SPDX-License-Identifier: Apache-2.0
// Child programs.
#include "drk/base/subprocess.h"

#include "drk/base/clock.h"
#include "drk/base/error.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace drk {

namespace {

std::vector<char*> c_strings(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

class SpawnSettings {
 public:
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(
        &attributes_,
        static_cast<short>(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID));
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  void connect(int fd, int target) {
    if (fd >= 0) {
      posix_spawn_file_actions_adddup2(&actions_, fd, target);
    } else if (target <= 2) {
      posix_spawn_file_actions_addopen(&actions_, target, "/dev/null", O_RDWR, 0);
    }
  }
  /// Nothing else is inherited, also not what a library opened without close-on-exec: a child that
  /// holds a listening socket of ours keeps its port when we are gone.
  void close_from(int first) { posix_spawn_file_actions_addclosefrom_np(&actions_, first); }
  posix_spawn_file_actions_t* actions() { return &actions_; }
  posix_spawnattr_t* attributes() { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_ = {};
  posix_spawnattr_t attributes_ = {};
};

}  // namespace

ChildProcess ChildProcess::start(const ProgramOptions& options) {
  DRK_CHECK(!options.arguments.empty());
  SpawnSettings settings;
  settings.connect(options.stdin_fd, 0);
  settings.connect(options.stdout_fd, 1);
  settings.connect(options.stderr_fd, 2);
  // dup2 onto itself would keep close-on-exec set, so the source must not be 3 already.
  Fd moved;
  if (options.extra_fd == 3) moved = Fd(::fcntl(3, F_DUPFD_CLOEXEC, 10));
  settings.connect(moved ? moved.get() : options.extra_fd, 3);
  settings.close_from(options.extra_fd >= 0 ? 4 : 3);
  ChildProcess child;
  const int error = ::posix_spawnp(&child.pid_,
                                   options.arguments[0].c_str(),
                                   settings.actions(),
                                   settings.attributes(),
                                   c_strings(options.arguments).data(),
                                   c_strings(options.environment).data());
  if (error != 0) {
    child.pid_ = -1;
    throw Error(error == ENOENT ? ErrorCode::not_found : ErrorCode::unavailable,
                "cannot start " + options.arguments[0] + ": " +
                    std::strerror(error));  // NOLINT(concurrency-mt-unsafe): glibc's is safe
  }
  return child;
}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this != &other) {
    kill_and_reap();
    pid_ = std::exchange(other.pid_, -1);
  }
  return *this;
}

std::optional<int> ChildProcess::wait_for(std::chrono::milliseconds limit) noexcept {
  if (pid_ < 0) return std::nullopt;
  const Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  pollfd ended = {handle.get(), POLLIN, 0};
  const Deadline deadline(limit);
  while (::poll(&ended, 1, static_cast<int>(deadline.left().count())) < 0 && errno == EINTR) {
  }
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  return status;
}

int ChildProcess::wait() noexcept {
  int status = 0;
  if (pid_ < 0) return status;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

void ChildProcess::kill_and_reap() noexcept {
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);  // it leads its own group; what it started goes with it
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

ProgramResult run_program(const std::vector<std::string>& arguments,
                          const std::vector<std::string>& environment,
                          std::chrono::milliseconds limit) {
  constexpr std::size_t kMaxOutputBytes = 1 << 20;
  Pipe pipe = make_pipe();
  ProgramOptions options;
  options.arguments = arguments;
  options.environment = environment;
  options.stdout_fd = pipe.write.get();
  options.stderr_fd = pipe.write.get();
  ChildProcess child = ChildProcess::start(options);
  pipe.write.reset();
  ProgramResult result;
  const Deadline deadline(limit);
  std::array<char, 4096> buffer = {};
  for (;;) {
    pollfd readable = {pipe.read.get(), POLLIN, 0};
    const int ready = ::poll(&readable, 1, static_cast<int>(deadline.left().count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) break;
    const ssize_t n = ::read(pipe.read.get(), buffer.data(), buffer.size());
    if (n <= 0) break;
    const std::size_t room = kMaxOutputBytes - result.output.size();
    result.output.append(buffer.data(), std::min(room, static_cast<std::size_t>(n)));
  }
  const std::optional<int> status = child.wait_for(deadline.left());
  result.timed_out = !status;
  if (status)
    result.exit_code = WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
  return result;
}

}  // namespace drk
