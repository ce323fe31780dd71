// SPDX-License-Identifier: Apache-2.0
// Asking for a parse.
#include "worker/clerk.h"

namespace drk::worker {

std::optional<task::Failure> Clerk::find_syntax_error(const std::string& code,
                                                      const std::stop_token& stop) {
  const std::lock_guard lock(mutex_);
  if (!guest_ || !guest_->is_alive()) guest_ = open_();
  const Fd source = make_sealed_memory("candidate", std::as_bytes(std::span(code)));
  const int fd = source.get();
  AskOptions options;
  options.limit = std::chrono::seconds(2);
  options.stop = stop;
  std::unique_ptr<GuestProcess> guest = std::move(guest_);  // kept only if it comes through this
  GuestProcess::Outcome outcome = guest->ask(guest::CheckSyntax{}, {&fd, 1}, options);
  auto* failure = std::get_if<task::Failure>(&outcome);
  const bool is_syntax = failure != nullptr && failure->kind == task::FailureKind::syntax_error;
  if (failure == nullptr || is_syntax) guest_ = std::move(guest);
  if (is_syntax) return std::move(*failure);
  return std::nullopt;
}

}  // namespace drk::worker
