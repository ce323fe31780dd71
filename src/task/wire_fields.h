// SPDX-License-Identifier: Apache-2.0
// The fields of a POST /evaluate body: the one table that requests are checked by and that the
// body's JSON schema is made of.
#pragma once

#include "drk/base/json.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace drk::task {

enum class FieldType : std::uint8_t {
  text,
  code,     ///< A text that code_check.h finds nothing wrong with; its length is without blanks.
  integer,  ///< 5.0 is one too.
  number,
  boolean,
  list,
  object,
};

enum class Need : std::uint8_t {
  optional,
  required,
  by_kernelbench,  ///< Required there, and not looked at in kernel_simple.
};

struct Field {
  static constexpr double kNoEnd = std::numeric_limits<double>::infinity();

  std::string_view name;
  FieldType type = FieldType::text;
  Need need = Need::optional;
  bool nullable = false;               ///< null reads as absent.
  std::string_view default_json = {};  ///< Empty: none.
  double low = -kNoEnd;  ///< Of numbers; of the length of texts (characters) and lists.
  double high = kNoEnd;
  bool above_low = false;  ///< `low` itself is not allowed.
  std::span<const std::string_view> choices = {};
  const Field* member = nullptr;  ///< The one member of an object that is looked at.
  std::string_view description = {};
};

/// In the order in which they are checked.
[[nodiscard]] std::span<const Field> wire_fields() noexcept;

/// Checks a body field by field, then hands out values: the body's, else the table's default.
class WireBody {
 public:
  /// Throws Error{invalid_argument} naming the field. `body` must outlive this.
  explicit WireBody(const json::Object& body);

  /// Nothing where the body has none (or null) and the table no default. `name` is in the table.
  template <class T>
  [[nodiscard]] std::optional<T> maybe(std::string_view name) const {
    const json::Value found = value(name);
    if (found.is_null()) return std::nullopt;
    if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      return static_cast<T>(found.to_number<double>());
    } else {
      return json::from_json<T>(found, std::string(name));
    }
  }
  /// Of a field that always has a value: it is required or has a default.
  template <class T>
  [[nodiscard]] T get(std::string_view name) const {
    return maybe<T>(name).value();
  }

 private:
  [[nodiscard]] json::Value value(std::string_view name) const;

  const json::Object& body_;
};

}  // namespace drk::task
