// SPDX-License-Identifier: Apache-2.0
// Suites are read from problem.json and case.json; what is wrong with one is named by file and
// member.
#include "drk/base/error.h"
#include "drk/base/fd.h"
#include "drk/suite.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace drk::suite {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kProblem = R"({
  "name": "gelu", "level": 2, "what": "GELU.",
  "candidates": [
    {"file": "candidates/good.py", "what": "Right.", "expect": "accept", "reasons": []},
    {"file": "candidates/tail.py", "what": "Wrong.", "expect": "reject", "reasons": ["wrong_output"]}
  ]
})";

constexpr std::string_view kCase = R"({
  "name": "patch_allclose", "class": "checker_patch", "what": "Patches torch.",
  "expect": {"verdict": "reject", "reasons": ["harness_tamper", "wrong_output"]},
  "needs": "either", "source": "a thread", "backend": "cuda", "imports": ["torch"],
  "inert_when_isolated": true, "expected_kernels": ["fill"]
})";

/// A folder that is gone with the test.
class Folder {
 public:
  Folder() {
    std::string name = fs::temp_directory_path() / "suite_test_XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string path(const std::string& name = "") const {
    return name.empty() ? path_ : path_ + "/" + name;
  }
  void add(const std::string& name, std::string_view content) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    write_file(path(name), content);
  }

 private:
  std::string path_;
};

template <class Function>
std::string error_of(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ParseProblem, MakesOneCaseOfEachCandidate) {
  const std::vector<Case> cases = parse_problem(kProblem, "problems/gelu");
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(cases[0].group, "level 2");
  EXPECT_EQ(cases[0].problem, "gelu");
  EXPECT_EQ(cases[0].candidate, "good");
  EXPECT_EQ(cases[0].expected, Expectation::accept);
  EXPECT_EQ(cases[0].reference_file, "problems/gelu/reference.py");
  EXPECT_EQ(cases[1].candidate_file, "problems/gelu/candidates/tail.py");
  EXPECT_EQ(cases[1].expected, Expectation::reject);
  EXPECT_EQ(cases[1].reasons, std::vector<std::string>{"wrong_output"});
  EXPECT_FALSE(cases[1].needs_gpu);
}

TEST(ParseCase, TakesWhatTheJudgeIsHeldTo) {
  const Case one = parse_case(kCase, "cases/hacks/patch_allclose");
  EXPECT_EQ(one.group, "hacks");
  EXPECT_EQ(one.problem, "patch_allclose");
  EXPECT_EQ(one.candidate, "candidate");
  EXPECT_EQ(one.candidate_file, "cases/hacks/patch_allclose/candidate.py");
  EXPECT_EQ(one.backend, task::Backend::cuda);
  EXPECT_EQ(one.reasons, (std::vector<std::string>{"harness_tamper", "wrong_output"}));
  EXPECT_EQ(one.expected_kernels, std::vector<std::string>{"fill"});
  EXPECT_TRUE(one.inert_when_isolated);
  EXPECT_FALSE(one.needs_gpu);
}

TEST(ParseProblem, NamesTheFileAndTheMemberThatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"{", "f/problem.json: not JSON: incomplete JSON at byte 1 of 1"},
      {"[]", "f/problem.json: problem: expected an object, got a list"},
      {R"({"level": 1})", "f/problem.json: problem.name: missing"},
      {R"({"name": "a"})", "f/problem.json: problem.candidates: missing"},
      {R"({"name": "a", "level": "1"})",
       "f/problem.json: problem.level: expected an integer of at least 0, got the text \"1\""},
      {R"({"name": "a", "level": 1})", "f/problem.json: problem.candidates: missing"},
      {R"({"name": "a", "level": 1, "candidates": [{"expect": "accept"}]})",
       "f/problem.json: problem.candidates[0].file: missing"},
      {R"({"name": "a", "level": 1, "candidates": [{"file": "a.py"}]})",
       "f/problem.json: problem.candidates[0].expect: missing"},
      {R"({"name": "a", "level": 1, "candidates": [{"file": "a.py", "expect": "maybe"}]})",
       "f/problem.json: problem.candidates[0].expect: \"maybe\" is not one of accept, reject"},
      {R"({"name": "a", "level": 1, "candidates":
           [{"file": "a.py", "expect": "reject", "reasons": ["wrong_output", "ugly"]}]})",
       "f/problem.json: problem.candidates[0].reasons[1]: \"ugly\" is neither a finding's reason "
       "nor an outcome"},
      {R"({"name": "a", "level": 1, "colour": "red"})",
       "f/problem.json: problem: unknown member \"colour\""},
  };
  for (const auto& [text, error] : wrong) {
    EXPECT_EQ(error_of([&] { (void)parse_problem(text, "f"); }), error) << text;
  }
}

