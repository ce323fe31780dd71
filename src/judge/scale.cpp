// SPDX-License-Identifier: Apache-2.0
// Spread of a tensor, by its moments.
#include "scale.h"

#include "parts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace drk::judge {

namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

/// Calls `visit(parts)` for every finite element, in order, as long as it returns true.
template <std::size_t Parts, class Visit>
void for_each_finite(const TensorView& view, const Visit& visit) {
  ElementReader reader(view);
  std::array<double, kChunkElements* Parts> numbers = {};
  for (auto bytes = reader.next(); !bytes.empty(); bytes = reader.next()) {
    decode_reals(view.tensor.dtype, bytes, numbers.data());
    const std::size_t count = bytes.size() / value::size_bytes(view.tensor.dtype);
    for (std::size_t i = 0; i < count; ++i) {
      const double* parts = numbers.data() + i * Parts;
      bool finite = std::abs(parts[0]) <= kLargest;
      if constexpr (Parts == 2) finite = finite && std::abs(parts[1]) <= kLargest;
      if (finite && !visit(parts)) return;
    }
  }
}

/// A divisor after which squares neither overflow nor vanish. Only float64 reaches that far.
template <std::size_t Parts>
double unit_of(const TensorView& view) {
  if (value::size_bytes(view.tensor.dtype) / Parts < sizeof(double)) return 1;
  double largest = 0;
  for_each_finite<Parts>(view, [&](const double* parts) {
    for (std::size_t p = 0; p < Parts; ++p) largest = std::max(largest, std::abs(parts[p]));
    return true;
  });
  const bool squares_fit = largest == 0 || (largest > 1e-100 && largest < 1e100);
  return squares_fit ? 1 : largest;
}

template <std::size_t Parts>
struct Moments {
  std::array<double, Parts> sum = {};
  double sum_of_squares = 0;
  double count = 0;

  void add(const Moments& other) noexcept {
    for (std::size_t p = 0; p < Parts; ++p) sum[p] += other.sum[p];
    sum_of_squares += other.sum_of_squares;
    count += other.count;
  }
};

/// Zeros when there is none.
template <std::size_t Parts>
std::array<double, Parts> first_finite(const TensorView& view, double unit) {
  std::array<double, Parts> first = {};
  for_each_finite<Parts>(view, [&](const double* parts) {
    for (std::size_t p = 0; p < Parts; ++p) first[p] = parts[p] / unit;
    return false;
  });
  return first;
}

template <std::size_t Parts>
double scale_in_parts(const TensorView& view) {
  const double unit = unit_of<Parts>(view);
  // Shifted by the first element, so that a constant tensor has a spread of exactly 0.
  const std::array<double, Parts> origin = first_finite<Parts>(view, unit);
  const std::vector<Part> ranges = parts_of(view);
  std::vector<Moments<Parts>> moments(ranges.size());
  for_each_part(ranges.size(), [&](std::size_t i) {
    const value::Tensor layout = layout_of(view.tensor, ranges[i]);
    Moments<Parts> own;  // apart from the others', which other threads write to
    for_each_finite<Parts>({layout, view.block}, [&](const double* parts) {
      for (std::size_t p = 0; p < Parts; ++p) {
        const double shifted = parts[p] / unit - origin[p];
        own.sum[p] += shifted;
        own.sum_of_squares += shifted * shifted;
      }
      own.count += 1;
      return true;
    });
    moments[i] = own;
  });
  Moments<Parts> all;
  for (const Moments<Parts>& own : moments) all.add(own);
  if (all.count == 0) return kScaleOfZeros;
  double squared_spread = all.sum_of_squares / all.count;
  for (const double s : all.sum) squared_spread -= (s / all.count) * (s / all.count);
  double squared_magnitude = 0;
  for (const double o : origin) squared_magnitude += o * o;
  const double squared_scale = squared_spread > 0 ? squared_spread : squared_magnitude;
  if (squared_scale == 0) return kScaleOfZeros;
  return std::min(std::sqrt(squared_scale) * unit, kLargest);
}

}  // namespace

double scale_of(const TensorView& expected) {
  return parts_of(expected.tensor.dtype) == 2 ? scale_in_parts<2>(expected)
                                              : scale_in_parts<1>(expected);
}

Limit limit_for(const Tolerance& tolerance, const TensorView& expected) {
  const double unit = tolerance.atol_of_spread ? scale_of(expected) : 1;
  return {tolerance.atol * unit, tolerance.rtol};
}

}  // namespace drk::judge
