// SPDX-License-Identifier: Apache-2.0
// What was wrong, in words.
#include "render_cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <vector>

namespace drk::cli {

namespace {

constexpr std::size_t kContextLines = 2;
constexpr std::size_t kMaxMessageLines = 20;

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

/// A line of source that fits a screen.
std::string shortened(std::string_view line) {
  constexpr std::size_t kMaxBytes = 200;
  const bool fits = line.size() <= kMaxBytes;
  return printable(line.substr(0, kMaxBytes)) + (fits ? "" : " ...");
}

bool is_of_elements(task::MismatchKind kind) {
  return kind == task::MismatchKind::value || kind == task::MismatchKind::nan ||
         kind == task::MismatchKind::infinity;
}

std::string render_wrong_share(const task::Mismatch& mismatch) {
  if (mismatch.element_count == 0) return "";
  const double share =
      static_cast<double>(mismatch.wrong_count) / static_cast<double>(mismatch.element_count);
  return fmt::format("  {} of {} elements are wrong ({:.3g} %)\n",
                     mismatch.wrong_count,
                     mismatch.element_count,
                     100 * share);
}

std::string render_element_mismatch(const task::Mismatch& mismatch) {
  std::string place = one_line(mismatch.path);
  if (!mismatch.first_index.empty()) {
    place += fmt::format("[{}]", fmt::join(mismatch.first_index, ", "));
  }
  std::string text = fmt::format(
      "  {}: expected {}, got {}", place, one_line(mismatch.expected), one_line(mismatch.got));
  if (mismatch.kind == task::MismatchKind::value && mismatch.tolerance > 0) {
    text += fmt::format(" (off by more than the {:.3g} allowed)", mismatch.tolerance);
  }
  return text + "\n" + render_wrong_share(mismatch);
}

/// Over the trial that was wrong, the last one.
std::string render_errors(const task::Observations& observations) {
  for (auto trial = observations.trials.rbegin(); trial != observations.trials.rend(); ++trial) {
    const task::Comparison& comparison = trial->comparison;
    if (!comparison.mismatch) continue;
    return fmt::format("  largest errors: {:.3g} absolute, {:.3g} relative\n",
                       comparison.max_abs_error,
                       comparison.max_rel_error);
  }
  return "";
}

std::string render_mismatch(const task::WrongOutput& wrong, const task::Observations& seen) {
  const task::Mismatch& mismatch = wrong.mismatch;
  if (is_of_elements(mismatch.kind)) return render_element_mismatch(mismatch) + render_errors(seen);
  return fmt::format("  {}: expected {}, got {}\n",
                     one_line(mismatch.path),
                     one_line(mismatch.expected),
                     one_line(mismatch.got));
}

std::string render_message(const task::PythonError& error) {
  const std::string message = printable(error.type + ": " + error.message);
  const std::vector<std::string_view> lines = split_lines(message);
  std::string text;
  for (std::size_t i = 0; i < std::min(lines.size(), kMaxMessageLines); ++i) {
    text += fmt::format("  {}\n", lines[i]);
  }
  if (lines.size() > kMaxMessageLines) {
    text += fmt::format("  ... {} more lines\n", lines.size() - kMaxMessageLines);
  }
  return text;
}

std::string render_place(const task::Result& result,
                         std::size_t line,
                         const Style& style,
                         std::optional<std::size_t> reply_line) {
  const bool reference = is_of_reference(result);
  const std::string& code =
      reference ? result.manifest.reference.text : result.manifest.candidate.text;
  const std::string excerpt = source_excerpt(code, line, style);
  if (excerpt.empty()) return "";
  std::string title =
      fmt::format("  line {} of the {}", line, reference ? "reference" : "candidate");
  if (reply_line && !reference)
    title += fmt::format(" (line {} of the reply)", *reply_line + line - 1);
  return title + ":\n" + excerpt;
}

std::string render_failure(const task::Failure& failure,
                           const task::Result& result,
                           const Style& style,
                           std::optional<std::size_t> reply_line) {
  std::string text = fmt::format("  {}\n", one_line(failure.what));
  if (failure.death && failure.what.find(failure.death->what) == std::string::npos) {
    text += fmt::format("  the process: {}\n", one_line(failure.death->what));
  }
  if (failure.error) {
    text += render_message(*failure.error);
    if (failure.error->line) text += render_place(result, *failure.error->line, style, reply_line);
  }
  return text;
}

/// Outcomes that carry a text of their own.
std::string render_what(const task::Verdict& verdict) {
  return std::visit(
      [](const auto& outcome) -> std::string {
        if constexpr (requires { outcome.what; }) {
          return fmt::format("  {}\n", one_line(outcome.what));
        } else {
          return "";
        }
      },
      verdict.outcome);
}

}  // namespace

const task::Failure* failure_of(const task::Verdict& verdict) {
  return std::visit(
      [](const auto& outcome) -> const task::Failure* {
        if constexpr (requires { outcome.failure.has_value(); }) {
          return outcome.failure ? &*outcome.failure : nullptr;
        } else if constexpr (requires { outcome.failure; }) {
          return &outcome.failure;
        } else {
          return nullptr;
        }
      },
      verdict.outcome);
}

bool is_of_reference(const task::Result& result) noexcept {
  return result.observations.reference_failure && !result.observations.candidate_failure;
}

std::string source_excerpt(std::string_view code, std::size_t line, const Style& style) {
  const std::vector<std::string_view> lines = split_lines(code);
  if (line == 0 || line > lines.size()) return "";
  const std::size_t first = line > kContextLines ? line - kContextLines : 1;
  const std::size_t last = std::min(line + kContextLines, lines.size());
  const std::size_t width = std::to_string(last).size();
  std::string text;
  for (std::size_t i = first; i <= last; ++i) {
    const std::string mark = i == line ? ">" : " ";
    std::string shown = fmt::format("  {} {:>{}} | {}", mark, i, width, shortened(lines[i - 1]));
    shown.erase(shown.find_last_not_of(' ') + 1);
    text += (i == line ? style.bad(shown) : style.faint(shown)) + "\n";
  }
  return text;
}

std::string render_cause(const task::Result& result,
                         const Style& style,
                         std::optional<std::size_t> reply_line) {
  if (const auto* wrong = std::get_if<task::WrongOutput>(&result.verdict.outcome)) {
    return render_mismatch(*wrong, result.observations);
  }
  const task::Failure* failure = failure_of(result.verdict);
  std::string text = render_what(result.verdict);
  if (failure == nullptr) return text;
  const std::string explained = render_failure(*failure, result, style, reply_line);
  // An outcome's text often is the failure's own.
  return explained.starts_with(text) ? explained : text + explained;
}

}  // namespace drk::cli
