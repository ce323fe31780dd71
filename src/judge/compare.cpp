// SPDX-License-Identifier: Apache-2.0
// Two trees of values, leaf by leaf.
#include "drk/base/error.h"
#include "drk/base/json.h"
#include "drk/judge.h"

#include "tensor_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace drk::judge {

namespace {

using value::Node;
using value::NodeKind;

const char* python_type(NodeKind kind) noexcept {
  switch (kind) {
    case NodeKind::boolean:
      return "bool";
    case NodeKind::integer:
      return "int";
    case NodeKind::real:
      return "float";
    case NodeKind::complex:
      return "complex";
    case NodeKind::text:
      return "str";
    default:
      return json::name_of(kind);
  }
}

std::string describe_keys(const Node& dict) {
  constexpr std::size_t kShown = 8;
  const std::span shown = std::span(dict.keys).first(std::min(kShown, dict.keys.size()));
  const char* rest = dict.keys.size() > kShown ? "', ..." : "'";
  return fmt::format(
      "a dict with {} keys: '{}{}", dict.keys.size(), fmt::join(shown, "', '"), rest);
}

std::string describe_node(const Node& node, const value::View& view) {
  switch (node.kind) {
    case NodeKind::none:
      return "None";
    case NodeKind::dtype:
      return node.text;
    case NodeKind::tensor:
      return "a tensor " + value::describe(view.bundle->tensors[*node.tensor]);
    case NodeKind::list:
    case NodeKind::tuple:
      return fmt::format("a {} of {}", python_type(node.kind), node.items.size());
    case NodeKind::dict:
      return node.keys.empty() ? "an empty dict" : describe_keys(node);
    default:
      return fmt::format("the {} {} (no tensor)", python_type(node.kind), node.text.substr(0, 60));
  }
}

std::optional<double> parse_real(std::string_view text) {
  double number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = end.ec == std::errc() && end.ptr == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

/// A number of Python's as a float64 or complex128 tensor without dimensions.
struct ScalarTensor {
  value::Tensor tensor;
  std::array<double, 2> parts = {};

  [[nodiscard]] TensorView view() const { return {tensor, std::as_bytes(std::span(parts))}; }
};

std::optional<ScalarTensor> parse_scalar(const Node& node) {
  const bool is_complex = node.kind == NodeKind::complex;
  const std::string_view text = node.text;
  const std::size_t comma = is_complex ? text.find(',') : text.size();
  if (comma == std::string_view::npos) return std::nullopt;
  const auto real = parse_real(text.substr(0, comma));
  const auto imaginary = is_complex ? parse_real(text.substr(comma + 1)) : 0.0;
  if (!real || !imaginary) return std::nullopt;
  ScalarTensor scalar;
  scalar.tensor.dtype = is_complex ? value::DType::complex128 : value::DType::float64;
  scalar.parts = {*real, *imaginary};
  return scalar;
}

/// A Python float carries no precision. What `.item()` gave of a float32 tensor is a float32 still
/// and was computed as one, so it gets float32's tolerance; any other number gets float64's.
value::DType precision_of(const ScalarTensor& scalar) {
  const bool is_narrow = std::all_of(scalar.parts.begin(), scalar.parts.end(), [](double part) {
    return std::isnan(part) || static_cast<double>(static_cast<float>(part)) == part;
  });
  return is_narrow ? value::DType::float32 : value::DType::float64;
}

/// How leaves are compared: by a policy, or by a tolerance that the problem gives.
struct Standard {
  task::Correctness correctness = task::Correctness::strict;
  std::optional<Tolerance> tolerance = std::nullopt;
  const ErrorBudget* budget = nullptr;  ///< With `exact`, the answer that it is about.
  const value::View* exact = nullptr;

  /// KernelGYM never looks whether several outputs come as a list or as a tuple.
  [[nodiscard]] bool sequences_are_alike() const noexcept {
    return tolerance || correctness == task::Correctness::kernelgym;
  }
  [[nodiscard]] TensorRules rules(value::DType dtype) const noexcept {
    if (!tolerance) return rules_for(dtype, correctness);
    const value::DTypeClass kind = value::class_of(dtype);
    const bool is_rounded = kind == value::DTypeClass::real || kind == value::DTypeClass::complex;
    return {.tolerance = is_rounded ? *tolerance : Tolerance{}, .nan_equals_nan = true};
  }
};

class Comparer {
 public:
  Comparer(const value::View& expected, const value::View& got, const Standard& standard)
      : expected_(expected), got_(got), standard_(standard) {}

  void compare_nodes(const Node& expected, const Node& got, const std::string& path) {
    if (!same_kind(expected.kind, got.kind)) return note_structure(expected, got, path);
    switch (expected.kind) {
      case NodeKind::none:
        return;
      case NodeKind::list:
      case NodeKind::tuple:
        return compare_sequences(expected, got, path);
      case NodeKind::dict:
        return compare_dicts(expected, got, path);
      case NodeKind::tensor:
        return compare_tensor_leaves(expected, got, path);
      case NodeKind::real:
      case NodeKind::complex:
        return compare_numbers(expected, got, path);
      default:
        return compare_texts(expected, got, path);
    }
  }

  task::Comparison take_result() {
    task::Comparison comparison;
    comparison.mismatch = std::move(first_);
    comparison.max_abs_error = sums_.max_abs;
    comparison.max_rel_error = sums_.max_rel;
    comparison.telling = sums_.telling;
    comparison.zeroed = sums_.zeroed;
    comparison.mean_abs_error = sums_.count > 0 ? sums_.sum_abs / sums_.count : 0;
    comparison.limit_share = std::min(sums_.max_share, std::numeric_limits<double>::max());
    comparison.by_float64 = by_float64_;
    return comparison;
  }

 private:
  [[nodiscard]] bool same_kind(NodeKind a, NodeKind b) const noexcept {
    const auto is_sequence = [](NodeKind k) { return k == NodeKind::list || k == NodeKind::tuple; };
    return a == b || (standard_.sequences_are_alike() && is_sequence(a) && is_sequence(b));
  }

  void compare_sequences(const Node& expected, const Node& got, const std::string& path) {
    if (expected.items.size() != got.items.size()) return note_structure(expected, got, path);
    for (std::size_t i = 0; i < expected.items.size(); ++i) {
      compare_nodes(expected.items[i], got.items[i], fmt::format("{}[{}]", path, i));
    }
  }

  void compare_dicts(const Node& expected, const Node& got, const std::string& path) {
    if (expected.items.size() != got.items.size()) return note_structure(expected, got, path);
    std::vector<const Node*> partners;
    for (const std::string& key : expected.keys) {
      const auto found = std::find(got.keys.begin(), got.keys.end(), key);
      if (found == got.keys.end()) return note_structure(expected, got, path);
      partners.push_back(&got.items[static_cast<std::size_t>(found - got.keys.begin())]);
    }
    for (std::size_t i = 0; i < partners.size(); ++i) {
      compare_nodes(
          expected.items[i], *partners[i], fmt::format("{}['{}']", path, expected.keys[i]));
    }
  }

  void compare_tensor_leaves(const Node& expected, const Node& got, const std::string& path) {
    const value::Tensor& tensor = expected_.bundle->tensors[*expected.tensor];
    const value::Tensor& other = got_.bundle->tensors[*got.tensor];
    // A case's outputs are numbers of its text: they lie nowhere.
    if (!standard_.tolerance && tensor.device != other.device) {
      return note_device(tensor, other, path);
    }
    const ErrorBudget::Leaf* leaf = leaf_of(*expected.tensor);
    const bool is_alike = tensor.shape == other.shape && tensor.dtype == other.dtype;
    if (leaf != nullptr && is_alike) {
      by_float64_ = true;
      const value::Tensor& exact = standard_.exact->bundle->tensors[leaf->exact_tensor];
      note(compare_reals({exact, standard_.exact->block},
                         {other, got_.block},
                         {.absolute = leaf->allowed, .relative = 0},
                         sums_),
           path);
      return;
    }
    note(compare_tensors(
             {tensor, expected_.block}, {other, got_.block}, standard_.rules(tensor.dtype), sums_),
         path);
  }

  [[nodiscard]] const ErrorBudget::Leaf* leaf_of(std::uint32_t tensor) const {
    if (standard_.budget == nullptr || tensor >= standard_.budget->leaves.size()) return nullptr;
    const auto& leaf = standard_.budget->leaves[tensor];
    return leaf ? &*leaf : nullptr;
  }

  void compare_numbers(const Node& expected, const Node& got, const std::string& path) {
    const auto expected_number = parse_scalar(expected);
    const auto got_number = parse_scalar(got);
    if (!expected_number || !got_number) return compare_texts(expected, got, path);
    note(compare_tensors(expected_number->view(),
                         got_number->view(),
                         standard_.rules(precision_of(*expected_number)),
                         sums_),
         path);
  }

  void compare_texts(const Node& expected, const Node& got, const std::string& path) {
    if (expected.text == got.text) return;
    task::Mismatch mismatch;
    mismatch.kind = task::MismatchKind::value;
    mismatch.expected = expected.text;
    mismatch.got = got.text;
    mismatch.wrong_count = 1;
    mismatch.element_count = 1;
    note(std::move(mismatch), path);
  }

  void note_device(const value::Tensor& expected,
                   const value::Tensor& got,
                   const std::string& path) {
    const auto describe = [](const value::Tensor& tensor) {
      return tensor.device == value::Device::cuda ? "a tensor on the GPU" : "a tensor on the CPU";
    };
    task::Mismatch mismatch;
    mismatch.kind = task::MismatchKind::device;
    mismatch.expected = describe(expected);
    mismatch.got = describe(got);
    note(std::move(mismatch), path);
  }

  void note_structure(const Node& expected, const Node& got, const std::string& path) {
    task::Mismatch mismatch;
    mismatch.kind = task::MismatchKind::structure;
    mismatch.expected = describe_node(expected, expected_);
    mismatch.got = describe_node(got, got_);
    note(std::move(mismatch), path);
  }

  void note(std::optional<task::Mismatch> mismatch, const std::string& path) {
    if (!mismatch || first_) return;
    first_ = std::move(mismatch);
    first_->path = path;
  }

  value::View expected_;
  value::View got_;
  Standard standard_;
  ErrorSums sums_;
  bool by_float64_ = false;
  std::optional<task::Mismatch> first_;
};

task::Comparison compare_by(const Standard& standard,
                            const value::View& expected,
                            const value::View& got) {
  Comparer comparer(expected, got, standard);
  comparer.compare_nodes(expected.bundle->root, got.bundle->root, "output");
  return comparer.take_result();
}

}  // namespace

task::Comparison compare(const value::View& expected,
                         const value::View& got,
                         task::Correctness correctness) {
  return compare_by({.correctness = correctness}, expected, got);
}

task::Comparison compare(const value::View& expected,
                         const value::View& got,
                         const Tolerance& tolerance) {
  return compare_by({.tolerance = tolerance}, expected, got);
}

task::Comparison compare(const value::View& expected,
                         const value::View& exact,
                         const ErrorBudget& budget,
                         const value::View& got) {
  return compare_by({.budget = &budget, .exact = &exact}, expected, got);
}

}  // namespace drk::judge
