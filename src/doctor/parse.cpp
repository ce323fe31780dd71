// SPDX-License-Identifier: Apache-2.0
// Texts of the system and of Python, read.
#include "doctor/parse.h"

#include "drk/base/json.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace drk::doctor {

namespace {

constexpr std::string_view kBlank = " \t\r\n";

std::string_view stripped(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// What follows the colon of the first line that starts with `name`.
std::optional<std::string_view> field(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && stripped(line.substr(0, colon)) == name) {
      return stripped(line.substr(colon + 1));
    }
  }
  return std::nullopt;
}

template <class Number>
std::optional<Number> leading_number(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  return number;
}

struct Answer {
  std::string version;
  std::vector<std::string> package_dirs;
  std::optional<std::string> torch;
  std::optional<std::string> triton;
  std::optional<std::string> numpy;
};
BOOST_DESCRIBE_STRUCT(Answer, (), (version, package_dirs, torch, triton, numpy))

}  // namespace

std::optional<std::string> parse_cpu_model(std::string_view cpuinfo) {
  const std::optional<std::string_view> model = field(cpuinfo, "model name");
  if (!model) return std::nullopt;
  return std::string(*model);
}

std::optional<std::uint64_t> parse_meminfo(std::string_view meminfo, std::string_view name) {
  const std::optional<std::string_view> value = field(meminfo, name);
  if (!value || !value->ends_with("kB")) return std::nullopt;
  const std::optional<std::uint64_t> kib = leading_number<std::uint64_t>(*value);
  if (!kib) return std::nullopt;
  return *kib * 1024;
}

std::optional<std::uint64_t> parse_memory_limit(std::string_view text) {
  // Version 1 of control groups writes "no limit" as the largest whole number of pages.
  constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;
  const std::optional<std::uint64_t> bytes = leading_number<std::uint64_t>(text);
  if (!bytes || *bytes >= kNoLimit) return std::nullopt;
  return bytes;
}

std::vector<std::uint32_t> parse_version(std::string_view text) {
  std::vector<std::uint32_t> numbers;
  while (const std::optional<std::uint32_t> number = leading_number<std::uint32_t>(text)) {
    numbers.push_back(*number);
    const std::size_t end = text.find_first_not_of("0123456789");
    if (end == std::string_view::npos || text[end] != '.') break;
    text.remove_prefix(end + 1);
  }
  return numbers;
}

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

void parse_python_answer(std::string_view json, Python& python) {
  Answer answer = json::from_json<Answer>(json::parse(json), "answer");
  python.version = std::move(answer.version);
  python.package_dirs = std::move(answer.package_dirs);
  python.torch = std::move(answer.torch);
  python.triton = std::move(answer.triton);
  python.numpy = std::move(answer.numpy);
}

std::string first_and_last_line(std::string_view text) {
  const std::string_view body = stripped(text);
  const std::size_t first_end = body.find('\n');
  if (first_end == std::string_view::npos) return std::string(body);
  return fmt::format(
      "{} ... {}", stripped(body.substr(0, first_end)), stripped(body.substr(body.rfind('\n'))));
}

std::string describe_bytes(std::uint64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace drk::doctor
