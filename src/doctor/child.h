// SPDX-License-Identifier: Apache-2.0
// Runs a function in a child of its own: what it opens, leaks or hangs on is gone with the child.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace drk::doctor {

/// What `body` returned, at most 64 KiB. The caller must have one thread only: after fork the
/// child holds every lock that another thread held. Kills the child when it is not done by `limit`.
/// Throws Error{timed_out, unavailable}: "no answer within 20 s", "ended by signal 11".
[[nodiscard]] std::string run_in_child(const std::function<std::string()>& body,
                                       std::chrono::milliseconds limit);

}  // namespace drk::doctor
