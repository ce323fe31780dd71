// SPDX-License-Identifier: Apache-2.0
// Refused system calls, seen by the init: name it, answer EPERM.
#include "drk/sandbox.h"

#include <cerrno>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

namespace drk::sandbox {

namespace {

std::string socket_name(std::uint64_t family) {
  switch (family) {
    case AF_INET:
      return "socket(AF_INET)";
    case AF_INET6:
      return "socket(AF_INET6)";
    case AF_NETLINK:
      return "socket(AF_NETLINK)";
    default:
      return "socket(" + std::to_string(family) + ")";
  }
}

std::string name_of_call(const seccomp_data& call) {
  switch (call.nr) {
    case SYS_socket:
      return socket_name(call.args[0]);
    case SYS_clone:
      return "clone(new namespaces)";
    case SYS_unshare:
      return "unshare";
    case SYS_setns:
      return "setns";
    case SYS_execve:
      return "execve";
    case SYS_execveat:
      return "execveat";
    case SYS_ptrace:
      return "ptrace";
    case SYS_process_vm_readv:
      return "process_vm_readv";
    case SYS_process_vm_writev:
      return "process_vm_writev";
    case SYS_mount:
      return "mount";
    case SYS_umount2:
      return "umount2";
    case SYS_pivot_root:
      return "pivot_root";
    case SYS_chroot:
      return "chroot";
    case SYS_bpf:
      return "bpf";
    case SYS_perf_event_open:
      return "perf_event_open";
    case SYS_userfaultfd:
      return "userfaultfd";
    case SYS_io_uring_setup:
      return "io_uring_setup";
    case SYS_pidfd_getfd:
      return "pidfd_getfd";
    case SYS_keyctl:
      return "keyctl";
    default:
      return "system call " + std::to_string(call.nr);
  }
}

}  // namespace

std::optional<std::string> answer_refusal(int listener) {
  seccomp_notif request = {};
  if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) return std::nullopt;
  seccomp_notif_resp response = {};
  response.id = request.id;
  response.error = -EPERM;
  // Fails only when the caller died meanwhile; the attempt counts all the same.
  (void)::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
  return name_of_call(request.data);
}

}  // namespace drk::sandbox
