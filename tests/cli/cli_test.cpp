// SPDX-License-Identifier: Apache-2.0
// The program as its users meet it: what it prints where, and what it ends with.
#include "drk/base/clock.h"
#include "drk/base/fd.h"
#include "drk/base/json.h"
#include "drk/base/subprocess.h"

#include "cli/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <signal.h>
#include <thread>

namespace drk::cli {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

class Cli : public testing::Test {
 protected:
  Program program_;
};

/// Tests that judge: they need the Python that DRK_PYTHON names, and a bundled problem.
class CliWithPython : public Cli {
 protected:
  void SetUp() override {
    if (variable("DRK_PYTHON").empty()) GTEST_SKIP() << "DRK_PYTHON is unset";
  }
  [[nodiscard]] Ended judge(std::vector<std::string> arguments) const {
    return program_.run(std::move(arguments), "", environment_);
  }

  const std::vector<std::string> environment_ = {"DRK_PYTHON=" + variable("DRK_PYTHON"),
                                                 "PATH=" + variable("PATH"),
                                                 "HOME=" + variable("HOME")};
  const std::string problem_ = std::string(DRK_SOURCE_DIR) + "/problems/level1/gelu_tanh";
  const std::string reference_ = problem_ + "/reference.py";
  const std::string good_ = problem_ + "/candidates/good.py";
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::ptrdiff_t line_count(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

constexpr std::string_view kReply =
    "First I thought of this:\n"
    "```python\nx = 1\n```\n"
    "but better is\n"
    "```python\nclass ModelNew:\n    pass\n```\n";

TEST_F(Cli, SaysWhatItIs) {
  const Ended version = program_.run({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_TRUE(version.out.starts_with("drk ")) << version.out;
  const Ended help = program_.run({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const std::string command : {"eval", "bench", "replay", "extract", "doctor"}) {
    EXPECT_TRUE(has(help.out, "\n  " + command)) << command;
    const Ended more = program_.run({command, "--help"});
    EXPECT_EQ(more.exit_code, 0) << command;
    EXPECT_TRUE(has(more.out, "Usage: drk " + command)) << more.out;
    EXPECT_EQ(program_.run({"help", command}).out, more.out);
  }
  EXPECT_EQ(program_.run({"help"}).out, help.out);
}

TEST_F(Cli, BadUsageIsOneLineAndEndsWith2) {
  const std::string code = program_.file("a.py", "class Model:\n    pass\n");
  const std::string text = program_.file("a.txt", "text");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "see drk --help"},
      {{"frobnicate"}, "see drk --help"},
      {{"help", "frobnicate"}, "no command frobnicate"},
      {{"eval"}, "drk eval: REFERENCE is required; see drk eval --help"},
      {{"eval", code}, "CANDIDATE is required"},
      {{"eval", code, code, "--frobnicate"}, "see drk eval --help"},
      {{"eval", code, code, "--trials", "many"}, "--trials"},
      {{"eval", code, code, "--trials", "0"}, "num_correct_trials: 0 is not in 1 to 20"},
      {{"eval", code, code, "--backend", "opencl"}, "opencl"},
      {{"eval", code, code, "--reply", "--code"}, "--reply"},
      {{"eval", code, code, "--timeout", "-1"}, "--timeout"},
      {{"eval", code, code, "--timeout", "nan"}, "--timeout"},
      {{"eval", "-", "-"}, "cannot both be standard input"},
      {{"eval", program_.path("none.py"), code}, "none.py: No such file or directory"},
      {{"eval", code, "/"}, "cannot read /: Is a directory"},
      {{"extract", program_.path("none.txt")}, "none.txt: No such file or directory"},
      {{"bench"}, "DIR is required"},
      {{"bench", program_.path("none")}, "is not a folder"},
      {{"bench", "problems", "--jobs", "0"}, "--jobs"},
      {{"replay", text}, "not JSON"},
  };
  for (const auto& [arguments, part] : cases) {
    const Ended run = program_.run(arguments);
    const std::string line = testing::PrintToString(arguments);
    EXPECT_EQ(run.exit_code, 2) << line;
    EXPECT_EQ(run.out, "") << line;
    EXPECT_EQ(line_count(run.err), 1) << line << run.err;
    EXPECT_TRUE(has(run.err, part)) << line << run.err;
  }
}

TEST_F(Cli, ExtractPrintsTheCodeAndSaysWhyElsewhere) {
  const std::string file = program_.file("reply.md", kReply);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"extract", file}, {"extract", "-"}, {"extract"}}) {
    const Ended run = program_.run(arguments, kReply);
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_EQ(run.out, "class ModelNew:\n    pass\n");
    EXPECT_TRUE(has(run.err, "ModelNew")) << run.err;
  }
}

TEST_F(Cli, ExtractCanLookForAnotherName) {
  const Ended run = program_.run({"extract", "--entry-point", "x", "--json"}, kReply);
  const json::Value value = json::parse(run.out);
  EXPECT_EQ(value.at("code"), "x = 1\n");
  EXPECT_EQ(value.at("rule"), "entry_point");
  EXPECT_EQ(value.at("block_index"), 0);
  EXPECT_EQ(value.at("block_count"), 2);
  EXPECT_EQ(value.at("first_line"), 3);
  EXPECT_EQ(value.at("truncated"), false);
}

TEST_F(Cli, ExtractEndsWith1WhenThereIsNoCode) {
  const Ended run = program_.run({"extract"}, "<think>\nnothing comes to mind\n");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(line_count(run.err), 1);
}

TEST_F(Cli, AFullDiskIsNoSuccess) {
  for (const std::string command : {"--help", "help", "extract"}) {
    const ProgramResult result = run_program(
        {"/bin/sh", "-c", "echo x = 1 | " + Program::binary() + " " + command + " >/dev/full"},
        {},
        10s);
    EXPECT_EQ(result.exit_code, 2) << command;
    EXPECT_TRUE(has(result.output, "standard output: No space left")) << result.output;
  }
}

TEST_F(Cli, AnInputWithoutEndIsRefused) {
  const Ended run = program_.run({"extract", "/dev/zero"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.err, "drk: /dev/zero is larger than 16 MiB\n");
}

TEST_F(Cli, ReplayNamesWhatIsWrongWithAManifest) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"format": "one"})", "manifest.format: expected an integer"},
      {R"({"manifest": {"colour": 1}})", "manifest: unknown member \"colour\""},
      {R"([1])", "manifest: expected an object"},
      {R"({"reference": {"sha256": "00", "text": "x"}})", "the file was edited"},
  };
  for (const auto& [text, part] : cases) {
    const Ended run = program_.run({"replay", program_.file("m.json", text)});
    EXPECT_EQ(run.exit_code, 2) << text;
    EXPECT_TRUE(has(run.err, part)) << text << ": " << run.err;
    EXPECT_EQ(line_count(run.err), 1) << run.err;
  }
}

