// SPDX-License-Identifier: Apache-2.0
// Random tensors of every dtype in random layouts, against a comparison written as plain loops.
#include "drk/base/json.h"
#include "drk/judge.h"

#include "judge/elements.h"
#include "judge/values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

namespace drk::judge {
namespace {

using task::Correctness;
using value::DType;

constexpr DType kDTypes[] = {
    DType::float64,
    DType::float32,
    DType::float16,
    DType::bfloat16,
    DType::float8_e4m3fn,
    DType::float8_e5m2,
    DType::complex128,
    DType::complex64,
    DType::complex32,
    DType::int64,
    DType::int32,
    DType::int16,
    DType::int8,
    DType::uint64,
    DType::uint32,
    DType::uint16,
    DType::uint8,
    DType::bool_,
};

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  std::mt19937_64& engine() { return random_; }

 private:
  std::mt19937_64 random_;
};

using Element = std::array<std::byte, kMaxElementBytes>;

/// An element near 1, sometimes NaN, infinite or any bits at all.
Element random_element(DType dtype, Dice& dice) {
  Element element = {};
  const std::uint64_t bits[] = {dice.engine()(), dice.engine()()};
  std::memcpy(element.data(), bits, sizeof bits);
  if (value::class_of(dtype) == value::DTypeClass::integer && !dice.one_in(8)) {
    element.fill(std::byte{0});
    element[0] = static_cast<std::byte>(dice.below(4));
  }
  const double number = std::normal_distribution<double>(0, 1)(dice.engine());
  if (dice.one_in(10)) return element;
  if (dtype == DType::float64 || dtype == DType::complex128) {
    std::memcpy(element.data(), &number, sizeof number);
    std::memcpy(element.data() + sizeof number, &number, sizeof number);
  } else if (dtype == DType::float32 || dtype == DType::complex64) {
    const auto narrow = static_cast<float>(number);
    std::memcpy(element.data(), &narrow, sizeof narrow);
    std::memcpy(element.data() + sizeof narrow, &narrow, sizeof narrow);
  }
  return element;
}

/// A layout of `shape`: dense, permuted, with gaps, with steps of 0.
std::vector<std::int64_t> random_strides(const std::vector<std::int64_t>& shape, Dice& dice) {
  std::vector<std::size_t> order(shape.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (dice.one_in(2)) std::shuffle(order.begin(), order.end(), dice.engine());
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t step = dice.one_in(3) ? 2 : 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = step;
    step *= std::max<std::int64_t>(shape[order[i]], 1);
    if (dice.one_in(3)) step += static_cast<std::int64_t>(dice.below(3));
    if (dice.one_in(6)) strides[order[i]] = 0;
  }
  return strides;
}

std::vector<std::int64_t> random_shape(Dice& dice) {
  std::vector<std::int64_t> shape(dice.below(5));
  for (auto& size : shape) size = static_cast<std::int64_t>(dice.below(9));
  if (!shape.empty() && dice.one_in(4)) shape[0] = 200;  // more than one chunk
  return shape;
}

struct Sample {
  Values values;
  value::View view;
};

/// Calls `visit` with every index of `shape`, in row-major order.
void for_each_index(const std::vector<std::int64_t>& shape,
                    const std::function<void(const std::vector<std::int64_t>&)>& visit) {
  std::vector<std::int64_t> index;
  const std::function<void()> descend = [&] {
    if (index.size() == shape.size()) return visit(index);
    const std::int64_t size = shape[index.size()];
    for (std::int64_t i = 0; i < size; ++i) {
      index.push_back(i);
      descend();
      index.pop_back();
    }
  };
  descend();
}

std::byte* element_in(Sample& sample, const std::vector<std::int64_t>& index) {
  const value::Tensor& tensor = sample.view.bundle->tensors[0];
  std::int64_t at = 0;
  for (std::size_t i = 0; i < index.size(); ++i) at += index[i] * tensor.strides[i];
  return sample.values.block().data() + tensor.offset_bytes +
         static_cast<std::size_t>(at) * value::size_bytes(tensor.dtype);
}

void make_empty(Sample& sample,
                DType dtype,
                const std::vector<std::int64_t>& shape,
                const std::vector<std::int64_t>& strides) {
  value::Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = shape;
  tensor.strides = strides;
  sample.view = sample.values.root(sample.values.strided(
      dtype, shape, strides, std::vector<std::byte>(value::extent_bytes(tensor))));
}

/// The same comparison, one element at a time.
struct Plain {
  std::uint64_t nan = 0, infinity = 0, value = 0;
  std::vector<std::int64_t> first_nan, first_infinity, first_value;
  double max_abs = 0, sum_abs = 0, count = 0;
};

struct Number {
  long double parts[2] = {0, 0};
  [[nodiscard]] bool is_nan() const { return std::isnan(parts[0]) || std::isnan(parts[1]); }
  [[nodiscard]] bool is_infinite() const { return std::isinf(parts[0]) || std::isinf(parts[1]); }
  [[nodiscard]] long double length() const { return std::hypot(parts[0], parts[1]); }
};

Number number_at(Sample& sample, const std::vector<std::int64_t>& index) {
  const DType dtype = sample.view.bundle->tensors[0].dtype;
  const std::span<const std::byte> bytes(element_in(sample, index), value::size_bytes(dtype));
  Number number;
  const auto kind = value::class_of(dtype);
  if (kind == value::DTypeClass::real || kind == value::DTypeClass::complex) {
    double parts[2] = {0, 0};
    decode_reals(dtype, bytes, parts);
    number = {{parts[0], parts[1]}};
  } else {
    std::int64_t integer = 0;
    decode_integers(dtype, bytes, &integer);
    number.parts[0] = dtype == DType::uint64
                          ? static_cast<long double>(static_cast<std::uint64_t>(integer))
                          : static_cast<long double>(integer);
  }
  return number;
}

long double plain_unit(Sample& expected) {
  std::vector<Number> finite;
  for_each_index(expected.view.bundle->tensors[0].shape, [&](const auto& index) {
    const Number number = number_at(expected, index);
    if (!number.is_nan() && !number.is_infinite()) finite.push_back(number);
  });
  Number mean;
  for (const Number& number : finite) {
    for (int p = 0; p < 2; ++p) {
      mean.parts[p] += number.parts[p] / static_cast<long double>(finite.size());
    }
  }
  long double spread = 0;
  long double magnitude = 0;
  bool constant = true;
  for (const Number& number : finite) {
    const Number off = {{number.parts[0] - mean.parts[0], number.parts[1] - mean.parts[1]}};
    spread += off.length() * off.length() / static_cast<long double>(finite.size());
    magnitude += number.length() * number.length() / static_cast<long double>(finite.size());
    constant =
        constant && number.parts[0] == finite[0].parts[0] && number.parts[1] == finite[0].parts[1];
  }
  if (!constant) return std::sqrt(spread);
  return magnitude > 0 ? std::sqrt(magnitude) : 0.01L;
}

Plain compare_plainly(Sample& expected, Sample& got, Correctness correctness) {
  const DType dtype = expected.view.bundle->tensors[0].dtype;
  const Tolerance tolerance = tolerance_for(dtype, correctness);
  const long double absolute =
      tolerance.atol_of_spread ? tolerance.atol * plain_unit(expected) : tolerance.atol;
  Plain plain;
  const auto note = [](std::uint64_t& count, std::vector<std::int64_t>& first, const auto& index) {
    if (count++ == 0) first = index;
  };
  for_each_index(expected.view.bundle->tensors[0].shape, [&](const auto& index) {
    const Number e = number_at(expected, index);
    const Number g = number_at(got, index);
    if (e.is_nan() || g.is_nan()) {
      const bool fine = e.is_nan() && g.is_nan() && correctness == Correctness::strict;
      if (!fine) note(plain.nan, plain.first_nan, index);
    } else if (e.is_infinite() || g.is_infinite()) {
      for (int p = 0; p < 2; ++p) {
        const bool infinite = std::isinf(e.parts[p]) || std::isinf(g.parts[p]);
        if (infinite && e.parts[p] != g.parts[p]) {
          return note(plain.infinity, plain.first_infinity, index);
        }
        if (!infinite &&
            std::abs(e.parts[p] - g.parts[p]) > absolute + tolerance.rtol * std::abs(e.parts[p])) {
          return note(plain.value, plain.first_value, index);
        }
      }
    } else {
      const Number off = {{e.parts[0] - g.parts[0], e.parts[1] - g.parts[1]}};
      plain.max_abs = std::max(plain.max_abs, static_cast<double>(off.length()));
      plain.sum_abs += static_cast<double>(off.length());
      plain.count += 1;
      if (off.length() > absolute + tolerance.rtol * e.length()) {
        note(plain.value, plain.first_value, index);
      }
    }
  });
  return plain;
}

void expect_same(const task::Comparison& comparison, const Plain& plain, const std::string& what) {
  using task::MismatchKind;
  const auto& mismatch = comparison.mismatch;
  const bool wrong = plain.nan + plain.infinity + plain.value > 0;
  ASSERT_EQ(mismatch.has_value(), wrong) << what;
  if (wrong) {
    const MismatchKind kind = plain.nan > 0        ? MismatchKind::nan
                              : plain.infinity > 0 ? MismatchKind::infinity
                                                   : MismatchKind::value;
    ASSERT_EQ(mismatch->kind, kind) << what;
    const bool is_nan = kind == MismatchKind::nan;
    const bool is_infinity = kind == MismatchKind::infinity;
    EXPECT_EQ(mismatch->wrong_count,
              is_nan        ? plain.nan
              : is_infinity ? plain.infinity
                            : plain.value)
        << what;
    EXPECT_EQ(mismatch->first_index,
              is_nan        ? plain.first_nan
              : is_infinity ? plain.first_infinity
                            : plain.first_value)
        << what;
  }
  EXPECT_DOUBLE_EQ(comparison.max_abs_error, plain.max_abs) << what;
  if (std::isfinite(plain.sum_abs) && plain.count > 0) {
    EXPECT_NEAR(
        comparison.mean_abs_error, plain.sum_abs / plain.count, 1e-9 * plain.sum_abs / plain.count)
        << what;
  }
}

/// `got` as `expected` in another layout, with a few elements drawn anew.
void fill(Sample& expected, Sample& got, Dice& dice) {
  const value::Tensor& tensor = expected.view.bundle->tensors[0];
  const std::size_t width = value::size_bytes(tensor.dtype);
  const std::uint64_t rarity = 1 + dice.below(400);
  for_each_index(tensor.shape, [&](const auto& index) {
    const Element element = random_element(tensor.dtype, dice);
    std::memcpy(element_in(expected, index), element.data(), width);
    const Element other = dice.one_in(rarity) ? random_element(tensor.dtype, dice) : element;
    std::memcpy(element_in(got, index), other.data(), width);
  });
}

TEST(CompareRandomTensors, AgreesWithPlainLoops) {
  for (const DType dtype : kDTypes) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      Dice dice(seed * 100 + static_cast<std::uint64_t>(dtype));
      const std::vector<std::int64_t> shape = random_shape(dice);
      Sample expected;
      Sample got;
      make_empty(expected, dtype, shape, random_strides(shape, dice));
      make_empty(got, dtype, shape, random_strides(shape, dice));
      fill(expected, got, dice);
      for (const Correctness correctness : {Correctness::strict, Correctness::kernelgym}) {
        expect_same(compare(expected.view, got.view, correctness),
                    compare_plainly(expected, got, correctness),
                    std::string(json::name_of(dtype)) + value::describe_shape(shape) + " seed " +
                        std::to_string(seed) + " " + json::name_of(correctness));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(CompareRandomTensors, EqualBytesAreAlwaysEqual) {
  for (const DType dtype : kDTypes) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      Dice dice(seed);
      const std::vector<std::int64_t> shape = random_shape(dice);
      Sample sample;
      make_empty(sample, dtype, shape, random_strides(shape, dice));
      Sample unused;
      make_empty(unused, dtype, shape, value::dense_strides(shape));
      fill(sample, unused, dice);
      EXPECT_FALSE(compare(sample.view, sample.view, Correctness::strict).mismatch)
          << json::name_of(dtype) << " seed " << seed;
      EXPECT_TRUE(changed_leaves(sample.view, sample.view, "x").empty());
    }
  }
}

}  // namespace
}  // namespace drk::judge
