// SPDX-License-Identifier: Apache-2.0
// Layout of bundles, and descriptions that a hostile process could send.
#include "drk/value.h"

#include "drk/base/json.h"

#include "base/error_matchers.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>

namespace drk::value {
namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

Tensor make(DType dtype, std::vector<std::int64_t> shape) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.strides = dense_strides(shape);
  tensor.shape = std::move(shape);
  return tensor;
}

Node leaf(std::uint32_t index) {
  Node node;
  node.kind = NodeKind::tensor;
  node.tensor = index;
  return node;
}

TEST(SizeBytes, KnowsEveryDtype) {
  const struct {
    DType dtype;
    DTypeClass dtype_class;
    std::size_t bytes;
    const char* torch_name;
  } cases[] = {
      {DType::float64, DTypeClass::real, 8, "torch.float64"},
      {DType::float32, DTypeClass::real, 4, "torch.float32"},
      {DType::float16, DTypeClass::real, 2, "torch.float16"},
      {DType::bfloat16, DTypeClass::real, 2, "torch.bfloat16"},
      {DType::float8_e4m3fn, DTypeClass::real, 1, "torch.float8_e4m3fn"},
      {DType::float8_e5m2, DTypeClass::real, 1, "torch.float8_e5m2"},
      {DType::complex128, DTypeClass::complex, 16, "torch.complex128"},
      {DType::complex64, DTypeClass::complex, 8, "torch.complex64"},
      {DType::complex32, DTypeClass::complex, 4, "torch.complex32"},
      {DType::int64, DTypeClass::integer, 8, "torch.int64"},
      {DType::int32, DTypeClass::integer, 4, "torch.int32"},
      {DType::int16, DTypeClass::integer, 2, "torch.int16"},
      {DType::int8, DTypeClass::integer, 1, "torch.int8"},
      {DType::uint64, DTypeClass::integer, 8, "torch.uint64"},
      {DType::uint32, DTypeClass::integer, 4, "torch.uint32"},
      {DType::uint16, DTypeClass::integer, 2, "torch.uint16"},
      {DType::uint8, DTypeClass::integer, 1, "torch.uint8"},
      {DType::bool_, DTypeClass::boolean, 1, "torch.bool"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(size_bytes(c.dtype), c.bytes) << c.torch_name;
    EXPECT_EQ(class_of(c.dtype), c.dtype_class) << c.torch_name;
    EXPECT_EQ(torch_name(c.dtype), c.torch_name);
  }
}

TEST(ExtentBytes, CountsGapsButNotRepeats) {
  Tensor tensor = make(DType::float32, {2, 3});
  EXPECT_EQ(extent_bytes(tensor), 24U);
  tensor.strides = {8, 2};  // last element at 8 + 4
  EXPECT_EQ(extent_bytes(tensor), 52U);
  tensor.strides = {0, 1};  // expanded rows
  EXPECT_EQ(extent_bytes(tensor), 12U);
  tensor.shape = {2, 0};
  EXPECT_EQ(extent_bytes(tensor), 0U);
  EXPECT_EQ(extent_bytes(make(DType::complex128, {})), 16U);
}

TEST(Sizes, AreTheLargestNumberWhereTheyCannotBeCounted) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const Tensor wide = make(DType::float32, {1LL << 31, 1LL << 31});  // 2^62 elements, 2^64 bytes
  EXPECT_EQ(element_count(wide), 1LL << 62);
  EXPECT_EQ(extent_bytes(wide), kMost);
  EXPECT_EQ(extent_bytes(make(DType::float32, {1LL << 62})), kMost);
  EXPECT_EQ(extent_bytes(make(DType::int8, {1LL << 62})), std::uint64_t{1} << 62);
  const Tensor wider = make(DType::int8, {1LL << 40, 1LL << 40});
  EXPECT_EQ(element_count(wider), kHuge);
  EXPECT_EQ(extent_bytes(wider), kMost);
  const Tensor deep = make(DType::int8, {2, 1LL << 40, 1LL << 40});
  EXPECT_EQ(deep.strides, (std::vector<std::int64_t>{kHuge, 1LL << 40, 1}));
  const Tensor empty = make(DType::float32, {1LL << 40, 1LL << 40, 0});
  EXPECT_EQ(element_count(empty), 0);
  EXPECT_EQ(extent_bytes(empty), 0U);
}

