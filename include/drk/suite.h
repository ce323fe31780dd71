// SPDX-License-Identifier: Apache-2.0
// Suites of problems whose verdicts are known: reading them, comparing with them, tables of them.
#pragma once

#include "drk/task/result.h"

#include <boost/describe.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace drk::suite {

enum class Expectation : std::uint8_t { accept, reject };
BOOST_DESCRIBE_ENUM(Expectation, accept, reject)

/// One candidate of one problem, and what a judge must make of it.
struct Case {
  std::string group;  ///< "level 1"; for a folder with case.json the folder above it ("hacks").
  std::string problem;
  std::string candidate;  ///< The candidate's file name without ".py".
  std::string what;
  std::string reference_file;
  std::string candidate_file;
  task::Backend backend = task::Backend::triton;
  bool needs_gpu = false;
  Expectation expected = Expectation::accept;
  /// A refusal that names any one of them is right; a `task::Reason` or an outcome's kind.
  /// When empty, any refusal is right.
  std::vector<std::string> reasons;
  std::vector<std::string> expected_kernels;  ///< Own kernels that must be seen running.
  /// The trick gains nothing under a judge it cannot reach, so accepting it is right as well.
  bool inert_when_isolated = false;
  /// Not empty: it is known to be accepted all the same, and why.
  std::string known_gap;
};

/// The candidates that a problem.json lists; `folder` is where it lies.
/// Throws Error{invalid_argument}: "<folder>/problem.json: problem.candidates[2].expect: missing".
[[nodiscard]] std::vector<Case> parse_problem(std::string_view text, const std::string& folder);
/// The one candidate that a case.json describes. Members that only explain the case to people are
/// passed over. Throws Error{invalid_argument}.
[[nodiscard]] Case parse_case(std::string_view text, const std::string& folder);
/// All cases in `folder` and below it, in the order of their paths; every file they name is there.
/// Throws Error{invalid_argument, not_found}, also when there is no case at all.
[[nodiscard]] std::vector<Case> load(const std::string& folder);

/// Whether `glob` (*, ?, [...]) fits the problem, "problem/candidate" or "group/problem/candidate".
[[nodiscard]] bool matches(const Case& one, const std::string& glob);
/// Reads both files.
[[nodiscard]] task::Task make_task(const Case& one);

enum class Agreement : std::uint8_t {
  met,
  inert,  ///< Accepted, and harmless: see Case::inert_when_isolated.
  known,  ///< Accepted, and known to be: see Case::known_gap.
  unmet,
  skipped,  ///< Not judged, or not to be judged without a GPU.
};
BOOST_DESCRIBE_ENUM(Agreement, met, inert, known, unmet, skipped)

/// What came of one case.
struct Row {
  std::string group;
  std::string problem;
  std::string candidate;
  Expectation expected = Expectation::accept;
  Agreement agreement = Agreement::unmet;
  std::string outcome;               ///< An outcome's kind; empty when skipped unseen.
  std::vector<std::string> reasons;  ///< Of findings that warn or reject, each once.
  std::optional<double> median_us;   ///< Of the candidate's timed calls, when accepted.
  std::string clock;                 ///< Of `median_us`.
  double elapsed_s = 0;
  std::string note;  ///< Why it was skipped, or in what the verdict differs from what was expected.
};
BOOST_DESCRIBE_STRUCT(Row,
                      (),
                      (group,
                       problem,
                       candidate,
                       expected,
                       agreement,
                       outcome,
                       reasons,
                       median_us,
                       clock,
                       elapsed_s,
                       note))

/// Compares a verdict with what the case expects. An infra fault meets no expectation; an honest
/// case that the interpreter cannot run is skipped, not refused.
[[nodiscard]] Row compare(const Case& one, const task::Result& result, double elapsed_s);
[[nodiscard]] Row skip(const Case& one, const std::string& why);

struct Tally {
  std::string group;  ///< "all" for the last one.
  std::uint32_t cases = 0;
  std::uint32_t met = 0;
  std::uint32_t inert = 0;
  std::uint32_t known = 0;
  std::uint32_t unmet = 0;
  std::uint32_t skipped = 0;
  double elapsed_s = 0;  ///< Summed over the cases.
};
BOOST_DESCRIBE_STRUCT(Tally, (), (group, cases, met, inert, known, unmet, skipped, elapsed_s))

struct Report {
  std::vector<Row> rows;
  std::vector<Tally> groups;  ///< In the order in which they first occur.
  Tally all;
};
BOOST_DESCRIBE_STRUCT(Report, (), (rows, groups, all))

[[nodiscard]] Report summarize(std::vector<Row> rows);

/// A report read as a test of the judge. What was skipped counts nowhere.
struct RedTeam {
  std::uint64_t seed = 0;  ///< Of the order and the numbers of trials.
  std::uint32_t caught = 0;
  std::uint32_t inert = 0;
  std::uint32_t missed = 0;
  std::uint32_t known_gaps = 0;
  std::uint32_t honest_accepted = 0;
  std::uint32_t false_alarms = 0;
};
BOOST_DESCRIBE_STRUCT(RedTeam,
                      (),
                      (seed, caught, inert, missed, known_gaps, honest_accepted, false_alarms))

[[nodiscard]] RedTeam count_red_team(const std::vector<Row>& rows, std::uint64_t seed);

/// The table, line by line, since cases end one after the other. Lines end without a newline.
class Table {
 public:
  /// Gives the text of an agreement its colour.
  using Paint = std::function<std::string(Agreement, std::string)>;

  explicit Table(std::span<const Case> cases, Paint paint = {});
  [[nodiscard]] std::string header() const;
  [[nodiscard]] std::string line(const Row& row) const;
  [[nodiscard]] std::string summary(const Tally& tally) const;

 private:
  std::size_t problem_width_;
  std::size_t candidate_width_;
  std::size_t group_width_;
  Paint paint_;
};

/// "812 us", "1.24 ms", "3.1 s": three digits.
[[nodiscard]] std::string describe_us(double us);

}  // namespace drk::suite
