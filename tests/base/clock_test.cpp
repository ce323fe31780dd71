// SPDX-License-Identifier: Apache-2.0
// Deadlines, wall-clock text, identifiers, errors.
#include "drk/base/clock.h"

#include "drk/base/random.h"

#include "base/error_matchers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>
#include <string_view>

namespace drk {
namespace {

using namespace std::chrono_literals;

/// Whether `text` is `form`, in which 'd' stands for a digit and 'x' for a lower-case hex digit.
bool has_form(std::string_view text, std::string_view form) {
  return std::equal(text.begin(), text.end(), form.begin(), form.end(), [](char c, char f) {
    const bool is_digit = c >= '0' && c <= '9';
    if (f == 'd') return is_digit;
    if (f == 'x') return is_digit || (c >= 'a' && c <= 'f');
    return c == f;
  });
}

TEST(Deadline, NeverHasLessThanNothingLeft) {
  const Deadline past(-1s);
  EXPECT_TRUE(past.passed());
  EXPECT_EQ(past.left(), 0ms);
}

TEST(Deadline, RoundsWhatIsLeftUp) {
  const Deadline future(1h);
  EXPECT_FALSE(future.passed());
  EXPECT_GT(future.left(), 59min);
  EXPECT_LE(future.left(), 1h);
  // A wait of left() must not end before the deadline.
  EXPECT_EQ(Deadline(1h - 1ns).left() > 1h - 2s, true);
}

TEST(UtcNowText, IsRfc3339WithMilliseconds) {
  const std::string text = utc_now_text();
  EXPECT_TRUE(has_form(text, "dddd-dd-ddTdd:dd:dd.dddZ")) << text;
}

TEST(UtcText, WritesAGivenTime) {
  EXPECT_EQ(utc_text(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(utc_text(1'796'040'482'045), "2026-11-30T12:08:02.045Z");
}

TEST(NowNs, NeverGoesBack) {
  const std::int64_t first = now_ns();
  EXPECT_GE(now_ns(), first);
}

TEST(SecureRandom, StaysBelowItsBound) {
  EXPECT_EQ(secure_random(1), 0U);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(secure_random(8));
  EXPECT_EQ(seen.size(), 8U) << "1000 draws miss one of eight with probability below 1e-57";
  EXPECT_LT(*seen.rbegin(), 8U);
  EXPECT_TRUE(
      throws_error(ErrorCode::internal, "bound > 0", [] { static_cast<void>(secure_random(0)); }));
}

TEST(MakeId, IsAPrefixAndSixteenHexDigits) {
  const std::string id = make_id("task");
  EXPECT_TRUE(has_form(id.substr(5), "xxxxxxxxxxxxxxxx")) << id;
  EXPECT_EQ(id.substr(0, 5), "task-");
  EXPECT_NE(make_id("task"), make_id("task"));
}

TEST(ThrowErrno, TellsALimitFromAnAbsence) {
  EXPECT_TRUE(throws_error(ErrorCode::exhausted, "open: Too many open files", [] {
    errno = EMFILE;
    throw_errno("open");
  }));
  EXPECT_TRUE(throws_error(ErrorCode::unavailable, "open: Permission denied", [] {
    errno = EACCES;
    throw_errno("open");
  }));
}

TEST(ErrorCode, HasAName) {
  EXPECT_EQ(to_string(ErrorCode::invalid_argument), "invalid_argument");
  EXPECT_EQ(to_string(ErrorCode::timed_out), "timed_out");
  EXPECT_EQ(to_string(ErrorCode::internal), "internal");
}

}  // namespace
}  // namespace drk
