// SPDX-License-Identifier: Apache-2.0
// Large tensors in parts, which several threads go through.
#pragma once

#include "elements.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace drk::judge {

/// A run of elements in row-major order.
struct Part {
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
};

/// A dense tensor of many elements in equal parts, any other in one. How many there are depends on
/// the tensor alone, so that sums over parts come out the same on every machine.
[[nodiscard]] inline std::vector<Part> parts_of(const TensorView& view) {
  constexpr std::uint64_t kParts = 16;
  constexpr std::uint64_t kWorthwhile = std::uint64_t{1} << 19U;  // a thread costs some 30 us
  const auto count = static_cast<std::uint64_t>(value::element_count(view.tensor));
  const bool is_dense = view.tensor.strides == value::dense_strides(view.tensor.shape);
  if (count < kWorthwhile || !is_dense) return {{0, count}};
  std::vector<Part> parts;
  for (std::uint64_t i = 0; i < kParts; ++i) {
    const std::uint64_t begin = count * i / kParts;
    parts.push_back({begin, count * (i + 1) / kParts - begin});
  }
  return parts;
}

/// The layout of one part, to be read from the whole tensor's block.
[[nodiscard]] inline value::Tensor layout_of(const value::Tensor& whole, const Part& part) {
  if (part.begin == 0 && part.count == static_cast<std::uint64_t>(value::element_count(whole))) {
    return whole;
  }
  value::Tensor layout;
  layout.dtype = whole.dtype;
  layout.shape = {static_cast<std::int64_t>(part.count)};
  layout.strides = {1};
  layout.offset_bytes = whole.offset_bytes + part.begin * value::size_bytes(whole.dtype);
  return layout;
}

/// Calls `work(i)` for i below `count`, on as many threads as are of use. `work` must not throw.
template <class Work>
void for_each_part(std::size_t count, const Work& work) {
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  std::atomic<std::size_t> next = 0;
  const auto go_on = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  if (count == 0) return;
  std::vector<std::jthread> others(std::min(cores, count) - 1);
  for (std::jthread& other : others) other = std::jthread(go_on);
  go_on();
}

}  // namespace drk::judge
