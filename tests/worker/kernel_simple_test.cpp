// SPDX-License-Identifier: Apache-2.0
// Candidates that are run on given cases instead of against a reference, by real guests.
#include "drk/task/wire.h"

#include "worker/fixture.h"

#include <string>
#include <vector>

namespace drk::worker::test {
namespace {

using KernelSimpleTest = WorkerTest;

/// A candidate with `forward` and whatever `before` the class.
std::string model(const std::string& forward, const std::string& before = "") {
  return "import torch\n" + before + "\nclass ModelNew(torch.nn.Module):\n" + forward;
}

const std::string kRelu = model("    def forward(self, x):\n        return torch.relu(x)\n");

task::Task simple_task(const std::string& candidate) {
  task::Task task = make_torch_task("", candidate);
  task.workflow = task::Workflow::kernel_simple;
  task.entry_point = "ModelNew";
  return task;
}

task::Result run_cases(const std::string& candidate, const std::string& cases) {
  task::Task task = simple_task(candidate);
  task.cases_json = cases;
  return evaluator().evaluate(task);
}

task::Result run_code(const std::string& candidate, const std::string& cases_code) {
  task::Task task = simple_task(candidate);
  task.cases_code = cases_code;
  return evaluator().evaluate(task);
}

bool is_checked(const task::Result& result) {
  return std::get<task::Accepted>(result.verdict.outcome).checked;
}

TEST_F(KernelSimpleTest, AcceptsRightOutputs) {
  const task::Result result = run_cases(kRelu, R"([
      {"name": "row", "inputs": [[-1.5, 2.0, 0.0]], "outputs": [0.0, 2.0, 0.0]},
      {"inputs": [[[1.0, -1.0], [-2.0, 2.0]]], "outputs": [[1.0, 0.0], [0.0, 2.0]]}])");
  ASSERT_EQ(kind_of(result), "accepted") << text_of(result);
  EXPECT_TRUE(is_checked(result));
  ASSERT_EQ(result.observations.trials.size(), 2U);
  EXPECT_EQ(result.observations.trials[0].case_name, "row");
  EXPECT_EQ(result.observations.trials[1].case_name, "case_1");
  EXPECT_EQ(result.manifest.trial_seeds, (std::vector<std::uint64_t>{0, 1}));
  const json::Object body = task::wire_result(result);
  EXPECT_TRUE(body.at("correctness").as_bool());
  EXPECT_EQ(body.at("metadata").at("correctness_trials").as_string(), "(2 / 2)");
}

TEST_F(KernelSimpleTest, NamesTheCaseThatIsWrong) {
  const task::Result result = run_cases(kRelu, R"([
      {"inputs": [[1.0]], "outputs": [1.0]},
      {"inputs": [[-1.0]]},
      {"name": "wrong", "inputs": [[-1.0, 3.0]], "outputs": [0.0, 4.0]}])");
  ASSERT_EQ(kind_of(result), "wrong_output") << text_of(result);
  const auto& outcome = std::get<task::WrongOutput>(result.verdict.outcome);
  EXPECT_EQ(outcome.mismatch.expected, "4");
  EXPECT_EQ(outcome.mismatch.got, "3");
  EXPECT_EQ(outcome.trials_passed, 1U);
  EXPECT_EQ(outcome.trials_run, 2U) << "one case has nothing to compare with";
  const json::Object body = task::wire_result(result);
  EXPECT_EQ(json::dump(body.at("metadata").at("correctness_failed_cases")), R"(["wrong"])");
}

TEST_F(KernelSimpleTest, SaysWhenNothingCouldBeChecked) {
  const char* cases = R"([{"inputs": [[1.0]]}, {"inputs": [[2.0]], "outputs": null}, [[3.0]]])";
  const task::Result result = run_cases(kRelu, cases);
  ASSERT_EQ(kind_of(result), "accepted") << text_of(result);
  EXPECT_FALSE(is_checked(result));
  EXPECT_EQ(result.observations.trials.size(), 3U);
  EXPECT_FALSE(result.observations.trials[0].compared);
  const json::Object body = task::wire_result(result);
  EXPECT_TRUE(body.at("correctness").is_null());
  EXPECT_TRUE(body.at("compiled").as_bool());
}

TEST_F(KernelSimpleTest, ComparesNothingWhenToldSo) {
  task::Task task = simple_task(kRelu);
  task.cases_json = R"([{"inputs": [[1.0]], "outputs": [7.0]}])";
  task.check_correctness = false;
  const task::Result result = evaluator().evaluate(task);
  ASSERT_EQ(kind_of(result), "accepted") << text_of(result);
  EXPECT_FALSE(is_checked(result));
}

