// SPDX-License-Identifier: Apache-2.0
// Observations to findings.
#pragma once

#include "drk/task/verdict.h"

#include <vector>

namespace drk::judge {

/// What was seen while the candidate ran, as far as it came: wrong output first, then what it did
/// to its inputs, its kernels, its processes, the sandbox.
[[nodiscard]] std::vector<task::Finding> find(const task::Observations& observations,
                                              const task::Policy& policy);

}  // namespace drk::judge
