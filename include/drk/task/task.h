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

/// kernelbench: the candidate must do what the reference does, on random inputs.
/// kernel_simple: there is no reference; it is run on given cases, and their outputs are compared.
enum class Workflow : std::uint8_t { kernelbench, kernel_simple };
BOOST_DESCRIBE_ENUM(Workflow, kernelbench, kernel_simple)

/// How the reference runs when it is timed: as it is, or under torch.compile.
enum class ReferenceBackend : std::uint8_t { pytorch, torch_compile };
BOOST_DESCRIBE_ENUM(ReferenceBackend, pytorch, torch_compile)

/// Where kernel_simple has its cases from. The last means that the candidate says itself what is
/// right.
enum class CasesSource : std::uint8_t { cases, cases_code, kernel_code };
BOOST_DESCRIBE_ENUM(CasesSource, cases, cases_code, kernel_code)

/// strict: tolerances by element type, scaled by the output's own spread.
/// kernelgym: allclose with rtol = atol = 1e-2, as KernelGYM and KernelBench compare.
enum class Correctness : std::uint8_t { strict, kernelgym };
BOOST_DESCRIBE_ENUM(Correctness, strict, kernelgym)

/// mixed: at least one kernel of the candidate's own must contribute to the output.
/// strict: own kernels must do the work.  free: anything goes.
enum class Ownership : std::uint8_t { mixed, strict, free };
BOOST_DESCRIBE_ENUM(Ownership, mixed, strict, free)

/// What a timed call on a GPU finds.
///   cold       an emptied L2 cache
///   warm       the L2 cache as the call before has left it
///   rotating   a copy of its inputs that no call of late has met
///   kernelgym  as KernelBench and KernelGYM measure: warm, and with the host's gaps in it
enum class Protocol : std::uint8_t { cold, warm, rotating, kernelgym };
BOOST_DESCRIBE_ENUM(Protocol, cold, warm, rotating, kernelgym)

/// The steps of an evaluation, in order; each has its own time limit.
enum class Stage : std::uint8_t { validate, load, correctness, detect, time, profile };
BOOST_DESCRIBE_ENUM(Stage, validate, load, correctness, detect, time, profile)

struct Policy {
  Correctness correctness = Correctness::strict;
  Ownership ownership = Ownership::mixed;
  Protocol protocol = Protocol::cold;
  bool require_isolation = false;  ///< Refuse to run when a part of the sandbox is missing.

  friend bool operator==(const Policy&, const Policy&) = default;
};
BOOST_DESCRIBE_STRUCT(Policy, (), (correctness, ownership, protocol, require_isolation))

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

inline constexpr std::size_t kMaxCases = 100;
inline constexpr std::size_t kMaxCasesBytes = std::size_t{4} << 20;  ///< Of cases_json.

/// What is asked of an evaluation, beside the texts. A manifest repeats it.
struct TaskOptions {
  Workflow workflow = Workflow::kernelbench;
  Backend backend = Backend::triton;
  std::string entry_point = "Model";  ///< A class: see candidate_entry_point().
  ReferenceBackend reference_backend = ReferenceBackend::pytorch;
  std::uint32_t num_correct_trials = 5;
  std::uint32_t num_perf_trials = 100;
  std::uint32_t num_warmup = 3;
  bool measure_performance = true;
  Policy policy;
  Limits limits;
  // Of kernel_simple:
  std::string cases_json;         ///< A JSON list of cases.
  std::string cases_code;         ///< Python with get_cases(), or get_inputs().
  bool check_correctness = true;  ///< False: the cases are run, and no output is compared.

  /// The first of these that there is; without either it is get_cases() of the candidate's code.
  [[nodiscard]] CasesSource cases_source() const noexcept {
    if (!cases_json.empty()) return CasesSource::cases;
    return cases_code.empty() ? CasesSource::kernel_code : CasesSource::cases_code;
  }
};
BOOST_DESCRIBE_STRUCT(TaskOptions,
                      (),
                      (workflow,
                       backend,
                       entry_point,
                       reference_backend,
                       num_correct_trials,
                       num_perf_trials,
                       num_warmup,
                       measure_performance,
                       policy,
                       limits,
                       cases_json,
                       cases_code,
                       check_correctness))

/// One evaluation to be done.
struct Task : TaskOptions {
  std::string task_id;
  std::string reference_code;  ///< Of kernelbench.
  std::string candidate_code;

  /// kernelbench: the reference's class with "New" behind it. kernel_simple: the class itself.
  [[nodiscard]] std::string candidate_entry_point() const {
    return workflow == Workflow::kernel_simple ? entry_point : entry_point + "New";
  }
};
BOOST_DESCRIBE_STRUCT(Task, (TaskOptions), (task_id, reference_code, candidate_code))

/// What is wrong with a task before anything runs, if anything: NUL bytes, invalid UTF-8, code
/// shorter than 10 or longer than 100,000 characters, cases longer than 4 MiB, counts out of range.
struct Invalidity {
  bool in_candidate = false;  ///< Else the reference or the request is at fault.
  std::string what;
};
[[nodiscard]] std::optional<Invalidity> find_invalidity(const Task& task);

}  // namespace drk::task