TEST_F(KernelSimpleTest, KeepsToTheToleranceOfTheCase) {
  const std::string off = model("    def forward(self, x):\n        return x + 0.01\n");
  const std::string inputs = R"([{"inputs": [[1.0, 2.0]], "outputs": [1.0, 2.0])";
  EXPECT_EQ(kind_of(run_cases(off, inputs + "}]")), "wrong_output");
  EXPECT_EQ(kind_of(run_cases(off, inputs + R"(, "atol": 0.02}])")), "accepted");
  EXPECT_EQ(kind_of(run_cases(off, inputs + R"(, "rtol": 0.02}])")), "accepted");
  EXPECT_EQ(kind_of(run_cases(off, inputs + R"(, "rtol": 0.006}])")), "wrong_output");
}

TEST_F(KernelSimpleTest, RunsACaseThatRaises) {
  const task::Result result =
      run_cases(model("    def forward(self, x):\n        raise ValueError('no')\n"),
                R"([{"inputs": [[1.0]], "outputs": [1.0]}])");
  EXPECT_EQ(kind_of(result), "runtime_failed") << text_of(result);
  EXPECT_EQ(result.verdict.fault, task::Fault::candidate);
}

// --- values ---

/// A candidate that raises unless `condition` holds for its arguments `a`, `b`, ...
std::string expects(const std::string& arguments, const std::string& condition) {
  return model("    def forward(self, " + arguments + "):\n        assert " + condition +
               "\n        return torch.zeros(1)\n");
}

TEST_F(KernelSimpleTest, MakesTensorsOfNestedNumbers) {
  const struct {
    const char* value;
    const char* condition;
  } cases[] = {
      {"[1, 2]", "a.dtype is torch.int64 and a.tolist() == [1, 2]"},
      {"[1, 2.5]", "a.dtype is torch.float32 and a.tolist() == [1, 2.5]"},
      {"[true, false]", "a.dtype is torch.bool and a.tolist() == [True, False]"},
      {"[[1.5], [2.5], [3.5]]", "a.shape == (3, 1)"},
      {"[]", "a.shape == (0,)"},
      {R"(["inf", "-inf", 1.0])", "a.tolist() == [float('inf'), float('-inf'), 1.0]"},
      {"[[1, 2], [3]]", "[item.tolist() for item in a] == [[1, 2], [3]]"},
      {R"(["inf", "other"])", "a == ['inf', 'other']"},
      {R"({"tensor": [1, 2], "dtype": "float16"})", "a.dtype is torch.float16"},
      {R"({"tensor": 2.5})", "a.shape == () and a.item() == 2.5"},
      {R"([{"tensor": [1]}, {"tensor": [2]}])", "[item.tolist() for item in a] == [[1], [2]]"},
      {R"({"x": [1.5], "n": 3})", "a['x'].tolist() == [1.5] and a['n'] == 3"},
      {"3", "a == 3 and type(a) is int"},
      {"2.5", "a == 2.5"},
      {"true", "a is True"},
      {"null", "a is None"},
      {R"("nan")", "a == 'nan'"},
  };
  for (const auto& c : cases) {
    const task::Result result =
        run_cases(expects("a", c.condition), R"([{"inputs": [)" + std::string(c.value) + "]}]");
    EXPECT_EQ(kind_of(result), "accepted") << c.value << ": " << text_of(result);
  }
}

TEST_F(KernelSimpleTest, PassesArgumentsInOrderByNameOrAlone) {
  const struct {
    const char* inputs;
    const char* condition;
  } cases[] = {
      {"[1, 2]", "(a, b) == (1, 2)"},
      {R"({"b": 1, "a": 2})", "(a, b) == (2, 1)"},
      {R"({"a": [1.5]})", "a.tolist() == [1.5] and b is None"},
      {"7", "(a, b) == (7, None)"},
      {R"({"tensor": [1.5]})", "a.tolist() == [1.5] and b is None"},
  };
  for (const auto& c : cases) {
    const task::Result result = run_cases(expects("a, b=None", c.condition),
                                          R"([{"inputs": )" + std::string(c.inputs) + "}]");
    EXPECT_EQ(kind_of(result), "accepted") << c.inputs << ": " << text_of(result);
  }
}

TEST_F(KernelSimpleTest, ComparesSeveralOutputs) {
  const std::string both = model("    def forward(self, x):\n        return x, {'twice': 2 * x}\n");
  const char* right = R"([{"inputs": [[1.5]], "outputs": [{"tensor": [1.5]}, {"twice": [3.0]}]}])";
  EXPECT_EQ(kind_of(run_cases(both, right)), "accepted") << "a tuple for a list";
  const task::Result result =
      run_cases(both, R"([{"inputs": [[1.5]], "outputs": [{"tensor": [1.5]}, {"twice": [4.0]}]}])");
  EXPECT_EQ(std::get<task::WrongOutput>(result.verdict.outcome).mismatch.path,
            "output[1]['twice']");
}