TEST(DenseStrides, AreRowMajor) {
  EXPECT_EQ(dense_strides(std::vector<std::int64_t>{2, 3, 4}),
            (std::vector<std::int64_t>{12, 4, 1}));
  EXPECT_TRUE(dense_strides({}).empty());
}

TEST(Describe, ReadsLikePython) {
  EXPECT_EQ(describe(make(DType::float32, {2, 3})), "float32[2, 3]");
  EXPECT_EQ(describe(make(DType::bool_, {})), "bool[]");
}

TEST(LayOut, AlignsEveryTensorAndOverlapsNone) {
  Bundle bundle;
  bundle.tensors = {make(DType::float32, {65}),  // 260 bytes
                    make(DType::float32, {0}),
                    make(DType::int8, {1}),
                    make(DType::float64, {})};
  lay_out(bundle);
  EXPECT_EQ(bundle.tensors[0].offset_bytes, 0U);
  EXPECT_EQ(bundle.tensors[1].offset_bytes, 512U);
  EXPECT_EQ(bundle.tensors[2].offset_bytes, 512U);
  EXPECT_EQ(bundle.tensors[3].offset_bytes, 768U);
  EXPECT_EQ(bundle.block_bytes, 1024U);
  EXPECT_NO_THROW(check(bundle, 1024));
}

TEST(LayOut, NeverFitsWhatCannotBeCountedIntoAFewBytes) {
  const Tensor half = make(DType::int8, {kHuge});  // 2^63 - 1 bytes
  const std::vector<Tensor> cases[] = {{make(DType::float32, {1LL << 62})},
                                       {half, half, half},
                                       {half, half, make(DType::int8, {4})}};
  for (const auto& tensors : cases) {
    Bundle bundle;
    bundle.tensors = tensors;
    lay_out(bundle);
    EXPECT_GE(bundle.block_bytes, std::uint64_t{1} << 63) << tensors.size();
    EXPECT_TRUE(throws_error(ErrorCode::corrupt, "smaller than announced", [&] {
      check(bundle, std::uint64_t{1} << 40);
    })) << tensors.size();
  }
}

TEST(ForEachLeaf, SpellsPathsLikePython) {
  Node dict;
  dict.kind = NodeKind::dict;
  dict.keys = {"mean", "parts"};
  Node tuple;
  tuple.kind = NodeKind::tuple;
  tuple.items = {Node{}, leaf(0)};
  dict.items = {leaf(1), tuple};
  std::vector<std::string> paths;
  for_each_leaf(
      dict, "output", [&](const std::string& path, const Node&) { paths.push_back(path); });
  EXPECT_EQ(
      paths,
      (std::vector<std::string>{"output['mean']", "output['parts'][0]", "output['parts'][1]"}));
}

TEST(Bundle, SurvivesJson) {
  Bundle bundle;
  bundle.root.kind = NodeKind::dict;
  bundle.root.keys = {"a"};
  bundle.root.items = {leaf(0)};
  bundle.tensors = {make(DType::bfloat16, {2, 2})};
  lay_out(bundle);
  EXPECT_EQ(json::from_json<Bundle>(json::parse(json::dump(json::to_json(bundle)))), bundle);
}

/// A sound bundle of one float32[4, 4] in a block of 256 bytes, to be spoilt.
Bundle sound() {
  Bundle bundle;
  bundle.tensors = {make(DType::float32, {4, 4})};
  bundle.root = leaf(0);
  lay_out(bundle);
  return bundle;
}

TEST(Check, AcceptsSoundBundles) {
  EXPECT_NO_THROW(check(sound(), 256));
  EXPECT_NO_THROW(check(sound(), 4096)) << "a larger block does no harm";
  EXPECT_NO_THROW(check(Bundle{}, 0)) << "None needs no memory";
  Bundle expanded = sound();
  expanded.tensors[0].shape = {1'000'000, 1'000'000};
  expanded.tensors[0].strides = {0, 0};
  EXPECT_NO_THROW(check(expanded, 256)) << "one element, seen often";
}

