// SPDX-License-Identifier: Apache-2.0
// Structured lines, written by spdlog.
#include "gym/log.h"

#include "drk/base/clock.h"
#include "drk/base/error.h"
#include "drk/base/utf8.h"

#include <boost/json/serialize.hpp>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace drk::gym {

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;
constexpr std::size_t kKeptFiles = 5;

spdlog::level::level_enum to_spdlog(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

std::shared_ptr<spdlog::sinks::sink> open_sink(const std::string& file) {
  if (file.empty()) return std::make_shared<spdlog::sinks::stderr_sink_mt>();
  try {
    return std::make_shared<spdlog::sinks::rotating_file_sink_mt>(file, kMaxFileBytes, kKeptFiles);
  } catch (const spdlog::spdlog_ex& error) {
    throw Error(ErrorCode::unavailable, "log: " + std::string(error.what()));
  }
}

}  // namespace

class Log::Impl {
 public:
  explicit Impl(const LogOptions& options) : logger_("drk", open_sink(options.file)) {
    logger_.set_pattern("%v");
    logger_.set_level(to_spdlog(options.level));
    logger_.flush_on(spdlog::level::debug);  // a crash must not take the last lines along
  }

  void write(LogLevel level, std::string_view event, std::initializer_list<Field> fields) {
    if (!logger_.should_log(to_spdlog(level))) return;
    static constexpr std::array kNames = {"debug", "info", "warn", "error"};
    boost::json::object line;
    line["time"] = utc_now_text();
    line["level"] = kNames.at(static_cast<std::size_t>(level));
    line["event"] = std::string(event);
    for (const Field& field : fields) {
      if (!field.value.is_null()) line[field.name] = field.value;
    }
    logger_.log(to_spdlog(level), "{}", sanitize_utf8(boost::json::serialize(line)));
  }

 private:
  spdlog::logger logger_;
};

Log::Log(const LogOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Log::~Log() = default;

void Log::debug(std::string_view event, std::initializer_list<Field> fields) {
  impl_->write(LogLevel::debug, event, fields);
}
void Log::info(std::string_view event, std::initializer_list<Field> fields) {
  impl_->write(LogLevel::info, event, fields);
}
void Log::warn(std::string_view event, std::initializer_list<Field> fields) {
  impl_->write(LogLevel::warn, event, fields);
}
void Log::error(std::string_view event, std::initializer_list<Field> fields) {
  impl_->write(LogLevel::error, event, fields);
}

}  // namespace drk::gym
