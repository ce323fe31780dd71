// SPDX-License-Identifier: Apache-2.0
// Times one call after another by the device's own clock.
#pragma once

#include "guest/cuda_driver.h"
#include "guest/stream_gate.h"

#include <optional>

namespace drk::guest {

/// What one call took on the device.
struct DeviceTime {
  double us = 0;         ///< Until all that it set off was done.
  double behind_us = 0;  ///< The part of it that the caller's stream does not wait for.
  bool gated = false;    ///< All of it was queued before the first of it ran.
};

/// Begins behind an emptied L2 cache, and waits with the work until all of it is queued, as long as
/// that goes well: a model that waits for the device itself is soon timed without. A protocol may
/// want neither. Not thread-safe.
class DeviceClock {
 public:
  /// Throws CudaFailed.
  explicit DeviceClock(const CudaDriver& driver);

  /// What holds work back; null where the driver does not take it.
  [[nodiscard]] CudaDriver::Function gate_kernel() const noexcept {
    return gate_ ? gate_->kernel() : nullptr;
  }
  /// Reached when the clock starts: what runs on other streams must wait for it.
  [[nodiscard]] CudaDriver::Event opening() const noexcept { return opening_; }

  /// Twice the L2 cache: what is written to flush it.
  [[nodiscard]] std::uint64_t flush_bytes() const noexcept { return flush_bytes_; }
  /// `flush`: so much memory of the device.
  void empty_l2(CudaDriver::Address flush);
  /// `gated`: as above. What was queued before counts for nothing.
  void start(bool gated);
  /// Waits for the device. `has_other_streams`: kernels were launched on others than the caller's.
  [[nodiscard]] DeviceTime stop(bool has_other_streams);

 private:
  [[nodiscard]] bool is_gating() const noexcept;

  const CudaDriver& driver_;
  const std::uint64_t flush_bytes_;
  CudaDriver::Event opening_;
  CudaDriver::Event closing_;  ///< Of the caller's stream.
  CudaDriver::Event idle_;     ///< Of all streams.
  std::optional<StreamGate> gate_;
  bool is_gated_ = false;  ///< The call that is being timed.
  int late_ = 0;           ///< Times in a row that the gate had to let go by itself.
};

}  // namespace drk::guest
