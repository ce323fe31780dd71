// SPDX-License-Identifier: Apache-2.0
// The JSON schema (2020-12) of described C++ types, by the rules of drk/base/json.h: what to_json
// writes is valid by it, and what it lets pass from_json can read.
//
//   struct            "object": properties, required are those that are always written (all but
//                     std::optional), no others
//   enum              "string" of the enumerators' names
//   std::variant      "oneOf" its alternatives, each with a required "kind" that is its kKind
//   std::optional     the schema of its value, and not required where it is a member
//   std::vector       "array";  std::map  "object" with additionalProperties
//   integers          "integer" with the ends of the type, where a double holds them exactly
//   double            "number", or one of the texts "nan", "inf", "-inf"
//   json::Value       {}: anything
//
// Schemas are written out where they are used, so a type that holds itself has none.
#pragma once

#include "drk/base/json.h"

#include <boost/json/array.hpp>

namespace drk::json {

template <class T>
[[nodiscard]] Object schema_of();

namespace detail {

template <class T>
void add_members(Object& properties, boost::json::array& required) {
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    using Field = std::decay_t<decltype(std::declval<T>().*member.pointer)>;
    properties[member.name] = schema_of<Field>();
    if constexpr (!IsOptional<Field>::value) required.emplace_back(member.name);
  });
}

/// `kind` is the alternative's name in a variant, or nullptr.
template <class T>
Object schema_of_struct(const char* kind) {
  Object properties;
  boost::json::array required;
  if (kind != nullptr) {
    properties["kind"] = Object{{"const", kind}};
    required.emplace_back("kind");
  }
  add_members<T>(properties, required);
  Object schema;
  schema["type"] = "object";
  schema["properties"] = std::move(properties);
  schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return schema;
}

template <class V>
Object schema_of_variant() {
  boost::json::array alternatives;
  boost::mp11::mp_for_each<boost::mp11::mp_transform<std::type_identity, V>>([&](auto identity) {
    using T = typename decltype(identity)::type;
    alternatives.push_back(schema_of_struct<T>(T::kKind));
  });
  return {{"oneOf", std::move(alternatives)}};
}

template <class E>
Object schema_of_enum() {
  const std::vector<std::string> names = enumerator_names<E>();
  return {{"type", "string"}, {"enum", boost::json::array(names.begin(), names.end())}};
}

template <class T>
Object schema_of_integer() {
  Object schema = {{"type", "integer"}};
  if constexpr (std::is_unsigned_v<T>) schema["minimum"] = 0;
  if constexpr (sizeof(T) < sizeof(std::int64_t)) {
    schema["minimum"] = static_cast<std::int64_t>(std::numeric_limits<T>::min());
    schema["maximum"] = static_cast<std::int64_t>(std::numeric_limits<T>::max());
  }
  return schema;
}

inline Object schema_of_real() {
  const Object number = {{"type", "number"}};
  const Object text = {{"enum", boost::json::array{"nan", "inf", "-inf"}}};
  return {{"oneOf", boost::json::array{number, text}}};
}

}  // namespace detail

template <class T>
Object schema_of() {
  if constexpr (std::is_same_v<T, Value>) {
    return {};
  } else if constexpr (std::is_same_v<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::is_same_v<T, std::string>) {
    return {{"type", "string"}};
  } else if constexpr (std::is_enum_v<T>) {
    return detail::schema_of_enum<T>();
  } else if constexpr (std::integral<T>) {
    return detail::schema_of_integer<T>();
  } else if constexpr (std::floating_point<T>) {
    return detail::schema_of_real();
  } else if constexpr (detail::IsOptional<T>::value) {
    return schema_of<typename T::value_type>();
  } else if constexpr (detail::IsVector<T>::value) {
    return {{"type", "array"}, {"items", schema_of<typename T::value_type>()}};
  } else if constexpr (detail::IsMap<T>::value) {
    return {{"type", "object"}, {"additionalProperties", schema_of<typename T::mapped_type>()}};
  } else if constexpr (detail::IsVariant<T>::value) {
    return detail::schema_of_variant<T>();
  } else {
    return detail::schema_of_struct<T>(nullptr);
  }
}

}  // namespace drk::json
