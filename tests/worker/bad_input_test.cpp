// SPDX-License-Identifier: Apache-2.0
// Code that cannot be judged, or judged to be bad, and what the verdict says about it.
#include "worker/fixture.h"

#include <algorithm>

namespace drk::worker::test {
namespace {

using BadInput = WorkerTest;

struct Case {
  const char* name;
  std::string reference;
  std::string candidate;
  const char* outcome;
  std::optional<task::Fault> fault;
  std::optional<std::uint32_t> line;  ///< Of the judged code.
  const char* says;                   ///< Part of the verdict's JSON.
};

std::string reference_with(const std::string& from, const std::string& to) {
  std::string text = kReluReference;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, from.size(), to);
}

std::vector<Case> cases() {
  const std::string relu = kReluReference;
  const auto candidate = task::Fault::candidate;
  const auto problem = task::Fault::task;
  return {
      {"syntax error",
       relu,
       "import torch\n\nclass ModelNew(:\n    pass\n",
       "compile_failed",
       candidate,
       3,
       "syntax_error"},
      {"missing class",
       relu,
       "import torch\nx = 1\n",
       "compile_failed",
       candidate,
       {},
       "defines no class ModelNew"},
      {"entry point that is no class",
       relu,
       "import torch\nModelNew = 3\n",
       "compile_failed",
       candidate,
       {},
       "not a class but an object of type int"},
      {"entry point that is a function",
       relu,
       "import torch\ndef ModelNew():\n    return 1\n",
       "compile_failed",
       candidate,
       {},
       "not a class"},
      {"import that does not exist",
       relu,
       "import torch\nimport no_such_module_xyz\n",
       "compile_failed",
       candidate,
       2,
       "import_error"},
      {"raises while imported",
       relu,
       "import torch\nraise ValueError('boom')\n",
       "compile_failed",
       candidate,
       2,
       "boom"},
      {"deep recursion at import",
       relu,
       "def f(n):\n    return f(n + 1)\nf(0)\n",
       "compile_failed",
       candidate,
       2,
       "RecursionError"},
      {"deletes its class",
       relu,
       candidate_with("return x") + "\ndel ModelNew\n",
       "compile_failed",
       candidate,
       {},
       "defines no class"},
      {"constructor raises",
       relu,
       "import torch.nn as nn\nclass ModelNew(nn.Module):\n    def __init__(self):\n        raise "
       "KeyError('k')\n",
       "compile_failed",
       candidate,
       4,
       "construct_error"},
      {"sys.exit at import",
       relu,
       "import sys\nsys.exit(0)\n",
       "compile_failed",
       candidate,
       2,
       "SystemExit"},
      {"forward raises",
       relu,
       candidate_with("raise ValueError('wrong turn')"),
       "runtime_failed",
       candidate,
       7,
       "wrong turn"},
      {"forward takes too few arguments",
       relu,
       "import torch.nn as nn\nclass ModelNew(nn.Module):\n    def forward(self):\n        return "
       "1\n",
       "runtime_failed",
       candidate,
       {},
       "TypeError"},
      {"NUL byte",
       relu,
       std::string("import torch\nx = 1\n\0\n", 20),
       "invalid",
       candidate,
       {},
       "NUL byte in line 3"},
      {"invalid UTF-8", relu, "import torch\nx = '\xff\xfe'\n", "invalid", candidate, {}, "line 2"},
      {"200 KB of code",
       relu,
       "x = 1\n" + std::string(200'000, '#'),
       "invalid",
       candidate,
       {},
       "100000"},
      {"get_inputs raises",
       reference_with("return [torch.randn(64, 33)]", "raise OSError('no data')"),
       kReluCandidate,
       "invalid",
       problem,
       10,
       "no data"},
      {"get_inputs missing",
       reference_with("def get_inputs", "def get_other"),
       kReluCandidate,
       "invalid",
       problem,
       {},
       "get_inputs"},
      {"get_inputs returns a tensor",
       reference_with("return [torch.randn(64, 33)]", "return torch.randn(2)"),
       kReluCandidate,
       "invalid",
       problem,
       {},
       "must return a list"},
      {"reference forward raises",
       reference_with("return torch.relu(x)", "return undefined_name"),
       kReluCandidate,
       "invalid",
       problem,
       7,
       "NameError"},
      {"reference does not parse",
       "def (:\n  broken here\n",
       kReluCandidate,
       "invalid",
       problem,
       1,
       "syntax"},
      {"reference dies",
       reference_with("return torch.relu(x)", "import os; os.abort()"),
       kReluCandidate,
       "invalid",
       problem,
       {},
       "SIGABRT"},
  };
}

TEST_F(BadInput, GetsAVerdictThatNamesTheTrouble) {
  for (const Case& c : cases()) {
    const task::Result result = evaluator().evaluate(make_task(c.reference, c.candidate));
    EXPECT_EQ(kind_of(result), c.outcome) << c.name << ": " << text_of(result);
    EXPECT_EQ(result.verdict.fault, c.fault) << c.name;
    const std::string text = text_of(result);
    EXPECT_NE(text.find(c.says), std::string::npos) << c.name << ": " << text;
    if (c.line) {
      EXPECT_NE(text.find("\"line\":" + std::to_string(*c.line)), std::string::npos)
          << c.name << ": " << text;
    }
  }
}

TEST_F(BadInput, AnExceptionInDelChangesNothing) {
  std::string code = kReluCandidate;
  code += "    def __del__(self):\n        raise ValueError('in del')\n";
  code += "\nclass Noisy:\n    def __del__(self):\n        raise ValueError('in del')\nNoisy()\n";
  const task::Result result = evaluator().evaluate(make_task(kReluReference, code));
  EXPECT_EQ(kind_of(result), "accepted") << text_of(result);
}

TEST_F(BadInput, AnErrorWhoseTextCannotBePrintedIsStillAnError) {
  const std::string code = candidate_with("raise Odd()",
                                          "class Odd(Exception):\n    def __str__(self):\n"
                                          "        raise RuntimeError('no text')\n");
  const task::Result result = evaluator().evaluate(make_task(kReluReference, code));
  EXPECT_EQ(kind_of(result), "runtime_failed") << text_of(result);
}

TEST_F(BadInput, WhatTheInterpreterCannotRunIsNobodysFault) {
  const std::string asks_driver = candidate_with(
      "triton.runtime.driver.active.get_current_target(); return torch.relu(x)", "import triton\n");
  const std::string compiles = candidate_with(
      "return x",
      "from torch.utils.cpp_extension import load_inline\n"
      "load_inline('m', cpp_sources='', cuda_sources='__global__ void k() {}', functions=[])");
  for (const std::string& code : {asks_driver,
                                  candidate_with("return torch.relu(x.cuda())"),
                                  candidate_with("s = torch.cuda.Stream(); return torch.relu(x)"),
                                  compiles}) {
    const task::Result result = evaluator().evaluate(make_task(kReluReference, code));
    EXPECT_EQ(kind_of(result), "undecided") << text_of(result);
    EXPECT_EQ(result.verdict.fault, task::Fault::infra);
  }
}

TEST_F(BadInput, WhatOnlyCallsItselfTheInstallationIsTheCandidates) {
  const std::string code = candidate_with(
      "exec(compile('raise RuntimeError()', FILE, 'exec'))",
      "import sysconfig\nFILE = sysconfig.get_path('stdlib') + '/mine/torch/cuda/mine.py'\n");
  const task::Result result = evaluator().evaluate(make_task(kReluReference, code));
  EXPECT_EQ(kind_of(result), "runtime_failed") << text_of(result);
  EXPECT_EQ(result.verdict.fault, task::Fault::candidate);
}

TEST_F(BadInput, AWrongOutputIsWrongWhateverIsAskedForAfterwards) {
  const struct {
    const char* first;
    const char* outcome;
  } cases[] = {{"x", "wrong_output"}, {"torch.relu(x)", "runtime_failed"}};
  for (const auto& c : cases) {
    const std::string code = candidate_with(std::string("CALLS.append(1); return ") + c.first +
                                                " if len(CALLS) == 1 else torch.relu(x.cuda())",
                                            "CALLS = []\n");
    const task::Result result = evaluator().evaluate(make_task(kReluReference, code));
    EXPECT_EQ(kind_of(result), c.outcome) << text_of(result);
  }
}

TEST_F(BadInput, CudaCodeNeedsAGpuBeforeAnythingRuns) {
  task::Task task = make_task(kReluReference, "whatever this is, it is not run");
  task.backend = task::Backend::cuda;
  const task::Result result = evaluator().evaluate(task);
  EXPECT_EQ(kind_of(result), "undecided") << text_of(result);
  EXPECT_EQ(result.timeline.size(), 2U) << "validate and finish";
}

}  // namespace
}  // namespace drk::worker::test
