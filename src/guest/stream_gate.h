// SPDX-License-Identifier: Apache-2.0
// Holds work back on the device until all of it is queued.
#pragma once

#include "guest/cuda_driver.h"

#include <cstdint>

namespace drk::guest {

/// A kernel of ours that waits on the stream that torch's default stream is, and with it all that
/// is queued behind. It lets go by itself after a few milliseconds: whoever waits for the device
/// before the gate is opened would wait for ever. For one thread.
class StreamGate {
 public:
  /// Throws Error{unavailable} when the driver does not take the kernel, and CudaFailed.
  explicit StreamGate(const CudaDriver& driver);
  StreamGate(const StreamGate&) = delete;  // the device knows its words' address
  StreamGate& operator=(const StreamGate&) = delete;
  ~StreamGate() = default;  // they last as long as the context

  [[nodiscard]] CudaDriver::Function kernel() const noexcept { return kernel_; }
  /// Queues it.
  void close();
  void open() noexcept;
  /// Of the last close(), once the device is done: nothing ran before open().
  [[nodiscard]] bool has_held() const noexcept;

 private:
  struct Words {
    std::uint32_t opened = 0;  ///< The number of the close() that may let go.
    std::uint32_t late = 0;    ///< Of the one that let go by itself.
  };
  const CudaDriver& driver_;
  CudaDriver::Function kernel_;
  volatile Words* words_;
  CudaDriver::Address device_words_ = 0;
  std::uint32_t number_ = 0;
};

}  // namespace drk::guest
