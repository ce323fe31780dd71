// SPDX-License-Identifier: Apache-2.0
// Elements as text that reads back as the same value of the same dtype.
#include "drk/base/error.h"

#include "elements.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace drk::judge {

namespace {

std::string non_finite_text(double number) {
  if (std::isnan(number)) return "nan";
  return number > 0 ? "inf" : "-inf";
}

template <class Float, class... Precision>
std::string to_text(Float number, Precision... precision) {
  std::array<char, 64> text = {};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number, precision...);
  DRK_CHECK(end.ec == std::errc());
  return {text.data(), end.ptr};
}

/// The value whose magnitude bits are `step` further than those of `bits`.
double neighbour(value::DType dtype, std::uint16_t bits, int step) {
  const auto next = static_cast<std::uint16_t>(bits + step);
  std::array<std::byte, sizeof next> bytes = {};
  std::memcpy(bytes.data(), &next, sizeof next);
  double number = 0;
  decode_reals(dtype, std::span(bytes).first(value::size_bytes(dtype)), &number);
  return number;
}

/// Of a dtype that <charconv> does not know: the fewest digits that lie closer to `number` than
/// to either of its neighbours in that dtype, or the exact number where that is no longer.
std::string narrow_text(value::DType dtype, std::uint16_t bits, double number) {
  std::string exact = to_text(static_cast<float>(number));
  if (number == 0) return exact;
  const double below = neighbour(dtype, bits, -1);
  const double next = neighbour(dtype, bits, 1);
  // What lies half a step over the largest number reads back as infinity.
  const double above = std::isfinite(next) ? next : number + (number - below);
  for (int digits = 1; digits < std::numeric_limits<float>::max_digits10; ++digits) {
    std::string text = to_text(number, std::chars_format::general, digits);
    double read = 0;
    std::from_chars(text.data(), text.data() + text.size(), read);
    const double error = std::abs(read - number);
    if (error < std::abs(read - below) && error < std::abs(read - above)) {
      return text.size() < exact.size() ? text : exact;
    }
  }
  return exact;
}

std::string real_text(value::DType dtype, std::span<const std::byte> bytes) {
  double number = 0;
  decode_reals(dtype, bytes, &number);
  if (!std::isfinite(number)) return non_finite_text(number);
  const std::size_t width = bytes.size();
  if (width == sizeof(double)) return to_text(number);
  if (width == sizeof(float)) return to_text(static_cast<float>(number));
  std::uint16_t bits = 0;
  std::memcpy(&bits, bytes.data(), width);
  return narrow_text(dtype, bits, number);
}

value::DType part_dtype(value::DType dtype) noexcept {
  switch (dtype) {
    case value::DType::complex128:
      return value::DType::float64;
    case value::DType::complex64:
      return value::DType::float32;
    default:
      return value::DType::float16;
  }
}

std::string complex_text(value::DType dtype, std::span<const std::byte> bytes) {
  const value::DType part = part_dtype(dtype);
  const std::size_t width = value::size_bytes(part);
  const std::string imaginary = real_text(part, bytes.subspan(width));
  const char* sign = imaginary.front() == '-' ? "" : "+";
  return real_text(part, bytes.first(width)) + sign + imaginary + "j";
}

}  // namespace

std::string element_text(value::DType dtype, std::span<const std::byte> element) {
  switch (value::class_of(dtype)) {
    case value::DTypeClass::real:
      return real_text(dtype, element);
    case value::DTypeClass::complex:
      return complex_text(dtype, element);
    case value::DTypeClass::boolean:
      return element[0] == std::byte{0} ? "False" : "True";
    case value::DTypeClass::integer:
      break;
  }
  std::int64_t number = 0;
  decode_integers(dtype, element, &number);
  return dtype == value::DType::uint64 ? std::to_string(static_cast<std::uint64_t>(number))
                                       : std::to_string(number);
}

}  // namespace drk::judge
