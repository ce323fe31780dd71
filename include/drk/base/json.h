// SPDX-License-Identifier: Apache-2.0
// Described C++ types to JSON and back, by one set of rules.
//
//   struct            BOOST_DESCRIBE_STRUCT        object; unknown members are errors, absent ones
//                                                  keep the default that the struct itself gives
//   enum              BOOST_DESCRIBE_ENUM          the enumerator's name
//   std::variant      alternatives with `kKind`    the alternative's object plus "kind": kKind
//   std::optional     absent member; null is read as absent
//   double            number; "nan", "inf", "-inf" where JSON has none
//   std::string       invalid UTF-8 is written with U+FFFD in place of each bad byte
#pragma once

#include <boost/describe.hpp>
#include <boost/json/value.hpp>
#include <boost/mp11.hpp>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace drk::json {

using Value = boost::json::value;
using Object = boost::json::object;

/// Parses a JSON text. Throws Error{invalid_argument} with the offset of the first bad byte.
[[nodiscard]] Value parse(std::string_view text);
/// One line, no spaces.
[[nodiscard]] std::string dump(const Value& value);
/// Indented by two spaces, members in order, a newline at the end.
[[nodiscard]] std::string dump_pretty(const Value& value);

template <class T>
[[nodiscard]] Value to_json(const T& value);
/// `path` names the value in error texts ("task.num_correct_trials"). Throws
/// Error{invalid_argument}: "<path>: expected an integer, got a string".
template <class T>
[[nodiscard]] T from_json(const Value& value, const std::string& path = "value");

namespace detail {

[[noreturn]] void fail(const std::string& path, std::string_view wanted, const Value& got);
[[noreturn]] void fail_unknown(const std::string& path, std::string_view member);
[[noreturn]] void fail_choice(const std::string& path,
                              std::string_view got,
                              const std::vector<std::string>& choices);
/// "path.name"
std::string member(const std::string& path, std::string_view name);
Value from_double(double value);
double to_double(const Value& value, const std::string& path);
std::int64_t to_int64(const Value& value, const std::string& path);
std::uint64_t to_uint64(const Value& value, const std::string& path);
Value from_text(const std::string& text);

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class T>
struct IsMap<std::map<std::string, T>> : std::true_type {};
template <class T>
struct IsVariant : std::false_type {};
template <class... Ts>
struct IsVariant<std::variant<Ts...>> : std::true_type {};

template <class T>
using Members =
    boost::describe::describe_members<T,
                                      boost::describe::mod_public | boost::describe::mod_inherited>;

template <class T>
Object object_of(const T& value) {
  Object object;
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    const auto& field = value.*member.pointer;
    if constexpr (IsOptional<std::decay_t<decltype(field)>>::value) {
      if (field) object[member.name] = to_json(*field);
    } else {
      object[member.name] = to_json(field);
    }
  });
  return object;
}

template <class T>
T struct_from(const Object& object, const std::string& path, bool has_kind) {
  T result{};
  std::size_t known = has_kind ? 1 : 0;
  boost::mp11::mp_for_each<Members<T>>([&](auto member) {
    const Value* found = object.if_contains(member.name);
    if (found == nullptr) return;
    ++known;
    auto& field = result.*member.pointer;
    field = from_json<std::decay_t<decltype(field)>>(*found, detail::member(path, member.name));
  });
  if (known == object.size()) return result;
  for (const auto& entry : object) {
    bool is_known = has_kind && entry.key() == "kind";
    boost::mp11::mp_for_each<Members<T>>(
        [&](auto member) { is_known |= entry.key() == member.name; });
    if (!is_known) fail_unknown(path, entry.key());
  }
  return result;
}

template <class E>
std::vector<std::string> enumerator_names() {
  std::vector<std::string> names;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<E>>(
      [&](auto enumerator) { names.emplace_back(enumerator.name); });
  return names;
}

template <class V>
V variant_from(const Value& value, const std::string& path) {
  const Object* object = value.if_object();
  if (object == nullptr) fail(path, "an object", value);
  const Value* kind = object->if_contains("kind");
  if (kind == nullptr || !kind->is_string()) fail(path, "an object with a text \"kind\"", value);
  const std::string_view name(kind->get_string().data(), kind->get_string().size());
  std::optional<V> result;
  std::vector<std::string> choices;
  boost::mp11::mp_for_each<boost::mp11::mp_transform<std::type_identity, V>>([&](auto identity) {
    using T = typename decltype(identity)::type;
    choices.emplace_back(T::kKind);
    if (name == T::kKind) result = struct_from<T>(*object, path, true);
  });
  if (!result) fail_choice(path + ".kind", name, choices);
  return *std::move(result);
}

}  // namespace detail

