// SPDX-License-Identifier: Apache-2.0
// Code inside the reasoning is not the candidate.
#include "extract_case.h"

#include <string>
#include <vector>

namespace drk::extract {
namespace {

const std::string kDraft = "```python\nclass ModelNew: draft = 1\n```\n";
const std::string kAnswer = "```python\n" + kModel + "```\n";

Case nothing(std::string name, std::string reply) {
  return {.name = std::move(name),
          .reply = std::move(reply),
          .code = "",
          .rule = Rule::none,
          .language = "",
          .block_index = std::nullopt,
          .block_count = 0,
          .first_line = std::nullopt};
}

TEST(Reasoning, IsLeftOut) {
  const std::vector<Case> cases{
      {.name = "think",
       .reply = "<think>\n" + kDraft + "</think>\n" + kAnswer,
       .code = kModel,
       .first_line = 7,
       .why_says = "Reasoning was left out"},
      {.name = "a draft after the answer",
       .reply = kAnswer + "<think>\n" + kDraft + "</think>\n",
       .code = kModel},
      {.name = "thinking",
       .reply = "<thinking>" + kDraft + "</thinking>\n" + kAnswer,
       .code = kModel,
       .first_line = 6},
      {.name = "reasoning, in capitals, blank before the bracket",
       .reply = "<REASONING >\n" + kDraft + "</Reasoning>\n" + kAnswer,
       .code = kModel,
       .first_line = 7},
      {.name = "twice",
       .reply = "<think>a</think><think>\n" + kDraft + "</think>\n" + kAnswer,
       .code = kModel,
       .first_line = 7},
      {.name = "the answer starts on the line of the closing tag",
       .reply = "<think>\nHm.\n</think>```python\n" + kModel + "```\n",
       .code = kModel,
       .first_line = 4},
      {.name = "closed by the wrong tag",
       .reply = "<think>\n" + kDraft + "</reasoning>\n" + kAnswer,
       .code = kModel,
       .first_line = 7},
      {.name = "closed on the line of the draft's closing fence",
       .reply = "<think>\n```python\nX = 1\n```</think>\n" + kAnswer,
       .code = kModel,
       .first_line = 6},
      {.name = "a tag spoken of closes nothing",
       .reply = "<think>\nI write `</think>` at the end.\n" + kDraft + "</think>\n" + kAnswer,
       .code = kModel,
       .first_line = 8},
      {.name = "an example of the tags in a block of the reasoning",
       .reply = "<think>\n```\n<think>\n</think>\n```\n" + kDraft + "</think>\n" + kAnswer,
       .code = kModel,
       .first_line = 11},
      {.name = "no fence after it",
       .reply = "<think>\n" + kDraft + "</think>\n\n" + kModel,
       .code = "\n" + kModel,
       .rule = Rule::whole_text,
       .language = "",
       .block_index = std::nullopt,
       .block_count = 0,
       .first_line = 6},
      {.name = "no fence, code on the line of the closing tag",
       .reply = "<think>a</think>" + kModel,
       .code = kModel,
       .rule = Rule::whole_text,
       .language = "",
       .block_index = std::nullopt,
       .block_count = 0,
       .first_line = 1},
      {.name = "no fence, words after it and code before it",
       .reply = kModel + "<think>a</think>\nDone.\n",
       .code = kModel,
       .rule = Rule::whole_text,
       .language = "",
       .block_index = std::nullopt,
       .block_count = 0,
       .first_line = 1},
  };
  expect_extracted(cases);
}

TEST(Reasoning, EndsAtAClosingTagThatNothingOpened) {
  const std::vector<Case> cases{
      {.name = "on a line of its own",
       .reply = "Hm.\n" + kDraft + "</think>\n" + kAnswer,
       .code = kModel,
       .first_line = 7},
      {.name = "at the end of a line",
       .reply = kDraft + "That's it.</think>\n" + kAnswer,
       .code = kModel,
       .first_line = 6},
      {.name = "no fence after it",
       .reply = "Let's see.\n</think>\n" + kModel,
       .code = kModel,
       .rule = Rule::whole_text,
       .language = "",
       .block_index = std::nullopt,
       .block_count = 0,
       .first_line = 3},
      {.name = "spoken of in the answer",
       .reply = kAnswer + "I left out `</think>`\n",
       .code = kModel},
      {.name = "in the midst of a line of the answer",
       .reply = kAnswer + "Now </think> is a tag.\n",
       .code = kModel},
      nothing("nothing after it", kDraft + "</think>\n"),
  };
  expect_extracted(cases);
}

TEST(Reasoning, EndsInADraftThatWasLeftOpen) {
  const std::vector<Case> cases{
      {.name = "opened by a tag",
       .reply = "<think>\n```cuda\nint x;\n</think>\n" + kAnswer,
       .code = kModel,
       .first_line = 6},
      {.name = "opened in the prompt",
       .reply = "```python\nclass ModelNew: draft = 1\n</think>\n" + kAnswer,
       .code = kModel,
       .first_line = 5},
      {.name = "a line of prose that looks like a fence",
       .reply = "<think>\n``` opens a block\nDone.</think>\n" + kAnswer,
       .code = kModel,
       .first_line = 5},
      {.name = "inside a string that the answer's docstring would end",
       .reply = "<think>\n```python\nX = \"\"\"\n```\n</think>\n```python\n\"\"\"\n```\n\"\"\"\n" +
                kModel + "```\n",
       .code = "\"\"\"\n```\n\"\"\"\n" + kModel,
       .first_line = 7},
  };
  expect_extracted(cases);
}

TEST(Reasoning, TagsInsideAFenceAreText) {
  const std::string strings = "X = '<think>'\nY = \"\"\"\n<think>\n</think>\n\"\"\"\n" + kModel;
  const std::string closing = "Y = \"\"\"\n</think>\n\"\"\"\n" + kModel;
  const std::vector<Case> cases{
      {.name = "in strings", .reply = "```python\n" + strings + "```\n", .code = strings},
      {.name = "a lone closing tag in a string",
       .reply = "```python\n" + closing + "```\n",
       .code = closing},
      {.name = "an opening tag at the start of a line",
       .reply = "```\n<think>\n```\n" + kAnswer,
       .code = kModel,
       .block_index = 1,
       .block_count = 2,
       .first_line = 5},
      {.name = "a pair of tags in an unmarked block",
       .reply = kAnswer + "```\n<think>\n</think>\n```\n",
       .code = kModel,
       .block_count = 2},
      {.name = "a closing tag in a block of text",
       .reply = kAnswer + "```text\n</think>\n```\n",
       .code = kModel,
       .block_count = 2},
  };
  expect_extracted(cases);
}

TEST(Reasoning, ThatNeverEndsHoldsNoCode) {
  auto cut = nothing("cut off", "<think>\n" + kDraft + "So");
  auto in_draft = nothing("cut off in a draft", "<think>\n```python\n" + kModel);
  auto greeting = nothing("words before it", "Sure!\n<think>\n" + kDraft);
  auto spoken = nothing("the tag is spoken of", "<think>\nNow `</think>` and then\n" + kDraft);
  for (auto* one : {&cut, &in_draft, &greeting, &spoken}) {
    one->truncated = true;
    one->why_says = "ends inside its reasoning";
  }
  const std::vector<Case> cases{
      cut,
      in_draft,
      greeting,
      spoken,
      {.name = "an answer before it stands",
       .reply = kAnswer + "<think>\n" + kDraft,
       .code = kModel,
       .why_says = "ends inside reasoning"},
  };
  expect_extracted(cases);
}

}  // namespace
}  // namespace drk::extract
