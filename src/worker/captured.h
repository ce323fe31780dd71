// SPDX-License-Identifier: Apache-2.0
// What a guest prints, bounded: the beginning and the end are kept.
#pragma once

#include "drk/base/fd.h"
#include "drk/task/result.h"

#include <cstdint>
#include <string>

namespace drk::worker {

class CapturedStream {
 public:
  explicit CapturedStream(Fd read_end);
  [[nodiscard]] int fd() const noexcept { return read_end_.get(); }
  /// Reads what is there without blocking; closes at the end of the stream.
  void drain();
  [[nodiscard]] std::uint64_t total_bytes() const noexcept { return total_bytes_; }
  [[nodiscard]] task::Captured captured() const;

 private:
  static constexpr std::size_t kHeadBytes = std::size_t{16} * 1024;
  static constexpr std::size_t kTailBytes = std::size_t{16} * 1024;

  Fd read_end_;
  std::string head_;
  std::string tail_;  ///< At most twice kTailBytes; the last kTailBytes count.
  std::uint64_t total_bytes_ = 0;
};

}  // namespace drk::worker
