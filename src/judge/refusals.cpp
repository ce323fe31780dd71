// SPDX-License-Identifier: Apache-2.0
// The one table from refused system calls to reasons.
#include "refusals.h"

#include <algorithm>
#include <array>

namespace drk::judge {

namespace {

using task::Reason;

struct Row {
  std::string_view call;  ///< With its arguments, or the bare name for any arguments.
  Attempt attempt;
};

constexpr Attempt kNetwork = {Reason::network_escape};
constexpr Attempt kProcess = {Reason::process_tamper};
constexpr Attempt kFiles = {Reason::filesystem_escape};

// The first row that fits decides, so calls with arguments stand before their bare name.
constexpr std::array kTable{
    // The C library asks the name service (AF_UNIX) and the kernel's routing table (AF_NETLINK)
    // behind the back of honest code: user names, interface lists.
    Row{"socket(AF_UNIX)", {Reason::network_escape, true}},
    Row{"socket(AF_NETLINK)", {Reason::network_escape, true}},
    Row{"socketpair", {Reason::network_escape, true}},
    Row{"socket", kNetwork},
    Row{"connect", kNetwork},
    Row{"bind", kNetwork},
    Row{"listen", kNetwork},
    Row{"accept", kNetwork},
    Row{"accept4", kNetwork},
    Row{"sendto", kNetwork},
    Row{"sendmsg", kNetwork},

    // Other processes: reading, writing, signalling, replacing, multiplying.
    Row{"ptrace", kProcess},
    Row{"process_vm_readv", kProcess},
    Row{"process_vm_writev", kProcess},
    Row{"process_madvise", kProcess},
    Row{"process_mrelease", kProcess},
    Row{"pidfd_open", kProcess},
    Row{"pidfd_getfd", kProcess},
    Row{"pidfd_send_signal", kProcess},
    Row{"kcmp", kProcess},
    Row{"kill", kProcess},
    Row{"tkill", kProcess},
    Row{"tgkill", kProcess},
    Row{"rt_sigqueueinfo", kProcess},
    Row{"rt_tgsigqueueinfo", kProcess},
    Row{"fork", kProcess},
    Row{"vfork", kProcess},
    Row{"clone", kProcess},
    Row{"clone3", kProcess},
    Row{"execve", kProcess},
    Row{"execveat", kProcess},

    // The kernel and the sandbox itself.
    Row{"setns", kProcess},
    Row{"unshare", kProcess},
    Row{"seccomp", kProcess},
    Row{"bpf", kProcess},
    Row{"perf_event_open", kProcess},
    Row{"userfaultfd", kProcess},
    Row{"keyctl", kProcess},
    Row{"add_key", kProcess},
    Row{"request_key", kProcess},
    Row{"init_module", kProcess},
    Row{"finit_module", kProcess},
    Row{"delete_module", kProcess},
    Row{"kexec_load", kProcess},
    Row{"kexec_file_load", kProcess},
    Row{"reboot", kProcess},
    Row{"iopl", kProcess},
    Row{"ioperm", kProcess},

    // What is mounted where, and files by ways that no path rule sees.
    Row{"mount", kFiles},
    Row{"umount2", kFiles},
    Row{"mount_setattr", kFiles},
    Row{"move_mount", kFiles},
    Row{"open_tree", kFiles},
    Row{"fsopen", kFiles},
    Row{"fsconfig", kFiles},
    Row{"fsmount", kFiles},
    Row{"fspick", kFiles},
    Row{"pivot_root", kFiles},
    Row{"chroot", kFiles},
    Row{"name_to_handle_at", kFiles},
    Row{"open_by_handle_at", kFiles},
    Row{"mknod", kFiles},
    Row{"mknodat", kFiles},
    Row{"fanotify_init", kFiles},
    Row{"quotactl", kFiles},
    Row{"swapon", kFiles},
    Row{"swapoff", kFiles},

    // Typing on the terminal of whoever started us.
    Row{"ioctl(TIOCSTI)", {Reason::io_tamper}},
    Row{"ioctl(TIOCLINUX)", {Reason::io_tamper}},
};

bool fits(std::string_view row, std::string_view call) noexcept {
  return row == call || row == call.substr(0, call.find('('));
}

}  // namespace

Attempt attempt_of(std::string_view call) noexcept {
  const auto* row = std::find_if(
      kTable.begin(), kTable.end(), [call](const Row& r) { return fits(r.call, call); });
  // A call that nobody has thought about is no evidence of an attack.
  return row == kTable.end() ? Attempt{Reason::process_tamper, true} : row->attempt;
}

}  // namespace drk::judge
