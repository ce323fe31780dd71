// SPDX-License-Identifier: Apache-2.0
// Decoding every dtype, walking every layout, and texts that read back.
#include "judge/elements.h"

#include "drk/base/json.h"

#include "judge/values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace drk::judge {
namespace {

using value::DType;

template <class Raw>
std::span<const std::byte> bytes_of(const Raw& raw) {
  return std::as_bytes(std::span(&raw, 1));
}

double decode_real(DType dtype, std::uint16_t bits) {
  double number = 0;
  decode_reals(dtype, bytes_of(bits).first(value::size_bytes(dtype)), &number);
  return number;
}

/// A float of sign, exponent and fraction bits, by the definition (the plain twin).
double by_definition(std::uint32_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double fraction =
      std::ldexp(static_cast<double>(bits & ((1U << fraction_bits) - 1)), -fraction_bits);
  const double sign = (bits >> (exponent_bits + fraction_bits)) != 0 ? -1 : 1;
  return exponent == 0 ? sign * std::ldexp(fraction, 1 - bias)
                       : sign * std::ldexp(1 + fraction, exponent - bias);
}

TEST(DecodeReals, ReadsEveryNarrowFloatByItsDefinition) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if ((bits & 0x7C00U) != 0x7C00U) {
      ASSERT_EQ(decode_real(DType::float16, half), by_definition(bits, 5, 10)) << bits;
    }
    if ((bits & 0x7F80U) != 0x7F80U) {
      ASSERT_EQ(decode_real(DType::bfloat16, half), by_definition(bits, 8, 7)) << bits;
    }
  }
  for (std::uint32_t bits = 0; bits < 0x100; ++bits) {
    const auto byte = static_cast<std::uint16_t>(bits);
    if ((bits & 0x7FU) != 0x7FU) {
      ASSERT_EQ(decode_real(DType::float8_e4m3fn, byte), by_definition(bits, 4, 3)) << bits;
    }
    if ((bits & 0x7CU) != 0x7CU) {
      ASSERT_EQ(decode_real(DType::float8_e5m2, byte), by_definition(bits, 5, 2)) << bits;
    }
  }
}

TEST(DecodeReals, KnowsInfinityAndNan) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(decode_real(DType::float16, 0x7C00), kInfinity);
  EXPECT_EQ(decode_real(DType::float16, 0xFC00), -kInfinity);
  EXPECT_TRUE(std::isnan(decode_real(DType::float16, 0x7C01)));
  EXPECT_EQ(decode_real(DType::bfloat16, 0xFF80), -kInfinity);
  EXPECT_TRUE(std::isnan(decode_real(DType::bfloat16, 0x7FC0)));
  EXPECT_EQ(decode_real(DType::float8_e5m2, 0x7C), kInfinity);
  EXPECT_TRUE(std::isnan(decode_real(DType::float8_e5m2, 0x7D)));
  EXPECT_TRUE(std::isnan(decode_real(DType::float8_e4m3fn, 0x7F)));
  EXPECT_TRUE(std::isnan(decode_real(DType::float8_e4m3fn, 0xFF)));
  EXPECT_EQ(decode_real(DType::float8_e4m3fn, 0x7E), 448);
}

TEST(DecodeIntegers, KeepsSignsAndBits) {
  const struct {
    DType dtype;
    std::uint64_t bits;
    std::int64_t number;
  } cases[] = {
      {DType::int64, 0x8000000000000000U, std::numeric_limits<std::int64_t>::min()},
      {DType::uint64, 0xFFFFFFFFFFFFFFFFU, -1},
      {DType::int32, 0xFFFFFFFFU, -1},
      {DType::uint32, 0xFFFFFFFFU, 4294967295},
      {DType::int16, 0x8000U, -32768},
      {DType::uint16, 0x8000U, 32768},
      {DType::int8, 0x80U, -128},
      {DType::uint8, 0x80U, 128},
      {DType::bool_, 1, 1},
      {DType::bool_, 0x80U, 1},  // what torch takes for true
      {DType::bool_, 0, 0},
  };
  for (const auto& c : cases) {
    std::int64_t number = 0;
    decode_integers(c.dtype, bytes_of(c.bits).first(value::size_bytes(c.dtype)), &number);
    EXPECT_EQ(number, c.number) << json::name_of(c.dtype);
  }
}

/// All elements that a reader gives for an int64 tensor.
std::vector<std::int64_t> read_all(const value::View& view) {
  ElementReader reader({view.bundle->tensors[0], view.block});
  std::vector<std::int64_t> numbers;
  for (auto bytes = reader.next(); !bytes.empty(); bytes = reader.next()) {
    const std::size_t before = numbers.size();
    numbers.resize(before + bytes.size() / sizeof(std::int64_t));
    decode_integers(DType::int64, bytes, numbers.data() + before);
  }
  return numbers;
}

