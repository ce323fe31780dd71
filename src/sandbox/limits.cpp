// SPDX-License-Identifier: Apache-2.0
// Limits of one guest, by its control group or else by rlimits.
#include "drk/base/error.h"
#include "drk/base/fd.h"

#include "sandbox/steps.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <sys/resource.h>
#include <unistd.h>

namespace drk::sandbox {

namespace {

void limit(__rlimit_resource resource, std::uint64_t value) {
  const rlimit both = {value, value};
  if (::setrlimit(resource, &both) != 0) throw_errno("setrlimit");
}

/// Private writable memory of this process now: what RLIMIT_DATA counts.
std::uint64_t data_bytes() {
  const std::string status = read_file("/proc/self/status");
  const std::size_t at = status.find("VmData:");
  if (at == std::string::npos) return 0;
  return std::strtoull(status.c_str() + at + std::strlen("VmData:"), nullptr, 10) * 1024;
}

template <class Step>
void try_limit(Report& report, Feature feature, const Step& step) {
  try {
    step();
    note_enforced(report, feature);
  } catch (const Error& error) {
    note_missing(report, feature, error.what());
  }
}

}  // namespace

void apply_limits(const Cell& cell, Report& report) {
  const Limits& limits = cell.limits;
  try {
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, limits.tmp_bytes);
    limit(RLIMIT_NOFILE, limits.open_files);
    limit(RLIMIT_MSGQUEUE, 0);
  } catch (const Error&) {  // lowering cannot fail unless the kernel is odd; nothing rests on these
  }
  const bool has_cgroup = !cell.cgroup_dir.empty();
  // RLIMIT_DATA counts private memory alone. It leaves the huge address ranges that CUDA reserves,
  // which RLIMIT_AS would refuse; shared memory is limited by the filter and by the size of /tmp.
  try_limit(report, Feature::memory_limit, [&] {
    if (!has_cgroup) limit(RLIMIT_DATA, data_bytes() + limits.memory_bytes);
  });
  try_limit(report, Feature::process_limit, [&] {
    if (has_cgroup) return;
    if (cell.host_user == std::nullopt && ::geteuid() == 0) {
      throw Error(ErrorCode::unavailable, "RLIMIT_NPROC does not bind root");
    }
    limit(RLIMIT_NPROC, limits.processes);
  });
}

}  // namespace drk::sandbox
