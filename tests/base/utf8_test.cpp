// SPDX-License-Identifier: Apache-2.0
// Well-formed and ill-formed UTF-8 at every border of the Unicode standard's table 3-7.
#include "drk/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace drk {
namespace {

TEST(FirstInvalidUtf8, AcceptsTheBordersOfEveryLength) {
  const char* const texts[] = {
      "",
      "plain",
      "\x7F",
      "\xC2\x80",
      "\xDF\xBF",
      "\xE0\xA0\x80",
      "\xED\x9F\xBF",  // the last before the surrogates
      "\xEE\x80\x80",  // the first after them
      "\xEF\xBF\xBF",
      "\xF0\x90\x80\x80",
      "\xF4\x8F\xBF\xBF",  // U+10FFFF
  };
  for (const char* text : texts) EXPECT_TRUE(is_valid_utf8(text)) << testing::PrintToString(text);
}

TEST(FirstInvalidUtf8, NamesTheFirstBadByte) {
  const struct {
    std::string text;
    std::size_t offset;
    const char* why;
  } cases[] = {
      {"ab\x80", 2, "a continuation byte alone"},
      {"\xC0\xAF", 0, "an overlong slash in two bytes"},
      {"\xC1\xBF", 0, "overlong in two bytes"},
      {"\xE0\x9F\xBF", 0, "overlong in three bytes"},
      {"\xF0\x8F\xBF\xBF", 0, "overlong in four bytes"},
      {"x\xED\xA0\x80", 1, "a surrogate"},
      {"\xF4\x90\x80\x80", 0, "over U+10FFFF"},
      {"\xF5\x80\x80\x80", 0, "a lead that does not exist"},
      {"\xFF", 0, "0xFF"},
      {"ok\xE2\x82", 2, "cut off"},
      {"\xC3(", 0, "a lead without its continuation"},
  };
  for (const auto& c : cases) EXPECT_EQ(first_invalid_utf8(c.text), c.offset) << c.why;
}

TEST(SanitizeUtf8, ReplacesEachBadByteAndKeepsTheRest) {
  EXPECT_EQ(sanitize_utf8("a\xFF\xC3\xA9\xE2\x82z"),
            "a\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBDz");
  EXPECT_EQ(sanitize_utf8("na\xC3\xAFve"), "na\xC3\xAFve");
}

TEST(SanitizeUtf8, AlwaysGivesWellFormedText) {
  for (int lead = 0; lead < 256; ++lead) {
    for (int next = 0; next < 256; next += 5) {
      const std::string text = {'<', static_cast<char>(lead), static_cast<char>(next), '>'};
      EXPECT_TRUE(is_valid_utf8(sanitize_utf8(text))) << lead << " " << next;
    }
  }
}

}  // namespace
}  // namespace drk
