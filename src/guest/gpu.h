// SPDX-License-Identifier: Apache-2.0
// The guest's GPU: a context of its own on device 0, memory that torch knows of, clocks.
#pragma once

#include "drk/guest.h"

#include "guest/cuda_driver.h"
#include "guest/device_clock.h"
#include "guest/kernel_watch.h"
#include "guest/tensors.h"

#include <memory>
#include <optional>
#include <string>

namespace drk::guest {

/// One a guest, made before any line of a candidate runs. Needs the GIL. Not thread-safe.
/// Throws CudaFailed, and PythonRaised where torch is asked.
class Gpu {
 public:
  /// Makes the context through torch, which keeps using it, gets Triton's driver ready, and proves
  /// by a fill and a read-back that the device works. Throws Error{unavailable} as well.
  explicit Gpu(const TorchFunctions& torch);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu() = default;

  [[nodiscard]] const Prepared& prepared() const noexcept { return prepared_; }
  [[nodiscard]] const CudaDriver& driver() const noexcept { return driver_; }
  /// Null where launches cannot be watched: prepared().launch_problem says why.
  [[nodiscard]] KernelWatch* watch() noexcept { return watch_.get(); }
  void probe();

  /// From torch's allocator, and given back to it with the last tensor over it.
  [[nodiscard]] Memory allocate(std::uint64_t bytes) const;
  [[nodiscard]] Ref move_model(PyObject* model) const;
  void seed(PyObject* number) const;
  /// Makes torch's allocator hand out memory that is full of one byte, as far as `bytes` go.
  void fill_free_memory(unsigned char byte, std::uint64_t bytes) const;
  /// Gives memory that torch keeps for later back to the driver.
  void release_cached() const;
  /// Of memory that torch has had from the driver at one time.
  void reset_peak() const;
  [[nodiscard]] std::uint64_t peak_bytes() const;

  /// Twice the L2 cache: what is written to empty it.
  [[nodiscard]] std::uint64_t flush_bytes() const noexcept { return clock_->flush_bytes(); }
  void empty_l2();
  /// Starts the clock as the protocol wants it ...
  void begin_timing(task::Protocol protocol);
  /// ... and stops it behind all that was queued since, on whatever stream. Waits for the device.
  [[nodiscard]] DeviceTime end_timing();

 private:
  void start_watch();

  const TorchFunctions& torch_;
  CudaDriver driver_;
  Ref generator_;  ///< The device's.
  std::unique_ptr<KernelWatch> watch_;
  std::optional<DeviceClock> clock_;  ///< There is one once the context is made.
  Memory flush_;                      ///< Made when first needed.
  Memory probe_;
  Prepared prepared_;
};

}  // namespace drk::guest
