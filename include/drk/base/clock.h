// SPDX-License-Identifier: Apache-2.0
// Monotonic time, deadlines, wall-clock text.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace drk {

/// Monotonic nanoseconds since an arbitrary start.
[[nodiscard]] inline std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// A point in monotonic time that work must not pass.
class Deadline {
 public:
  explicit Deadline(std::chrono::nanoseconds from_now)
      : at_(std::chrono::steady_clock::now() + from_now) {}
  [[nodiscard]] bool passed() const noexcept { return std::chrono::steady_clock::now() >= at_; }
  void postpone(std::chrono::nanoseconds by) noexcept { at_ += by; }
  /// What is left, never negative.
  [[nodiscard]] std::chrono::milliseconds left() const noexcept;

 private:
  std::chrono::steady_clock::time_point at_;
};

/// Milliseconds since 1970 in UTC.
[[nodiscard]] std::int64_t unix_now_ms() noexcept;
/// Such a time, RFC 3339 with milliseconds: "2026-11-30T12:08:02.123Z".
[[nodiscard]] std::string utc_text(std::int64_t unix_ms);
[[nodiscard]] inline std::string utc_now_text() {
  return utc_text(unix_now_ms());
}

}  // namespace drk
