// SPDX-License-Identifier: Apache-2.0
// A few elements that take another's value.
#include "drk/value.h"

#include <cstring>

namespace drk::value {

namespace {

/// Splitmix64: the same numbers in every process and with every standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t below(std::uint64_t bound) {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t bits = state_;
    bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9U;
    bits = (bits ^ (bits >> 27U)) * 0x94D049BB133111EBU;
    return (bits ^ (bits >> 31U)) % bound;
  }

 private:
  std::uint64_t state_;
};

std::uint64_t offset_of(const Tensor& tensor, std::uint64_t position) {
  std::uint64_t offset = 0;
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    const auto size = static_cast<std::uint64_t>(tensor.shape[i]);
    offset += position % size * static_cast<std::uint64_t>(tensor.strides[i]);
    position /= size;
  }
  return tensor.offset_bytes + offset * size_bytes(tensor.dtype);
}

}  // namespace

std::vector<Change> few_changes(const Bundle& bundle, std::uint64_t seed) {
  // Of one tensor. The fewer, the less of them whoever reads only a part of it will find.
  constexpr std::uint64_t kElements = 2;
  std::vector<Change> changes;
  Random random(seed);
  for (const Tensor& tensor : bundle.tensors) {
    const auto count = static_cast<std::uint64_t>(element_count(tensor));
    // Not of integers: an index, or a length, may be right in its own place alone.
    if (class_of(tensor.dtype) != DTypeClass::real || count < 2) continue;
    for (std::uint64_t i = 0; i < kElements; ++i) {
      const std::uint64_t to = random.below(count);
      const std::uint64_t from = (to + 1 + random.below(count - 1)) % count;
      changes.push_back({offset_of(tensor, to), offset_of(tensor, from), size_bytes(tensor.dtype)});
    }
  }
  return changes;
}

void apply(std::span<const Change> changes,
           std::span<const std::byte> from,
           std::span<std::byte> to) {
  for (const Change& change : changes) {
    std::memcpy(to.data() + change.to_bytes, from.data() + change.from_bytes, change.size_bytes);
  }
}

}  // namespace drk::value
