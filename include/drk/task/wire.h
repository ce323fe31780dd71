// SPDX-License-Identifier: Apache-2.0
// KernelGYM's wire interface: its request body to a Task, a Result to its result body. Pure.
#pragma once

#include "drk/base/json.h"
#include "drk/task/priority.h"
#include "drk/task/result.h"
#include "drk/task/task.h"

namespace drk::task {

/// A POST /evaluate body: what to judge, and what steers the queue.
struct WireRequest {
  Task task;
  Priority priority = Priority::normal;
  bool force_refresh = false;
  std::optional<std::string> device_preference;
  std::optional<std::string> uuid;
  std::optional<double> deadline_s;  ///< Ours: bounds the whole, time in the queue included.
};

/// Reads a body, with that interface's ranges and defaults. Validated by the same table that
/// `evaluate_schema` is made of. Unknown fields are ignored. `timeout` becomes limits.total_s.
/// run_performance, else measure_performance, says whether to time; run_triton_detection, else
/// enable_triton_detection, says `ownership = free` when false.
///
/// kernel_simple: no reference_code is looked at, entry_point is the class itself (default
/// "ModelNew"), ownership is free unless detection is asked for, `device` stands for a
/// device_preference. `run_correctness = false` leaves outputs uncompared there; kernelbench always
/// compares.
///
/// Throws Error{invalid_argument} naming the field: "num_correct_trials: 21 is not in 1 to 20".
[[nodiscard]] WireRequest request_from_wire(const json::Object& body);

/// The body's JSON schema (2020-12), for an OpenAPI document: types, ranges, defaults, texts.
[[nodiscard]] json::Object evaluate_schema();

/// What decides the result, as SHA-256 in hex: the two codes, backend, workflow, entry point,
/// reference backend, cases, trial counts and run flags. Not the id, timeout, priority or device.
[[nodiscard]] std::string content_hash(const WireRequest& request);

/// The result body. How the verdict fills it:
///
///   outcome             status     compiled  correctness  decoy_kernel  error_code
///   accepted            completed  true      true         false         -
///   accepted, unchecked completed  true      null         false         -
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
/// A wrong output beside a rejecting finding of another reason is a decoy as well.
/// A crash, time-out or exhaustion while the candidate was loaded counts as not compiled, and then
/// `completed` becomes `failed`. The interpreter does not see what a profiler would: there,
/// decoy_kernel is null in place of false. Times are medians in ms, and -1, as `speedup` is 0, when
/// no GPU measured them. `undecided` is for a stored result; an HTTP server answers 503 instead.
/// Beyond the old members: `fault`, absent when there is none, and `timeline`, [{name, start_ms,
/// duration_ms}], from the start of the evaluation. submitted_at and completed_at are the server's
/// to add.
[[nodiscard]] json::Object wire_result(const Result& result);

}  // namespace drk::task
