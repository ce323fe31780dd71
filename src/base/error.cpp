// SPDX-License-Identifier: Apache-2.0
// Error texts.
#include "drk/base/error.h"

#include <cerrno>
#include <cstring>

namespace drk {

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::conflict:
      return "conflict";
    case ErrorCode::exhausted:
      return "exhausted";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::timed_out:
      return "timed_out";
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::internal:
      return "internal";
  }
  return "internal";
}

void throw_errno(const std::string& what) {
  const int error = errno;
  const bool exhausted = error == ENOMEM || error == EMFILE || error == ENFILE || error == ENOSPC ||
                         error == EAGAIN || error == EDQUOT;
  throw Error(
      exhausted ? ErrorCode::exhausted : ErrorCode::unavailable,
      what + ": " + std::strerror(error));  // NOLINT(concurrency-mt-unsafe): glibc's is safe
}

namespace detail {

void check_failed(const char* expression, const char* file, int line) {
  throw Error(
      ErrorCode::internal,
      std::string("broken invariant at ") + file + ":" + std::to_string(line) + ": " + expression);
}

}  // namespace detail
}  // namespace drk
