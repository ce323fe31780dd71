// SPDX-License-Identifier: Apache-2.0
// Outputs held against float64's answer.
#include "drk/judge.h"

#include "judge/values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace drk::judge {
namespace {

using value::DType;

struct Case {
  Values expected, exact;
};

/// sqrt(1), sqrt(2) ... in float32 and in float64, all errors as rounding leaves them.
std::vector<double> roots(std::size_t count) {
  std::vector<double> numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(std::sqrt(static_cast<double>(i + 1)));
  return numbers;
}

std::vector<float> rounded(const std::vector<double>& numbers) {
  return {numbers.begin(), numbers.end()};
}

value::View tensor_of(Values& values, const std::vector<float>& numbers) {
  return values.root(
      values.dense(DType::float32, {static_cast<std::int64_t>(numbers.size())}, numbers));
}

value::View tensor_of(Values& values, const std::vector<double>& numbers) {
  return values.root(
      values.dense(DType::float64, {static_cast<std::int64_t>(numbers.size())}, numbers));
}

TEST(ErrorBudget, AllowsRoundingAndNoMore) {
  const std::vector<double> numbers = roots(1000);
  Values expected, exact, right, coarse;
  const value::View expected_view = tensor_of(expected, rounded(numbers));
  const value::View exact_view = tensor_of(exact, numbers);
  const auto budget = error_budget(expected_view, exact_view, 4096);
  ASSERT_TRUE(budget && budget->leaves.at(0));
  // eps * sqrt(4096) * sqrt(mean x^2), where mean x^2 = 500.5
  EXPECT_NEAR(budget->leaves[0]->allowed, 0x1p-23 * 64 * std::sqrt(500.5), 1e-9);

  const task::Comparison own = compare(expected_view, exact_view, *budget, expected_view);
  EXPECT_FALSE(own.mismatch);
  EXPECT_TRUE(own.by_float64);
  EXPECT_GT(own.limit_share, 0);
  EXPECT_LT(own.limit_share, 0.02);

  std::vector<float> half = rounded(numbers);
  for (float& x : half) x = std::round(x * 64) / 64;  // as float16 has them here
  const task::Comparison wrong =
      compare(expected_view, exact_view, *budget, tensor_of(coarse, half));
  ASSERT_TRUE(wrong.mismatch);
  EXPECT_GT(wrong.limit_share, 10);
  EXPECT_NEAR(wrong.mismatch->max_error, 1.0 / 128, 1e-3);
  EXPECT_NEAR(wrong.mismatch->spread, 7.5, 0.2);
}

TEST(ErrorBudget, FollowsTheReferencesOwnError) {
  std::vector<double> numbers = roots(100);
  std::vector<float> off = rounded(numbers);
  off[7] += 0.01F;
  Values expected, exact;
  const auto budget = error_budget(tensor_of(expected, off), tensor_of(exact, numbers), 1);
  ASSERT_TRUE(budget && budget->leaves[0]);
  EXPECT_NEAR(budget->leaves[0]->allowed, 0.08, 1e-4);
}

TEST(ErrorBudget, IsNoneWhereFloat64AnsweredSomethingElse) {
  const std::vector<double> numbers = roots(10);
  Values expected;
  const value::View expected_view = tensor_of(expected, rounded(numbers));
  const auto has_budget = [&](const std::vector<double>& answer) {
    Values exact;
    return error_budget(expected_view, tensor_of(exact, answer), 4096).has_value();
  };
  EXPECT_TRUE(has_budget(numbers));
  std::vector<double> other = numbers;
  other[3] += 1;
  EXPECT_FALSE(has_budget(other)) << "another draw of random numbers";
  other[3] = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(has_budget(other));
  other[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(has_budget(other));
  EXPECT_FALSE(has_budget(roots(9))) << "another shape";
  Values narrow;
  EXPECT_FALSE(error_budget(expected_view, tensor_of(narrow, rounded(numbers)), 4096))
      << "its code is of one precision";
  Values list;
  const value::Node item = list.dense(DType::float64, {10}, numbers);
  EXPECT_FALSE(
      error_budget(expected_view, list.root(sequence(value::NodeKind::list, {item})), 4096));
}

TEST(ErrorBudget, LeavesIntegersAndNarrowTypesToTheirOwnRules) {
  const std::vector<std::int32_t> integers = {1, 2, 3};
  Values expected, exact, got;
  const value::View expected_view = expected.root(expected.dense(DType::int32, {3}, integers));
  const value::View exact_view = exact.root(exact.dense(DType::int32, {3}, integers));
  const auto budget = error_budget(expected_view, exact_view, 4096);
  ASSERT_TRUE(budget);
  EXPECT_FALSE(budget->leaves.at(0));
  const value::View off = got.root(got.dense(DType::int32, {3}, std::vector{1, 2, 4}));
  EXPECT_TRUE(compare(expected_view, exact_view, *budget, off).mismatch);
}

TEST(ReductionLength, IsTheLongestDimensionOrTheRatioOfElements) {
  const auto bundle = [](std::vector<std::int64_t> shape) {
    value::Bundle made;
    made.tensors.push_back({DType::float32, std::move(shape), {}, 0, false, {}});
    return made;
  };
  EXPECT_EQ(reduction_length(bundle({8, 8}), bundle({8, 8})), 4096);
  EXPECT_EQ(reduction_length(bundle({8, 10'000}), bundle({8, 8})), 10'000);
  EXPECT_EQ(reduction_length(bundle({1 << 24}), bundle({1 << 24})), 65536)
      << "perhaps no sum at all";
  EXPECT_EQ(reduction_length(bundle({1000, 1000}), bundle({})), 1'000'000);
}

TEST(CountAllBitsSet, SeesNaNOfAllOnesAndMinusOne) {
  Values values;
  std::vector<float> floats = {1, 2, 3};
  std::memset(&floats[1], 0xFF, sizeof(float));
  const value::Node first = values.dense(DType::float32, {3}, floats);
  const value::Node second = values.dense(DType::int32, {2}, std::vector<std::int32_t>{-1, 0});
  EXPECT_EQ(count_all_bits_set(values.root(sequence(value::NodeKind::list, {first, second}))), 2U);
}

TEST(IsFinite, LooksAtEveryElement) {
  Values finite, infinite;
  EXPECT_TRUE(is_finite(tensor_of(finite, rounded(roots(1000)))));
  std::vector<float> numbers = rounded(roots(1000));
  numbers[999] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(is_finite(tensor_of(infinite, numbers)));
}

}  // namespace
}  // namespace drk::judge
