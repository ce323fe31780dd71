// SPDX-License-Identifier: Apache-2.0
// Status lines, headers, dates.
#include "http/reply_head.h"

#include <fmt/format.h>

#include <array>
#include <ctime>
#include <iterator>

namespace drk::http {

namespace {

/// "Sun, 06 Nov 1994 08:49:37 GMT"; not by strftime, whose names follow the locale.
std::string format_date(std::time_t seconds) {
  constexpr std::array<std::string_view, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<std::string_view, 12> kMonths{
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT",
                     kDays.at(static_cast<std::size_t>(utc.tm_wday)),
                     utc.tm_mday,
                     kMonths.at(static_cast<std::size_t>(utc.tm_mon)),
                     utc.tm_year + 1900,
                     utc.tm_hour,
                     utc.tm_min,
                     utc.tm_sec);
}

/// Formatted once a second and thread.
std::string_view date() {
  thread_local std::time_t seconds = 0;
  thread_local std::string text;
  const std::time_t now = std::time(nullptr);
  if (now != seconds) {
    text = format_date(now);
    seconds = now;
  }
  return text;
}

void append_clean(std::string& out, std::string_view text) {
  for (const char c : text) out.push_back(static_cast<unsigned char>(c) < ' ' ? ' ' : c);
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  append_clean(out, name);
  out += ": ";
  append_clean(out, value);
  out += "\r\n";
}

}  // namespace

std::string_view reason_phrase(std::uint32_t status) noexcept {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Unknown";
  }
}

bool may_have_body(std::uint32_t status) noexcept {
  return status >= 200 && status != 204 && status != 304;
}

std::string write_head(const Reply& reply, const AnswerForm& form, Delimiter delimiter) {
  std::string out;
  out.reserve(256);
  const auto end = std::back_inserter(out);
  fmt::format_to(end, "HTTP/1.1 {} {}\r\n", reply.status, reason_phrase(reply.status));
  append_header(out, "Date", date());
  if (may_have_body(reply.status)) {
    if (!reply.content_type.empty()) append_header(out, "Content-Type", reply.content_type);
    if (delimiter == Delimiter::length) {
      fmt::format_to(end, "Content-Length: {}\r\n", reply.body.size());
    } else if (delimiter == Delimiter::chunks) {
      append_header(out, "Transfer-Encoding", "chunked");
    }
  }
  if (!form.keep_alive) {
    append_header(out, "Connection", "close");
  } else if (form.http_1_0) {
    append_header(out, "Connection", "keep-alive");
  }
  for (const auto& [name, value] : reply.headers) append_header(out, name, value);
  out += "\r\n";
  return out;
}

}  // namespace drk::http