/// The wire name of an enumerator.
template <class E>
requires std::is_enum_v<E>
[[nodiscard]] const char* name_of(E value) {
  const char* name = boost::describe::enum_to_string(value, static_cast<const char*>(nullptr));
  return name == nullptr ? "?" : name;
}

template <class E>
requires std::is_enum_v<E>
[[nodiscard]] std::optional<E> enum_from(std::string_view name) {
  std::optional<E> result;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<E>>([&](auto enumerator) {
    if (name == enumerator.name) result = enumerator.value;
  });
  return result;
}

template <class T>
Value to_json(const T& value) {
  if constexpr (std::is_same_v<T, Value> || std::is_same_v<T, bool>) {
    return Value(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return detail::from_text(value);
  } else if constexpr (std::is_enum_v<T>) {
    return Value(name_of(value));
  } else if constexpr (std::signed_integral<T>) {
    return Value(static_cast<std::int64_t>(value));
  } else if constexpr (std::unsigned_integral<T>) {
    return Value(static_cast<std::uint64_t>(value));
  } else if constexpr (std::floating_point<T>) {
    return detail::from_double(value);
  } else if constexpr (detail::IsOptional<T>::value) {
    return value ? to_json(*value) : Value(nullptr);
  } else if constexpr (detail::IsVector<T>::value) {
    boost::json::array array;
    for (const auto& item : value) array.push_back(to_json(item));
    return array;
  } else if constexpr (detail::IsMap<T>::value) {
    Object object;
    for (const auto& [key, item] : value) object[key] = to_json(item);
    return object;
  } else if constexpr (detail::IsVariant<T>::value) {
    return std::visit(
        [](const auto& alternative) {
          Object object;
          object["kind"] = std::decay_t<decltype(alternative)>::kKind;
          for (auto& entry : detail::object_of(alternative)) object[entry.key()] = entry.value();
          return Value(std::move(object));
        },
        value);
  } else {
    return detail::object_of(value);
  }
}

template <class T>
T from_json(const Value& value, const std::string& path) {
  if constexpr (std::is_same_v<T, Value>) {
    return value;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_bool()) detail::fail(path, "true or false", value);
    return value.get_bool();
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!value.is_string()) detail::fail(path, "a text", value);
    return std::string(value.get_string().data(), value.get_string().size());
  } else if constexpr (std::is_enum_v<T>) {
    if (!value.is_string()) detail::fail(path, "a text", value);
    const std::string_view name(value.get_string().data(), value.get_string().size());
    const std::optional<T> found = enum_from<T>(name);
    if (!found) detail::fail_choice(path, name, detail::enumerator_names<T>());
    return *found;
  } else if constexpr (std::integral<T>) {
    using Wide = std::conditional_t<std::signed_integral<T>, std::int64_t, std::uint64_t>;
    Wide wide = 0;
    if constexpr (std::signed_integral<T>) {
      wide = detail::to_int64(value, path);
    } else {
      wide = detail::to_uint64(value, path);
    }
    if (!std::in_range<T>(wide)) detail::fail(path, "a smaller integer", value);
    return static_cast<T>(wide);
  } else if constexpr (std::floating_point<T>) {
    return static_cast<T>(detail::to_double(value, path));
  } else if constexpr (detail::IsOptional<T>::value) {
    if (value.is_null()) return std::nullopt;
    return from_json<typename T::value_type>(value, path);
  } else if constexpr (detail::IsVector<T>::value) {
    if (!value.is_array()) detail::fail(path, "a list", value);
    T result;
    for (const Value& item : value.get_array()) {
      result.push_back(from_json<typename T::value_type>(
          item, path + "[" + std::to_string(result.size()) + "]"));
    }
    return result;
  } else if constexpr (detail::IsMap<T>::value) {
    if (!value.is_object()) detail::fail(path, "an object", value);
    T result;
    for (const auto& entry : value.get_object()) {
      const std::string key(entry.key());
      result[key] = from_json<typename T::mapped_type>(entry.value(), detail::member(path, key));
    }
    return result;
  } else if constexpr (detail::IsVariant<T>::value) {
    return detail::variant_from<T>(value, path);
  } else {
    if (!value.is_object()) detail::fail(path, "an object", value);
    return detail::struct_from<T>(value.get_object(), path, false);
  }
}

}  // namespace drk::json
