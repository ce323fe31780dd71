// SPDX-License-Identifier: Apache-2.0
// Activity records added up into a profile, and whether they are all there.
#pragma once

#include "guest/cupti_api.h"
#include "guest/kernel_origins.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace drk::guest {

class KernelProfile {
 public:
  /// A record, and whose kernel it was.
  void add(const Kernel& kernel, const cupti::KernelActivity& record);
  void add(const cupti::MemoryActivity& record);
  /// The record of the launch that proves that records still come; it is not added.
  void saw_proof() noexcept { has_proof_ = true; }
  /// A record, added as well, that belongs to no launch (or graph node) that was seen.
  void saw_stranger(bool of_graph) noexcept { ++(of_graph ? graph_strangers_ : strangers_); }

  struct Told {
    std::uint32_t calls = 0;
    std::uint64_t launches = 0;  ///< That must have a record.
    std::uint64_t dropped_records = 0;
    std::string problem;  ///< Known before; then it is the one that is told.
  };
  /// At most `max_kernels`, the longest first.
  [[nodiscard]] task::Profile finish(const Told& told, std::size_t max_kernels) const;

 private:
  [[nodiscard]] std::string problem(const Told& told) const;
  /// How long something ran, however much at once.
  [[nodiscard]] std::uint64_t busy_ns() const;

  using Key = std::tuple<const Kernel*,
                         std::array<std::int32_t, 3>,  // grid
                         std::array<std::int32_t, 3>,  // block
                         std::uint32_t,                // registers
                         std::uint64_t,                // static shared bytes
                         std::uint64_t>;               // dynamic shared bytes
  struct Sum {
    std::uint64_t count = 0;
    std::uint64_t ns = 0;
  };
  std::map<Key, Sum> sums_;
  struct Span {
    std::uint64_t start_ns = 0;
    std::uint64_t end_ns = 0;
  };
  std::vector<Span> spans_;  ///< Of all records that have times.
  std::uint64_t records_ = 0;
  std::uint64_t memory_ns_ = 0;
  std::uint64_t without_time_ = 0;
  std::uint64_t strangers_ = 0;
  std::uint64_t graph_strangers_ = 0;
  bool has_proof_ = false;
};

}  // namespace drk::guest
