// SPDX-License-Identifier: Apache-2.0
// From observations to a verdict: pure functions, no process, no clock, no GPU.
#pragma once

#include "drk/task/verdict.h"
#include "drk/value.h"

#include <span>
#include <string>
#include <vector>

namespace drk::judge {

/// The absolute error allowed at an element: `atol * unit + rtol * |expected|`. The unit is 1, or,
/// when `atol_of_spread` is set, the standard deviation of the expected tensor's finite elements;
/// where they are all equal, their magnitude; where they are all zero, 1e-2.
struct Tolerance {
  double atol = 0;
  double rtol = 0;
  bool atol_of_spread = false;
};
[[nodiscard]] Tolerance tolerance_for(value::DType dtype, task::Correctness correctness) noexcept;

/// Compares a candidate's output with the expected one, leaf by leaf: structure, shape, dtype, NaN
/// and infinity placement, values. Both views must have passed value::check. Returns the first leaf
/// that is wrong, with its first wrong element in row-major order, and the error statistics of all
/// finite pairs of elements of comparable leaves (a pair whose expected value is 0 has no relative
/// error).
///
///   strict     Integers, booleans, texts and the type of a sequence exactly; the rest by
///              tolerance_for. NaN equals NaN in the same place. Python's floats are judged as
///              float32 when they are one (what .item() gave), else as float64.
///   kernelgym  As KernelBench's torch.allclose(rtol = atol = 1e-2): integers by tolerance too,
///              NaN equals nothing, a list passes for a tuple. Another dtype is a mismatch here as
///              well: torch.allclose refuses it.
[[nodiscard]] task::Comparison compare(const value::View& expected,
                                       const value::View& got,
                                       task::Correctness correctness);
/// The same by a tolerance of the problem's own: real and complex numbers by `tolerance`, whatever
/// their dtype; integers, booleans and texts exactly; NaN equals NaN in the same place; a list
/// passes for a tuple.
[[nodiscard]] task::Comparison compare(const value::View& expected,
                                       const value::View& got,
                                       const Tolerance& tolerance);

/// How far from float64's answer an output may be, by the index of the expected tensor: the larger
/// of
///
///   8 times the reference's own largest error, and
///   eps(dtype) * sqrt(reduction length) * sqrt(mean |answer|^2).
///
/// Not the spread: rounding is as large as the numbers are, also where they hardly differ.
///
/// Tensors of float32, float64 and their complex kin have one; all else is judged as without.
struct ErrorBudget {
  struct Leaf {
    std::uint32_t exact_tensor = 0;  ///< Index in the answer's bundle.
    double allowed = 0;              ///< Absolute, the same for each element.
  };
  std::vector<std::optional<Leaf>> leaves;
};
/// Empty where `exact` is no float64 answer to the same question: other structure, other dtypes,
/// NaN or infinities elsewhere, or so far from `expected` that something else was computed (a draw
/// of random numbers, a branch). `reduction_length` is at least 1.
[[nodiscard]] std::optional<ErrorBudget> error_budget(const value::View& expected,
                                                      const value::View& exact,
                                                      double reduction_length);
/// As strict, with the answer in float64 in the place of `expected` where the budget has a leaf.
[[nodiscard]] task::Comparison compare(const value::View& expected,
                                       const value::View& exact,
                                       const ErrorBudget& budget,
                                       const value::View& got);

/// How many numbers may go into one element of an output, by the shapes alone: the longest
/// dimension of an input, up to 65536 (nobody knows whether it is summed over), or so many times
/// more elements as the inputs have; at least 4096, for what weights add and for functions that are
/// computed in several steps.
[[nodiscard]] double reduction_length(const value::Bundle& inputs, const value::Bundle& output);

/// No NaN and no infinity in any real or complex tensor.
[[nodiscard]] bool is_finite(const value::View& view);

/// Elements of floating or integer tensors of which every bit is set: NaN, or -1.
[[nodiscard]] std::uint64_t count_all_bits_set(const value::View& view);

/// The inputs whose bytes differ between `before` and `after`: "inputs[0]", ... The root alone if
/// the two are not laid out alike.
[[nodiscard]] std::vector<std::string> changed_leaves(const value::View& before,
                                                      const value::View& after,
                                                      const std::string& root_name);

/// Robust statistics of timed calls. Quantiles are linear between the two nearest ranks (NumPy's
/// default); the interval of the median holds with at least 95 % by the binomial distribution of
/// ranks. `samples_us` must not be empty.
[[nodiscard]] task::Timing summarize(std::span<const double> samples_us, const std::string& clock);

/// What each reason does to a verdict under a policy: the one table.
[[nodiscard]] task::Severity severity_of(task::Reason reason, const task::Policy& policy) noexcept;

/// docs/findings.md, made of that table.
[[nodiscard]] std::string findings_page();

/// The verdict. Deterministic in its arguments, so stored observations can be judged again.
///
/// What comes first decides: an invalid task; a reference that fails; a candidate that fails; a
/// degenerate problem; a finding that cannot be a mistake (written inputs, tampering, a lazy
/// output); a wrong output; any other rejecting finding. Without a GPU nobody knows a kernel's
/// share of the time, so there `ownership = strict` asks no more than `mixed`. Differences of
/// parameters are reported among the observations and not judged. Where no trial had anything to
/// compare with, what is accepted is accepted unchecked.
[[nodiscard]] task::Verdict decide(const task::Observations& observations, const task::Task& task);

}  // namespace drk::judge
