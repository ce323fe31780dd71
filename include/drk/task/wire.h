// SPDX-License-Identifier: Apache-2.0
// KernelGYM's wire interface: its request body to a Task, a Result to its result body. Pure.
#pragma once

#include "drk/base/json.h"
#include "drk/task/result.h"
#include "drk/task/task.h"

namespace drk::task {

/// The task of a POST /evaluate body, with that interface's ranges and defaults.
///
/// Unknown fields are ignored. Fields that steer the queue rather than the evaluation (priority,
/// device_preference, force_refresh, uuid, resources ...) are checked and then left to the caller.
/// `timeout` becomes limits.total_s. run_performance, else measure_performance, says whether to
/// time; run_triton_detection, else enable_triton_detection, says `ownership = free` when false.
/// Refused, since a Task has no words for it: workflow other than "kernelbench", a reference timed
/// under torch.compile.
///
/// Throws Error{invalid_argument} naming the field: "num_correct_trials: 21 is not in 1 to 20".
[[nodiscard]] Task task_from_wire(const json::Object& body);

/// The result body. How the verdict fills it:
///
///   outcome             status     compiled  correctness  decoy_kernel  error_code
///   accepted            completed  true      true         false         -
///   wrong_output        completed  true      false        false         CORRECTNESS_ERROR
///   rejected            completed  true      false        true          CORRECTNESS_ERROR
///   runtime_failed      completed  true      false        null          RUNTIME_ERROR
///   crashed             completed  true      false        null          RUNTIME_ERROR
///   resource_exhausted  completed  true      false        null          RESOURCE_ERROR
///   compile_failed      failed     false     false        null          by the kind of failure
///   timed_out           timeout    true      false        null          TIMEOUT_ERROR
///   invalid             failed     false     false        null          VALIDATION_ERROR
///   undecided           failed     false     false        null          SYSTEM_ERROR
///
/// A crash, time-out or exhaustion while the candidate was loaded counts as not compiled, and then
/// `completed` becomes `failed`. The interpreter does not see what a profiler would: there,
/// decoy_kernel is null in place of false. Times are medians in ms, and -1, as `speedup` is 0, when
/// no GPU measured them. `undecided` is for a stored result; an HTTP server answers 503 instead.
/// submitted_at and completed_at are the server's to add.
[[nodiscard]] json::Object wire_result(const Result& result);

}  // namespace drk::task
