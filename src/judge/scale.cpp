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

struct Scales {
  double unit = kScaleOfZeros;
  double magnitude = kScaleOfZeros;
};

template <std::size_t Parts>
Scales scales_in_parts(const TensorView& view) {
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
  if (all.count == 0) return {};
  double squared_spread = all.sum_of_squares / all.count;
  double squared_mean = 0;
  for (std::size_t p = 0; p < Parts; ++p) {
    const double mean = all.sum[p] / all.count;
    squared_spread -= mean * mean;
    squared_mean += (origin[p] + mean) * (origin[p] + mean);
  }
  squared_spread = std::max(squared_spread, 0.0);
  const auto scale = [unit](double square) {
    return square == 0 ? kScaleOfZeros : std::min(std::sqrt(square) * unit, kLargest);
  };
  return {scale(squared_spread > 0 ? squared_spread : squared_mean),
          scale(squared_spread + squared_mean)};
}

Scales scales_of(const TensorView& view) {
  return parts_of(view.tensor.dtype) == 2 ? scales_in_parts<2>(view) : scales_in_parts<1>(view);
}

}  // namespace

double scale_of(const TensorView& expected) {
  return scales_of(expected).unit;
}

double magnitude_of(const TensorView& expected) {
  return scales_of(expected).magnitude;
}

Limit limit_for(const Tolerance& tolerance, const TensorView& expected) {
  const double unit = tolerance.atol_of_spread ? scale_of(expected) : 1;
  return {tolerance.atol * unit, tolerance.rtol};
}

}  // namespace drk::judge
