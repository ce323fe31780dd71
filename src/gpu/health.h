// SPDX-License-Identifier: Apache-2.0
// When a device is sick: the rules, pure.
#pragma once

#include "drk/gpu.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace drk::gpu {

/// Of one device. Sicknesses stay, the first one is told; silence ends with the next sample.
class Health {
 public:
  Health(std::int64_t started_ns, std::chrono::nanoseconds silence_limit)
      : silence_limit_(silence_limit), heard_ns_(started_ns) {}

  void see(const Sample& sample);
  void see(const Event& event);
  /// Contact is lost for good.
  void lose(const std::string& why);
  /// A sample could not be taken; the next one may be.
  void miss(const std::string& why) { missed_ = why; }

  [[nodiscard]] std::optional<std::string> sickness(std::int64_t now_ns) const;
  /// Why the latest sample is missing; empty when it is not.
  [[nodiscard]] const std::string& missed() const noexcept { return missed_; }

 private:
  void fall_sick(const std::string& why);

  std::chrono::nanoseconds silence_limit_;
  std::int64_t heard_ns_;
  std::optional<std::uint64_t> first_ecc_errors_;
  std::string sickness_;
  std::string missed_;
};

}  // namespace drk::gpu
