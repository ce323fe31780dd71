// SPDX-License-Identifier: Apache-2.0
// What docs/http-api.md promises of any one answer.
#pragma once

#include "drk/base/error.h"
#include "drk/base/json.h"
#include "drk/base/utf8.h"
#include "drk/http.h"

#include "fuzz/finding.h"

#include <array>
#include <string>
#include <string_view>

namespace drk::fuzz {

inline json::Value parsed(std::string_view text) {
  expect(is_valid_utf8(text), "a body that is not UTF-8");
  try {
    return json::parse(text);
  } catch (const Error& error) {
    throw Finding("a body that is no JSON: " + std::string(error.what()));
  }
}

/// The statuses, and the header that each comes with.
inline void check_status(const http::Answer& answer) {
  struct Promise {
    std::uint32_t status;
    const char* header;  ///< Null: none.
  };
  constexpr std::array kPromises{Promise{100, nullptr},
                                 Promise{200, nullptr},
                                 Promise{202, nullptr},
                                 Promise{400, "x-error-code"},
                                 Promise{401, "www-authenticate"},
                                 Promise{404, nullptr},
                                 Promise{405, "allow"},
                                 Promise{408, nullptr},
                                 Promise{409, nullptr},
                                 Promise{413, nullptr},
                                 Promise{429, "retry-after"},
                                 Promise{431, nullptr},
                                 Promise{503, "retry-after"}};
  for (const Promise& promise : kPromises) {
    if (promise.status != answer.status) continue;
    expect(promise.header == nullptr || answer.header(promise.header).has_value(),
           std::to_string(answer.status) + " without its header");
    return;
  }
  throw Finding("status " + std::to_string(answer.status) + ": " + answer.body);
}

inline void check_failure(const http::Answer& answer, const json::Value& body) {
  expect(body.is_object(), "a failure that is no object");
  const char* text = answer.status == 400 ? "message" : "detail";
  const json::Value* found = body.get_object().if_contains(text);
  expect(found != nullptr && found->is_string(), "a failure that says nothing");
}

/// "event: NAME", "data: JSON", an empty line; or a comment.
inline void check_events(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find("\n\n");
    expect(end != std::string_view::npos, "an event without an end");
    const std::string_view event = text.substr(0, end);
    text.remove_prefix(end + 2);
    if (event.starts_with(':')) continue;
    const std::size_t line_end = event.find('\n');
    expect(event.starts_with("event: ") && line_end != std::string_view::npos, "no event");
    const std::string_view data = event.substr(line_end + 1);
    expect(data.starts_with("data: ") && data.find('\n') == std::string_view::npos, "no data");
    (void)parsed(data.substr(6));
  }
}

/// Throws Finding. An empty body is let pass where `may_be_bodiless`.
inline void check_answer(const http::Answer& answer, bool may_be_bodiless) {
  check_status(answer);
  if (answer.status == 100) return;
  expect(answer.header("date").has_value(), "an answer without a date");
  if (may_be_bodiless && answer.body.empty()) return;
  const std::string_view type = answer.header("content-type").value_or("");
  if (type == "text/event-stream") {
    check_events(answer.body);
  } else if (type == "application/json") {
    const json::Value body = parsed(answer.body);
    if (answer.status >= 400) check_failure(answer, body);
  } else {
    expect(type.starts_with("text/plain") || type.starts_with("application/openmetrics"),
           "content type " + std::string(type));
    expect(answer.body.ends_with('\n'), "metrics without an end");
  }
}

}  // namespace drk::fuzz
