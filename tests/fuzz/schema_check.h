// SPDX-License-Identifier: Apache-2.0
// As much of JSON schema (2020-12) as our schema of a request uses. It shares no code with the
// checks of the product, so that the two can be held against each other.
#pragma once

#include "drk/base/json.h"

#include "fuzz/finding.h"

#include <boost/json/array.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

namespace drk::fuzz {

inline bool is_of_type(const json::Value& value, std::string_view type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_bool();
  if (type == "string") return value.is_string();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  if (!value.is_number()) return false;
  const auto number = value.to_number<double>();
  return type == "number" || (std::isfinite(number) && std::trunc(number) == number);
}

inline bool is_of_any_type(const json::Value& value, const json::Value& types) {
  if (types.is_string()) return is_of_type(value, types.get_string());
  const auto& list = types.get_array();
  return std::any_of(list.begin(), list.end(), [&](const json::Value& type) {
    return is_of_type(value, type.get_string());
  });
}

/// What `low` and `high` of a schema limit.
inline double size_of(const json::Value& value) {
  if (value.is_number()) return value.to_number<double>();
  if (value.is_array()) return static_cast<double>(value.get_array().size());
  if (!value.is_string()) return 0;
  const auto& text = value.get_string();
  const auto begins_character = [](char c) { return (static_cast<unsigned char>(c) >> 6U) != 2; };
  return static_cast<double>(std::count_if(text.begin(), text.end(), begins_character));
}

inline void check_limits(const json::Object& schema,
                         const json::Value& value,
                         const std::string& path) {
  if (value.is_null()) return;
  const auto limit = [&](const char* name, auto holds) {
    const json::Value* bound = schema.if_contains(name);
    if (bound == nullptr) return;
    expect(holds(size_of(value), bound->to_number<double>()), path + " breaks its " + name);
  };
  for (const char* name : {"minimum", "minLength", "minItems"}) limit(name, std::greater_equal<>());
  for (const char* name : {"maximum", "maxLength", "maxItems"}) limit(name, std::less_equal<>());
  limit("exclusiveMinimum", std::greater<>());
}

/// Throws Finding where `value` is not valid by `schema`: types, limits, enum, properties.
inline void check_by_schema(const json::Object& schema,
                            const json::Value& value,
                            const std::string& path) {
  if (const json::Value* types = schema.if_contains("type")) {
    expect(is_of_any_type(value, *types), path + " is of a wrong type");
  }
  if (const json::Value* choices = schema.if_contains("enum")) {
    const auto& list = choices->get_array();
    expect(std::find(list.begin(), list.end(), value) != list.end(), path + " is no choice");
  }
  check_limits(schema, value, path);
  const json::Value* properties = schema.if_contains("properties");
  if (properties == nullptr || !value.is_object()) return;
  for (const auto& property : properties->get_object()) {
    const json::Value* member = value.get_object().if_contains(property.key());
    if (member == nullptr) continue;
    check_by_schema(
        property.value().get_object(), *member, path + "." + std::string(property.key()));
  }
}

}  // namespace drk::fuzz
