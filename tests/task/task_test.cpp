// SPDX-License-Identifier: Apache-2.0
// What makes a task invalid before anything runs.
#include "drk/task/task.h"

#include <gtest/gtest.h>

#include <functional>

namespace drk::task {
namespace {

Task valid_task() {
  Task task;
  task.task_id = "t";
  task.reference_code = "class Model: pass";
  task.candidate_code = "class ModelNew: pass";
  return task;
}

TEST(FindInvalidity, FindsNothingInAValidTask) {
  EXPECT_FALSE(find_invalidity(valid_task()).has_value());
}

TEST(FindInvalidity, AcceptsTheBordersOfEveryRange) {
  Task task = valid_task();
  task.candidate_code = std::string(kMinCodeChars, 'x');
  task.reference_code = std::string(kMaxCodeChars, 'x');
  task.num_correct_trials = 20;
  task.num_perf_trials = 1000;
  task.num_warmup = 100;
  EXPECT_FALSE(find_invalidity(task).has_value());
  task.num_correct_trials = 1;
  task.num_perf_trials = 1;
  task.num_warmup = 0;
  EXPECT_FALSE(find_invalidity(task).has_value());
}

TEST(FindInvalidity, CountsCharactersNotBytesAndNoBlanksAtTheEnds) {
  Task task = valid_task();
  std::string letters;
  for (std::size_t i = 0; i < kMaxCodeChars; ++i) letters += "\xC3\xA9";
  task.candidate_code = " \n\t" + letters + "\r\n\v\f";
  EXPECT_FALSE(find_invalidity(task).has_value());
  task.candidate_code += 'x';
  EXPECT_TRUE(find_invalidity(task).has_value()) << "the blanks now lie inside";
}

TEST(FindInvalidity, SaysWhatIsWrongAndInWhichText) {
  const struct {
    std::function<void(Task&)> spoil;
    bool in_candidate;
    const char* what;
  } cases[] = {
      {[](Task& t) { t.candidate_code = "123456789"; },
       true,
       "candidate: 9 characters of code; 10 to 100000 are allowed"},
      {[](Task& t) { t.candidate_code = ""; },
       true,
       "candidate: 0 characters of code; 10 to 100000 are allowed"},
      {[](Task& t) { t.candidate_code = std::string(50, '\n') + "x"; },
       true,
       "candidate: 1 characters of code; 10 to 100000 are allowed"},
      {[](Task& t) { t.reference_code = std::string(kMaxCodeChars + 1, 'x'); },
       false,
       "reference: 100001 characters of code; 10 to 100000 are allowed"},
      {[](Task& t) { t.candidate_code = "line 1\nline \xFF 2\n"; },
       true,
       "candidate: byte 12 (line 2) is not valid UTF-8"},
      {[](Task& t) { t.reference_code = std::string("a = 1\n\nb = '\0'\n", 13); },
       false,
       "reference: NUL byte in line 3"},
      {[](Task& t) { t.num_correct_trials = 0; }, false, "num_correct_trials: 0 is not in 1 to 20"},
      {[](Task& t) { t.num_correct_trials = 21; },
       false,
       "num_correct_trials: 21 is not in 1 to 20"},
      {[](Task& t) { t.num_perf_trials = 1001; },
       false,
       "num_perf_trials: 1001 is not in 1 to 1000"},
      {[](Task& t) { t.num_warmup = 101; }, false, "num_warmup: 101 is not in 0 to 100"},
  };
  for (const auto& c : cases) {
    Task task = valid_task();
    c.spoil(task);
    const auto invalidity = find_invalidity(task);
    ASSERT_TRUE(invalidity.has_value()) << c.what;
    EXPECT_EQ(invalidity->what, c.what);
    EXPECT_EQ(invalidity->in_candidate, c.in_candidate) << c.what;
  }
}

TEST(FindInvalidity, BlamesTheReferenceFirst) {
  Task task = valid_task();
  task.reference_code = "";
  task.candidate_code = "";
  EXPECT_FALSE(find_invalidity(task)->in_candidate);
}

TEST(FindInvalidity, WantsNoReferenceOfKernelSimple) {
  Task task = valid_task();
  task.workflow = Workflow::kernel_simple;
  task.reference_code = "";
  EXPECT_FALSE(find_invalidity(task).has_value());
  task.cases_code = "short";
  EXPECT_EQ(find_invalidity(task)->what,
            "cases_code: 5 characters of code; 10 to 100000 are allowed");
  task.cases_code = "";
  task.cases_json = std::string(kMaxCasesBytes + 1, ' ');
  EXPECT_EQ(find_invalidity(task)->what, "cases: 4194305 bytes; 4194304 are allowed");
  EXPECT_FALSE(find_invalidity(task)->in_candidate);
}

}  // namespace
}  // namespace drk::task