TEST_F(KernelSimpleTest, ConstructsWithTheCandidatesOwnArguments) {
  const std::string scaled = R"(
import torch

class ModelNew(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor

def get_init_inputs():
    return [3]
)";
  EXPECT_EQ(kind_of(run_cases(scaled, R"([{"inputs": [[2.0]], "outputs": [6.0]}])")), "accepted");
}

// --- cases in Python ---

constexpr const char* kCasesCode = R"(
import torch

class Model(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor

def get_inputs():
    return [torch.randn(8)]

def get_init_inputs():
    return [3]

def get_cases():
    inputs = get_inputs()
    return [{"inputs": inputs, "outputs": Model(*get_init_inputs())(*inputs)} for _ in range(2)]
)";

std::string scaled_by(const std::string& factor) {
  return model(
      "    def __init__(self, factor):\n        super().__init__()\n"
      "        self.factor = factor\n\n"
      "    def forward(self, x):\n        return x * " +
      factor + "\n");
}

TEST_F(KernelSimpleTest, AsksTheCasesCode) {
  const task::Result right = run_code(scaled_by("self.factor"), kCasesCode);
  EXPECT_EQ(kind_of(right), "accepted") << text_of(right);
  EXPECT_EQ(right.observations.trials.size(), 2U);
  EXPECT_EQ(kind_of(run_code(scaled_by("2"), kCasesCode)), "wrong_output");
}

TEST_F(KernelSimpleTest, TakesInputsAloneForOneCase) {
  const task::Result result =
      run_code(kRelu, "import torch\ndef get_inputs():\n    return [torch.randn(3)]\n");
  ASSERT_EQ(kind_of(result), "accepted") << text_of(result);
  EXPECT_FALSE(is_checked(result));
  EXPECT_EQ(result.observations.trials.size(), 1U);
}

TEST_F(KernelSimpleTest, AsksTheCandidateWhenThereIsNothingElse) {
  const task::Result result = evaluator().evaluate(
      simple_task(kRelu + "\ndef get_cases():\n    x = torch.randn(3)\n"
                          "    return {'inputs': [x], 'outputs': torch.clamp(x, min=0)}\n"));
  ASSERT_EQ(kind_of(result), "accepted") << text_of(result);
  EXPECT_TRUE(is_checked(result));
}

TEST_F(KernelSimpleTest, BlamesTheCandidateForItsOwnCases) {
  const task::Result raised = evaluator().evaluate(
      simple_task(kRelu + "\ndef get_cases():\n    raise ValueError('mine')\n"));
  EXPECT_EQ(kind_of(raised), "runtime_failed") << text_of(raised);
  EXPECT_EQ(raised.verdict.fault, task::Fault::candidate);
  const task::Failure* failure = failure_of(raised);
  ASSERT_NE(failure, nullptr);
  EXPECT_EQ(failure->error->message, "mine");
  EXPECT_EQ(failure->error->source_line, "    raise ValueError('mine')");
  const task::Result missing = evaluator().evaluate(simple_task(kRelu));
  EXPECT_EQ(missing.verdict.fault, task::Fault::candidate) << text_of(missing);
  EXPECT_NE(text_of(missing).find("there are no cases"), std::string::npos) << text_of(missing);
}

TEST_F(KernelSimpleTest, ACandidateThatForgesItsCasesIsNoFaultOfOurs) {
  // What it puts in place of the list of cases reaches the worker.
  const task::Result result = evaluator().evaluate(
      simple_task(kRelu + "\nimport json\njson.dumps = lambda *a, **k: '[{\"name\": 7}]'\n"
                          "def get_cases():\n    return [{'inputs': [torch.zeros(1)]}]\n"));
  EXPECT_EQ(kind_of(result), "rejected") << text_of(result);
  EXPECT_EQ(std::get<task::Rejected>(result.verdict.outcome).reason, task::Reason::io_tamper);
}

TEST_F(KernelSimpleTest, BlamesTheTaskForCasesThatAreNone) {
  const struct {
    const char* cases;
    const char* message;
  } cases[] = {
      {"[]", "0 cases; 1 to 100 are allowed"},
      {"7", "cases must be a list, got int"},
      {R"([{"inputs": 1}, {"outputs": 2}])", "case 1: it has no inputs"},
      {R"([{"inputs": 1, "rtol": -1}])", "case 0: rtol must be finite and at least 0: -1"},
      {R"([{"inputs": 1, "atol": "x"}])", "case 0: atol is no number: 'x'"},
      {R"([{"inputs": 1, "atol": 1e999}])", "case 0: atol must be finite"},
      {R"([{"inputs": {"tensor": [[1], [2, 3]]}}])", "case 0: a tensor must be numbers"},
      {R"([{"inputs": {"tensor": [1], "dtype": "nn"}}])", "case 0: 'nn' is no dtype of torch"},
      {"not json", "JSONDecodeError"},
  };
  for (const auto& c : cases) {
    const task::Result result = run_cases(kRelu, c.cases);
    EXPECT_EQ(kind_of(result), "invalid") << c.cases << ": " << text_of(result);
    EXPECT_EQ(result.verdict.fault, task::Fault::task) << c.cases;
    EXPECT_NE(text_of(result).find(c.message), std::string::npos) << text_of(result);
  }
}

