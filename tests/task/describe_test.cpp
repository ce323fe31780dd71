// SPDX-License-Identifier: Apache-2.0
// Mismatches and failures as people read them.
#include "drk/task/describe.h"

#include "task/sample_result.h"

#include <gtest/gtest.h>

namespace drk::task {
namespace {

Mismatch mismatch(MismatchKind kind, std::string expected, std::string got) {
  Mismatch result;
  result.kind = kind;
  result.path = "output";
  result.expected = std::move(expected);
  result.got = std::move(got);
  return result;
}

TEST(DescribeMismatch, NamesPlaceValuesToleranceAndShare) {
  EXPECT_EQ(describe(sample_mismatch()),
            "output['mean'][1]: at [3, 7] expected 0.1, got -inf (allowed error 0.00013); "
            "12 of 4096 elements are wrong");
}

TEST(DescribeMismatch, OfASingleNumberHasNoIndexAndNoShare) {
  Mismatch single = mismatch(MismatchKind::value, "2", "3");
  single.wrong_count = single.element_count = 1;
  EXPECT_EQ(describe(single), "output: expected 2, got 3");
}

TEST(DescribeMismatch, HasAFormForEveryKind) {
  const struct {
    Mismatch mismatch;
    const char* text = nullptr;
  } cases[] = {
      {mismatch(MismatchKind::structure, "a tuple of 2", "None"),
       "output: expected a tuple of 2, got None"},
      {mismatch(MismatchKind::shape, "[2, 3]", "[3, 2]"),
       "output: expected shape [2, 3], got [3, 2]"},
      {mismatch(MismatchKind::dtype, "torch.float32", "torch.int64"),
       "output: expected torch.float32, got torch.int64"},
      {mismatch(MismatchKind::subclass, "", "Lazy"),
       "output: got Lazy, a subclass of Tensor that may compute later"},
      {mismatch(MismatchKind::unsupported, "", "a sparse tensor"),
       "output: got a sparse tensor, which cannot be read"},
      {mismatch(MismatchKind::oversize, "8 bytes", "1 GiB"),
       "output: expected 8 bytes, got 1 GiB, far more than can be right"},
      {mismatch(MismatchKind::nan, "1 (0 NaN in all)", "nan (1 NaN in all)"),
       "output: expected 1 (0 NaN in all), got nan (1 NaN in all)"},
      {mismatch(MismatchKind::infinity, "inf", "-inf"), "output: expected inf, got -inf"},
  };
  for (const auto& c : cases) EXPECT_EQ(describe(c.mismatch), c.text);
}

TEST(DescribeFailure, PrefersTheException) {
  Failure failure = sample_failure();
  EXPECT_EQ(describe(failure), "ValueError: bad width");
  failure.error->message.clear();
  EXPECT_EQ(describe(failure), "ValueError");
  failure.error.reset();
  EXPECT_EQ(describe(failure), "forward raised");
}

}  // namespace
}  // namespace drk::task
