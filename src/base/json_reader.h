// SPDX-License-Identifier: Apache-2.0
// Receives what Boost.JSON's parser finds, and reads real numbers exactly.
//
// The parser of Boost 1.81 computes a double from mantissa and exponent with a rounding too many:
// one in ten comes back as its neighbour, so that a stored result would not be what was written.
// (From 1.83 on parse_options::numbers asks for precision, and this file can go.)
#pragma once

#include <boost/json/basic_parser.hpp>
#include <boost/json/value_stack.hpp>

#include <charconv>
#include <cstdint>

namespace drk::json {

/// The handler that boost::json::basic_parser wants. Texts may come in parts, numbers do not: they
/// would only where the parser is fed piece by piece.
class Reader {
 public:
  // NOLINTBEGIN(readability-identifier-naming): the parser looks for these names
  static constexpr std::size_t max_object_size = boost::json::object::max_size();
  static constexpr std::size_t max_array_size = boost::json::array::max_size();
  static constexpr std::size_t max_key_size = boost::json::string::max_size();
  static constexpr std::size_t max_string_size = boost::json::string::max_size();
  // NOLINTEND(readability-identifier-naming)

  using Text = boost::json::string_view;
  using ErrorOut = boost::json::error_code;

  Reader() { stack_.reset(); }
  [[nodiscard]] boost::json::value release() { return stack_.release(); }

  bool on_double(double rounded, Text text, ErrorOut& /*error*/) {
    double exact = rounded;  // stays where the number is out of range
    std::from_chars(text.data(), text.data() + text.size(), exact);
    stack_.push_double(exact);
    return true;
  }
  bool on_int64(std::int64_t number, Text /*text*/, ErrorOut& /*error*/) {
    stack_.push_int64(number);
    return true;
  }
  bool on_uint64(std::uint64_t number, Text /*text*/, ErrorOut& /*error*/) {
    stack_.push_uint64(number);
    return true;
  }
  bool on_bool(bool value, ErrorOut& /*error*/) {
    stack_.push_bool(value);
    return true;
  }
  bool on_null(ErrorOut& /*error*/) {
    stack_.push_null();
    return true;
  }
  bool on_string(Text text, std::size_t /*size*/, ErrorOut& /*error*/) {
    stack_.push_string(text);
    return true;
  }
  bool on_key(Text text, std::size_t /*size*/, ErrorOut& /*error*/) {
    stack_.push_key(text);
    return true;
  }
  bool on_string_part(Text text, std::size_t /*size*/, ErrorOut& /*error*/) {
    stack_.push_chars(text);
    return true;
  }
  bool on_key_part(Text text, std::size_t /*size*/, ErrorOut& /*error*/) {
    stack_.push_chars(text);
    return true;
  }
  bool on_array_end(std::size_t count, ErrorOut& /*error*/) {
    stack_.push_array(count);
    return true;
  }
  bool on_object_end(std::size_t count, ErrorOut& /*error*/) {
    stack_.push_object(count);
    return true;
  }

  bool on_document_begin(ErrorOut& /*error*/) { return true; }
  bool on_document_end(ErrorOut& /*error*/) { return true; }
  bool on_object_begin(ErrorOut& /*error*/) { return true; }
  bool on_array_begin(ErrorOut& /*error*/) { return true; }
  bool on_number_part(Text /*text*/, ErrorOut& /*error*/) { return true; }
  bool on_comment_part(Text /*text*/, ErrorOut& /*error*/) { return true; }
  bool on_comment(Text /*text*/, ErrorOut& /*error*/) { return true; }

 private:
  boost::json::value_stack stack_;
};

}  // namespace drk::json
