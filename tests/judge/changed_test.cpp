// SPDX-License-Identifier: Apache-2.0
// Inputs that a call has written to.
#include "drk/judge.h"

#include "judge/values.h"

#include <gtest/gtest.h>

#include <limits>

namespace drk::judge {
namespace {

using value::DType;
using value::NodeKind;

/// Two float32 tensors, an int and a dict with one more, as get_inputs would give them.
struct Inputs {
  Values values;
  value::View view = values.root(sequence(
      NodeKind::list,
      {values.dense<float>(DType::float32, {2}, {1, std::numeric_limits<float>::quiet_NaN()}),
       scalar(NodeKind::integer, "3"),
       dict({{"mask", values.dense<std::uint8_t>(DType::bool_, {4}, {0, 1, 0, 1})}}),
       // Two rows of two, with a gap of one element between them.
       values.strided<float>(DType::float32, {2, 2}, {3, 1}, {1, 2, 99, 3, 4})}));

  std::byte& byte_of(std::size_t tensor, std::size_t offset) {
    return values.block()[view.bundle->tensors[tensor].offset_bytes + offset];
  }
};

TEST(ChangedLeaves, FindsNothingInAnUntouchedCopy) {
  EXPECT_TRUE(changed_leaves(Inputs().view, Inputs().view, "inputs").empty());
}

TEST(ChangedLeaves, NamesEveryLeafThatChanged) {
  Inputs before;
  Inputs after;
  after.byte_of(0, 3) ^= std::byte{0x80};
  after.byte_of(1, 2) = std::byte{1};
  EXPECT_EQ(changed_leaves(before.view, after.view, "inputs"),
            (std::vector<std::string>{"inputs[0]", "inputs[2]['mask']"}));
}

TEST(ChangedLeaves, ComparesBytesNotNumbers) {
  Inputs before;
  Inputs after;
  after.byte_of(0, 4) = std::byte{1};  // another NaN
  EXPECT_EQ(changed_leaves(before.view, after.view, "inputs"),
            (std::vector<std::string>{"inputs[0]"}));
}

TEST(ChangedLeaves, SeesTheLastElementOfAStridedTensorButNothingBehindIt) {
  Inputs before;
  Inputs after;
  after.byte_of(2, 5 * sizeof(float)) = std::byte{7};  // padding behind the extent
  EXPECT_TRUE(changed_leaves(before.view, after.view, "inputs").empty());
  after.byte_of(2, 5 * sizeof(float) - 1) = std::byte{7};
  EXPECT_EQ(changed_leaves(before.view, after.view, "inputs"),
            (std::vector<std::string>{"inputs[3]"}));
}

TEST(ChangedLeaves, TakesAnotherLayoutForAChangeOfAll) {
  Inputs before;
  Values other;
  const value::View after = other.root(scalar(NodeKind::none));
  EXPECT_EQ(changed_leaves(before.view, after, "inputs"), (std::vector<std::string>{"inputs"}));
}

TEST(ChangedLeaves, IgnoresTensorsWithoutElements) {
  Values a;
  Values b;
  const auto empty = [](Values& values) {
    return values.root(values.dense<float>(DType::float32, {0, 5}, {}));
  };
  EXPECT_TRUE(changed_leaves(empty(a), empty(b), "inputs").empty());
}

}  // namespace
}  // namespace drk::judge
