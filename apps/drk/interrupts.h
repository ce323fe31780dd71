// SPDX-License-Identifier: Apache-2.0
// Ctrl-C as a stop request, so that an evaluation ends its guests before the program ends.
#pragma once

#include <stop_token>
#include <thread>

namespace drk::cli {

/// While it lives, the first SIGINT, SIGTERM or SIGHUP requests a stop and the second ends the
/// program at once. Make it before any other thread: threads inherit the blocked signals.
class Interrupts {
 public:
  Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

  [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread waiter_;  // ends on SIGUSR2, which the destructor sends to it
};

}  // namespace drk::cli
