// SPDX-License-Identifier: Apache-2.0
// Two kernels of our own: one that does nothing and stands in for any other, and one that writes a
// number, to see whether that works.
#pragma once

#include "guest/cupti_api.h"

#include <cstdint>

namespace drk::guest {

/// Loaded into the current context before any code of a candidate; stays there.
class ProbeKernels {
 public:
  /// Throws Error{unavailable} when the driver does not take them.
  explicit ProbeKernels(const cupti::Driver& driver);

  [[nodiscard]] cupti::Module module() const noexcept { return module_; }
  /// Takes any block, dynamic shared memory and cluster that some kernel of this device can take,
  /// and any parameters.
  [[nodiscard]] cupti::Function empty() const noexcept { return empty_; }

  /// Launches empty(), and waits for the device. Throws Error{unavailable}.
  void launch_empty() const;
  /// Launches the kernel that writes `value` over 0 and waits; what is there then. Throws likewise.
  enum class By { launch_kernel, launch_kernel_ex };
  [[nodiscard]] std::uint32_t write(By by, std::uint32_t value) const;

 private:
  const cupti::Driver& driver_;
  cupti::Module module_ = nullptr;
  cupti::Function empty_ = nullptr;
  cupti::Function write_ = nullptr;
};

}  // namespace drk::guest
