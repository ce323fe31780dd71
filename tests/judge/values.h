// SPDX-License-Identifier: Apache-2.0
// Trees of values with memory of their own, written down briefly.
#pragma once

#include "drk/value.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace drk::judge {

/// A bundle and its block. Tensors are added first, then `root` is set.
class Values {
 public:
  /// A tensor over `memory`, the raw elements of its extent.
  template <class Raw>
  value::Node strided(value::DType dtype,
                      std::vector<std::int64_t> shape,
                      std::vector<std::int64_t> strides,
                      const std::vector<Raw>& memory) {
    value::Tensor tensor;
    tensor.dtype = dtype;
    tensor.shape = std::move(shape);
    tensor.strides = std::move(strides);
    tensor.offset_bytes = block_.size();
    const std::size_t bytes = memory.size() * sizeof(Raw);
    const std::size_t aligned = (bytes + value::kTensorAlignmentBytes - 1) /
                                value::kTensorAlignmentBytes * value::kTensorAlignmentBytes;
    block_.resize(block_.size() + aligned);
    if (bytes > 0) std::memcpy(block_.data() + tensor.offset_bytes, memory.data(), bytes);
    bundle_.tensors.push_back(std::move(tensor));
    bundle_.block_bytes = block_.size();
    value::Node node;
    node.kind = value::NodeKind::tensor;
    node.tensor = static_cast<std::uint32_t>(bundle_.tensors.size() - 1);
    return node;
  }

  template <class Raw>
  value::Node dense(value::DType dtype,
                    const std::vector<std::int64_t>& shape,
                    const std::vector<Raw>& elements) {
    return strided(dtype, shape, value::dense_strides(shape), elements);
  }

  [[nodiscard]] value::View root(value::Node node) {
    bundle_.root = std::move(node);
    value::check(bundle_, block_.size());
    return view();
  }
  [[nodiscard]] value::View view() const { return {&bundle_, block_}; }
  [[nodiscard]] std::vector<std::byte>& block() { return block_; }

 private:
  value::Bundle bundle_;
  std::vector<std::byte> block_;
};

inline value::Node scalar(value::NodeKind kind, std::string text = "") {
  value::Node node;
  node.kind = kind;
  node.text = std::move(text);
  return node;
}

inline value::Node sequence(value::NodeKind kind, std::vector<value::Node> items) {
  value::Node node;
  node.kind = kind;
  node.items = std::move(items);
  return node;
}

inline value::Node dict(std::vector<std::pair<std::string, value::Node>> entries) {
  value::Node node;
  node.kind = value::NodeKind::dict;
  for (auto& entry : entries) {
    node.keys.push_back(std::move(entry.first));
    node.items.push_back(std::move(entry.second));
  }
  return node;
}

}  // namespace drk::judge
