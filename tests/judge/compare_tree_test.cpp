// SPDX-License-Identifier: Apache-2.0
// Structure, scalars, shapes and dtypes of two trees.
#include "drk/base/json.h"
#include "drk/judge.h"

#include "judge/values.h"

#include <gtest/gtest.h>

#include <limits>

namespace drk::judge {
namespace {

using task::Correctness;
using value::DType;
using value::Node;
using value::NodeKind;

const std::vector<float> kOneTwo{1, 2};

/// One tensor float32[2] beside the tree, so that trees can point at it as index 0.
struct Tree {
  Values values;
  Node tensor = values.dense(DType::float32, {2}, kOneTwo);
};

std::string outcome_of(const task::Comparison& comparison) {
  if (!comparison.mismatch) return "equal";
  const task::Mismatch& m = *comparison.mismatch;
  return m.path + ": " + json::name_of(m.kind) + ": " + m.expected + " | " + m.got;
}

std::string outcome_of(const Node& expected, const Node& got, Correctness correctness) {
  Tree a;
  Tree b;
  return outcome_of(compare(a.values.root(expected), b.values.root(got), correctness));
}

Node tensor() {
  return Tree().tensor;
}
Node real(const char* text) {
  return scalar(NodeKind::real, text);
}
Node integer(const char* text) {
  return scalar(NodeKind::integer, text);
}
Node list(std::vector<Node> items) {
  return sequence(NodeKind::list, std::move(items));
}
Node tuple(std::vector<Node> items) {
  return sequence(NodeKind::tuple, std::move(items));
}

TEST(CompareTrees, EqualTreesHaveNoMismatch) {
  const Node trees[] = {
      scalar(NodeKind::none),
      scalar(NodeKind::boolean, "true"),
      integer("123456789012345678901234567890"),
      real("1.5"),
      real("nan"),
      real("-inf"),
      scalar(NodeKind::complex, "1.5,-nan"),
      scalar(NodeKind::text, "mean"),
      scalar(NodeKind::dtype, "torch.float32"),
      tensor(),
      list({}),
      tuple({}),
      dict({}),
      tuple({tensor(), list({integer("1"), dict({{"a", tensor()}})})}),
  };
  for (const Node& tree : trees) {
    EXPECT_EQ(outcome_of(tree, tree, Correctness::strict), "equal") << json::name_of(tree.kind);
  }
}

TEST(CompareTrees, SaysWhatStandsWhereSomethingElseWasExpected) {
  const struct {
    Node expected;
    Node got;
    const char* outcome = nullptr;
  } cases[] = {
      {tensor(), scalar(NodeKind::none), "output: structure: a tensor float32[2] | None"},
      {tensor(), real("1.5"), "output: structure: a tensor float32[2] | the float 1.5 (no tensor)"},
      {integer("1"),
       real("1"),
       "output: structure: the int 1 (no tensor) | the float 1 (no tensor)"},
      {integer("1"),
       scalar(NodeKind::boolean, "true"),
       "output: structure: the int 1 (no tensor) | the bool true (no tensor)"},
      {real("1"), tensor(), "output: structure: the float 1 (no tensor) | a tensor float32[2]"},
      {tuple({tensor()}), tensor(), "output: structure: a tuple of 1 | a tensor float32[2]"},
      {tuple({tensor()}), list({tensor()}), "output: structure: a tuple of 1 | a list of 1"},
      {list({tensor()}), list({}), "output: structure: a list of 1 | a list of 0"},
      {list({tensor(), tuple({integer("1")})}),
       list({tensor(), tuple({real("1")})}),
       "output[1][0]: structure: the int 1 (no tensor) | the float 1 (no tensor)"},
      {dict({{"mean", tensor()}}),
       dict({{"var", tensor()}}),
       "output: structure: a dict with 1 keys: 'mean' | a dict with 1 keys: 'var'"},
      {dict({{"mean", tensor()}}),
       dict({}),
       "output: structure: a dict with 1 keys: 'mean' | an empty dict"},
      {dict({{"mean", tensor()}}),
       dict({{"mean", tensor()}, {"var", tensor()}}),
       "output: structure: a dict with 1 keys: 'mean' | a dict with 2 keys: 'mean', 'var'"},
      {dict({{"a", tensor()}, {"b", tensor()}}),
       dict({{"a", tensor()}, {"a", tensor()}}),
       "output: structure: a dict with 2 keys: 'a', 'b' | a dict with 2 keys: 'a', 'a'"},
      {scalar(NodeKind::dtype, "torch.float32"),
       scalar(NodeKind::text, "torch.float32"),
       "output: structure: torch.float32 | the str torch.float32 (no tensor)"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(outcome_of(c.expected, c.got, Correctness::strict), c.outcome);
  }
}

TEST(CompareTrees, AScalarIsNoTensorWithoutDimensions) {
  Values a;
  Values b;
  const auto comparison = compare(
      a.root(a.dense<float>(DType::float32, {}, {1.5F})), b.root(real("1.5")), Correctness::strict);
  EXPECT_EQ(outcome_of(comparison),
            "output: structure: a tensor float32[] | the float 1.5 (no tensor)");
}

TEST(CompareTrees, OnlyKernelGymTakesListsForTuples) {
  const Node a = tuple({tensor(), list({integer("1")})});
  const Node b = list({tensor(), tuple({integer("1")})});
  EXPECT_EQ(outcome_of(a, b, Correctness::kernelgym), "equal");
  EXPECT_EQ(outcome_of(a, b, Correctness::strict), "output: structure: a tuple of 2 | a list of 2");
  EXPECT_EQ(outcome_of(tuple({tensor()}), dict({{"0", tensor()}}), Correctness::kernelgym),
            "output: structure: a tuple of 1 | a dict with 1 keys: '0'");
}

TEST(CompareTrees, KeysOfADictHaveNoOrder) {
  const Node expected = dict({{"a", integer("1")}, {"b", integer("2")}});
  EXPECT_EQ(
      outcome_of(expected, dict({{"b", integer("2")}, {"a", integer("1")}}), Correctness::strict),
      "equal");
  EXPECT_EQ(
      outcome_of(expected, dict({{"b", integer("1")}, {"a", integer("2")}}), Correctness::strict),
      "output['a']: value: 1 | 2");
}

TEST(CompareTrees, ScalarsAreExactButForRealNumbers) {
  const struct {
    Node expected;
    Node got;
    const char* outcome = nullptr;
  } cases[] = {
      {integer("9007199254740993"),
       integer("9007199254740992"),
       "output: value: 9007199254740993 | 9007199254740992"},
      {scalar(NodeKind::boolean, "true"),
       scalar(NodeKind::boolean, "false"),
       "output: value: true | false"},
      {scalar(NodeKind::text, "mean"),
       scalar(NodeKind::text, "Mean"),
       "output: value: mean | Mean"},
      {scalar(NodeKind::dtype, "torch.float32"),
       scalar(NodeKind::dtype, "torch.float16"),
       "output: value: torch.float32 | torch.float16"},
      // 0.1 is no float32: computed in double precision, and judged so.
      {real("0.1"), real("0.10000000001"), "equal"},
      {real("0.1"), real("0.1000001"), "output: value: 0.1 | 0.1000001"},
      // What .item() gives of a float32 tensor.
      {real("0.10000000149011612"), real("0.10000000894069672"), "equal"},
      {real("0.5"), real("0.50001"), "equal"},
      {real("0.5"), real("0.5002"), "output: value: 0.5 | 0.5002"},
      {real("0"), real("1e-07"), "equal"},
      {real("0"), real("1e-05"), "output: value: 0 | 1e-05"},
      {real("nan"), real("1"), "output: nan: nan (1 NaN in all) | 1 (0 NaN in all)"},
      {real("inf"),
       real("-inf"),
       "output: infinity: inf (1 infinite in all) | -inf (1 infinite in all)"},
      {scalar(NodeKind::complex, "3,4"), scalar(NodeKind::complex, "3.0001,4"), "equal"},
      {scalar(NodeKind::complex, "3,4"),
       scalar(NodeKind::complex, "3,-4"),
       "output: value: 3+4j | 3-4j"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(outcome_of(c.expected, c.got, Correctness::strict), c.outcome);
  }
}

TEST(CompareTrees, NumbersThatCannotBeReadAreWrong) {
  for (const char* text : {"", "1.5x", "0x10", "1,2,3", " 1.5"}) {
    EXPECT_EQ(outcome_of(real("1.5"), real(text), Correctness::strict),
              std::string("output: value: 1.5 | ") + text);
    EXPECT_NE(
        outcome_of(
            scalar(NodeKind::complex, "1,2"), scalar(NodeKind::complex, text), Correctness::strict),
        "equal");
  }
}

TEST(CompareTrees, ShapeComesBeforeDtypeBeforeValues) {
  Values a;
  Values b;
  const Node expected = a.dense<float>(DType::float32, {2, 1}, {1, 2});
  const struct {
    Node got;
    const char* outcome = nullptr;
  } cases[] = {
      {b.dense<double>(DType::float64, {2}, {9, 9}), "output: shape: [2, 1] | [2]"},
      {b.dense<double>(DType::float64, {2, 1}, {9, 9}),
       "output: dtype: torch.float32 | torch.float64"},
      {b.dense<std::int32_t>(DType::int32, {2, 1}, {1, 2}),
       "output: dtype: torch.float32 | torch.int32"},
      {b.dense<float>(DType::float32, {2, 1}, {1, 3}), "output: value: 2 | 3"},
      {b.dense<float>(DType::float32, {2, 1}, {1, 2}), "equal"},
  };
  for (const Correctness correctness : {Correctness::strict, Correctness::kernelgym}) {
    for (const auto& c : cases) {
      EXPECT_EQ(outcome_of(compare(a.root(expected), b.root(c.got), correctness)), c.outcome);
    }
  }
}

TEST(CompareTrees, TheFirstWrongLeafIsNamedAndAllComparableOnesCount) {
  Values a;
  Values b;
  const value::View expected = a.root(tuple({a.dense<float>(DType::float32, {2}, {1, 2}),
                                             a.dense<float>(DType::float32, {2}, {10, 20}),
                                             a.dense<float>(DType::float32, {2}, {4, 8})}));
  const value::View got = b.root(tuple({b.dense<float>(DType::float32, {2}, {1, 2}),
                                        b.dense<float>(DType::float32, {1}, {0}),
                                        b.dense<float>(DType::float32, {2}, {4, 6})}));
  const task::Comparison comparison = compare(expected, got, Correctness::strict);
  EXPECT_EQ(outcome_of(comparison), "output[1]: shape: [2] | [1]");
  EXPECT_EQ(comparison.max_abs_error, 2);
  EXPECT_EQ(comparison.max_rel_error, 0.25);
  EXPECT_EQ(comparison.mean_abs_error, 0.5) << "over the four elements that have a partner";
}

// --- by a tolerance of the problem's own ---

std::string outcome_within(const Tolerance& tolerance, const Node& expected, const Node& got) {
  Tree a;
  Tree b;
  return outcome_of(compare(a.values.root(expected), b.values.root(got), tolerance));
}

std::string tensors_within(const Tolerance& tolerance,
                           const std::vector<float>& expected,
                           const std::vector<float>& got) {
  Values a;
  Values b;
  const auto count = static_cast<std::int64_t>(expected.size());
  return outcome_of(compare(a.root(a.dense(DType::float32, {count}, expected)),
                            b.root(b.dense(DType::float32, {count}, got)),
                            tolerance));
}

TEST(CompareWithin, AllowsAbsoluteAndRelativeErrors) {
  EXPECT_EQ(tensors_within({.atol = 0.5, .rtol = 0}, {1, 100}, {1.5, 99.5}), "equal");
  EXPECT_EQ(tensors_within({.atol = 0.5, .rtol = 0}, {1, 100}, {1, 101}),
            "output: value: 100 | 101");
  EXPECT_EQ(tensors_within({.atol = 0, .rtol = 0.01}, {1, 100}, {1, 101}), "equal");
  EXPECT_EQ(tensors_within({.atol = 0, .rtol = 0.01}, {1, 100}, {1.02F, 100}),
            "output: value: 1 | 1.02");
}

TEST(CompareWithin, TakesNanForNanInTheSamePlace) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(tensors_within({}, {1, nan}, {1, nan}), "equal");
  EXPECT_NE(tensors_within({.atol = 9, .rtol = 9}, {1, nan}, {nan, 1}), "equal");
}

TEST(CompareWithin, WantsIntegersExactly) {
  const Tolerance wide{.atol = 9, .rtol = 9};
  EXPECT_EQ(outcome_within(wide, integer("3"), integer("4")), "output: value: 3 | 4");
  Values a;
  Values b;
  EXPECT_NE(outcome_of(compare(a.root(a.dense(DType::int32, {1}, std::vector<std::int32_t>{3})),
                               b.root(b.dense(DType::int32, {1}, std::vector<std::int32_t>{4})),
                               wide)),
            "equal");
}

TEST(CompareWithin, TakesATupleForAListAndFloatsByTolerance) {
  EXPECT_EQ(outcome_within({.atol = 0.5}, list({real("1.5")}), tuple({real("2")})), "equal");
  EXPECT_EQ(outcome_within({.atol = 0.4}, list({real("1.5")}), tuple({real("2")})),
            "output[0]: value: 1.5 | 2");
}

}  // namespace
}  // namespace drk::judge
