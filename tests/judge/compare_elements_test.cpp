// SPDX-License-Identifier: Apache-2.0
// Which elements count as equal: every dtype, tolerances, NaN, infinities.
#include "drk/base/json.h"
#include "drk/judge.h"

#include "judge/values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>

namespace drk::judge {
namespace {

using task::Correctness;
using task::MismatchKind;
using value::DType;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

template <class Raw>
task::Comparison compare_raw(DType dtype,
                             const std::vector<Raw>& expected,
                             const std::vector<Raw>& got,
                             Correctness correctness = Correctness::strict) {
  const std::vector<std::int64_t> shape{static_cast<std::int64_t>(expected.size())};
  Values a;
  Values b;
  return compare(
      a.root(a.dense(dtype, shape, expected)), b.root(b.dense(dtype, shape, got)), correctness);
}

task::Comparison compare_floats(const std::vector<float>& expected,
                                const std::vector<float>& got,
                                Correctness correctness = Correctness::strict) {
  return compare_raw(DType::float32, expected, got, correctness);
}

bool equal(const task::Comparison& comparison) {
  return !comparison.mismatch.has_value();
}

/// `count` numbers around `mean` with a standard deviation of `spread`.
std::vector<float> noise(std::size_t count, float mean, float spread) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal(mean, spread);
  std::vector<float> numbers(count);
  std::generate(numbers.begin(), numbers.end(), [&] { return normal(random); });
  return numbers;
}

TEST(CompareElements, ALargeTensorIsJudgedAsASmallOneIs) {
  constexpr std::size_t kCount = (std::size_t{1} << 20U) + 77;  // in parts of uneven size
  const std::vector<float> expected = noise(kCount, 0.5F, 2);
  EXPECT_TRUE(equal(compare_floats(expected, expected)));
  std::vector<float> got = expected;
  // In three parts, and at both ends of one.
  const std::array<std::size_t, 4> wrong = {kCount / 16, kCount / 8 - 1, 700'001, kCount - 1};
  for (const std::size_t i : wrong) got[i] += 1;
  got[700'001] += 1;
  const task::Comparison comparison = compare_floats(expected, got);
  ASSERT_TRUE(comparison.mismatch.has_value());
  EXPECT_EQ(comparison.mismatch->kind, MismatchKind::value);
  EXPECT_EQ(comparison.mismatch->first_index, (std::vector<std::int64_t>{kCount / 16}));
  EXPECT_EQ(comparison.mismatch->wrong_count, 4U);
  EXPECT_EQ(comparison.mismatch->element_count, kCount);
  EXPECT_NEAR(comparison.max_abs_error, 2, 1e-6);
  EXPECT_NEAR(comparison.mean_abs_error, 5.0 / kCount, 1e-9);
  // The spread, which the tolerance is made of, is that of all elements together.
  const std::vector<float> few(expected.begin(), expected.begin() + 1000);
  std::vector<float> few_got = few;
  few_got[0] += 1;
  const double few_tolerance = compare_floats(few, few_got).mismatch->tolerance;
  EXPECT_NEAR(comparison.mismatch->tolerance / few_tolerance, 1, 0.2);
  got = expected;
  got[900'000] = kNan;
  got[900'001] = kNan;
  const task::Comparison with_nan = compare_floats(expected, got);
  EXPECT_EQ(with_nan.mismatch->kind, MismatchKind::nan);
  EXPECT_EQ(with_nan.mismatch->first_index, (std::vector<std::int64_t>{900'000}));
  EXPECT_EQ(with_nan.mismatch->wrong_count, 2U);
}

TEST(CompareElements, EveryDtypeFindsItsWrongElement) {
  // Bits of three elements; the third differs.
  const struct {
    DType dtype;
    std::uint64_t first, second, expected, got;
    const char* expected_text;
    const char* got_text;
  } cases[] = {
      {DType::float64,
       0,
       0x3FF0000000000000,
       0x4000000000000000,
       0x4000000001000000,
       "2",
       "2.0000000074505806"},
      {DType::float32, 0, 0x3F800000, 0x40000000, 0x40001000, "2", "2.0009766"},
      {DType::float16, 0, 0x3C00, 0x4000, 0x4010, "2", "2.031"},
      {DType::bfloat16, 0, 0x3F80, 0x4000, 0x4008, "2", "2.12"},
      {DType::float8_e4m3fn, 0, 0x38, 0x40, 0x44, "2", "3"},
      {DType::float8_e5m2, 0, 0x3C, 0x40, 0x46, "2", "6"},
      {DType::int64,
       0,
       1,
       0x0020000000000001,
       0x0020000000000000,
       "9007199254740993",
       "9007199254740992"},
      {DType::int32, 0, 1, 2, 0xFFFFFFFF, "2", "-1"},
      {DType::int16, 0, 1, 2, 3, "2", "3"},
      {DType::int8, 0, 1, 0x7F, 0x80, "127", "-128"},
      {DType::uint64,
       0,
       1,
       0xFFFFFFFFFFFFFFFF,
       0xFFFFFFFFFFFFFFFE,
       "18446744073709551615",
       "18446744073709551614"},
      {DType::uint32, 0, 1, 0xFFFFFFFF, 0, "4294967295", "0"},
      {DType::uint16, 0, 1, 0xFFFF, 0xFFFE, "65535", "65534"},
      {DType::uint8, 0, 1, 0xFF, 0xFE, "255", "254"},
      {DType::bool_, 0, 1, 1, 0, "True", "False"},
      {DType::complex64, 0, 0x3F800000, 0x4000000040000000, 0xC000000040000000, "2+2j", "2-2j"},
      {DType::complex32, 0, 0x3C00, 0x40004000, 0xC0004000, "2+2j", "2-2j"},
  };
  for (const auto& c : cases) {
    const std::size_t width = value::size_bytes(c.dtype);
    const auto pack = [width](std::initializer_list<std::uint64_t> elements) {
      std::vector<std::byte> bytes;
      for (const std::uint64_t bits : elements) {
        const auto raw = std::as_bytes(std::span(&bits, 1)).first(width);
        bytes.insert(bytes.end(), raw.begin(), raw.end());
      }
      return bytes;
    };
    Values a;
    Values b;
    Values same;
    const std::vector<std::int64_t> shape{1, 3};
    const auto expected = a.root(a.dense(c.dtype, shape, pack({c.first, c.second, c.expected})));
    const auto got = b.root(b.dense(c.dtype, shape, pack({c.first, c.second, c.got})));
    const auto copy = same.root(same.dense(c.dtype, shape, pack({c.first, c.second, c.expected})));
    const char* name = json::name_of(c.dtype);
    EXPECT_TRUE(equal(compare(expected, copy, Correctness::strict))) << name;
    EXPECT_TRUE(equal(compare(expected, copy, Correctness::kernelgym))) << name;
    const auto comparison = compare(expected, got, Correctness::strict);
    ASSERT_FALSE(equal(comparison)) << name;
    EXPECT_EQ(comparison.mismatch->kind, MismatchKind::value) << name;
    EXPECT_EQ(comparison.mismatch->first_index, (std::vector<std::int64_t>{0, 2})) << name;
    EXPECT_EQ(comparison.mismatch->expected, c.expected_text) << name;
    EXPECT_EQ(comparison.mismatch->got, c.got_text) << name;
    EXPECT_EQ(comparison.mismatch->wrong_count, 1U) << name;
    EXPECT_EQ(comparison.mismatch->element_count, 3U) << name;
  }
}

TEST(CompareElements, Complex128FindsItsWrongElement) {
  using Complex = std::complex<double>;
  const auto comparison =
      compare_raw<Complex>(DType::complex128, {{1, 2}, {3, 4}}, {{1, 2}, {3, 4.1}});
  EXPECT_EQ(comparison.mismatch->expected, "3+4j");
  EXPECT_EQ(comparison.mismatch->got, "3+4.1j");
  EXPECT_NEAR(comparison.max_abs_error, 0.1, 1e-12);
  EXPECT_NEAR(comparison.max_rel_error, 0.1 / 5, 1e-12);
}

TEST(CompareElements, ErrorsOfFarApartIntegersAreRight) {
  const auto comparison = compare_raw<std::int64_t>(DType::int64,
                                                    {std::numeric_limits<std::int64_t>::min(), 0},
                                                    {std::numeric_limits<std::int64_t>::max(), 0});
  EXPECT_EQ(comparison.max_abs_error, 18446744073709551615.0);
  EXPECT_EQ(comparison.max_rel_error, 2);
  EXPECT_EQ(comparison.mean_abs_error, 18446744073709551615.0 / 2);
}

TEST(CompareElements, TellsARightAnswerFromTrivialOnes) {
  for (const float mean : {0.0F, 5.0F, -300.0F}) {
    for (const float spread : {1e-6F, 1.0F, 1e4F}) {
      const std::vector<float> expected = noise(1000, mean, spread);
      EXPECT_TRUE(equal(compare_floats(expected, expected)));
      EXPECT_FALSE(equal(compare_floats(expected, std::vector<float>(1000, 0.0F))))
          << "zeros for " << mean << " +- " << spread;
      if (spread < 1e-3F * std::abs(mean)) continue;  // then the mean is an answer
      EXPECT_FALSE(equal(compare_floats(expected, std::vector<float>(1000, mean))))
          << "the mean for " << mean << " +- " << spread;
    }
  }
}

TEST(CompareElements, AllowsOtherOrdersOfSummation) {
  // A running sum that reaches over 100, off by 6.5e-5 as measured of an honest float32 kernel.
  std::vector<float> expected(2000);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] = 0.065F * static_cast<float>(i) - 2;
  }
  std::vector<float> got = expected;
  for (float& number : got) number += 6.5e-5F;
  EXPECT_TRUE(equal(compare_floats(expected, got)));
}

TEST(CompareElements, AllowsTruncationWhereRoundingWasExpected) {
  // 1.5 and its neighbours one unit in the last place away, and eight.
  const struct {
    DType dtype;
    std::uint16_t one_and_a_half;
  } cases[] = {{DType::bfloat16, 0x3FC0}, {DType::float16, 0x3E00}};
  for (const auto& c : cases) {
    const auto off_by = [&](int units) {
      return std::vector<std::uint16_t>(50, static_cast<std::uint16_t>(c.one_and_a_half + units));
    };
    EXPECT_TRUE(equal(compare_raw(c.dtype, off_by(0), off_by(-1))));
    EXPECT_TRUE(equal(compare_raw(c.dtype, off_by(0), off_by(1))));
    EXPECT_FALSE(equal(compare_raw(c.dtype, off_by(0), off_by(8))));
  }
}

TEST(CompareElements, ASingleNumberIsMeasuredByItsMagnitude) {
  EXPECT_TRUE(equal(compare_floats({2000}, {2000.3F})));  // 1e-4 of 2000, twice
  EXPECT_FALSE(equal(compare_floats({2000}, {2000.5F})));
  EXPECT_NEAR(compare_floats({2000}, {2001}).mismatch->tolerance, 0.4, 1e-6);
}

TEST(CompareElements, ExactZerosHaveAFloor) {
  const std::vector<float> zeros(10, 0.0F);
  EXPECT_TRUE(equal(compare_floats(zeros, std::vector<float>(10, 0.9e-6F))));
  EXPECT_FALSE(equal(compare_floats(zeros, std::vector<float>(10, 1.1e-6F))));
  EXPECT_TRUE(equal(compare_floats(zeros, std::vector<float>(10, -0.0F))));
}

TEST(CompareElements, TheSpreadNeitherOverflowsNorVanishes) {
  for (const double scale : {1e300, 1e-300}) {
    const std::vector<double> expected{scale, -scale, 0.5 * scale, scale};
    EXPECT_TRUE(equal(compare_raw(DType::float64, expected, expected)));
    EXPECT_FALSE(equal(compare_raw(DType::float64, expected, std::vector<double>(4, 0.0))));
    const auto off = compare_raw(DType::float64, expected, {scale, -scale, 0.6 * scale, scale});
    ASSERT_FALSE(equal(off));
    EXPECT_EQ(off.mismatch->first_index, (std::vector<std::int64_t>{2}));
    EXPECT_LT(off.mismatch->tolerance, 2e-9 * scale);
  }
  const double most = std::numeric_limits<double>::max();
  EXPECT_FALSE(equal(compare_raw<double>(DType::float64, {most, -most}, {-most, most})));
}

TEST(CompareElements, HugeErrorsAreInfiniteNotLost) {
  const double most = std::numeric_limits<double>::max();
  const auto comparison = compare_raw<double>(DType::float64, {most, 0}, {-most, 0});
  EXPECT_EQ(comparison.max_abs_error, std::numeric_limits<double>::infinity());
}

TEST(CompareElements, NanMustStandWhereItIsExpected) {
  const std::vector<float> expected{1, kNan, 3, kNan};
  EXPECT_TRUE(equal(compare_floats(expected, {1, -kNan, 3, kNan})));
  const auto comparison = compare_floats(expected, {kNan, kNan, kNan, 4});
  ASSERT_FALSE(equal(comparison));
  EXPECT_EQ(comparison.mismatch->kind, MismatchKind::nan);
  EXPECT_EQ(comparison.mismatch->expected, "1 (2 NaN in all)");
  EXPECT_EQ(comparison.mismatch->got, "nan (3 NaN in all)");
  EXPECT_EQ(comparison.mismatch->wrong_count, 3U);
  EXPECT_EQ(comparison.max_abs_error, 0) << "no pair is finite";
}

TEST(CompareElements, NanIsNoWildcard) {
  const std::vector<float> expected = noise(100, 0, 1);
  for (const Correctness correctness : {Correctness::strict, Correctness::kernelgym}) {
    const auto comparison = compare_floats(expected, std::vector<float>(100, kNan), correctness);
    ASSERT_FALSE(equal(comparison));
    EXPECT_EQ(comparison.mismatch->wrong_count, 100U);
  }
}

TEST(CompareElements, KernelGymTakesNoNanAtAll) {
  EXPECT_TRUE(equal(compare_floats({1, kNan}, {1, kNan}, Correctness::strict)));
  EXPECT_EQ(compare_floats({1, kNan}, {1, kNan}, Correctness::kernelgym).mismatch->kind,
            MismatchKind::nan);
}

TEST(CompareElements, InfinitiesMustHaveTheSameSign) {
  const struct {
    std::vector<float> got;
    bool equal;
    std::uint64_t wrong;
  } cases[] = {
      {{kInf, -kInf, 0.5F, 3}, true, 0},
      {{-kInf, -kInf, 0.5F, 3}, false, 1},
      {{1e38F, -1e38F, 0.5F, 3}, false, 2},
      {{kInf, -kInf, kInf, 3}, false, 1},
  };
  for (const Correctness correctness : {Correctness::strict, Correctness::kernelgym}) {
    for (const auto& c : cases) {
      const auto comparison = compare_floats({kInf, -kInf, 0.5F, 3}, c.got, correctness);
      EXPECT_EQ(equal(comparison), c.equal);
      if (c.equal) continue;
      EXPECT_EQ(comparison.mismatch->kind, MismatchKind::infinity);
      EXPECT_EQ(comparison.mismatch->wrong_count, c.wrong);
    }
  }
}

TEST(CompareElements, NanComesBeforeInfinityBeforeValues) {
  const std::vector<float> expected{1, 2, 3};
  EXPECT_EQ(compare_floats(expected, {9, kInf, kNan}).mismatch->kind, MismatchKind::nan);
  const auto infinite = compare_floats(expected, {9, kInf, 3});
  EXPECT_EQ(infinite.mismatch->kind, MismatchKind::infinity);
  EXPECT_EQ(infinite.mismatch->got, "inf (1 infinite in all)");
  EXPECT_EQ(compare_floats(expected, {9, 2, 3}).mismatch->kind, MismatchKind::value);
}

TEST(CompareElements, InfinitiesDoNotWidenTheTolerance) {
  EXPECT_FALSE(equal(compare_floats({kInf, 1, 2, 3}, {kInf, 0, 0, 0})));
  EXPECT_TRUE(equal(compare_floats({kInf, kInf}, {kInf, kInf})));
  EXPECT_FALSE(equal(compare_floats({kInf, 1e-3F}, {kInf, 2e-3F})));
}

TEST(CompareElements, ComplexNumbersDifferByTheirDistance) {
  using Complex = std::complex<float>;
  const std::vector<Complex> expected{{1, 2}, {kNan, 0}, {kInf, 3}};
  EXPECT_TRUE(equal(
      compare_raw<Complex>(DType::complex64, expected, {{1, 2.00001F}, {0, kNan}, {kInf, 3}})));
  const struct {
    std::vector<Complex> got;
    MismatchKind kind;
  } cases[] = {
      {{{1, -2}, {kNan, 0}, {kInf, 3}}, MismatchKind::value},
      {{{1, 2}, {1, 0}, {kInf, 3}}, MismatchKind::nan},
      {{{1, 2}, {kNan, 0}, {3, kInf}}, MismatchKind::infinity},
      {{{1, 2}, {kNan, 0}, {kInf, 4}}, MismatchKind::value},
  };
  for (const auto& c : cases) {
    const auto comparison = compare_raw<Complex>(DType::complex64, expected, c.got);
    ASSERT_FALSE(equal(comparison));
    EXPECT_EQ(comparison.mismatch->kind, c.kind);
  }
}

TEST(CompareElements, KernelGymIsAllcloseAtOnePercent) {
  // allowed: 0.01 + 0.01 * |expected|
  EXPECT_TRUE(equal(compare_floats({0, 100}, {0.0099F, 101}, Correctness::kernelgym)));
  EXPECT_FALSE(equal(compare_floats({0, 100}, {0.0101F, 101}, Correctness::kernelgym)));
  EXPECT_FALSE(equal(compare_floats({0, 100}, {0, 101.02F}, Correctness::kernelgym)));
  // torch.allclose gives integers the same tolerance.
  const std::vector<std::int32_t> counts{1000};
  EXPECT_TRUE(equal(compare_raw(DType::int32, counts, {1010}, Correctness::kernelgym)));
  EXPECT_FALSE(equal(compare_raw(DType::int32, counts, {1011}, Correctness::kernelgym)));
  EXPECT_FALSE(equal(compare_raw(DType::int32, counts, {1001}, Correctness::strict)));
  const std::vector<std::uint8_t> flags{1};
  EXPECT_FALSE(equal(compare_raw(DType::bool_, flags, {0}, Correctness::kernelgym)));
}

TEST(CompareElements, BooleansAreTrueWhateverTheirByte) {
  const std::vector<std::uint8_t> ones{1, 0};
  EXPECT_TRUE(equal(compare_raw(DType::bool_, ones, {0xFF, 0})));
}

TEST(CompareElements, TensorsWithoutElementsAreEqual) {
  for (const DType dtype : {DType::float32, DType::int64, DType::complex64, DType::bool_}) {
    EXPECT_TRUE(equal(compare_raw<std::byte>(dtype, {}, {})));
  }
}

TEST(CompareElements, CountsEveryWrongElementAndNamesTheFirst) {
  std::vector<float> expected(5000, 1);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<float>(i % 7);
  std::vector<float> got = expected;
  for (const std::size_t i : {1234U, 1235U, 4999U}) got[i] += 1;
  Values a;
  Values b;
  const auto comparison = compare(a.root(a.dense(DType::float32, {50, 100}, expected)),
                                  b.root(b.dense(DType::float32, {50, 100}, got)),
                                  Correctness::strict);
  EXPECT_EQ(comparison.mismatch->first_index, (std::vector<std::int64_t>{12, 34}));
  EXPECT_EQ(comparison.mismatch->wrong_count, 3U);
  EXPECT_EQ(comparison.mismatch->element_count, 5000U);
  EXPECT_DOUBLE_EQ(comparison.mean_abs_error, 3.0 / 5000);
  EXPECT_EQ(comparison.max_abs_error, 1);
}

TEST(CompareElements, LayoutDoesNotMatter) {
  // Row-major against column-major memory of the same 2 x 3 matrix.
  Values a;
  Values b;
  const auto expected = a.root(a.dense<float>(DType::float32, {2, 3}, {1, 2, 3, 4, 5, 6}));
  const auto got = b.root(b.strided<float>(DType::float32, {2, 3}, {1, 2}, {1, 4, 2, 5, 3, 6}));
  EXPECT_TRUE(equal(compare(expected, got, Correctness::strict)));
}

}  // namespace
}  // namespace drk::judge