TEST(Check, AcceptsTensorsWithoutElements) {
  Bundle bundle = sound();
  bundle.tensors[0] = make(DType::float32, {3, 0, 1000});
  EXPECT_NO_THROW(check(bundle, 256));
  EXPECT_EQ(element_count(bundle.tensors[0]), 0);
  bundle.tensors[0] = make(DType::float32, {1LL << 40, 0, 1LL << 40});
  EXPECT_NO_THROW(check(bundle, 256)) << "torch makes such";
}

TEST(Check, RefusesWhatDoesNotFit) {
  const struct {
    const char* what;
    std::function<void(Bundle&)> spoil;
    const char* error;
  } cases[] = {
      {"announces more", [](Bundle& b) { b.block_bytes = 257; }, "smaller than announced"},
      {"one element too many",
       [](Bundle& b) { b.tensors[0] = make(DType::float32, {65}); },
       "does not fit the block"},
      {"wider elements",
       [](Bundle& b) {
         b.tensors[0].dtype = DType::complex128;
         b.tensors[0].shape = {17};
         b.tensors[0].strides = {1};
       },
       "does not fit the block"},
      {"strides too far",
       [](Bundle& b) {
         b.tensors[0].strides = {20, 2};
       },
       "does not fit the block"},
      {"offset at the end",
       [](Bundle& b) { b.tensors[0].offset_bytes = 256; },
       "does not fit the block"},
      {"offset near 2^64",
       [](Bundle& b) { b.tensors[0].offset_bytes = 0xFFFFFFFFFFFFFF00U; },
       "behind its block"},
      {"misaligned", [](Bundle& b) { b.tensors[0].offset_bytes = 8; }, "misaligned"},
      {"empty, far away",
       [](Bundle& b) {
         b.tensors[0] = make(DType::float32, {0});
         b.tensors[0].offset_bytes = 0x100000;
       },
       "behind its block"},
  };
  for (const auto& c : cases) {
    Bundle bundle = sound();
    c.spoil(bundle);
    EXPECT_TRUE(throws_error(ErrorCode::corrupt, c.error, [&] { check(bundle, 256); })) << c.what;
  }
}

TEST(Check, RefusesShapesAndStridesThatOverflow) {
  const struct {
    const char* what;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;
    const char* error;
  } cases[] = {
      {"product wraps to 0", {1LL << 32, 1LL << 32}, {0, 0}, "too many elements"},
      {"product wraps to 4", {1LL << 31, (1LL << 33) + 1}, {0, 0}, "too many elements"},
      {"one size at the limit", {kHuge}, {1}, "too many elements"},
      {"bytes wrap to 0", {1LL << 62}, {1}, "too many elements"},
      {"bytes wrap to 0, expanded", {1LL << 62}, {0}, "too many elements"},
      {"bytes wrap to 0, by two", {1LL << 31, 1LL << 31}, {1LL << 31, 1}, "too many elements"},
      {"nothing in it, but for a sign", {0, -1}, {1, 1}, "negative size or stride"},
      {"stride product wraps", {3, 4}, {kHuge / 2 + 2, 1}, "extent out of range"},
      {"sum of extents wraps", {2, 2, 2}, {kHuge / 4, kHuge / 4, kHuge / 4}, "extent out of range"},
      {"last element at 2^60", {2}, {1LL << 60}, "does not fit"},
      {"negative size", {-1}, {1}, "negative size or stride"},
      {"negative stride", {4}, {-1}, "negative size or stride"},
      {"both negative", {-4, -4}, {-1, -1}, "negative size or stride"},
      {"fewer strides", {2, 2}, {1}, "differ in length"},
      {"more strides", {2}, {1, 1}, "differ in length"},
      {"too many dimensions",
       std::vector<std::int64_t>(65, 1),
       std::vector<std::int64_t>(65, 1),
       "more than 64 dimensions"},
  };
  for (const auto& c : cases) {
    Bundle bundle = sound();
    bundle.tensors[0].shape = c.shape;
    bundle.tensors[0].strides = c.strides;
    EXPECT_TRUE(throws_error(ErrorCode::corrupt, c.error, [&] { check(bundle, 256); })) << c.what;
  }
}

