// SPDX-License-Identifier: Apache-2.0
// All shapes of inputs and outputs, right and wrong.
#include "worker/fixture.h"

namespace drk::worker::test {
namespace {

using Outputs = WorkerTest;

/// A reference and a candidate in torch that return the given expressions of x: float32[6, 5].
task::Task pair_of(const std::string& reference, const std::string& candidate) {
  const std::string tail =
      "\n\ndef get_inputs():\n    return [torch.randn(6, 5)]\n\ndef get_init_inputs():\n    return "
      "[]\n";
  const std::string head = "import collections\nimport torch\nimport torch.nn as nn\n";
  return make_torch_task(
      head + "class Model(nn.Module):\n    def forward(self, x):\n        return " + reference +
          tail,
      head + "class ModelNew(nn.Module):\n    def forward(self, x):\n        return " + candidate +
          "\n");
}

TEST_F(Outputs, OfEveryKindAreComparedAndEqualOnesAccepted) {
  for (const char* expression : {
           "x * 2",
           "(x * 2, x.sum())",
           "[x, x + 1]",
           "{'mean': x.mean(0), 'nested': [x.std(1), (x.amax(), None)]}",
           "(None, 3, 2.5, True, 'text', float('nan'), float('inf'), 1 + 2j)",
           "x.argmax(1)",
           "x.to(torch.int32), x.to(torch.int8), (x * 10).to(torch.uint8)",
           "x > 0",
           "x.to(torch.bfloat16)",
           "x.to(torch.float16)",
           "x.to(torch.float64)",
           "torch.complex(x, -x)",
           "torch.complex(x.double(), -x.double()).conj()",
           "x[:0]",
           "x.new_empty(0, 7, 0)",
           "x.sum()",
           "x.t()",
           "x[:, ::2]",
           "x[0].expand(4, 5)",
           "x",
           "nn.Parameter(x)",
           "x.max(1)",
           "collections.OrderedDict(a=x, b=x.sum())",
           "x.clone().requires_grad_(True)",
           "torch.where(x > 0, x, float('nan'))",
           "torch.where(x > 0, x, float('-inf'))",
       }) {
    const task::Result result = evaluator().evaluate(pair_of(expression, expression));
    EXPECT_EQ(kind_of(result), "accepted") << expression << ": " << text_of(result);
  }
}

struct Wrong {
  const char* reference;
  const char* candidate;
  const char* kind;  ///< MismatchKind on the wire.
  const char* path;
};

TEST_F(Outputs, ThatDifferAreExplained) {
  for (const Wrong& c : {
           Wrong{"x * 2", "x * 2.1", "value", "output"},
           Wrong{"(x, x + 1)", "(x + 1, x)", "value", "output[0]"},
           Wrong{"(x, x + 1)", "[x, x + 1]", "structure", "output"},
           Wrong{"(x, x + 1)", "x", "structure", "output"},
           Wrong{"{'a': x}", "{'b': x}", "structure", "output"},
           Wrong{"x", "x[:3]", "shape", "output"},
           Wrong{"x", "x.double()", "dtype", "output"},
           Wrong{"x.sum()", "float(x.sum())", "structure", "output"},
           Wrong{"x.argmax(1)", "x.argmin(1)", "value", "output"},
           Wrong{"x > 0", "x < 0", "value", "output"},
           Wrong{"x", "x * float('nan')", "nan", "output"},
           Wrong{"x", "torch.full_like(x, float('inf'))", "infinity", "output"},
           Wrong{"torch.where(x > 0, x, float('inf'))",
                 "torch.where(x > 0, x, float('-inf'))",
                 "infinity",
                 "output"},
           Wrong{"x", "x.to_sparse()", "unsupported", "output"},
           Wrong{"x", "x.numpy()", "unsupported", "output"},
           Wrong{"x", "object()", "unsupported", "output"},
           Wrong{"x", "torch.empty(1).expand(1 << 40)", "oversize", "output"},
           // Of so many bytes that 64 bits count none, or few.
           Wrong{"x", "torch.empty(1).expand(1 << 62)", "oversize", "output"},
           Wrong{"x", "torch.empty(1).expand(1 << 31, 1 << 31)", "oversize", "output"},
           Wrong{"x", "[torch.empty(1).expand(1 << 61) for _ in 'four']", "oversize", "output"},
           Wrong{"x", "torch.empty(1 << 40, 0, 1 << 40)", "shape", "output"},
           Wrong{"x", "x[0, 0].view([1] * 65)", "unsupported", "output"},
           // More than fits one message.
           Wrong{"x", "[x[0, 0].view([1] * 64) for _ in range(900)]", "unsupported", "output"},
           Wrong{"x", "[x[0, 0] for _ in range(999)]", "unsupported", "output"},
           Wrong{"{'a': [x, x]}", "{'a': [x, x + 1]}", "value", "output['a'][1]"},
           Wrong{"torch.complex(x, x)", "torch.complex(x, -x)", "value", "output"},
       }) {
    const task::Result result = evaluator().evaluate(pair_of(c.reference, c.candidate));
    const auto* wrong = std::get_if<task::WrongOutput>(&result.verdict.outcome);
    ASSERT_NE(wrong, nullptr) << c.candidate << ": " << text_of(result);
    EXPECT_STREQ(json::name_of(wrong->mismatch.kind), c.kind)
        << c.candidate << ": " << text_of(result);
    EXPECT_EQ(wrong->mismatch.path, c.path) << c.candidate;
  }
}

TEST_F(Outputs, OfManyPartsAreTimedToo) {
  const std::string parts = "[x + i for i in range(300)]";
  task::Task task = pair_of(parts, parts);
  task.measure_performance = true;
  const task::Result result = evaluator().evaluate(task);
  EXPECT_EQ(kind_of(result), "accepted") << text_of(result);
}

TEST_F(Outputs, WrongValuesComeWithTheirPlaceAndExtent) {
  const task::Result result =
      evaluator().evaluate(pair_of("x * 0 + 1", "torch.cat([x[:4] * 0 + 1, x[4:] * 0 + 3])"));
  const auto& wrong = std::get<task::WrongOutput>(result.verdict.outcome);
  EXPECT_EQ(wrong.mismatch.first_index, (std::vector<std::int64_t>{4, 0}));
  EXPECT_EQ(wrong.mismatch.expected, "1");
  EXPECT_EQ(wrong.mismatch.got, "3");
  EXPECT_EQ(wrong.mismatch.wrong_count, 10U);
  EXPECT_EQ(wrong.mismatch.element_count, 30U);
  EXPECT_EQ(result.observations.trials.at(0).comparison.max_abs_error, 2.0);
}

TEST_F(Outputs, ATensorSubclassIsLazy) {
  const task::Result result = evaluator().evaluate(
      make_torch_task(kReluReference,
                      candidate_with("return torch.relu(x).as_subclass(Lazy)",
                                     "class Lazy(torch.Tensor):\n    pass\n")));
  EXPECT_EQ(kind_of(result), "rejected") << text_of(result);
  EXPECT_NE(text_of(result).find("lazy_output"), std::string::npos);
}

TEST_F(Outputs, ChangedInputsAreSeenFromOutside) {
  const task::Result result = evaluator().evaluate(
      make_torch_task(kReluReference, candidate_with("return x.clamp_(min=0)")));
  EXPECT_EQ(kind_of(result), "rejected") << text_of(result);
  EXPECT_EQ(result.observations.trials.at(0).mutated_inputs,
            (std::vector<std::string>{"inputs[0]"}));
}

TEST_F(Outputs, InputsKeepTheirStridesAndSharing) {
  const std::string reference = R"(
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x, y, z, flag, scale, names):
        return (x @ y) * scale

def get_inputs():
    a = torch.randn(8, 6)
    return [a.t(), a, torch.randn(3, 4)[:, 1:3], True, 2.5, {"k": [a, None]}]

def get_init_inputs():
    return []
)";
  const std::string candidate = R"(
import torch.nn as nn

class ModelNew(nn.Module):
    def forward(self, x, y, z, flag, scale, names):
        assert x.stride() == (1, 6) and z.stride() == (4, 1), (x.stride(), z.stride())
        assert names["k"][0] is y and names["k"][1] is None and flag is True
        return (x @ y) * scale
)";
  const task::Result result = evaluator().evaluate(make_torch_task(reference, candidate));
  EXPECT_EQ(kind_of(result), "accepted") << text_of(result);
}

}  // namespace
}  // namespace drk::worker::test
