// SPDX-License-Identifier: Apache-2.0
// Verdicts against what a case expects of them.
#include "drk/suite.h"

#include "suite/files.h"

#include <boost/mp11.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <type_traits>

namespace drk::suite {

namespace {

template <class T>
bool contains(const std::vector<T>& items, const T& wanted) {
  return std::find(items.begin(), items.end(), wanted) != items.end();
}

std::vector<std::string> named_reasons(const task::Verdict& verdict) {
  std::vector<std::string> names;
  for (const task::Finding& finding : verdict.findings) {
    const std::string name = json::name_of(finding.reason);
    if (finding.severity != task::Severity::note && !contains(names, name)) names.push_back(name);
  }
  return names;
}

/// "row_softmax" of "row_softmax(float*, int)" and of "candidate.row_softmax".
std::string bare_name(const std::string& kernel) {
  const std::string name = kernel.substr(0, kernel.find('('));
  return name.substr(name.find_last_of('.') + 1);
}

std::optional<std::string> first_unseen_kernel(const Case& one, const task::Result& result) {
  std::set<std::string> seen;
  for (const task::Trial& trial : result.observations.trials) {
    for (const task::KernelLaunches& kernel : trial.kernels) {
      if (kernel.own && kernel.count > 0) seen.insert(bare_name(kernel.name));
    }
  }
  for (const std::string& kernel : one.expected_kernels) {
    if (!seen.contains(kernel)) return kernel;
  }
  return std::nullopt;
}

bool needs_gpu(const task::Verdict& verdict) {
  const auto* undecided = std::get_if<task::Undecided>(&verdict.outcome);
  return undecided != nullptr && undecided->failure &&
         undecided->failure->kind == task::FailureKind::needs_gpu;
}

std::string why_undecided(const task::Verdict& verdict) {
  const auto* undecided = std::get_if<task::Undecided>(&verdict.outcome);
  return undecided == nullptr ? "the machine is at fault" : undecided->what;
}

struct Judgement {
  Agreement agreement = Agreement::met;
  std::string note;
};

Judgement judge_honest(const Case& one, const task::Result& result) {
  if (needs_gpu(result.verdict)) return {Agreement::skipped, why_undecided(result.verdict)};
  if (!task::is_accepted(result.verdict)) return {Agreement::unmet, "must be accepted"};
  if (const std::optional<std::string> kernel = first_unseen_kernel(one, result)) {
    return {Agreement::unmet, "its kernel " + *kernel + " was not seen running"};
  }
  return {};
}

Judgement judge_wrong(const Case& one, const Row& row, const task::Verdict& verdict) {
  if (task::is_accepted(verdict)) {
    if (one.inert_when_isolated) return {Agreement::inert, "inert"};
    if (!one.known_gap.empty()) return {Agreement::known, "known gap: " + one.known_gap};
    return {Agreement::unmet, "must be refused"};
  }
  const auto is_named = [&](const std::string& reason) {
    return reason == row.outcome || contains(row.reasons, reason);
  };
  if (one.reasons.empty() || std::any_of(one.reasons.begin(), one.reasons.end(), is_named)) {
    return {};
  }
  return {Agreement::unmet, fmt::format("must name {}", fmt::join(one.reasons, " or "))};
}

Judgement judge(const Case& one, const Row& row, const task::Result& result) {
  if (one.expected == Expectation::accept) return judge_honest(one, result);
  if (result.verdict.fault == task::Fault::infra) {
    return {Agreement::unmet, why_undecided(result.verdict)};
  }
  return judge_wrong(one, row, result.verdict);
}

Row row_of(const Case& one) {
  Row row;
  row.group = one.group;
  row.problem = one.problem;
  row.candidate = one.candidate;
  row.expected = one.expected;
  return row;
}

void count(Tally& tally, const Row& row) {
  ++tally.cases;
  tally.elapsed_s += row.elapsed_s;
  switch (row.agreement) {
    case Agreement::met:
      ++tally.met;
      break;
    case Agreement::inert:
      ++tally.inert;
      break;
    case Agreement::known:
      ++tally.known;
      break;
    case Agreement::unmet:
      ++tally.unmet;
      break;
    case Agreement::skipped:
      ++tally.skipped;
      break;
  }
}

}  // namespace

std::vector<std::string> known_reasons() {
  std::vector<std::string> names = json::detail::enumerator_names<task::Reason>();
  boost::mp11::mp_for_each<boost::mp11::mp_transform<std::type_identity, task::Outcome>>(
      [&](auto outcome) { names.emplace_back(decltype(outcome)::type::kKind); });
  return names;
}

Row compare(const Case& one, const task::Result& result, double elapsed_s) {
  Row row = row_of(one);
  row.outcome = task::outcome_kind(result.verdict);
  row.reasons = named_reasons(result.verdict);
  row.elapsed_s = elapsed_s;
  const auto* accepted = std::get_if<task::Accepted>(&result.verdict.outcome);
  if (accepted != nullptr && accepted->timing) {
    row.median_us = accepted->timing->median_us;
    row.clock = accepted->timing->clock;
  }
  const Judgement judgement = judge(one, row, result);
  row.agreement = judgement.agreement;
  row.note = judgement.note;
  return row;
}

Row skip(const Case& one, const std::string& why) {
  Row row = row_of(one);
  row.agreement = Agreement::skipped;
  row.note = why;
  return row;
}

Report summarize(std::vector<Row> rows) {
  Report report;
  report.all.group = "all";
  for (const Row& row : rows) {
    auto group = std::find_if(report.groups.begin(), report.groups.end(), [&](const Tally& tally) {
      return tally.group == row.group;
    });
    if (group == report.groups.end()) {
      group = report.groups.insert(group, Tally{});
      group->group = row.group;
    }
    count(*group, row);
    count(report.all, row);
  }
  report.rows = std::move(rows);
  return report;
}

RedTeam count_red_team(const std::vector<Row>& rows, std::uint64_t seed) {
  RedTeam counts;
  counts.seed = seed;
  for (const Row& row : rows) {
    const bool is_honest = row.expected == Expectation::accept;
    switch (row.agreement) {
      case Agreement::met:
        ++(is_honest ? counts.honest_accepted : counts.caught);
        break;
      case Agreement::inert:
        ++counts.inert;
        break;
      case Agreement::known:
        ++counts.known_gaps;
        break;
      case Agreement::unmet:
        ++(is_honest ? counts.false_alarms : counts.missed);
        break;
      case Agreement::skipped:
        break;
    }
  }
  return counts;
}

}  // namespace drk::suite
