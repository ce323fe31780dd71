// SPDX-License-Identifier: Apache-2.0
// Fences inside blocks: in strings of the code, and in blocks that only wrap others.
#include "extract_case.h"

#include <string>
#include <vector>

namespace drk::extract {
namespace {

TEST(FenceInString, DoesNotCloseTheBlock) {
  const std::string bare =
      "def f():\n    '''Doc.\n```\nf()\n```\n    '''\nclass ModelNew(nn.Module):\n    pass\n";
  const std::string marked =
      "class ModelNew(nn.Module):\n    \"\"\"\n```python\nf()\n```\n    \"\"\"\n    x = 1\n";
  const std::vector<Case> cases{
      {.name = "bare example in a docstring",
       .reply = "```python\n" + bare + "```\nDone.\n",
       .code = bare,
       .why_says = "string was kept"},
      {.name = "marked example in a docstring",
       .reply = "```python\n" + marked + "```\n",
       .code = marked},
      {.name = "in an unmarked block",
       .reply = "```\n" + bare + "```\n",
       .code = bare,
       .language = ""},
      {.name = "a single fence in a string",
       .reply = "```python\nX = \"\"\"\n```\n\"\"\"\n" + kModel + "```\n",
       .code = "X = \"\"\"\n```\n\"\"\"\n" + kModel},
      {.name = "two blocks with examples: the last one",
       .reply = "```python\n" + bare + "```\n\n```python\n" + marked + "```\n",
       .code = marked,
       .block_index = 1,
       .block_count = 2,
       .first_line = 13},
      {.name = "the reply ends in code after the string",
       .reply = "```python\n" + bare,
       .code = bare,
       .rule = Rule::unclosed_fence,
       .truncated = true},
      {.name = "quotes in comments and in other strings open nothing",
       .reply = "```python\n# \"\"\"\nX = \"'''\"\n" + kModel + "```\nText\n```\nlog\n```\n",
       .code = "# \"\"\"\nX = \"'''\"\n" + kModel,
       .block_count = 2},
      {.name = "escaped quotes do not end a string",
       .reply = "```python\nX = \"\"\"\\\"\"\"\n```\n\"\"\"\n" + kModel + "```\n",
       .code = "X = \"\"\"\\\"\"\"\n```\n\"\"\"\n" + kModel},
  };
  expect_extracted(cases);
}

TEST(FenceInString, ClosesTheBlockIfTheStringNeverEnds) {
  const std::vector<Case> cases{
      {.name = "one block",
       .reply = "```python\n" + kModel + "    '''never ended\n```\nDone.\n",
       .code = kModel + "    '''never ended\n"},
      {.name = "a sound block after a broken one",
       .reply = "```python\nX = \"\"\"never ended\n```\nAgain:\n```python\n" + kModel + "```\n",
       .code = kModel,
       .block_index = 1,
       .block_count = 2,
       .first_line = 6},
      {.name = "a sound block whose docstring would end the string",
       .reply = "```python\nX = \"\"\"never ended\n```\nAgain:\n```python\n\"\"\"Doc.\"\"\"\n" +
                kModel + "```\n",
       .code = "\"\"\"Doc.\"\"\"\n" + kModel,
       .block_index = 1,
       .block_count = 2,
       .first_line = 6},
      {.name = "prose that would end the string, before a sound block",
       .reply =
           "```python\nX = \"\"\"never ended\n```\nI forgot the \"\"\" at the end:\n```python\n" +
           kModel + "```\n",
       .code = kModel,
       .block_index = 1,
       .block_count = 2,
       .first_line = 6},
      {.name = "what follows the block does not define its entry point",
       .reply =
           "```python\nX = \"\"\"never ended\n```\n\"\"\"\nModelNew = 1\n```python\nY = 1\n```\n",
       .code = "Y = 1\n",
       .rule = Rule::python_fence,
       .block_index = 1,
       .block_count = 2,
       .first_line = 7},
      {.name = "a language without such strings",
       .reply = "```text\n'''\n```\n'''\n```python\n" + kModel + "```\n",
       .code = kModel,
       .block_index = 1,
       .block_count = 2,
       .first_line = 6},
  };
  expect_extracted(cases);
}

TEST(Wrapper, GivesWayToTheBlockItHolds) {
  const std::string inner = "```python\n" + kModel + "```\n";
  const std::vector<Case> cases{
      {.name = "markdown",
       .reply = "````markdown\n# Title\n" + inner + "````\n",
       .code = kModel,
       .first_line = 4},
      {.name = "md by tildes",
       .reply = "~~~md\n" + inner + "~~~\n",
       .code = kModel,
       .first_line = 3},
      {.name = "unmarked",
       .reply = "````\nText.\n" + inner + "````\n",
       .code = kModel,
       .first_line = 4},
      {.name = "two blocks in it: the last that defines the entry point",
       .reply = "````markdown\n" + inner + "Use:\n```python\nrun()\n```\n````\n",
       .code = kModel,
       .block_count = 2,
       .first_line = 3},
      {.name = "as long as the inner fence, which closes both",
       .reply = "```markdown\nText.\n" + inner + "More.\n```\n",
       .code = kModel,
       .block_count = 2,
       .first_line = 4},
      {.name = "opened twice",
       .reply = "```\n" + inner + "```\n",
       .code = kModel,
       .block_count = 2,
       .first_line = 3},
      {.name = "Python opened anew after a broken start",
       .reply = "```python\nimport torch\n\nWait, again:\n\n" + inner,
       .code = kModel,
       .first_line = 7},
      {.name = "Python closed by the next opening fence",
       .reply = "```python\n" + kModel + "```python\nrun()\n```\n",
       .code = kModel,
       .block_count = 2},
      {.name = "Python with a fence in a string, closed by an opening fence",
       .reply = "````python\n\"\"\"\n```\n\"\"\"\n" + kModel + "````python\n",
       .code = "\"\"\"\n```\n\"\"\"\n" + kModel,
       .block_count = 2},
      {.name = "unclosed, around a complete block",
       .reply = "````markdown\n" + inner + "More",
       .code = kModel,
       .first_line = 3},
      {.name = "unclosed, around an unclosed block",
       .reply = "````markdown\n```python\n" + kModel,
       .code = kModel,
       .rule = Rule::unclosed_fence,
       .truncated = true,
       .first_line = 3},
      {.name = "a wrapper in a wrapper",
       .reply = "`````markdown\n````md\n" + inner + "````\n`````\n",
       .code = kModel,
       .first_line = 4},
      {.name = "in a quote",
       .reply = "> ````md\n> ```python\n> X = 1\n> ```\n> ````\n",
       .code = "X = 1\n",
       .rule = Rule::python_fence,
       .first_line = 3},
  };
  expect_extracted(cases);
}

TEST(Wrapper, IsTakenItselfIfItHoldsNothingBetter) {
  const std::string documented = "\"\"\"\n```python\nclass ModelNew: ...\n```\n\"\"\"\n" + kModel;
  const std::vector<Case> cases{
      {.name = "code whose docstring holds a block",
       .reply = "````\n" + documented + "````\n",
       .code = documented,
       .language = ""},
      {.name = "Python, and a block in it that defines no entry point",
       .reply = "```python\nif x:\n```python\nrun()\n```\n" + kModel,
       .code = "run()\n",
       .rule = Rule::python_fence,
       .first_line = 4},
      {.name = "text in another language",
       .reply = "````text\n```python\n" + kModel + "```\n````\n",
       .code = "```python\n" + kModel + "```\n",
       .language = "text"},
      {.name = "empty blocks",
       .reply = "````markdown\nHello\n```python\n```\n````\n",
       .code = "Hello\n```python\n```\n",
       .rule = Rule::last_fence,
       .language = "markdown"},
      {.name = "code mismarked as markdown",
       .reply = "```md\n" + kModel + "```\n",
       .code = kModel,
       .language = "md"},
  };
  expect_extracted(cases);
}

}  // namespace
}  // namespace drk::extract
