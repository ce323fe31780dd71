// SPDX-License-Identifier: Apache-2.0
// Giving up capabilities and system calls.
#include "drk/base/error.h"

#include "sandbox/steps.h"

#include <array>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace drk::sandbox {

namespace {

long install(const FilterProgram& program, unsigned int flags) noexcept {
  static_assert(sizeof(sock_filter) == sizeof(FilterProgram::value_type));
  sock_fprog code = {};
  code.len = static_cast<unsigned short>(program.size());
  code.filter = reinterpret_cast<sock_filter*>(const_cast<std::uint64_t*>(program.data()));
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &code);
}

}  // namespace

void drop_privileges(Report& report) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) {
    note_enforced(report, Feature::no_new_privileges);
  } else {
    note_missing(report, Feature::no_new_privileges, errno_text("prctl"));
  }
  for (int capability = 0; ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; ++capability) {
  }
  (void)::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  const std::array<__user_cap_data_struct, 2> none = {};
  if (::syscall(SYS_capset, &header, none.data()) == 0) {
    note_enforced(report, Feature::no_capabilities);
  } else {
    note_missing(report, Feature::no_capabilities, errno_text("capset"));
  }
  // No other process of the cell may look into this one, although the user is the same.
  (void)::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

bool add_filter(const FilterProgram& program) noexcept {
  return !program.empty() && install(program, SECCOMP_FILTER_FLAG_TSYNC) == 0;
}

Fd apply_filter(const Plan& plan, const Cell& cell, Report& report) {
  const FilterProgram& filter = cell.may_execute   ? plan.tool_filter
                                : cell.has_devices ? plan.device_filter
                                                   : plan.filter;
  if (filter.empty()) {
    note_missing(report, Feature::seccomp, "no filter was compiled");
    return {};
  }
  const long result = install(filter, plan.notify ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0);
  if (result < 0) {
    note_missing(report, Feature::seccomp, errno_text("seccomp"));
    return {};
  }
  note_enforced(report, Feature::seccomp);
  return plan.notify ? Fd(static_cast<int>(result)) : Fd();
}

}  // namespace drk::sandbox
