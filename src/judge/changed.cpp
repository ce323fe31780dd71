// SPDX-License-Identifier: Apache-2.0
// Which inputs a call has written to.
#include "drk/judge.h"

#include "parts.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace drk::judge {

namespace {

std::span<const std::byte> extent_of(const value::Tensor& tensor,
                                     std::span<const std::byte> block) {
  const std::uint64_t size_bytes = value::extent_bytes(tensor);
  return size_bytes == 0 ? std::span<const std::byte>()
                         : block.subspan(tensor.offset_bytes, size_bytes);
}

/// As bytes, not as numbers: NaN differs from no NaN of the same bits, and 0 from -0.
bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  constexpr std::size_t kPartBytes = std::size_t{8} << 20U;
  if (a.size() != b.size()) return false;
  std::atomic<bool> same = true;
  for_each_part((a.size() + kPartBytes - 1) / kPartBytes, [&](std::size_t i) {
    const std::size_t begin = i * kPartBytes;
    const std::size_t size = std::min(kPartBytes, a.size() - begin);
    if (std::memcmp(a.data() + begin, b.data() + begin, size) != 0) same = false;
  });
  return same;
}

}  // namespace

std::vector<std::string> changed_leaves(const value::View& before,
                                        const value::View& after,
                                        const std::string& root_name) {
  // Another layout cannot be told leaf by leaf: all of it counts as changed.
  if (before.bundle->root != after.bundle->root ||
      before.bundle->tensors != after.bundle->tensors) {
    return {root_name};
  }
  std::vector<std::string> changed;
  value::for_each_leaf(
      before.bundle->root, root_name, [&](const std::string& path, const value::Node& node) {
        if (node.kind != value::NodeKind::tensor) return;
        const value::Tensor& tensor = before.bundle->tensors[*node.tensor];
        if (!same_bytes(extent_of(tensor, before.block), extent_of(tensor, after.block))) {
          changed.push_back(path);
        }
      });
  return changed;
}

}  // namespace drk::judge