TEST(Check, RefusesTreesThatPointNowhere) {
  const struct {
    const char* what;
    std::function<void(Bundle&)> spoil;
    const char* error;
  } cases[] = {
      {"index at the end", [](Bundle& b) { b.root = leaf(1); }, "not there"},
      {"index at 2^32 - 1", [](Bundle& b) { b.root = leaf(0xFFFFFFFF); }, "not there"},
      {"no index", [](Bundle& b) { b.root.tensor.reset(); }, "not there"},
      {"deep inside",
       [](Bundle& b) {
         Node list;
         list.kind = NodeKind::list;
         list.items = {leaf(0), leaf(7)};
         b.root = list;
       },
       "not there"},
      {"hidden in a scalar",
       [](Bundle& b) {
         b.root.kind = NodeKind::integer;
         b.root.items = {leaf(9)};
       },
       "not there"},
      {"keys without values",
       [](Bundle& b) {
         b.root.kind = NodeKind::dict;
         b.root.keys = {"a", "b"};
         b.root.items = {leaf(0)};
       },
       "unequal numbers"},
      {"a tower of lists",
       [](Bundle& b) {
         for (int i = 0; i < 66; ++i) {
           Node list;
           list.kind = NodeKind::list;
           list.items = {b.root};
           b.root = list;
         }
       },
       "nested deeper"},
  };
  for (const auto& c : cases) {
    Bundle bundle = sound();
    c.spoil(bundle);
    EXPECT_TRUE(throws_error(ErrorCode::corrupt, c.error, [&] { check(bundle, 256); })) << c.what;
  }
}

TEST(FewChanges, GiveTwoElementsOfEachRealTensorAnothersValue) {
  Bundle bundle;
  bundle.tensors.push_back({DType::float32, {4, 100}, {100, 1}, 0, false, {}});
  bundle.tensors.push_back({DType::int64, {50}, {1}, 0, false, {}});
  bundle.tensors.push_back({DType::float64, {1}, {1}, 0, false, {}});
  bundle.tensors.push_back({DType::bfloat16, {8, 3}, {3, 1}, 0, false, {}});
  lay_out(bundle);
  std::vector<std::byte> before(bundle.block_bytes);
  for (std::size_t i = 0; i < before.size(); ++i) before[i] = static_cast<std::byte>(i * 31 % 251);
  const std::vector<Change> changes = few_changes(bundle, 7);
  ASSERT_EQ(changes.size(), 4U) << "none of integers, none where there is one element";
  std::vector<std::byte> after = before;
  apply(changes, before, after);
  std::size_t differ = 0;
  for (std::size_t i = 0; i < before.size(); ++i) differ += before[i] != after[i] ? 1 : 0;
  EXPECT_GT(differ, 0U);
  EXPECT_LE(differ, 2 * sizeof(float) + 2 * 2);
  for (const Change& change : changes) {
    EXPECT_NE(change.to_bytes, change.from_bytes);
    EXPECT_EQ(0,
              std::memcmp(&after[change.to_bytes], &before[change.from_bytes], change.size_bytes));
  }
  EXPECT_NE(few_changes(bundle, 8).front().to_bytes, changes.front().to_bytes);
}

TEST(FewChanges, StayWithinStridedTensors) {
  Bundle bundle;
  bundle.tensors.push_back({DType::float32, {5, 3}, {16, 2}, 0, false, {}});
  lay_out(bundle);
  for (std::uint64_t seed = 1; seed < 200; ++seed) {
    for (const Change& change : few_changes(bundle, seed)) {
      EXPECT_LE(change.to_bytes + sizeof(float), extent_bytes(bundle.tensors[0]));
      EXPECT_EQ(change.to_bytes % (2 * sizeof(float)), 0U) << "a gap between elements";
    }
  }
}

}  // namespace
}  // namespace drk::value
