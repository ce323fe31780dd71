// SPDX-License-Identifier: Apache-2.0
// Sentences for people, from what was observed.
#pragma once

#include "drk/task/verdict.h"

#include <string>

namespace drk::task {

/// "output[1]: at [3, 7] expected 0.31, got 0.25 (allowed error 0.0001); 12 of 4096 elements are
/// wrong", "output: expected shape [2, 3], got [3, 2]".
[[nodiscard]] std::string describe(const Mismatch& mismatch);
/// The failure inside an outcome, where it has one.
[[nodiscard]] const Failure* failure_of(const Outcome& outcome) noexcept;
/// "ValueError: bad width" of a failure with an exception, else its one sentence.
[[nodiscard]] std::string describe(const Failure& failure);

}  // namespace drk::task
