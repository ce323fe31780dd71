// SPDX-License-Identifier: Apache-2.0
// JSON texts and the error texts of the codec.
#include "drk/base/json.h"

#include "drk/base/error.h"
#include "drk/base/utf8.h"

#include "json_reader.h"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace drk::json {

Value parse(std::string_view text) {
  boost::json::error_code error;
  boost::json::parse_options options;
  options.max_depth = 256;
  boost::json::basic_parser<Reader> parser(options);
  const std::size_t consumed = parser.write_some(false, text.data(), text.size(), error);
  const bool trailing =
      !error && text.find_first_not_of(" \t\r\n", consumed) != std::string_view::npos;
  if (error || trailing) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("not JSON: {} at byte {} of {}",
                            trailing ? "text after the value" : error.message(),
                            consumed,
                            text.size()));
  }
  return parser.handler().release();
}

namespace {

/// The shortest decimal that reads back as the same number: "0.25", where Boost writes "2.5E-1".
void append_number(double number, std::string& out) {
  if (!std::isfinite(number)) {  // JSON has none: as to_json writes it
    out += std::isnan(number) ? "\"nan\"" : number > 0 ? "\"inf\"" : "\"-inf\"";
    return;
  }
  const std::size_t begin = out.size();
  fmt::format_to(std::back_inserter(out), "{}", number);
  if (out.find_first_of(".e", begin) == std::string::npos) out += ".0";
}

void append(const Value& value, std::string& out) {
  if (const double* number = value.if_double()) return append_number(*number, out);
  if (const boost::json::array* items = value.if_array()) {
    const char* separator = "[";
    for (const Value& item : *items) {
      out += std::exchange(separator, ",");
      append(item, out);
    }
    out += items->empty() ? "[]" : "]";
  } else if (const Object* object = value.if_object()) {
    const char* separator = "{";
    for (const auto& entry : *object) {
      out += std::exchange(separator, ",");
      out += boost::json::serialize(entry.key());
      out += ':';
      append(entry.value(), out);
    }
    out += object->empty() ? "{}" : "}";
  } else {
    out += boost::json::serialize(value);
  }
}

}  // namespace

std::string dump(const Value& value) {
  std::string out;
  append(value, out);
  return out;
}

namespace {

bool is_flat(const Value& value) {
  const auto scalar = [](const Value& v) { return !v.is_object() && !v.is_array(); };
  if (value.is_array()) {
    const auto& items = value.get_array();
    return std::all_of(items.begin(), items.end(), scalar);
  }
  return scalar(value) || (value.is_object() && value.get_object().empty());
}

void pretty(const Value& value, int depth, std::string& out) {
  if (is_flat(value)) {
    append(value, out);
    return;
  }
  const bool is_object = value.is_object();
  const std::string indent(static_cast<std::size_t>(depth + 1) * 2, ' ');
  out += is_object ? "{" : "[";
  const char* separator = "\n";
  const auto begin_item = [&] {
    out += separator + indent;
    separator = ",\n";
  };
  if (is_object) {
    for (const auto& entry : value.get_object()) {
      begin_item();
      out += boost::json::serialize(boost::json::value(entry.key())) + ": ";
      pretty(entry.value(), depth + 1, out);
    }
  } else {
    for (const Value& item : value.get_array()) {
      begin_item();
      pretty(item, depth + 1, out);
    }
  }
  out += "\n" + indent.substr(2) + (is_object ? "}" : "]");
}

std::string kind_of(const Value& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      return "null";
    case boost::json::kind::bool_:
      return value.get_bool() ? "true" : "false";
    case boost::json::kind::int64:
    case boost::json::kind::uint64:
    case boost::json::kind::double_:
      return boost::json::serialize(value);
    case boost::json::kind::string:
      return "the text " + boost::json::serialize(value).substr(0, 60);
    case boost::json::kind::array:
      return "a list";
    case boost::json::kind::object:
      return "an object";
  }
  return "?";
}

}  // namespace

std::string dump_pretty(const Value& value) {
  std::string out;
  pretty(value, 0, out);
  out += '\n';
  return out;
}

namespace detail {

void fail(const std::string& path, std::string_view wanted, const Value& got) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: expected {}, got {}", path, wanted, kind_of(got)));
}

void fail_unknown(const std::string& path, std::string_view member) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: unknown member \"{}\"", path, member));
}

void fail_choice(const std::string& path,
                 std::string_view got,
                 const std::vector<std::string>& choices) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: \"{}\" is not one of {}", path, got, fmt::join(choices, ", ")));
}

std::string member(const std::string& path, std::string_view name) {
  return fmt::format("{}.{}", path, name);
}

Value from_double(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double to_double(const Value& value, const std::string& path) {
  if (value.is_double()) return value.get_double();
  if (value.is_int64()) return static_cast<double>(value.get_int64());
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  if (value.is_string()) {
    if (value.get_string() == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (value.get_string() == "inf") return std::numeric_limits<double>::infinity();
    if (value.get_string() == "-inf") return -std::numeric_limits<double>::infinity();
  }
  fail(path, "a number", value);
}

std::int64_t to_int64(const Value& value, const std::string& path) {
  if (value.is_int64()) return value.get_int64();
  if (value.is_uint64() && std::in_range<std::int64_t>(value.get_uint64())) {
    return static_cast<std::int64_t>(value.get_uint64());
  }
  fail(path, "an integer", value);
}

std::uint64_t to_uint64(const Value& value, const std::string& path) {
  if (value.is_uint64()) return value.get_uint64();
  if (value.is_int64() && value.get_int64() >= 0) {
    return static_cast<std::uint64_t>(value.get_int64());
  }
  fail(path, "an integer of at least 0", value);
}

Value from_text(const std::string& text) {
  return Value(is_valid_utf8(text) ? text : sanitize_utf8(text));
}

}  // namespace detail
}  // namespace drk::json
