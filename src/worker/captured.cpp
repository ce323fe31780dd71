// SPDX-License-Identifier: Apache-2.0
// Bounded capture.
#include "worker/captured.h"

#include "drk/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace drk::worker {

CapturedStream::CapturedStream(Fd read_end) : read_end_(std::move(read_end)) {
  ::fcntl(read_end_.get(), F_SETFL, O_NONBLOCK);
}

void CapturedStream::drain() {
  std::array<char, 16384> buffer = {};
  // A bounded number of rounds: a guest that prints without end must not keep us here.
  for (int round = 0; round < 64 && read_end_; ++round) {
    const ssize_t n = ::read(read_end_.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;  // nothing there now
    if (n == 0) {
      read_end_.reset();
      return;
    }
    std::string_view text(buffer.data(), static_cast<std::size_t>(n));
    total_bytes_ += text.size();
    const std::size_t to_head = std::min(text.size(), kHeadBytes - head_.size());
    head_ += text.substr(0, to_head);
    tail_ += text.substr(to_head);
    if (tail_.size() > 2 * kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
  }
}

task::Captured CapturedStream::captured() const {
  const std::size_t tail_bytes = std::min(tail_.size(), kTailBytes);
  const std::uint64_t left_out = total_bytes_ - head_.size() - tail_bytes;
  std::string text = head_;
  if (left_out > 0) text += fmt::format("\n[... {} bytes left out ...]\n", left_out);
  text += tail_.substr(tail_.size() - tail_bytes);
  return {sanitize_utf8(text), total_bytes_};
}

}  // namespace drk::worker
