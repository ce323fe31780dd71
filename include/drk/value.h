// SPDX-License-Identifier: Apache-2.0
// What a model takes and gives: a tree of Python values whose tensors lie in one block of memory.
#pragma once

#include <boost/describe.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace drk::value {

/// Element types, spelt as torch spells them ("bool_" stands for torch.bool).
enum class DType : std::uint8_t {
  float64,
  float32,
  float16,
  bfloat16,
  float8_e4m3fn,
  float8_e5m2,
  complex128,
  complex64,
  complex32,
  int64,
  int32,
  int16,
  int8,
  uint64,
  uint32,
  uint16,
  uint8,
  bool_,
};
BOOST_DESCRIBE_ENUM(DType,
                    float64,
                    float32,
                    float16,
                    bfloat16,
                    float8_e4m3fn,
                    float8_e5m2,
                    complex128,
                    complex64,
                    complex32,
                    int64,
                    int32,
                    int16,
                    int8,
                    uint64,
                    uint32,
                    uint16,
                    uint8,
                    bool_)

/// Where a tensor lies for the model. Between processes all elements cross in one block.
enum class Device : std::uint8_t { cpu, cuda };
BOOST_DESCRIBE_ENUM(Device, cpu, cuda)

enum class DTypeClass : std::uint8_t { real, complex, integer, boolean };

[[nodiscard]] std::size_t size_bytes(DType dtype) noexcept;
[[nodiscard]] DTypeClass class_of(DType dtype) noexcept;
/// "torch.float32", as people read it.
[[nodiscard]] std::string torch_name(DType dtype);

/// One tensor of a block. Memory is dense over the extent that the strides span, so a view with
/// gaps or steps of 0 keeps its strides and takes no more room than its extent.
struct Tensor {
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  ///< In elements, never negative; as many as `shape`.
  std::uint64_t offset_bytes = 0;     ///< Of element [0, ..., 0] in the block; a multiple of 256.
  bool requires_grad = false;
  Device device = Device::cpu;

  friend bool operator==(const Tensor&, const Tensor&) = default;
};
BOOST_DESCRIBE_STRUCT(Tensor, (), (dtype, shape, strides, offset_bytes, requires_grad, device))

/// The largest number where there are more.
[[nodiscard]] std::int64_t element_count(const Tensor& tensor) noexcept;
/// Bytes from the first to behind the last element; 0 for a tensor without elements, the largest
/// number where there are more.
[[nodiscard]] std::uint64_t extent_bytes(const Tensor& tensor) noexcept;
/// "float32[2, 3]"
[[nodiscard]] std::string describe(const Tensor& tensor);
/// "[2, 3]"
[[nodiscard]] std::string describe_shape(std::span<const std::int64_t> shape);
/// Row-major strides for `shape`; the largest number in place of a larger one.
[[nodiscard]] std::vector<std::int64_t> dense_strides(std::span<const std::int64_t> shape);

enum class NodeKind : std::uint8_t {
  none,
  boolean,
  integer,
  real,
  complex,
  text,
  dtype,
  tensor,
  list,
  tuple,
  dict,
};
BOOST_DESCRIBE_ENUM(
    NodeKind, none, boolean, integer, real, complex, text, dtype, tensor, list, tuple, dict)

/// A node of the tree. Scalars travel as text, so that integers of any size, NaN and infinities
/// survive: "true", "-3", "1.5", "nan", complex as "re,im".
struct Node {
  NodeKind kind = NodeKind::none;
  std::string text;                     ///< Scalars, text, dtype name.
  std::optional<std::uint32_t> tensor;  ///< Index into Bundle::tensors.
  std::vector<Node> items;              ///< list, tuple, dict (values).
  std::vector<std::string> keys;        ///< dict: keys in order, as many as `items`.

  friend bool operator==(const Node&, const Node&) = default;
};
BOOST_DESCRIBE_STRUCT(Node, (), (kind, text, tensor, items, keys))

/// A tree, its tensors, and the size of the block that holds their elements.
struct Bundle {
  Node root;
  std::vector<Tensor> tensors;
  std::uint64_t block_bytes = 0;

  friend bool operator==(const Bundle&, const Bundle&) = default;
};
BOOST_DESCRIBE_STRUCT(Bundle, (), (root, tensors, block_bytes))

inline constexpr std::uint64_t kTensorAlignmentBytes = 256;
inline constexpr std::size_t kMaxDimensions = 64;

/// Lays the tensors out one behind the other and sets their offsets and `block_bytes`, which no
/// memory has if some extent was too large to count.
void lay_out(Bundle& bundle) noexcept;

/// What a bundle takes in a message: everything but its elements.
[[nodiscard]] std::size_t description_bytes(const Bundle& bundle);

/// Checks a bundle that another process described against the block that really came: kinds,
/// indices, strides, bounds, overflow. Throws Error{corrupt}.
void check(const Bundle& bundle, std::uint64_t block_bytes);

/// Calls `visit(path, node)` for every leaf; paths read like Python: "output", "output[1]",
/// "output['mean'][0]".
template <class Visit>
void for_each_leaf(const Node& node, const std::string& path, const Visit& visit) {
  if (node.kind == NodeKind::dict) {
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      for_each_leaf(node.items[i], path + "['" + node.keys[i] + "']", visit);
    }
  } else if (node.kind == NodeKind::list || node.kind == NodeKind::tuple) {
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      for_each_leaf(node.items[i], path + "[" + std::to_string(i) + "]", visit);
    }
  } else {
    visit(path, node);
  }
}

/// An element of a block that takes another's value.
struct Change {
  std::uint64_t to_bytes = 0, from_bytes = 0;  ///< Offsets.
  std::size_t size_bytes = 0;
};
/// Two elements of each tensor of real numbers, at places that follow from `seed` alone.
/// Values stay within what the tensor holds anyway. `bundle` must have passed check().
[[nodiscard]] std::vector<Change> few_changes(const Bundle& bundle, std::uint64_t seed);
/// Puts values of the block `from` into `to`, which has its layout.
void apply(std::span<const Change> changes,
           std::span<const std::byte> from,
           std::span<std::byte> to);

/// A bundle with its memory at hand. Not owning.
struct View {
  const Bundle* bundle = nullptr;
  std::span<const std::byte> block;
};

}  // namespace drk::value
