// SPDX-License-Identifier: Apache-2.0
// The elements of a tensor as numbers, in row-major order, a chunk at a time.
#pragma once

#include "drk/value.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace drk::judge {

/// Small enough that a chunk of each of two tensors stays in the first-level cache, large enough
/// that the switch on the dtype, made once a chunk, costs nothing.
inline constexpr std::size_t kChunkElements = 512;
inline constexpr std::size_t kMaxElementBytes = 16;

/// A tensor with the block that its offset points into. The tensor must have passed
/// value::check against that block. Not owning.
struct TensorView {
  const value::Tensor& tensor;
  std::span<const std::byte> block;
};

/// Reads elements in row-major order, whatever the strides are.
class ElementReader {
 public:
  explicit ElementReader(const TensorView& view);
  /// The bytes of the next elements, packed, at most kChunkElements of them; empty at the end.
  /// Valid until the next call.
  [[nodiscard]] std::span<const std::byte> next();

 private:
  struct Dim {
    std::uint64_t size;
    std::uint64_t stride_bytes;
    std::uint64_t index;
  };
  std::size_t copy_run(std::byte* out, std::size_t max_count);
  void step(std::uint64_t count);

  std::size_t width_;
  std::uint64_t left_;
  const std::byte* at_ = nullptr;
  std::vector<Dim> dims_;  ///< Outermost first; neighbours that are one run are merged.
  bool dense_ = false;
  std::array<std::byte, kChunkElements* kMaxElementBytes> buffer_ = {};
};

/// How many real numbers one element is: 2 for complex dtypes.
[[nodiscard]] std::size_t parts_of(value::DType dtype) noexcept;
/// Real and complex elements, exactly; `out` has room for parts_of(dtype) numbers for each.
void decode_reals(value::DType dtype, std::span<const std::byte> elements, double* out) noexcept;
/// Integers and booleans (0, 1), exactly; a uint64 keeps its bits.
void decode_integers(value::DType dtype,
                     std::span<const std::byte> elements,
                     std::int64_t* out) noexcept;

/// The index of the element that comes `position`-th in row-major order.
[[nodiscard]] std::vector<std::int64_t> index_of(std::span<const std::int64_t> shape,
                                                 std::uint64_t position);
/// The bytes of the element at `index`.
[[nodiscard]] std::span<const std::byte> element_at(const TensorView& view,
                                                    std::span<const std::int64_t> index);
/// One element as the shortest decimal that reads back as the same value of its dtype: "0.1",
/// "nan", "-inf", "1-2j", "True".
[[nodiscard]] std::string element_text(value::DType dtype, std::span<const std::byte> element);

}  // namespace drk::judge
