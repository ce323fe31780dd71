// SPDX-License-Identifier: Apache-2.0
// What happened, one JSON object a line: {"time", "level", "event", then what it concerns}.
#pragma once

#include <boost/json/value.hpp>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace drk::gym {

enum class LogLevel : std::uint8_t { debug, info, warn, error };

struct LogOptions {
  LogLevel level = LogLevel::info;
  std::string file;  ///< Empty: standard error. A file is continued, and turned over at 64 MiB.
};

/// Thread-safe.
class Log {
 public:
  struct Field {
    Field(std::string_view field, std::string_view text) : name(field), value(text) {}
    Field(std::string_view field, const std::string& text) : name(field), value(text) {}
    Field(std::string_view field, const char* text) : name(field), value(text) {}
    template <std::integral T>
    Field(std::string_view field, T number) : name(field), value(number) {}
    Field(std::string_view field, double number) : name(field), value(number) {}

    std::string_view name;
    boost::json::value value;
  };

  /// Throws Error{unavailable} when the file cannot be written.
  explicit Log(const LogOptions& options);
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log();

  void debug(std::string_view event, std::initializer_list<Field> fields = {});
  void info(std::string_view event, std::initializer_list<Field> fields = {});
  void warn(std::string_view event, std::initializer_list<Field> fields = {});
  void error(std::string_view event, std::initializer_list<Field> fields = {});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drk::gym
