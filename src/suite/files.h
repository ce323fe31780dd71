// SPDX-License-Identifier: Apache-2.0
// The members of problem.json and case.json.
#pragma once

#include "drk/suite.h"

#include <boost/describe.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace drk::suite {

enum class Needs : std::uint8_t { gpu, either };
BOOST_DESCRIBE_ENUM(Needs, gpu, either)

struct CandidateEntry {
  std::string file;  ///< From the folder of problem.json.
  std::string what;
  std::optional<Expectation> expect;
  std::vector<std::string> reasons;
  std::optional<Needs> needs;  ///< Else either.
  bool inert_when_isolated = false;
  std::string known_gap;
};
BOOST_DESCRIBE_STRUCT(CandidateEntry,
                      (),
                      (file, what, expect, reasons, needs, inert_when_isolated, known_gap))

struct ProblemFile {
  std::string name;
  std::optional<std::uint32_t> level;  ///< Else the group is the folder above.
  std::string what;
  std::vector<CandidateEntry> candidates;
};
BOOST_DESCRIBE_STRUCT(ProblemFile, (), (name, level, what, candidates))

struct CaseExpectation {
  std::optional<Expectation> verdict;
  std::vector<std::string> reasons;
  bool compiled = true;  ///< For people, as is `correct`: the verdict says it.
  bool correct = true;
};
BOOST_DESCRIBE_STRUCT(CaseExpectation, (), (verdict, reasons, compiled, correct))

struct CaseFile {
  std::string name;
  std::string what;
  CaseExpectation expect;
  std::optional<Needs> needs;
  task::Backend backend = task::Backend::triton;
  std::vector<std::string> expected_kernels;
  bool inert_when_isolated = false;
};
BOOST_DESCRIBE_STRUCT(CaseFile,
                      (),
                      (name, what, expect, needs, backend, expected_kernels, inert_when_isolated))

/// Members of a case or candidate that only explain it, or that only a GPU's profile can be held
/// against.
inline constexpr std::initializer_list<const char*> kExplanations = {
    "class", "source", "imports", "twin_of", "hazard", "note", "min_coverage"};

/// Every word that may stand among a case's reasons.
[[nodiscard]] std::vector<std::string> known_reasons();

}  // namespace drk::suite
