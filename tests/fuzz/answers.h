// SPDX-License-Identifier: Apache-2.0
// Takes apart all that came back over one connection, by the rules of HTTP/1.1.
#pragma once

#include "drk/http.h"

#include "fuzz/finding.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace drk::fuzz {

class AnswerReader {
 public:
  /// `may_be_bodiless`: there was a HEAD among the requests, so an answer may have none of the body
  /// that it speaks of. `is_cut_off`: the end of `bytes` may be missing.
  struct Options {
    bool may_be_bodiless = false;
    bool is_cut_off = false;
  };
  AnswerReader(std::string_view bytes, Options options) : left_(bytes), options_(options) {}

  /// The next one, in which `body` is empty when it has none. Nothing at the end.
  [[nodiscard]] std::optional<http::Answer> next() {
    if (left_.empty()) return std::nullopt;
    expect(!is_last_, "an answer after \"Connection: close\"");
    try {
      http::Answer answer = take_head();
      const bool has_body = answer.status >= 200 && answer.status != 204;
      if (has_body && !is_at_next_answer()) answer.body = take_body(answer);
      is_last_ = answer.header("connection").value_or("") == "close";
      return answer;
    } catch (const EndsEarly&) {
      left_ = {};
      expect(options_.is_cut_off, "an answer ends early");
      return std::nullopt;
    }
  }

 private:
  struct EndsEarly {};
  static constexpr std::string_view kVersion = "HTTP/1.1 ";

  /// No body of ours begins so.
  [[nodiscard]] bool is_at_next_answer() const {
    return options_.may_be_bodiless && (left_.empty() || left_.starts_with(kVersion));
  }

  [[nodiscard]] http::Answer take_head() {
    http::Answer answer;
    const std::string_view first = take_line();
    expect(first.starts_with(kVersion) && first.size() > 12, "a status line that is none");
    answer.status = number(first.substr(kVersion.size(), 3), 10);
    expect(first[12] == ' ', "a status line without a reason");
    for (std::string_view line = take_line(); !line.empty(); line = take_line()) {
      const std::size_t colon = line.find(": ");
      expect(colon != std::string_view::npos && colon > 0, "a header that is none");
      std::string name(line.substr(0, colon));
      for (char& c : name) {
        expect((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-', "a header's name");
        if (c <= 'Z' && c != '-') c = static_cast<char>(c - 'A' + 'a');
      }
      const std::string_view value = line.substr(colon + 2);
      expect(std::none_of(value.begin(), value.end(), is_control), "a control byte in a header");
      answer.headers.emplace_back(std::move(name), std::string(value));
    }
    return answer;
  }

  [[nodiscard]] std::string take_body(const http::Answer& answer) {
    const auto length = answer.header("content-length");
    const auto coding = answer.header("transfer-encoding");
    expect(!length || !coding, "a body with two ends");
    if (length) return std::string(take(number(*length, 10)));
    if (coding) {
      expect(*coding == "chunked", "an unknown coding");
      return take_chunks();
    }
    expect(answer.header("connection").value_or("") == "close", "a body without an end");
    return std::string(take(left_.size()));
  }

  [[nodiscard]] std::string take_chunks() {
    std::string body;
    for (;;) {
      const std::size_t size = number(take_line(), 16);
      body += take(size);
      expect(take_line().empty(), "a chunk is longer than it says");
      if (size == 0) return body;
    }
  }

  [[nodiscard]] std::string_view take(std::size_t size) {
    if (size > left_.size()) throw EndsEarly{};
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }

  [[nodiscard]] std::string_view take_line() {
    const std::size_t end = left_.find("\r\n");
    if (end == std::string_view::npos) throw EndsEarly{};
    const std::string_view line = take(end);
    (void)take(2);
    return line;
  }

  static std::uint32_t number(std::string_view digits, int base) {
    std::uint32_t value = 0;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
    expect(error == std::errc() && stop == end, "no number: " + std::string(digits));
    return value;
  }

  static bool is_control(char c) { return static_cast<unsigned char>(c) < ' '; }

  std::string_view left_;
  const Options options_;
  bool is_last_ = false;
};

}  // namespace drk::fuzz
