// SPDX-License-Identifier: Apache-2.0
// Any bytes as JSON, as a request, and as what is stored and sent: pure.
#pragma once

#include "drk/base/error.h"
#include "drk/base/json.h"
#include "drk/base/utf8.h"
#include "drk/task/result.h"
#include "drk/task/task.h"
#include "drk/task/wire.h"

#include "fuzz/finding.h"
#include "fuzz/schema_check.h"

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

namespace drk::fuzz {

/// What `read` makes of a text, or nothing when it refuses it as it may.
template <class Read>
auto accepted(Read read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    expect(*error.what() != '\0', "refused without a word");
    return std::nullopt;
  }
}

/// What 1e400 is read as. JSON has no such number, so it is never stored.
inline bool holds_infinity(const json::Value& value) {
  bool found = value.is_double() && std::isinf(value.get_double());
  if (value.is_array()) {
    for (const json::Value& item : value.get_array()) found |= holds_infinity(item);
  } else if (value.is_object()) {
    for (const auto& member : value.get_object()) found |= holds_infinity(member.value());
  }
  return found;
}

/// Both forms of writing say the same as what was read.
inline void check_json(const json::Value& value) {
  const std::string text = json::dump(value);
  expect(is_valid_utf8(text), "JSON that is not UTF-8");
  expect(json::dump(json::parse(text)) == text, "JSON that is read as another");
  expect(json::dump(json::parse(json::dump_pretty(value))) == text, "indented JSON differs");
}

template <class T, class FromJson>
void check_round_trip(const T& thing, FromJson from_json) {
  const std::string text = json::dump(task::to_json(thing));
  const T again = from_json(json::parse(text));
  expect(json::dump(task::to_json(again)) == text, "written and read, it is another");
}

inline void check_request(const json::Object& body) {
  static const json::Object kSchema = task::evaluate_schema();
  const auto request = accepted([&] { return task::request_from_wire(body); });
  if (!request) return;
  json::Object looked_at = body;
  if (request->task.workflow == task::Workflow::kernel_simple) looked_at.erase("reference_code");
  check_by_schema(kSchema, looked_at, "request");
  // Cases may be too long, which an evaluation says.
  if (const auto invalid = task::find_invalidity(request->task)) {
    expect(invalid->what.starts_with("cases"), "accepted, yet invalid: " + invalid->what);
  }
  check_round_trip(request->task, task::task_from_json);
  if (!request->task.cases_json.empty()) check_json(json::parse(request->task.cases_json));

  const std::string content = task::content_hash(*request);
  expect(content.size() == 64, "a content hash that is none");
  task::WireRequest same = *request;
  same.task = task::task_from_json(task::to_json(request->task));
  same.task.task_id += "'";
  same.task.limits.total_s += 1;
  same.force_refresh = !same.force_refresh;
  expect(task::content_hash(same) == content, "the content hash holds what decides nothing");
  task::WireRequest other = *request;
  other.task.candidate_code += "#";
  expect(task::content_hash(other) != content, "the content hash misses the candidate");
}

inline void check_stored(const json::Value& value) {
  if (const auto task = accepted([&] { return task::task_from_json(value); })) {
    (void)task::find_invalidity(*task);
    check_round_trip(*task, task::task_from_json);
  }
  if (const auto manifest = accepted([&] { return task::manifest_from_json(value); })) {
    check_round_trip(*manifest, task::manifest_from_json);
  }
  if (const auto result = accepted([&] { return task::result_from_json(value); })) {
    check_round_trip(*result, task::result_from_json);
    check_json(task::wire_result(*result));
  }
}

/// Throws whatever but Error{invalid_argument} the product throws, and Finding.
inline void replay_wire(std::string_view bytes) {
  const auto value = accepted([&] { return json::parse(bytes); });
  if (!value) return;
  if (!holds_infinity(*value)) check_json(*value);
  check_stored(*value);
  if (value->is_object()) check_request(value->get_object());
}

}  // namespace drk::fuzz
