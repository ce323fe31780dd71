// SPDX-License-Identifier: Apache-2.0
// Telling a model's reply from a plain Python file.
#include "drk/extract.h"

#include <gtest/gtest.h>

#include <string>

namespace drk::extract {
namespace {

TEST(LooksLikeReply, IsTrueOfFencesAndTagsOutsideStrings) {
  for (const std::string text : {
           "```python\nclass ModelNew: pass\n```\n",
           "Here's the code:\n\n~~~\nx\n~~~\n",
           "Here's the code: ```python\nx = 1\n```\n",
           "\xEF\xBB\xBF```python\nx\n```\n",
           "1. First\n   ```python\n   x\n   ```\n",
           "> ```python\n> x\n> ```\n",
           "class ModelNew: pass\n```\n",
           "<think>\nHm.\n</think>\nclass ModelNew: pass\n",
           "That's it.</think>\nclass ModelNew: pass\n",
           "Wrap it in \"\"\" quotes:\n```python\nx = 1\n```\n",
           "Wrap it in \"\"\" quotes:\n```python\n\"\"\"Doc.\"\"\"\nx = 1\n```\n",
           "Write ''' and ''':\r\n```\r\nx = 1\r\n```\r\n",
       }) {
    EXPECT_TRUE(looks_like_reply(text)) << text;
  }
}

TEST(LooksLikeReply, IsFalseOfAPlainPythonFile) {
  for (const std::string text : {
           "",
           "import torch\n\nclass ModelNew: pass\n",
           "\"\"\"Doc.\n\n```python\nModelNew()\n```\n\"\"\"\nclass ModelNew: pass\n",
           "def f():\n    '''Use: ```python\n    f()\n    ```\n    '''\n",
           "PROMPT = \"\"\"\n<think>\n</think>\n~~~\n\"\"\"\n",
           "\"\"\"\n```\n\"\"\"\nx = '''never ended\n",
           "# ```python\nx = 1  # ends in ```python\n",
           "x = s.split('</think>')\n# up to </think>\n",
           "x = '</think>'\n",
           "y = ~~~x\n",
           "x = `broken\n",
           "I can't do that.\n",
       }) {
    EXPECT_FALSE(looks_like_reply(text)) << text;
  }
}

}  // namespace
}  // namespace drk::extract
