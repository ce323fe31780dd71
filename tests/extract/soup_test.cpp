// SPDX-License-Identifier: Apache-2.0
// Replies that nobody would write: random ones, and ones that try to make the extractor slow.
#include "drk/extract.h"

#include "run_of_lines.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <ctime>
#include <random>
#include <string>
#include <string_view>

namespace drk::extract {
namespace {

const std::array kPieces = {"```",
                            "````",
                            "~~~",
                            "`",
                            "```python",
                            "```py title=x",
                            "~~~md",
                            "````markdown",
                            "\n",
                            "\n",
                            "\n",
                            "\n",
                            "\r\n",
                            "\r",
                            " ",
                            "    ",
                            "\t",
                            "> ",
                            "- ",
                            "1. ",
                            "\"\"\"",
                            "'''",
                            "'",
                            "\"",
                            "\\",
                            "#",
                            "(",
                            ")",
                            ";",
                            "<think>",
                            "</think>",
                            "<thinking>",
                            "</reasoning>",
                            "class ModelNew:",
                            "ModelNew = 1",
                            "def f():",
                            "x = 1",
                            "text",
                            "\xEF\xBB\xBF",
                            "\xFF",
                            "</a>",
                            "<|end|>"};

std::string soup(std::mt19937& random, std::size_t pieces) {
  std::string text;
  for (std::size_t i = 0; i < pieces; ++i) text += kPieces[random() % kPieces.size()];
  return text;
}

std::string noise(std::mt19937& random, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(random() & 0xFFU);
  return text;
}

void expect_sound(std::string_view reply) {
  SCOPED_TRACE(std::string(reply));
  const auto got = extract_code(reply);
  EXPECT_TRUE(is_run_of_lines(reply, got));
  EXPECT_EQ(got.rule == Rule::none, got.code.empty());
  EXPECT_EQ(got.rule == Rule::none, !got.first_line.has_value());
  EXPECT_FALSE(got.why.empty());
  if (got.block_index) {
    EXPECT_LT(*got.block_index, got.block_count);
  }
  static_cast<void>(looks_like_reply(reply));
}

TEST(Soup, YieldsARunOfTheReplysLines) {
  std::mt19937 random(20240117);  // NOLINT: the same soups in every run
  for (int i = 0; i < 60'000 && !testing::Test::HasFailure(); ++i) {
    expect_sound(soup(random, 1 + random() % 60));
  }
}

TEST(Soup, OfRandomBytesDoesNoHarm) {
  std::mt19937 random(7);  // NOLINT: the same bytes in every run
  for (int i = 0; i < 2'000 && !testing::Test::HasFailure(); ++i) {
    expect_sound(noise(random, random() % 400));
  }
}

std::string repeated(std::string_view piece, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += piece;
  return text;
}

/// Processor time for `piece` over and over, up to `bytes`: a busy machine does not lengthen it.
double cpu_s_for(std::string_view piece, std::size_t bytes) {
  const auto reply = repeated(piece, bytes);
  const auto start = std::clock();
  static_cast<void>(extract_code(reply));
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

/// Twice the bytes take twice as long, not four times; what takes less than seconds is let pass, as
/// it says nothing.
TEST(Soup, TakesLinearTime) {
  constexpr std::size_t kBytes = 1 << 20;
  for (const std::string_view piece : {"`",
                                       "~",
                                       "\n",
                                       " ",
                                       "```\n",
                                       "```a\n",
                                       "````markdown\n",
                                       "~~~\n```\n",
                                       "> ",
                                       "> ```\n",
                                       "- ",
                                       "<think>",
                                       "</think>",
                                       "<think></think>",
                                       "<think>\n```x\n</think>\n",
                                       "<think>\n```\n</think>\n",
                                       "x</think>\n",
                                       "</think",
                                       "</think ",
                                       "```python\n\"\"\"a\n\"\"\" #\"\"\"\n```\n",
                                       "# \"\"\"\n\"\"\"\n```\n",
                                       "```python\n'''\n```\n\"\"\"\n```\n",
                                       "```\n# \"\"\"\n\"\"\"\n```\n",
                                       "class ModelNew;",
                                       "\"\"\"\n",
                                       "'",
                                       "\\",
                                       "(",
                                       "a ```python\n",
                                       "`````markdown\n````md\n```\n",
                                       "ModelNew = 1;",
                                       "1. ",
                                       "\r",
                                       "\xEF\xBB\xBF"}) {
    SCOPED_TRACE(std::string(piece));
    const auto once = cpu_s_for(piece, kBytes);
    const auto twice = cpu_s_for(piece, 2 * kBytes);
    EXPECT_LT(twice, 3 * once + 3.0);
  }
}

TEST(Soup, OfTenMegabytesOfBackticksIsQuick) {
  EXPECT_LT(cpu_s_for("`", 10 << 20), 20.0);
}

}  // namespace
}  // namespace drk::extract
