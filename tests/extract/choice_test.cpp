// SPDX-License-Identifier: Apache-2.0
// Which of several pieces of code is taken, and what counts as defining the entry point.
#include "extract_case.h"

#include <string>
#include <vector>

namespace drk::extract {
namespace {

std::string block(const std::string& info, const std::string& code) {
  return "```" + info + "\n" + code + "```\n";
}

TEST(Choice, PrefersTheLastCompleteBlockThatDefinesTheEntryPoint) {
  const std::string second = "class ModelNew: v = 2\n";
  const std::vector<Case> cases{
      {.name = "the last of two",
       .reply = block("python", kModel) + block("python", second),
       .code = second,
       .block_index = 1,
       .block_count = 2,
       .first_line = 6,
       .why_says = "Block 2 of 2, the last complete one that defines ModelNew."},
      {.name = "usage after it",
       .reply = block("python", kModel) + block("python", "print(ModelNew())\n"),
       .code = kModel,
       .block_count = 2,
       .why_says = "Python blocks besides it: 1"},
      {.name = "split answer: the kernel is in an earlier block",
       .reply = block("python", "def kernel(): ...\n") + block("python", kModel),
       .code = kModel,
       .block_index = 1,
       .block_count = 2,
       .first_line = 5,
       .why_says = "not part of the code"},
      {.name = "marked as something else, against a Python block without it",
       .reply = block("cuda", kModel) + block("python", "import torch\n"),
       .code = kModel,
       .language = "cuda",
       .block_count = 2},
      {.name = "shell after it",
       .reply = block("python", kModel) + block("bash", "python run.py\n"),
       .code = kModel,
       .block_count = 2},
      {.name = "a later one that is cut off",
       .reply = block("python", kModel) + "```python\nclass ModelNew:\n    def",
       .code = kModel,
       .block_count = 2,
       .why_says = "cut off and was passed over"},
      {.name = "a diff does not define it",
       .reply = block("python", kModel) + block("diff", "+class ModelNew: v = 3\n"),
       .code = kModel,
       .block_count = 2},
      {.name = "two blocks with no line between them",
       .reply = block("python", kModel) + block("python", second) + block("", "out\n"),
       .code = second,
       .block_index = 1,
       .block_count = 3,
       .first_line = 6},
  };
  expect_extracted(cases);
}

TEST(Choice, FallsBackToTheLastFencePreferringPython) {
  const std::vector<Case> cases{
      {.name = "Python over a later block of text",
       .reply = block("python", "X = 1\n") + block("text", "out\n"),
       .code = "X = 1\n",
       .rule = Rule::python_fence,
       .block_count = 2,
       .why_says = "no block defines ModelNew"},
      {.name = "the last Python block",
       .reply = block("py", "X = 1\n") + block("py", "X = 2\n"),
       .code = "X = 2\n",
       .rule = Rule::python_fence,
       .language = "py",
       .block_index = 1,
       .block_count = 2,
       .first_line = 5},
      {.name = "the last block if none is Python",
       .reply = block("cpp", "int x;\n") + block("", "X = 1\n"),
       .code = "X = 1\n",
       .rule = Rule::last_fence,
       .language = "",
       .block_index = 1,
       .block_count = 2,
       .first_line = 5},
      {.name = "empty blocks are passed over",
       .reply = block("python", "X = 1\n") + block("python", "\n  \n"),
       .code = "X = 1\n",
       .rule = Rule::python_fence,
       .block_count = 2},
  };
  expect_extracted(cases);
}

TEST(Choice, TakesAnUnclosedBlockAndSaysSo) {
  const std::vector<Case> cases{
      {.name = "alone",
       .reply = "```python\n" + kModel + "    def forw",
       .code = kModel + "    def forw",
       .rule = Rule::unclosed_fence,
       .truncated = true,
       .why_says = "may be cut off"},
      {.name = "defines the entry point, against a complete block that does not",
       .reply = block("python", "X = 1\n") + "```python\n" + kModel,
       .code = kModel,
       .rule = Rule::unclosed_fence,
       .truncated = true,
       .block_index = 1,
       .block_count = 2,
       .first_line = 5},
      {.name = "marked as Python, against a complete block that is not",
       .reply = block("bash", "pip install triton\n") + "```python\nimport tri",
       .code = "import tri",
       .rule = Rule::unclosed_fence,
       .truncated = true,
       .block_index = 1,
       .block_count = 2,
       .first_line = 5},
      {.name = "without the entry point, a complete Python block is better",
       .reply = block("python", "X = 1\n") + "```python\nimport tri",
       .code = "X = 1\n",
       .rule = Rule::python_fence,
       .block_count = 2},
      {.name = "unmarked, a complete block is better",
       .reply = block("cpp", "int x;\n") + "```\nlog",
       .code = "int x;\n",
       .rule = Rule::last_fence,
       .language = "cpp",
       .block_count = 2},
      {.name = "the closing fence is cut in half",
       .reply = "```python\n" + kModel + "``",
       .code = kModel + "``",
       .rule = Rule::unclosed_fence,
       .truncated = true},
  };
  expect_extracted(cases);
}

TEST(Choice, TakesAReplyWithoutFencesWhole) {
  const auto whole = [](std::string name, std::string reply) {
    return Case{.name = std::move(name),
                .reply = reply,
                .code = reply,
                .rule = Rule::whole_text,
                .language = "",
                .block_index = std::nullopt,
                .block_count = 0,
                .first_line = 1};
  };
  expect_extracted(std::vector<Case>{
      whole("code", "import torch\n" + kModel),
      whole("code without a last line ending", "class ModelNew: pass"),
      whole("code with a fence in its docstring",
            "\"\"\"\n```python\nclass ModelNew: draft\n```\n\"\"\"\n" + kModel),
      whole("code with reasoning tags in its strings",
            "X = \"\"\"\n<think>\n</think>\n\"\"\"\n" + kModel),
      whole("a refusal", "I can't do that.\n"),
  });
}

TEST(Choice, FindsNoneInBlanksAndEmptyBlocks) {
  const auto none = [](std::string name, std::string reply, std::size_t count, std::string why) {
    return Case{.name = std::move(name),
                .reply = std::move(reply),
                .code = "",
                .rule = Rule::none,
                .language = "",
                .block_index = std::nullopt,
                .block_count = count,
                .first_line = std::nullopt,
                .why_says = std::move(why)};
  };
  expect_extracted(std::vector<Case>{
      none("empty", "", 0, "blank"),
      none("blanks", " \n\t\r\n", 0, "blank"),
      none("an empty block", "Here:\n```python\n```\n", 1, "every block is empty"),
      none("only an opening fence", "Here:\n```python", 1, "every block is empty"),
      none("only reasoning", "<think>a</think>\n", 0, "nothing follows"),
  });
}

/// Each is the second block of a reply whose first defines the entry point without doubt.
TEST(EntryPoint, IsADefinitionAtTopLevel) {
  for (const std::string code : {
           "class ModelNew(nn.Module): pass\n",
           "class ModelNew:\n    pass\n",
           "class  ModelNew ( nn.Module ) :\n    pass\n",
           "class ModelNew[T](nn.Module): pass\n",
           "@final\nclass ModelNew(Base): pass\n",
           "ModelNew = torch.compile(Model)\n",
           "ModelNew=Model\n",
           "ModelNew: type = Model\n",
           "def ModelNew(*args):\n    return Model()\n",
           "x = 1; ModelNew = Model\n",
           "f(\n    a,\n)\nModelNew = Model\n",
           "x = f(  # never closed\nclass ModelNew: pass\n",
           "it's = 'broken\nclass ModelNew: pass\n",
           "x = '''a''' \"b\" '' # '''\nclass ModelNew: pass\n",
           "x = f\"{d[\"key\"]}\"\nclass ModelNew: pass\n",
           "x = r'\\''\nclass ModelNew: pass\n",
       }) {
    EXPECT_EQ(extract_code(block("python", kModel) + block("python", code)).code, code);
  }
}

TEST(EntryPoint, IsNotAMention) {
  for (const std::string code : {
           "# class ModelNew(nn.Module):\n",
           "x = '''\nclass ModelNew(nn.Module):\n'''\n",
           "x = \"\"\"\nModelNew = 1\n\"\"\"\n",
           "x = 'a\\\nModelNew = 1'\n",
           "    class ModelNew(nn.Module): pass\n",
           "class Outer:\n    class ModelNew: pass\n",
           "class ModelNewer(nn.Module): pass\n",
           "class ModelNew\xC3\xA9: pass\n",
           "class Model: pass\n",
           "if x:\n    y = 1; ModelNew = 2\n",
           "x = (1; ModelNew = 2)\n",
           "ModelNew == Model\n",
           "ModelNew(1)\n",
           "ModelNew.x = 1\n",
           "ModelNew: type\n",
           "del ModelNew\n",
           "f(\nModelNew = 1\n)\n",
           "x = \\\nModelNew = 1\n",
           "class ModelNew : public Module {\n};\n",
           "class ModelNew {\n};\n",
           "subclass ModelNew: pass\n",
       }) {
    EXPECT_EQ(extract_code(block("python", kModel) + block("python", code)).code, kModel) << code;
  }
}

TEST(EntryPoint, HasTheNameThatTheOptionsGive) {
  const auto reply =
      block("python", "def custom_kernel(data):\n    return data\n") + block("python", kModel);
  const auto named = extract_code(reply, {.entry_point = "custom_kernel"});
  EXPECT_EQ(named.rule, Rule::entry_point);
  EXPECT_EQ(named.block_index, 0U);
  const auto nameless = extract_code(reply, {.entry_point = ""});
  EXPECT_EQ(nameless.rule, Rule::python_fence);
  EXPECT_EQ(nameless.block_index, 1U);
}

TEST(Rule, IsSpeltAsOnTheWire) {
  EXPECT_EQ(to_string(Rule::entry_point), "entry_point");
  EXPECT_EQ(to_string(Rule::python_fence), "python_fence");
  EXPECT_EQ(to_string(Rule::last_fence), "last_fence");
  EXPECT_EQ(to_string(Rule::unclosed_fence), "unclosed_fence");
  EXPECT_EQ(to_string(Rule::whole_text), "whole_text");
  EXPECT_EQ(to_string(Rule::none), "none");
}

}  // namespace
}  // namespace drk::extract
