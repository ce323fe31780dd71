// SPDX-License-Identifier: Apache-2.0
// Sums and checks.
#include "guest/kernel_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace drk::guest {

namespace {

task::Extent extent(const std::array<std::int32_t, 3>& size) {
  return {static_cast<std::uint32_t>(size[0]),
          static_cast<std::uint32_t>(size[1]),
          static_cast<std::uint32_t>(size[2])};
}

std::uint64_t as_bytes(std::int32_t value) {
  return static_cast<std::uint64_t>(std::max(value, 0));
}

double us(std::uint64_t ns) {
  return static_cast<double>(ns) * 1e-3;
}

}  // namespace

void KernelProfile::add(const Kernel& kernel, const cupti::KernelActivity& record) {
  ++records_;
  Sum& sum = sums_[{&kernel,
                    record.grid,
                    record.block,
                    record.registers,
                    as_bytes(record.static_shared_bytes),
                    as_bytes(record.dynamic_shared_bytes)}];
  ++sum.count;
  if (record.start_ns == 0 || record.end_ns < record.start_ns) {
    ++without_time_;
  } else {
    sum.ns += record.end_ns - record.start_ns;
    spans_.push_back({record.start_ns, record.end_ns});
  }
}

void KernelProfile::add(const cupti::MemoryActivity& record) {
  if (record.end_ns <= record.start_ns) return;
  memory_ns_ += record.end_ns - record.start_ns;
  spans_.push_back({record.start_ns, record.end_ns});
}

std::uint64_t KernelProfile::busy_ns() const {
  std::vector<Span> spans = spans_;
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return a.start_ns < b.start_ns;
  });
  std::uint64_t busy_ns = 0, until_ns = 0;
  for (const Span& span : spans) {
    const std::uint64_t from_ns = std::max(span.start_ns, until_ns);
    if (span.end_ns <= from_ns) continue;
    busy_ns += span.end_ns - from_ns;
    until_ns = span.end_ns;
  }
  return busy_ns;
}

task::Profile KernelProfile::finish(const Told& told, std::size_t max_kernels) const {
  task::Profile profile;
  profile.calls = told.calls;
  profile.launches = told.launches;
  profile.records = records_;
  profile.dropped_records = told.dropped_records;
  profile.memory_us = us(memory_ns_);
  profile.busy_us = us(busy_ns());
  profile.problem = problem(told);
  for (const auto& [key, sum] : sums_) {
    const auto& [kernel, grid, block, registers, static_bytes, dynamic_bytes] = key;
    profile.kernels.push_back({.name = kernel->name,
                               .origin = kernel->origin,
                               .grid = extent(grid),
                               .block = extent(block),
                               .registers = registers,
                               .static_shared_bytes = static_bytes,
                               .dynamic_shared_bytes = dynamic_bytes,
                               .count = sum.count,
                               .total_us = us(sum.ns)});
  }
  std::stable_sort(profile.kernels.begin(),
                   profile.kernels.end(),
                   [](const task::KernelRecord& a, const task::KernelRecord& b) {
                     return a.total_us > b.total_us;
                   });
  if (profile.kernels.size() > max_kernels) profile.kernels.resize(max_kernels);
  return profile;
}

std::string KernelProfile::problem(const Told& told) const {
  if (!told.problem.empty()) return told.problem;
  if (!has_proof_) return "records were switched off: a kernel launched at the end has none";
  if (told.dropped_records != 0)
    return fmt::format("{} records were dropped", told.dropped_records);
  if (without_time_ != 0) return fmt::format("{} records have no time", without_time_);
  if (told.launches != records_) {
    return fmt::format("{} launches were seen, but {} records", told.launches, records_);
  }
  if (strangers_ != 0)
    return fmt::format("{} records belong to no launch that was seen", strangers_);
  if (graph_strangers_ != 0) {
    return fmt::format("{} records belong to graph nodes that were not seen", graph_strangers_);
  }
  return {};
}

}  // namespace drk::guest
