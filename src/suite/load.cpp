// SPDX-License-Identifier: Apache-2.0
// Suites from their folders.
#include "drk/base/error.h"
#include "drk/base/fd.h"
#include "drk/base/json.h"
#include "drk/suite.h"

#include "suite/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fnmatch.h>

namespace drk::suite {

namespace {

namespace fs = std::filesystem;

const std::string kProblemFile = "problem.json";
const std::string kCaseFile = "case.json";

std::string join(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / name).string();
}

void check_present(bool present, const std::string& path) {
  if (!present) throw Error(ErrorCode::invalid_argument, path + ": missing");
}

void check_reasons(const std::vector<std::string>& reasons, const std::string& path) {
  const std::vector<std::string> known = known_reasons();
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    if (std::find(known.begin(), known.end(), reasons[i]) != known.end()) continue;
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "{}[{}]: \"{}\" is neither a finding's reason nor an outcome", path, i, reasons[i]));
  }
}

/// Names the file in every error that `read` throws.
template <class Read>
auto in_file(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + error.what());
  }
}

std::string folder_above(const std::string& folder) {
  return fs::absolute(folder).lexically_normal().parent_path().filename().string();
}

Case case_of(const ProblemFile& problem,
             const CandidateEntry& candidate,
             const std::string& path,
             const std::string& folder) {
  check_present(!candidate.file.empty(), path + ".file");
  check_present(candidate.expect.has_value(), path + ".expect");
  check_reasons(candidate.reasons, path + ".reasons");
  Case one;
  one.group = problem.level ? fmt::format("level {}", *problem.level) : folder_above(folder);
  one.problem = problem.name;
  one.candidate = fs::path(candidate.file).stem().string();
  one.what = candidate.what;
  one.reference_file = join(folder, "reference.py");
  one.candidate_file = join(folder, candidate.file);
  one.expected = *candidate.expect;
  one.reasons = candidate.reasons;
  one.needs_gpu = candidate.needs.value_or(Needs::either) == Needs::gpu;
  one.inert_when_isolated = candidate.inert_when_isolated;
  one.known_gap = candidate.known_gap;
  return one;
}

std::vector<Case> cases_of(const ProblemFile& problem, const std::string& folder) {
  check_present(!problem.name.empty(), "problem.name");
  check_present(!problem.candidates.empty(), "problem.candidates");
  std::vector<Case> cases;
  for (std::size_t i = 0; i < problem.candidates.size(); ++i) {
    const std::string path = fmt::format("problem.candidates[{}]", i);
    cases.push_back(case_of(problem, problem.candidates[i], path, folder));
  }
  return cases;
}

Case case_of(const CaseFile& file, const std::string& folder) {
  check_present(!file.name.empty(), "case.name");
  check_present(file.expect.verdict.has_value(), "case.expect.verdict");
  check_present(file.needs.has_value(), "case.needs");
  check_reasons(file.expect.reasons, "case.expect.reasons");
  Case one;
  one.group = folder_above(folder);
  one.problem = file.name;
  one.candidate = "candidate";
  one.what = file.what;
  one.reference_file = join(folder, "reference.py");
  one.candidate_file = join(folder, "candidate.py");
  one.backend = file.backend;
  one.needs_gpu = *file.needs == Needs::gpu;
  one.expected = *file.expect.verdict;
  one.reasons = file.expect.reasons;
  one.expected_kernels = file.expected_kernels;
  one.inert_when_isolated = file.inert_when_isolated;
  return one;
}

void erase_explanations(json::Value& value) {
  if (json::Object* object = value.if_object()) {
    for (const char* name : kExplanations) object->erase(name);
  }
}

void check_file(const std::string& file, const std::string& named_by) {
  if (fs::is_regular_file(file)) return;
  throw Error(ErrorCode::not_found, named_by + ": there is no file " + file);
}

/// The cases of this very folder; none when it describes none.
std::vector<Case> cases_in(const std::string& folder) {
  for (const std::string& name : {kProblemFile, kCaseFile}) {
    const std::string path = join(folder, name);
    if (!fs::is_regular_file(path)) continue;
    const std::string text = read_file(path);
    std::vector<Case> cases =
        name == kProblemFile ? parse_problem(text, folder) : std::vector{parse_case(text, folder)};
    for (const Case& one : cases) {
      check_file(one.reference_file, path);
      check_file(one.candidate_file, path);
    }
    return cases;
  }
  return {};
}

void collect(const std::string& folder, std::vector<Case>& cases) {
  const std::vector<Case> own = cases_in(folder);
  cases.insert(cases.end(), own.begin(), own.end());
  if (!own.empty()) return;
  std::vector<std::string> below;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && !entry.is_symlink()) below.push_back(entry.path().string());
  }
  std::sort(below.begin(), below.end());
  for (const std::string& path : below) collect(path, cases);
}

}  // namespace

std::vector<Case> parse_problem(std::string_view text, const std::string& folder) {
  return in_file(join(folder, kProblemFile), [&] {
    json::Value value = json::parse(text);
    json::Value* candidates =
        value.is_object() ? value.get_object().if_contains("candidates") : nullptr;
    if (candidates != nullptr && candidates->is_array()) {
      for (json::Value& candidate : candidates->get_array()) erase_explanations(candidate);
    }
    return cases_of(json::from_json<ProblemFile>(value, "problem"), folder);
  });
}

Case parse_case(std::string_view text, const std::string& folder) {
  return in_file(join(folder, kCaseFile), [&] {
    json::Value value = json::parse(text);
    erase_explanations(value);
    return case_of(json::from_json<CaseFile>(value, "case"), folder);
  });
}

std::vector<Case> load(const std::string& folder) {
  if (!fs::is_directory(folder)) {
    throw Error(ErrorCode::not_found, "suite: " + folder + " is not a folder");
  }
  std::vector<Case> cases;
  // A trailing slash would hide the name of the folder.
  collect((fs::path(folder) / "").parent_path().string(), cases);
  if (cases.empty()) {
    throw Error(
        ErrorCode::not_found,
        "suite: no " + kProblemFile + " and no " + kCaseFile + " in " + folder + " or below it");
  }
  return cases;
}

bool matches(const Case& one, const std::string& glob) {
  const std::string short_name = one.problem + "/" + one.candidate;
  for (const std::string& name : {one.problem, short_name, one.group + "/" + short_name}) {
    if (::fnmatch(glob.c_str(), name.c_str(), 0) == 0) return true;
  }
  return false;
}

task::Task make_task(const Case& one) {
  task::Task task;
  task.task_id = one.problem + "/" + one.candidate;
  task.reference_code = read_file(one.reference_file);
  task.candidate_code = read_file(one.candidate_file);
  task.backend = one.backend;
  return task;
}

}  // namespace drk::suite
