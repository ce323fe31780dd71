// SPDX-License-Identifier: Apache-2.0
// A new process in namespaces of its own.
#include "drk/base/error.h"
#include "drk/base/fd.h"

#include "sandbox/steps.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace drk::sandbox {

namespace {

struct Namespace {
  std::uint64_t flag;
  Feature feature;
};
constexpr std::array kNamespaces = {
    Namespace{CLONE_NEWUSER, Feature::user_namespace},
    Namespace{CLONE_NEWNS, Feature::mount_view},
    Namespace{CLONE_NEWPID, Feature::pid_namespace},
    Namespace{CLONE_NEWNET, Feature::network_namespace},
    Namespace{CLONE_NEWIPC, Feature::ipc_namespace},
    Namespace{CLONE_NEWUTS, Feature::uts_namespace},
};
constexpr std::uint64_t kAllButUser =
    CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
// From most to least: a kernel without user namespaces still gives root the other five.
constexpr std::array<std::uint64_t, 3> kAttempts = {CLONE_NEWUSER | kAllButUser, kAllButUser, 0};

/// clone3 by number: glibc's fork could not set the flags. The caller has one thread, so no lock
/// of libc can be held by another; the child only makes plain system calls until it forks again.
pid_t raw_clone(std::uint64_t namespaces, int* pidfd) {
  clone_args arguments = {};
  arguments.flags = namespaces | CLONE_PIDFD;
  arguments.pidfd = reinterpret_cast<std::uint64_t>(pidfd);
  arguments.exit_signal = SIGCHLD;
  return static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
}

std::string proc_path(pid_t pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

void write_maps(pid_t pid, uid_t user, gid_t group, bool may_set_groups) {
  // Without CAP_SETGID the kernel wants setgroups denied before it takes a group map.
  if (!may_set_groups) write_file(proc_path(pid, "setgroups"), "deny");
  const std::string inner = std::to_string(kInnerUser);
  write_file(proc_path(pid, "uid_map"), inner + " " + std::to_string(user) + " 1\n");
  write_file(proc_path(pid, "gid_map"), inner + " " + std::to_string(group) + " 1\n");
}

/// The parent's part: group and user of the child. Returns what went wrong, or "".
std::string place(pid_t pid, const Cell& cell, bool has_user_namespace) {
  try {
    if (!cell.cgroup_dir.empty()) {
      write_file(cell.cgroup_dir + "/cgroup.procs", std::to_string(pid));
    }
    if (has_user_namespace) {
      const bool is_root = ::geteuid() == 0 && cell.host_user.has_value();
      const uid_t user = is_root ? *cell.host_user : ::geteuid();
      const gid_t group = is_root ? *cell.host_user : ::getegid();
      write_maps(pid, user, group, is_root);
    }
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

Report report_of(std::uint64_t namespaces, int refused_errno) {
  Report report;
  for (const Namespace& ns : kNamespaces) {
    if ((namespaces & ns.flag) != 0) {
      // A mount namespace alone is no view yet: enter() notes that one.
      if (ns.feature != Feature::mount_view) note_enforced(report, ns.feature);
    } else {
      errno = refused_errno;
      note_missing(report, ns.feature, errno_text("clone3"));
    }
  }
  return report;
}

}  // namespace

Clone clone_into_namespaces(const Cell& cell) {
  Pipe placed = make_pipe();
  int refused_errno = 0;
  for (const std::uint64_t namespaces : kAttempts) {
    int pidfd = -1;
    const pid_t pid = raw_clone(namespaces, &pidfd);
    if (pid < 0) {
      refused_errno = errno;
      continue;
    }
    Clone clone;
    clone.pid = pid;
    clone.report = report_of(namespaces, refused_errno);
    if (pid == 0) {
      placed.write.reset();
      char ok = 0;
      // Without its user map the child may do nothing at all; it ends, and its parent reports.
      if (::read(placed.read.get(), &ok, 1) != 1) ::_exit(126);
      return clone;
    }
    clone.pidfd = Fd(pidfd);
    ::fcntl(pidfd, F_SETFD, FD_CLOEXEC);
    const std::string trouble = place(pid, cell, (namespaces & CLONE_NEWUSER) != 0);
    if (trouble.empty()) {
      if (::write(placed.write.get(), "+", 1) != 1) throw_errno("sandbox: release the new process");
      return clone;
    }
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    throw Error(ErrorCode::unavailable, "sandbox: cannot place a new process: " + trouble);
  }
  errno = refused_errno;
  throw_errno("sandbox: clone3");
}

void become_user(uid_t id) {
  // Not permitted where setgroups was denied; then there are none to keep but the user's own.
  (void)::syscall(SYS_setgroups, 0, nullptr);
  // By number: glibc's wrappers would signal threads that this clone of a process does not have.
  if (::syscall(SYS_setresgid, id, id, id) != 0) throw_errno("setresgid");
  if (::syscall(SYS_setresuid, id, id, id) != 0) throw_errno("setresuid");
}

}  // namespace drk::sandbox
