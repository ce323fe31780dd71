// SPDX-License-Identifier: Apache-2.0
// The report for people: a line for each check, its purpose and remedy where it needs one.
#include "drk/base/json.h"
#include "drk/doctor.h"

#include <fmt/format.h>

#include <algorithm>

namespace drk::doctor {

namespace {

std::size_t name_width(const std::vector<Check>& checks) {
  std::size_t width = 0;
  for (const Check& check : checks) width = std::max(width, check.name.size());
  return width;
}

std::string render_check(const Check& check, std::size_t width, const Paint& paint) {
  std::string word = fmt::format("{:<4}", json::name_of(check.status));
  if (paint) word = paint(check.status, word);
  std::string text = fmt::format("  {}  {:<{}}  {}\n", word, check.name, width, check.found);
  const std::string indent(width + 10, ' ');
  if (check.status != Status::ok) text += fmt::format("{}for: {}\n", indent, check.purpose);
  if (check.remedy) text += fmt::format("{}do:  {}\n", indent, *check.remedy);
  return text;
}

}  // namespace

std::string render(const Report& report, const Paint& paint) {
  const std::size_t width = name_width(report.checks);
  std::string text;
  std::string area;
  for (const Check& check : report.checks) {
    if (check.area != area) text += fmt::format("{}\n", check.area);
    area = check.area;
    text += render_check(check, width, paint);
  }
  text += report.can_judge ? "\nThis machine can judge candidates"
                           : "\nThis machine cannot judge candidates yet: see what failed";
  if (report.can_judge && report.facts.trial.mode == task::Mode::interpreter) {
    text += ", in Triton's interpreter: right or wrong, but not how fast";
  }
  return text + ".\n";
}

}  // namespace drk::doctor