TEST(ParseCase, NamesTheFileAndTheMemberThatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {R"({"needs": "gpu"})", "f/case.json: case.name: missing"},
      {R"({"name": "a", "needs": "gpu"})", "f/case.json: case.expect.verdict: missing"},
      {R"({"name": "a", "expect": {"verdict": "accept"}})", "f/case.json: case.needs: missing"},
      {R"({"name": "a", "needs": "tpu"})",
       "f/case.json: case.needs: \"tpu\" is not one of gpu, either"},
      {R"({"name": "a", "expects": {}})", "f/case.json: case: unknown member \"expects\""},
  };
  for (const auto& [text, error] : wrong) {
    EXPECT_EQ(error_of([&] { (void)parse_case(text, "f"); }), error) << text;
  }
}

TEST(Load, FindsTheCasesBelowAFolderInTheOrderOfTheirPaths) {
  const Folder folder;
  for (const std::string name : {"b", "a"}) {
    folder.add("hacks/" + name + "/case.json", kCase);
    folder.add("hacks/" + name + "/reference.py", "reference");
    folder.add("hacks/" + name + "/candidate.py", "candidate " + name);
  }
  folder.add("hacks/README.md", "");
  const std::vector<Case> cases = load(folder.path() + "/");
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(cases[0].candidate_file, folder.path("hacks/a/candidate.py"));
  EXPECT_EQ(cases[1].candidate_file, folder.path("hacks/b/candidate.py"));
  EXPECT_EQ(cases[0].group, "hacks");
  const task::Task task = make_task(cases[1]);
  EXPECT_EQ(task.reference_code, "reference");
  EXPECT_EQ(task.candidate_code, "candidate b");
  EXPECT_EQ(task.backend, task::Backend::cuda);
}

TEST(Load, TakesTheFolderOfOneProblem) {
  const Folder folder;
  folder.add("gelu/problem.json", kProblem);
  folder.add("gelu/reference.py", "");
  folder.add("gelu/candidates/good.py", "");
  folder.add("gelu/candidates/tail.py", "");
  EXPECT_EQ(load(folder.path("gelu")).size(), 2U);
  EXPECT_EQ(load(folder.path("gelu/")).size(), 2U);
}

TEST(Load, RefusesASuiteThatLacksAFile) {
  const Folder folder;
  folder.add("gelu/problem.json", kProblem);
  folder.add("gelu/reference.py", "");
  folder.add("gelu/candidates/good.py", "");
  EXPECT_EQ(error_of([&] { (void)load(folder.path()); }),
            folder.path("gelu/problem.json") + ": there is no file " +
                folder.path("gelu/candidates/tail.py"));
}

TEST(Load, RefusesAFolderWithoutCases) {
  const Folder folder;
  EXPECT_EQ(error_of([&] { (void)load(folder.path()); }),
            "suite: no problem.json and no case.json in " + folder.path() + " or below it");
  EXPECT_EQ(error_of([&] { (void)load(folder.path("none")); }),
            "suite: " + folder.path("none") + " is not a folder");
}

TEST(Load, ReadsTheBundledProblems) {
  if (!fs::is_directory("problems")) GTEST_SKIP() << "not run from the repository's root";
  for (const Case& one : load("problems")) {
    EXPECT_TRUE(one.group.starts_with("level ")) << one.problem;
    EXPECT_EQ(one.expected == Expectation::accept, one.reasons.empty())
        << one.problem << "/" << one.candidate;
  }
}

TEST(Matches, TheProblemOrTheCandidateWithOrWithoutItsGroup) {
  Case one;
  one.group = "level 1";
  one.problem = "gelu_tanh";
  one.candidate = "good";
  for (const std::string glob :
       {"gelu_tanh", "gelu*", "gelu_tanh/good", "*/good", "level 1/*", "*/gelu_tanh/good"}) {
    EXPECT_TRUE(matches(one, glob)) << glob;
  }
  for (const std::string glob : {"gelu", "good", "level 2/*", "*/bad", ""}) {
    EXPECT_FALSE(matches(one, glob)) << glob;
  }
}

}  // namespace
}  // namespace drk::suite