TEST(ElementReader, WalksRowMajorWhateverTheStrides) {
  std::vector<std::int64_t> memory(24);
  std::iota(memory.begin(), memory.end(), 0);
  const struct {
    const char* layout;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;
    std::vector<std::int64_t> elements;
  } cases[] = {
      {"dense", {2, 3}, {3, 1}, {0, 1, 2, 3, 4, 5}},
      {"transposed", {3, 2}, {1, 3}, {0, 3, 1, 4, 2, 5}},
      {"gaps between rows", {2, 3}, {8, 1}, {0, 1, 2, 8, 9, 10}},
      {"every other element", {2, 2}, {4, 2}, {0, 2, 4, 6}},
      {"expanded rows", {3, 2}, {0, 1}, {0, 1, 0, 1, 0, 1}},
      {"expanded columns", {2, 3}, {1, 0}, {0, 0, 0, 1, 1, 1}},
      {"expanded altogether", {2, 2}, {0, 0}, {0, 0, 0, 0}},
      {"sizes of one", {1, 3, 1}, {17, 2, 5}, {0, 2, 4}},
      {"no dimension", {}, {}, {0}},
      {"no elements", {2, 0, 3}, {3, 3, 1}, {}},
      {"permuted, three dimensions",
       {2, 2, 3},
       {1, 12, 4},
       {0, 4, 8, 12, 16, 20, 1, 5, 9, 13, 17, 21}},
  };
  for (const auto& c : cases) {
    Values values;
    const value::View view = values.root(values.strided(DType::int64, c.shape, c.strides, memory));
    EXPECT_EQ(read_all(view), c.elements) << c.layout;
  }
}

TEST(ElementReader, CrossesChunksInTheMiddleOfRows) {
  // Rows of 700 with gaps: no multiple of a chunk.
  std::vector<std::int64_t> memory(3000);
  std::iota(memory.begin(), memory.end(), 0);
  Values values;
  const value::View view = values.root(values.strided(DType::int64, {3, 700}, {1000, 1}, memory));
  const std::vector<std::int64_t> numbers = read_all(view);
  ASSERT_EQ(numbers.size(), 2100U);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_EQ(numbers[i], static_cast<std::int64_t>(i / 700 * 1000 + i % 700));
  }
}

TEST(IndexOf, UndoesRowMajorOrder) {
  const std::vector<std::int64_t> shape{2, 3, 4};
  EXPECT_EQ(index_of(shape, 0), (std::vector<std::int64_t>{0, 0, 0}));
  EXPECT_EQ(index_of(shape, 23), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(index_of(shape, 17), (std::vector<std::int64_t>{1, 1, 1}));
  EXPECT_TRUE(index_of({}, 0).empty());
}

TEST(ElementText, IsTheShortestThatReadsBack) {
  const struct {
    DType dtype;
    std::uint64_t bits;
    const char* text;
  } cases[] = {
      {DType::float64, 0x3FB999999999999AU, "0.1"},
      {DType::float64, 0x3FB999999999999BU, "0.10000000000000002"},
      {DType::float64, 0x7FF8000000000000U, "nan"},
      {DType::float64, 0xFFF8000000000000U, "nan"},
      {DType::float64, 0xFFF0000000000000U, "-inf"},
      {DType::float64, 1, "5e-324"},
      {DType::float32, 0x3DCCCCCDU, "0.1"},
      {DType::float32, 0x3DCCCCCEU, "0.10000001"},
      {DType::float32, 0x40400000U, "3"},
      {DType::float32, 0x80000000U, "-0"},
      {DType::float16, 0x2E66U, "0.1"},
      {DType::float16, 0x3C01U, "1.001"},
      {DType::float16, 0x7BFFU, "65504"},
      {DType::float16, 0x0001U, "6e-08"},
      {DType::float16, 0x8000U, "-0"},
      {DType::bfloat16, 0x3DCDU, "0.1"},
      {DType::bfloat16, 0x3F81U, "1.01"},
      {DType::bfloat16, 0x7F80U, "inf"},
      {DType::float8_e4m3fn, 0x7EU, "448"},
      {DType::float8_e4m3fn, 0x39U, "1.1"},
      {DType::float8_e4m3fn, 0x7FU, "nan"},
      {DType::float8_e5m2, 0x3DU, "1.2"},
      {DType::float8_e5m2, 0xFCU, "-inf"},
      {DType::complex64, 0xC000000000000000U | 0x3DCCCCCDU, "0.1-2j"},
      {DType::complex64, 0x7FC00000FF800000U, "-inf+nanj"},
      {DType::complex32, 0x3C00C000U, "-2+1j"},
      {DType::int64, 0x8000000000000000U, "-9223372036854775808"},
      {DType::uint64, 0xFFFFFFFFFFFFFFFFU, "18446744073709551615"},
      {DType::int8, 0xFFU, "-1"},
      {DType::uint8, 0xFFU, "255"},
      {DType::bool_, 1, "True"},
      {DType::bool_, 0, "False"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(element_text(c.dtype, bytes_of(c.bits).first(value::size_bytes(c.dtype))), c.text)
        << json::name_of(c.dtype) << " " << std::hex << c.bits;
  }
  const double parts[] = {1.5, 0.1};
  EXPECT_EQ(element_text(DType::complex128, std::as_bytes(std::span(parts))), "1.5+0.1j");
}

TEST(ElementText, OfNarrowFloatsIsNearestToItsOwnValue) {
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    for (std::uint32_t bits = 1; bits < 0x7F80; bits += 7) {
      const auto half = static_cast<std::uint16_t>(bits);
      const double number = decode_real(dtype, half);
      if (!std::isfinite(number)) break;
      const double read = std::stod(element_text(dtype, bytes_of(half)));
      const double above = decode_real(dtype, static_cast<std::uint16_t>(bits + 1));
      const double below = decode_real(dtype, static_cast<std::uint16_t>(bits - 1));
      ASSERT_LT(std::abs(read - number), std::abs(read - below)) << bits;
      if (std::isfinite(above)) {
        ASSERT_LT(std::abs(read - number), std::abs(read - above)) << bits;
      }
    }
  }
}

}  // namespace
}  // namespace drk::judge
