// SPDX-License-Identifier: Apache-2.0
// Which system calls a guest may make, compiled by libseccomp.
//
// The list is one of refusals: torch, Triton and the CUDA driver use several hundred calls between
// them, and a list of permissions would break with each of their releases. What is refused is all
// that reaches another process, another namespace, the network, the kernel's machinery, or memory
// that no limit counts.
#include "drk/base/error.h"
#include "drk/sandbox.h"

#include <seccomp.h>

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <linux/sched.h>
#include <memory>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

namespace drk::sandbox {

namespace {

// Attempts at these are evidence: the init sees each one.
constexpr std::array kTellingCalls = {
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(unshare),
    SCMP_SYS(setns),
    SCMP_SYS(mount),
    SCMP_SYS(umount2),
    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),
    SCMP_SYS(bpf),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(keyctl),
};
// These a library may try in good faith and do without.
constexpr std::array kQuietCalls = {
    SCMP_SYS(memfd_create),  // the worker makes all shared memory, so that it is counted
    SCMP_SYS(shmget),
    SCMP_SYS(shmat),
    SCMP_SYS(msgget),
    SCMP_SYS(semget),
    SCMP_SYS(mq_open),
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(reboot),
    SCMP_SYS(swapon),
    SCMP_SYS(swapoff),
    SCMP_SYS(syslog),
    SCMP_SYS(acct),
    SCMP_SYS(quotactl),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(name_to_handle_at),
    SCMP_SYS(open_tree),
    SCMP_SYS(move_mount),
    SCMP_SYS(fsopen),
    SCMP_SYS(fsmount),
    SCMP_SYS(fsconfig),
    SCMP_SYS(fspick),
    SCMP_SYS(mount_setattr),
    SCMP_SYS(fanotify_init),
    SCMP_SYS(lookup_dcookie),
    SCMP_SYS(iopl),
    SCMP_SYS(ioperm),
    SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime),
    SCMP_SYS(clock_adjtime),
    SCMP_SYS(adjtimex),
    SCMP_SYS(sethostname),
    SCMP_SYS(setdomainname),
    SCMP_SYS(vhangup),
    SCMP_SYS(kcmp),
    SCMP_SYS(pidfd_open),
    SCMP_SYS(process_madvise),
    SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register),
    SCMP_SYS(migrate_pages),
    SCMP_SYS(move_pages),
};
constexpr std::uint64_t kNewNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                                         CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

class Filter {
 public:
  explicit Filter(std::uint32_t default_action) : context_(seccomp_init(default_action)) {
    if (!context_) throw Error(ErrorCode::exhausted, "sandbox: seccomp_init failed");
    // Other instruction sets' calls (32 bit, x32) have other numbers: none of them may run.
    seccomp_attr_set(context_.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);  // binary tree, not a chain
  }

  template <class... Conditions>
  void on(int call, std::uint32_t action, Conditions... conditions) {
    const std::array<scmp_arg_cmp, sizeof...(conditions)> list = {conditions...};
    const int error =
        seccomp_rule_add_array(context_.get(), action, call, sizeof...(conditions), list.data());
    // A call that this machine does not have needs no rule.
    if (error == 0 || error == -EDOM) return;
    throw Error(ErrorCode::unavailable,
                "sandbox: seccomp rule for call " + std::to_string(call) + ": error " +
                    std::to_string(-error));
  }

  [[nodiscard]] FilterProgram compile() const {
    const Fd file(::memfd_create("filter", MFD_CLOEXEC));
    if (!file) throw_errno("memfd_create");
    if (const int error = seccomp_export_bpf(context_.get(), file.get()); error != 0) {
      throw Error(ErrorCode::unavailable,
                  "sandbox: seccomp_export_bpf: error " + std::to_string(-error));
    }
    FilterProgram program(file_size_bytes(file.get()) / sizeof(std::uint64_t));
    const std::size_t bytes = program.size() * sizeof(std::uint64_t);
    if (::pread(file.get(), program.data(), bytes, 0) != static_cast<ssize_t>(bytes)) {
      throw_errno("sandbox: read the compiled filter");
    }
    return program;
  }

 private:
  struct Release {
    void operator()(void* context) const noexcept { seccomp_release(context); }
  };
  std::unique_ptr<void, Release> context_;
};

/// What some cells need and others are refused.
struct Permissions {
  bool execution = false;      ///< Of the programs that it can read: where compilers run.
  bool shared_memory = false;  ///< Anonymous, as the CUDA driver maps it: a cell with a GPU.
};

FilterProgram first_filter(std::uint32_t telling, const Permissions& permissions) {
  const std::uint32_t quiet = SCMP_ACT_ERRNO(EPERM);
  Filter filter(SCMP_ACT_ALLOW);
  for (const int call : kTellingCalls) filter.on(call, telling);
  if (!permissions.execution) {
    for (const int call : {SCMP_SYS(execve), SCMP_SYS(execveat)}) filter.on(call, telling);
  }
  for (const int call : kQuietCalls) filter.on(call, quiet);
  filter.on(SCMP_SYS(socket), telling, SCMP_A0(SCMP_CMP_NE, AF_UNIX, 0));
  // One rule a flag: a mask of several would only match all of them together.
  for (std::uint64_t bit = 1; bit <= kNewNamespaces; bit <<= 1U) {
    if ((kNewNamespaces & bit) != 0) {
      filter.on(SCMP_SYS(clone), telling, SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit));
    }
  }
  // clone3 hides its flags behind a pointer; without it libc takes clone.
  filter.on(SCMP_SYS(clone3), SCMP_ACT_ERRNO(ENOSYS));
  // Shared anonymous memory escapes RLIMIT_DATA; a control group counts it.
  if (!permissions.shared_memory) {
    constexpr std::uint64_t kSharedAnonymous = MAP_SHARED | MAP_ANONYMOUS;
    filter.on(
        SCMP_SYS(mmap), quiet, SCMP_A3(SCMP_CMP_MASKED_EQ, kSharedAnonymous, kSharedAnonymous));
  }
  return filter.compile();
}

FilterProgram second_filter() {
  const std::uint32_t refuse = SCMP_ACT_ERRNO(EPERM);
  Filter filter(SCMP_ACT_ALLOW);
  for (const int call : {SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(fork), SCMP_SYS(vfork)}) {
    filter.on(call, refuse);
  }
  filter.on(SCMP_SYS(clone), refuse, SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
  filter.on(SCMP_SYS(mprotect), refuse, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC));
  filter.on(SCMP_SYS(pkey_mprotect), refuse, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC));
  filter.on(SCMP_SYS(mmap), refuse, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC));
  return filter.compile();
}

}  // namespace

Plan make_plan(std::vector<std::string> readable, std::vector<std::string> devices) {
  Plan plan;
  plan.readable = std::move(readable);
  plan.devices = std::move(devices);
  plan.notify = seccomp_api_get() >= 5;  // user notification: Linux 5.0
  const std::uint32_t telling = plan.notify ? SCMP_ACT_NOTIFY : SCMP_ACT_ERRNO(EPERM);
  plan.filter = first_filter(telling, {});
  plan.tool_filter = first_filter(telling, {.execution = true, .shared_memory = true});
  plan.device_filter = first_filter(telling, {.shared_memory = true});
  plan.late_filter = second_filter();
  return plan;
}

}  // namespace drk::sandbox
