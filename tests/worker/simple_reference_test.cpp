// SPDX-License-Identifier: Apache-2.0
// The module that holds the cases, as text, and the list that it makes.
#include "worker/simple_reference.h"

#include "base/error_matchers.h"
#include "judge/values.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace drk::worker {
namespace {

task::Task simple_task() {
  task::Task task;
  task.workflow = task::Workflow::kernel_simple;
  task.candidate_code = "print('candidate')";
  return task;
}

std::string module_of(const task::Task& task) {
  return simple_reference_task(task).reference_code;
}

bool begins_with(const std::string& text, const std::string& beginning) {
  return text.compare(0, beginning.size(), beginning) == 0;
}

TEST(SimpleReferenceTask, IsATaskWhoseReferenceIsTheCases) {
  task::Task task = simple_task();
  task.limits.load_s = 7;
  const task::Task reference = simple_reference_task(task);
  EXPECT_EQ(reference.limits.load_s, 7);
  EXPECT_NE(reference.reference_code.find("class " + reference.entry_point + ":"),
            std::string::npos);
}

TEST(SimpleReferenceTask, TakesTheFirstSourceThatThereIs) {
  task::Task task = simple_task();
  EXPECT_TRUE(begins_with(
      module_of(task), "CASES = None\nCODE = \"print('candidate')\"\nHAS_INIT_INPUTS = False\n"));
  task.cases_code = "print('cases')";
  EXPECT_TRUE(begins_with(module_of(task),
                          "CASES = None\nCODE = \"print('cases')\"\nHAS_INIT_INPUTS = True\n"));
  task.cases_json = "[1]";
  EXPECT_TRUE(
      begins_with(module_of(task), "CASES = \"[1]\"\nCODE = None\nHAS_INIT_INPUTS = False\n"));
}

TEST(SimpleReferenceTask, QuotesWhatWouldEndALiteral) {
  task::Task task = simple_task();
  task.cases_code = "a = \"\"\"x\\\n\r\t\x01\"\"\" # '{}' \xC3\xA9";
  EXPECT_TRUE(begins_with(
      module_of(task),
      "CASES = None\n"
      "CODE = \"a = \\\"\\\"\\\"x\\\\\\n\\r\\t\\u0001\\\"\\\"\\\" # '{}' \xC3\xA9\"\n"));
}

TEST(SimpleReferenceTask, IsTheSameForTheSameCases) {
  task::Task task = simple_task();
  task.cases_json = "[1]";
  const std::string first = module_of(task);
  task.candidate_code = "print('another candidate')";
  EXPECT_EQ(module_of(task), first) << "so that it is loaded once for all candidates";
}

/// The list as the module would send it.
std::vector<SimpleCase> read(const std::string& text) {
  judge::Values values;
  const std::vector<char> bytes(text.begin(), text.end());
  const auto count = static_cast<std::int64_t>(bytes.size());
  const value::Node tensor = values.dense(value::DType::uint8, {count}, bytes);
  return read_simple_cases(values.root(judge::sequence(value::NodeKind::list, {tensor})));
}

TEST(ReadSimpleCases, ReadsNamesAndTolerances) {
  const std::vector<SimpleCase> cases =
      read(R"([{"name": "a", "has_outputs": true, "rtol": 0.5, "atol": 0},
               {"name": "b", "has_outputs": false, "rtol": 1e-4, "atol": 1e-5}])");
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(cases[0].name, "a");
  EXPECT_TRUE(cases[0].has_outputs);
  EXPECT_EQ(cases[0].rtol, 0.5);
  EXPECT_FALSE(cases[1].has_outputs);
  EXPECT_EQ(cases[1].atol, 1e-5);
}

TEST(ReadSimpleCases, BelievesNothingElse) {
  std::string many = "[{}";
  for (int i = 0; i < 100; ++i) many += ",{}";
  for (const std::string& text : {std::string("[]"),
                                  many + "]",
                                  std::string("{"),
                                  std::string(R"([{"name": 7}])"),
                                  std::string(R"([{"what": 7}])"),
                                  std::string(R"([{"rtol": -1}])"),
                                  std::string(R"([{"atol": "nan"}])"),
                                  std::string(R"([{"atol": "inf"}])")}) {
    EXPECT_TRUE(throws_error(ErrorCode::corrupt, "the list of the cases cannot be read", [&] {
      static_cast<void>(read(text));
    })) << text;
  }
}

TEST(ReadSimpleCases, RefusesTensorsThatAreNoBytes) {
  judge::Values none;
  const value::View empty = none.root(judge::sequence(value::NodeKind::list, {}));
  judge::Values floats;
  const value::Node tensor = floats.dense(value::DType::float32, {2}, std::vector<float>{1, 2});
  const value::View wrong = floats.root(judge::sequence(value::NodeKind::list, {tensor}));
  judge::Values gaps;
  const value::Node strided =
      gaps.strided(value::DType::uint8, {2}, {2}, std::vector<char>{'[', ' ', ']'});
  const value::View apart = gaps.root(judge::sequence(value::NodeKind::list, {strided}));
  for (const value::View& view : {empty, wrong, apart}) {
    EXPECT_TRUE(throws_error(
        ErrorCode::corrupt, "cannot be read", [&] { static_cast<void>(read_simple_cases(view)); }));
  }
}

}  // namespace
}  // namespace drk::worker