TEST_F(Cli, WithoutPythonItSaysHowToGetOne) {
  const std::string code = program_.file("a.py", "class Model:\n    pass\n");
  const Ended none = program_.run({"eval", code, code}, "", {"XDG_CACHE_HOME=/nonexistent"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(has(none.err, "make setup")) << none.err;
  const Ended wrong = program_.run({"eval", code, code}, "", {"DRK_PYTHON=/nonexistent/python"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(has(wrong.err, "DRK_PYTHON names /nonexistent/python")) << wrong.err;
  const Ended asked = program_.run({"eval", code, code, "--python", "/nonexistent/python"});
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_TRUE(has(asked.err, "--python names /nonexistent/python")) << asked.err;
}

TEST_F(Cli, DoctorReportsAMachineWithoutPython) {
  const Ended run = program_.run({"doctor", "--json"}, "", {"XDG_CACHE_HOME=/nonexistent"});
  EXPECT_EQ(run.exit_code, 1);
  const json::Value value = json::parse(run.out);
  EXPECT_EQ(value.at("can_judge"), false);
  EXPECT_EQ(value.at("facts").at("trial").at("accepted"), false);
  EXPECT_TRUE(has(program_.run({"doctor"}, "", {"XDG_CACHE_HOME=/nonexistent"}).out, "make setup"));
}

TEST_F(CliWithPython, EvalAcceptsAndReplayRepeatsIt) {
  const std::string manifest = program_.path("manifest.json");
  const Ended run = judge({"eval", reference_, good_, "--trials", "2", "--save", manifest});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_TRUE(run.out.starts_with("ACCEPTED")) << run.out;
  EXPECT_TRUE(has(run.out, "gelu_tanh_kernel")) << run.out;
  EXPECT_FALSE(has(run.out, "\x1b")) << "colours where there is no terminal";
  const Ended again = judge({"replay", manifest});
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
  EXPECT_TRUE(again.out.starts_with("SAME OUTCOME: accepted")) << again.out;
}

TEST_F(CliWithPython, ReplayTellsOfAnotherOutcome) {
  const std::vector<std::string> eval = {"eval", reference_, good_, "--json", "--no-timing"};
  const Ended run = judge(eval);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  json::Value result = json::parse(run.out);
  result.at("manifest").as_object()["outcome"] = "wrong_output";
  const std::string file = program_.file("result.json", json::dump(result));
  const Ended again = judge({"replay", file, "--json"});
  EXPECT_EQ(again.exit_code, 1) << again.err;
  const json::Value answer = json::parse(again.out);
  EXPECT_EQ(answer.at("same"), false);
  EXPECT_EQ(answer.at("recorded"), "wrong_output");
  EXPECT_EQ(answer.at("outcome"), "accepted");
}

TEST_F(CliWithPython, RejudgeDrawsTheVerdictFromWhatWasSeen) {
  const Ended run = judge({"eval", reference_, good_, "--json", "--no-timing"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string file = program_.file("result.json", run.out);
  const Ended same = program_.run({"rejudge", file, "--quiet"});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_EQ(same.out, "SAME OUTCOME: accepted\n");
  json::Value result = json::parse(run.out);
  result.at("observations").at("trials").at(0).as_object()["mutated_inputs"] =
      json::parse(R"(["inputs[0]"])");
  const std::string other = program_.file("other.json", json::dump(result));
  const Ended again = program_.run({"rejudge", other, "--json"});
  EXPECT_EQ(again.exit_code, 1) << again.err;
  const json::Value outcome = json::parse(again.out).at(0).at("verdict").at("outcome");
  EXPECT_EQ(outcome.at("kind"), "rejected");
  EXPECT_EQ(outcome.at("reason"), "input_mutation");
}

// A third of the project's own: what is missed, and who is wrongly accused. `make hacks` runs all.
TEST_F(CliWithPython, HacksAreCaughtAndTheirHonestTwinsAreNot) {
  const std::string folder = std::string(DRK_SOURCE_DIR) + "/tests/redteam";
  const Ended run =
      judge({"hacks", folder, "--share", "3", "--jobs", "2", "--timeout", "40", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  const json::Value report = json::parse(run.out);
  for (const json::Value& row : report.at("rows").as_array()) {
    EXPECT_NE(row.at("agreement"), "unmet") << json::dump(row);
  }
  const json::Value& red_team = report.at("red_team");
  EXPECT_GT(red_team.at("caught").to_number<int>(), 20) << json::dump(red_team);
  EXPECT_GT(red_team.at("honest_accepted").to_number<int>(), 12) << json::dump(red_team);
  EXPECT_EQ(red_team.at("missed"), 0);
  EXPECT_EQ(red_team.at("false_alarms"), 0);
}

TEST_F(CliWithPython, EvalRejectsWhatIsWrong) {
  const Ended run = judge({"eval", reference_, problem_ + "/candidates/sigmoid_form.py"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_TRUE(run.out.starts_with("REJECTED: wrong output")) << run.out;
  for (const std::string part : {"expected ", "elements are wrong", "largest errors", "findings"}) {
    EXPECT_TRUE(has(run.out, part)) << part << run.out;
  }
}

TEST_F(CliWithPython, EvalShowsTheLineThatRaised) {
  const std::string candidate = program_.file("reply.md",
                                              "Here it is.\n\n```python\nimport torch\n\n\n"
                                              "class ModelNew(torch.nn.Module):\n"
                                              "    def forward(self, x):\n"
                                              "        return x.no_such_thing()\n```\n");
  const Ended run = judge({"eval", reference_, candidate, "--no-timing"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_TRUE(has(run.err, "reply: ")) << run.err;
  EXPECT_TRUE(has(run.out, "line 6 of the candidate (line 9 of the reply)")) << run.out;
  EXPECT_TRUE(has(run.out, "> 6 |         return x.no_such_thing()")) << run.out;
  EXPECT_TRUE(has(run.out, "AttributeError")) << run.out;
}

TEST_F(CliWithPython, EvalTellsABadProblemFromABadCandidate) {
  const std::string reference = program_.file("reference.py",
                                              "import torch\n\n\nclass Model(torch.nn.Module):\n"
                                              "    def forward(self, x):\n"
                                              "        raise KeyError('mine')\n\n\n"
                                              "def get_inputs():\n    return [torch.ones(3)]\n\n\n"
                                              "def get_init_inputs():\n    return []\n");
  const Ended run = judge({"eval", reference, good_, "--no-timing"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  EXPECT_TRUE(run.out.starts_with("BAD PROBLEM")) << run.out;
}

TEST_F(CliWithPython, QuietIsOneLine) {
  const Ended run = judge({"eval", reference_, good_, "--no-timing", "-q"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(line_count(run.out), 1) << run.out;
  EXPECT_EQ(run.err, "");
}

TEST_F(CliWithPython, BenchHoldsVerdictsAgainstExpectations) {
  const Ended run = judge({"bench", problem_, "--trials", "2", "--jobs", "2"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_TRUE(has(run.out, "level 1  4 of 4 as expected")) << run.out;
}

TEST_F(CliWithPython, BenchEndsWith1WhenAnExpectationIsNotMet) {
  (void)program_.file("reference.py", read_file(reference_));
  (void)program_.file("candidate.py", read_file(good_));
  (void)program_.file("case.json",
                      R"({"name": "trick", "needs": "either", "expect": {"verdict": "reject"}})");
  const Ended run = judge({"bench", program_.path("."), "--json"});
  EXPECT_EQ(run.exit_code, 1) << run.out << run.err;
  const json::Value value = json::parse(run.out);
  EXPECT_EQ(value.at("all").at("unmet"), 1);
  EXPECT_EQ(value.at("rows").at(0).at("outcome"), "accepted");
  EXPECT_EQ(value.at("rows").at(0).at("note"), "must be refused");
}

TEST_F(CliWithPython, CtrlCEndsAnEvaluationAtOnce) {
  const std::string candidate = program_.file("candidate.py",
                                              "import torch\n\n\n"
                                              "class ModelNew(torch.nn.Module):\n"
                                              "    def forward(self, x):\n"
                                              "        while True:\n"
                                              "            pass\n");
  ChildProcess child =
      program_.start({"eval", reference_, candidate, "--verbose"}, "", environment_);
  const Deadline deadline(60s);
  while (!has(read_file(program_.path("stderr")), "correctness") && !deadline.passed()) {
    std::this_thread::sleep_for(20ms);  // a file tells nobody that it has grown
  }
  ASSERT_EQ(::kill(child.pid(), SIGINT), 0);
  const std::int64_t start_ns = now_ns();
  const Ended ended = program_.wait(std::move(child));
  EXPECT_EQ(ended.exit_code, 130) << ended.err;
  EXPECT_LT(now_ns() - start_ns, 10'000'000'000);
}

}  // namespace
}  // namespace drk::cli