TEST_F(KernelSimpleTest, PointsIntoTheCasesCode) {
  const task::Result result =
      run_code(kRelu, "import torch\n\ndef get_cases():\n    return 1 / 0  # here\n");
  EXPECT_EQ(kind_of(result), "invalid") << text_of(result);
  EXPECT_EQ(result.verdict.fault, task::Fault::task);
  const auto& failure = result.observations.reference_failure;
  ASSERT_TRUE(failure && failure->error);
  EXPECT_EQ(failure->error->line, 4U);
  EXPECT_EQ(failure->error->source_line, "    return 1 / 0  # here");
}

// --- rules ---

TEST_F(KernelSimpleTest, AsksForAKernelOnlyWhenToldSo) {
  task::Task task = simple_task(kRelu);
  task.cases_json = R"([{"inputs": [[-1.0, 2.0]], "outputs": [0.0, 2.0]}])";
  EXPECT_EQ(kind_of(evaluator().evaluate(task)), "accepted");
  task.policy.ownership = task::Ownership::mixed;
  const task::Result plain = evaluator().evaluate(task);
  EXPECT_EQ(kind_of(plain), "rejected") << text_of(plain);
  EXPECT_EQ(std::get<task::Rejected>(plain.verdict.outcome).reason,
            task::Reason::no_candidate_kernel);
  task.candidate_code = kReluCandidate;
  const task::Result own = evaluator().evaluate(task);
  EXPECT_EQ(kind_of(own), "accepted") << text_of(own);
  EXPECT_TRUE(own.observations.contribution.has_value());
}

TEST_F(KernelSimpleTest, TimesTheCandidateAlone) {
  task::Task task = simple_task(kRelu);
  task.cases_json = R"([{"inputs": [[-1.0, 2.0]], "outputs": [0.0, 2.0]},
                        {"inputs": [[-3.0, 4.0]], "outputs": [0.0, 4.0]}])";
  task.measure_performance = true;
  task.num_perf_trials = 5;
  const task::Result result = evaluator().evaluate(task);
  ASSERT_EQ(kind_of(result), "accepted") << text_of(result);
  const auto& accepted = std::get<task::Accepted>(result.verdict.outcome);
  EXPECT_EQ(accepted.timing->count, 5U);
  EXPECT_FALSE(accepted.reference_timing.has_value());
  EXPECT_FALSE(accepted.speedup.has_value());
  EXPECT_EQ(result.observations.trials.size(), 4U);
  EXPECT_EQ(task::wire_result(result).at("metadata").at("correctness_trials").as_string(),
            "(2 / 2)");
}

TEST_F(KernelSimpleTest, CatchesAnAnswerRememberedFromAnotherCase) {
  task::Task task =
      simple_task(model("    seen = {}\n\n    def forward(self, x):\n"
                        "        if x.data_ptr() not in self.seen:\n"
                        "            self.seen[x.data_ptr()] = torch.relu(x)\n"
                        "        return self.seen[x.data_ptr()]\n"));
  task.cases_json = R"([{"inputs": [[-1.0, 2.0]], "outputs": [0.0, 2.0]},
                        {"inputs": [[-3.0, 4.0]], "outputs": [0.0, 4.0]}])";
  task.measure_performance = true;
  task.num_perf_trials = 3;
  EXPECT_EQ(kind_of(evaluator().evaluate(task)), "wrong_output");
}

TEST_F(KernelSimpleTest, RepeatsRandomCasesFromTheManifest) {
  const task::Result first = run_code(scaled_by("2"), kCasesCode);
  const json::Value stored = json::parse(json::dump(task::to_json(first.manifest)));
  const task::Manifest manifest = task::manifest_from_json(stored);
  EvaluateOptions options;
  options.replay = &manifest;
  const task::Result again = evaluator().evaluate(task::task_of(manifest), options);
  ASSERT_EQ(kind_of(again), "wrong_output") << text_of(again);
  EXPECT_EQ(again.observations.trials[0].comparison.max_abs_error,
            first.observations.trials[0].comparison.max_abs_error);
  EXPECT_EQ(again.manifest.init_seed, first.manifest.init_seed);
}

}  // namespace
}  // namespace drk::worker::test
