// SPDX-License-Identifier: Apache-2.0
// The table of a suite's results.
#include "drk/base/json.h"
#include "drk/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace drk::suite {

namespace {

constexpr std::size_t kMarkWidth = 5;
constexpr std::size_t kExpectedWidth = 8;
constexpr std::size_t kMedianWidth = 7;
constexpr std::size_t kSecondsWidth = 7;

std::string_view mark_of(Agreement agreement) {
  switch (agreement) {
    case Agreement::met:
      return "ok";
    case Agreement::inert:
      return "inert";
    case Agreement::known:
      return "known";
    case Agreement::unmet:
      return "FAIL";
    case Agreement::skipped:
      return "skip";
  }
  return "?";
}

/// "rejected: decoy_kernel, torch_fallback (must name cached_output)"; an outcome that names the
/// reason itself stands alone, and so does the note of a case that was not judged.
std::string verdict_text(const Row& row) {
  if (row.outcome.empty()) return row.note;
  std::vector<std::string> reasons = row.reasons;
  std::erase(reasons, row.outcome);
  std::string text = row.outcome;
  if (!reasons.empty()) text += fmt::format(": {}", fmt::join(reasons, ", "));
  if (!row.note.empty()) text += fmt::format(" ({})", row.note);
  return text;
}

template <class Name>
std::size_t width_of(std::string_view title, std::span<const Case> cases, const Name& name) {
  std::size_t width = title.size();
  for (const Case& one : cases) width = std::max(width, name(one).size());
  return width;
}

}  // namespace

Table::Table(std::span<const Case> cases, Paint paint)
    : problem_width_(width_of("problem", cases, [](const Case& one) { return one.problem; })),
      candidate_width_(width_of("candidate", cases, [](const Case& one) { return one.candidate; })),
      group_width_(width_of("all", cases, [](const Case& one) { return one.group; })),
      paint_(std::move(paint)) {}

std::string Table::header() const {
  return fmt::format("{:<{}}  {:<{}}  {:<{}}  {:<{}}  {:>{}}  {:>{}}  verdict",
                     "",
                     kMarkWidth,
                     "problem",
                     problem_width_,
                     "candidate",
                     candidate_width_,
                     "expected",
                     kExpectedWidth,
                     "median",
                     kMedianWidth,
                     "seconds",
                     kSecondsWidth);
}

std::string Table::line(const Row& row) const {
  std::string mark = fmt::format("{:<{}}", mark_of(row.agreement), kMarkWidth);
  if (paint_) mark = paint_(row.agreement, mark);
  const bool judged = !row.outcome.empty();
  return fmt::format("{}  {:<{}}  {:<{}}  {:<{}}  {:>{}}  {:>{}}  {}",
                     mark,
                     row.problem,
                     problem_width_,
                     row.candidate,
                     candidate_width_,
                     json::name_of(row.expected),
                     kExpectedWidth,
                     row.median_us ? describe_us(*row.median_us) : "-",
                     kMedianWidth,
                     judged ? fmt::format("{:.1f}", row.elapsed_s) : "-",
                     kSecondsWidth,
                     verdict_text(row));
}

std::string Table::summary(const Tally& tally) const {
  std::string line = fmt::format("{:<{}}  {} of {} as expected",
                                 tally.group,
                                 group_width_,
                                 tally.met + tally.inert,
                                 tally.cases - tally.skipped);
  if (tally.unmet > 0) line += fmt::format(", {} not", tally.unmet);
  if (tally.known > 0) line += fmt::format(", {} known gaps", tally.known);
  if (tally.inert > 0) line += fmt::format(", {} inert", tally.inert);
  if (tally.skipped > 0) line += fmt::format(", {} skipped", tally.skipped);
  return line + fmt::format(", {:.1f} s", tally.elapsed_s);
}

std::string describe_us(double us) {
  const auto with_digits = [](double value, std::string_view unit) {
    const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f} {}", value, decimals, unit);
  };
  if (us < 999.5) return with_digits(us, "us");
  if (us < 999.5e3) return with_digits(us / 1e3, "ms");
  return with_digits(us / 1e6, "s");
}

}  // namespace drk::suite
