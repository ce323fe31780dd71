// SPDX-License-Identifier: Apache-2.0
// The status line and the headers of an answer, as they go over the wire.
#pragma once

#include "drk/http.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace drk::http {

/// How the client finds the end of the body.
enum class Delimiter { length, chunks, close };

/// What the request says about the form of its answer.
struct AnswerForm {
  bool head_only = false;  ///< HEAD: everything but the body.
  bool http_1_0 = false;   ///< Knows no chunks, and closes unless told otherwise.
  bool keep_alive = true;
};

[[nodiscard]] std::string_view reason_phrase(std::uint32_t status) noexcept;
/// False for the statuses whose answers never have a body, nor a length.
[[nodiscard]] bool may_have_body(std::uint32_t status) noexcept;
/// Up to and with the empty line. Control characters in headers, which could begin a header or an
/// answer of their own, become spaces.
[[nodiscard]] std::string write_head(const Reply& reply,
                                     const AnswerForm& form,
                                     Delimiter delimiter);

}  // namespace drk::http
