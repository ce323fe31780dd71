// SPDX-License-Identifier: Apache-2.0
// Memory that the long bodies of all connections share.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace drk::http {

/// Thread-safe.
class LargeBodies {
 public:
  /// Bodies up to this size are not counted: max_connections of them bound themselves.
  static constexpr std::size_t kUncountedBytes = std::size_t{1} << 20;

  explicit LargeBodies(std::size_t max_bytes) noexcept : max_bytes_(max_bytes) {}

  /// The share of one body; gives it back at its end. Not thread-safe.
  class Lease {
   public:
    explicit Lease(std::shared_ptr<LargeBodies> owner) noexcept : owner_(std::move(owner)) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { owner_->held_bytes_ -= held_bytes_; }

    [[nodiscard]] std::size_t held_bytes() const noexcept { return held_bytes_; }
    /// False, and as before, when so much is not left.
    [[nodiscard]] bool grow_to(std::size_t bytes) noexcept {
      const std::size_t more = bytes - std::min(bytes, held_bytes_);
      if (!owner_->take(more)) return false;
      held_bytes_ += more;
      return true;
    }

   private:
    const std::shared_ptr<LargeBodies> owner_;  ///< With the server: a request may outlive it.
    std::size_t held_bytes_ = 0;
  };

 private:
  [[nodiscard]] bool take(std::size_t bytes) noexcept {
    std::size_t held = held_bytes_.load();
    do {
      if (bytes > max_bytes_ - held) return false;
    } while (!held_bytes_.compare_exchange_weak(held, held + bytes));
    return true;
  }

  const std::size_t max_bytes_;
  std::atomic<std::size_t> held_bytes_{0};  // never above max_bytes_
};

}  // namespace drk::http
