// SPDX-License-Identifier: Apache-2.0
// What is asked: one candidate, its reference, and the rules it is judged by.
#pragma once

#include <boost/describe.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace drk::task {

/// How the answer is found: on a GPU, or by Triton's interpreter on a CPU (no speed claim).
enum class Mode : std::uint8_t { interpreter, gpu };
BOOST_DESCRIBE_ENUM(Mode, interpreter, gpu)

enum class Backend : std::uint8_t { triton, cuda, cuda_nvrtc };
BOOST_DESCRIBE_ENUM(Backend, triton, cuda, cuda_nvrtc)

/// strict: tolerances by element type, scaled by the output's own spread.
/// kernelgym: allclose with rtol = atol = 1e-2, as KernelGYM and KernelBench compare.
enum class Correctness : std::uint8_t { strict, kernelgym };
BOOST_DESCRIBE_ENUM(Correctness, strict, kernelgym)

/// mixed: at least one kernel of the candidate's own must contribute to the output.
/// strict: own kernels must do the work.  free: anything goes.
enum class Ownership : std::uint8_t { mixed, strict, free };
BOOST_DESCRIBE_ENUM(Ownership, mixed, strict, free)

/// The steps of an evaluation, in order; each has its own time limit.
enum class Stage : std::uint8_t { validate, load, correctness, detect, time, profile };
BOOST_DESCRIBE_ENUM(Stage, validate, load, correctness, detect, time, profile)

struct Policy {
  Correctness correctness = Correctness::strict;
  Ownership ownership = Ownership::mixed;
  bool require_isolation = false;  ///< Refuse to run when a part of the sandbox is missing.

  friend bool operator==(const Policy&, const Policy&) = default;
};
BOOST_DESCRIBE_STRUCT(Policy, (), (correctness, ownership, require_isolation))

/// Time limits, each of one stage of one evaluation.
struct Limits {
  double load_s = 60;          ///< Import and construction of one model.
  double correctness_s = 120;  ///< All correctness trials together.
  double detect_s = 60;
  double time_s = 60;
  double total_s = 300;        ///< The whole evaluation; wire.md's `timeout`.
  double timing_budget_s = 2;  ///< Timed calls stop once this is spent (three are made anyway).
  std::uint64_t memory_bytes = std::uint64_t{8} << 30;  ///< Of one guest, beyond Python's own.
  std::uint64_t tmp_bytes = std::uint64_t{256} << 20;   ///< Its private /tmp.

  friend bool operator==(const Limits&, const Limits&) = default;
};
BOOST_DESCRIBE_STRUCT(
    Limits,
    (),
    (load_s, correctness_s, detect_s, time_s, total_s, timing_budget_s, memory_bytes, tmp_bytes))

inline constexpr std::size_t kMinCodeChars = 10;
inline constexpr std::size_t kMaxCodeChars = 100'000;

/// One evaluation to be done.
struct Task {
  std::string task_id;
  std::string reference_code;
  std::string candidate_code;
  Backend backend = Backend::triton;
  std::string entry_point = "Model";  ///< The reference's class; the candidate's adds "New".
  std::uint32_t num_correct_trials = 5;
  std::uint32_t num_perf_trials = 100;
  std::uint32_t num_warmup = 3;
  bool measure_performance = true;
  Policy policy;
  Limits limits;

  [[nodiscard]] std::string candidate_entry_point() const { return entry_point + "New"; }
};
BOOST_DESCRIBE_STRUCT(Task,
                      (),
                      (task_id,
                       reference_code,
                       candidate_code,
                       backend,
                       entry_point,
                       num_correct_trials,
                       num_perf_trials,
                       num_warmup,
                       measure_performance,
                       policy,
                       limits))

/// What is wrong with a task before anything runs, if anything: NUL bytes, invalid UTF-8, code
/// shorter than 10 or longer than 100,000 characters, counts out of range (wire.md's ranges).
struct Invalidity {
  bool in_candidate = false;  ///< Else the reference or the request is at fault.
  std::string what;
};
[[nodiscard]] std::optional<Invalidity> find_invalidity(const Task& task);

}  // namespace drk::task
