// SPDX-License-Identifier: Apache-2.0
// One reply, and what must be taken from it.
#pragma once

#include "drk/extract.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace drk::extract {

/// The defaults are those of the plainest reply: one Python block, its code from line 2 on.
struct Case {
  std::string name;
  std::string reply;
  std::string code;
  Rule rule = Rule::entry_point;
  bool truncated = false;
  std::string language = "python";
  std::optional<std::size_t> block_index = 0;
  std::size_t block_count = 1;
  std::optional<std::size_t> first_line = 2;
  std::string why_says = "";  // part of the explanation
};

/// The smallest candidate, for tests of where code stands and not of what it is.
inline const std::string kModel = "class ModelNew(nn.Module):\n    pass\n";

inline void expect_extracted(std::span<const Case> cases) {
  for (const auto& one : cases) {
    SCOPED_TRACE(one.name + "\n" + one.reply.substr(0, 2000));
    const auto got = extract_code(one.reply);
    EXPECT_EQ(got.code, one.code);
    EXPECT_EQ(to_string(got.rule), to_string(one.rule));
    EXPECT_EQ(got.truncated, one.truncated);
    EXPECT_EQ(got.language, one.language);
    EXPECT_EQ(got.block_index, one.block_index);
    EXPECT_EQ(got.block_count, one.block_count);
    EXPECT_EQ(got.first_line, one.first_line);
    EXPECT_NE(got.why.find(one.why_says), std::string::npos) << got.why;
  }
}

}  // namespace drk::extract
