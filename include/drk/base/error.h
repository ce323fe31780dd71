// SPDX-License-Identifier: Apache-2.0
// The one exception type of the project, its few codes, and the check for broken invariants.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace drk {

/// What kind of fault it is; set where the fault is known, never regained from its text.
enum class ErrorCode {
  invalid_argument,  ///< The caller asked for something that cannot be meant.
  not_found,
  conflict,
  exhausted,    ///< A limit was reached (memory, queue, descriptors).
  unavailable,  ///< Something we depend on is not there or is gone.
  timed_out,
  corrupt,   ///< Stored or received bytes are not what they must be.
  internal,  ///< Our own mistake.
};

[[nodiscard]] std::string_view to_string(ErrorCode code) noexcept;

/// A fault. An outcome (a kernel that does not compile) is a value instead: see task.h.
/// The text says who, what, got, wanted and what to do next.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

/// Throws Error{unavailable or exhausted} for the current `errno`: "<what>: <strerror>".
[[noreturn]] void throw_errno(const std::string& what);

namespace detail {
[[noreturn]] void check_failed(const char* expression, const char* file, int line);
}  // namespace detail

}  // namespace drk

/// A broken invariant is our mistake: throws Error{internal}. Stays on in release builds.
#define DRK_CHECK(expression) \
  ((expression) ? void(0) : ::drk::detail::check_failed(#expression, __FILE__, __LINE__))
