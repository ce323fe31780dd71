// SPDX-License-Identifier: Apache-2.0
// Reads a candidate's text before a context on the GPU is spent on it.
#pragma once

#include "worker/guest_process.h"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

namespace drk::worker {

/// Keeps one guest without a device, in which texts are parsed and never run. Thread-safe.
class Clerk {
 public:
  /// `open` makes a guest; throws Error{unavailable}.
  explicit Clerk(std::function<std::unique_ptr<GuestProcess>()> open) : open_(std::move(open)) {}

  /// Empty when the text parses, and when it brings down the parser: then it meets its fate where
  /// it is loaded.
  [[nodiscard]] std::optional<task::Failure> find_syntax_error(const std::string& code,
                                                               const std::stop_token& stop);

 private:
  const std::function<std::unique_ptr<GuestProcess>()> open_;
  std::mutex mutex_;  ///< Guards the guest, which does one thing at a time.
  std::unique_ptr<GuestProcess> guest_;
};

}  // namespace drk::worker
