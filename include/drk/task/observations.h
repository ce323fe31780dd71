// SPDX-License-Identifier: Apache-2.0
// What was seen while a candidate ran: facts only, no judgement. The judge turns them into a
// verdict, and can do so again later under newer rules.
#pragma once

#include "drk/task/task.h"

#include <boost/describe.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace drk::task {

struct Frame {
  std::string file;
  std::uint32_t line = 0;
  std::string function;
};
BOOST_DESCRIBE_STRUCT(Frame, (), (file, line, function))

/// A Python exception, as text. `line` and `source_line` point into the judged code when the
/// exception passed through it.
struct PythonError {
  std::string type;
  std::string message;
  std::vector<Frame> traceback;  ///< Outermost first, at most 32 frames.
  std::optional<std::uint32_t> line;
  std::string source_line;
};
BOOST_DESCRIBE_STRUCT(PythonError, (), (type, message, traceback, line, source_line))

enum class FailureKind : std::uint8_t {
  syntax_error,    ///< The code does not parse.
  import_error,    ///< A module or name that it imports is not there.
  load_error,      ///< Any other exception while the module is executed.
  no_entry_point,  ///< The class (or get_inputs, get_init_inputs) is missing or no class.
  construct_error,
  compile_error,  ///< A kernel did not compile.
  inputs_error,   ///< get_inputs or get_init_inputs failed, or made what cannot be passed on.
  call_error,     ///< forward raised.
  needs_gpu,      ///< The interpreter cannot run this; a GPU could.
  out_of_memory,
  cuda_error,      ///< A kernel failed on the device: see `cuda`.
  died,            ///< The process ended: see `death`.
  timed_out,       ///< It was stopped at its limit: see `limit_s`.
  output_flood,    ///< It printed more than may be printed.
  protocol_error,  ///< Bytes that our core never sends came through its channel.
};
BOOST_DESCRIBE_ENUM(FailureKind,
                    syntax_error,
                    import_error,
                    load_error,
                    no_entry_point,
                    construct_error,
                    compile_error,
                    inputs_error,
                    call_error,
                    needs_gpu,
                    out_of_memory,
                    cuda_error,
                    died,
                    timed_out,
                    output_flood,
                    protocol_error)

/// How a guest process ended by itself.
struct Death {
  std::optional<std::int32_t> exit_code;
  std::optional<std::int32_t> signal;
  std::string what;  ///< "killed by SIGSEGV (segmentation fault)", "left with exit status 0".
};
BOOST_DESCRIBE_STRUCT(Death, (), (exit_code, signal, what))

struct Failure {
  Stage stage = Stage::load;
  FailureKind kind = FailureKind::load_error;
  std::string what;  ///< One sentence.
  std::optional<PythonError> error;
  std::optional<Death> death;
  std::optional<double> limit_s;
  std::string cuda;  ///< The driver's name of a cuda_error: "CUDA_ERROR_ILLEGAL_ADDRESS".
};
BOOST_DESCRIBE_STRUCT(Failure, (), (stage, kind, what, error, death, limit_s, cuda))

enum class MismatchKind : std::uint8_t {
  structure,  ///< A list where a tuple, a tensor where a number, other keys, other length ...
  shape,
  dtype,
  device,       ///< On the CPU where the reference's is on the GPU, or the other way round.
  subclass,     ///< A Tensor subclass: what it holds is decided later, by itself.
  unsupported,  ///< An output that cannot be read (sparse, quantized, any other object).
  oversize,     ///< Far more elements than the reference's output.
  nan,          ///< NaN where the reference has none, or the other way round.
  infinity,     ///< The same for infinities, and for their signs.
  value,
};
BOOST_DESCRIBE_ENUM(MismatchKind,
                    structure,
                    shape,
                    dtype,
                    device,
                    subclass,
                    unsupported,
                    oversize,
                    nan,
                    infinity,
                    value)

struct Mismatch {
  MismatchKind kind = MismatchKind::value;
  std::string path;      ///< "output", "output[1]", "output['mean']".
  std::string expected;  ///< A value, shape, dtype or type, as text.
  std::string got;
  std::vector<std::int64_t> first_index;  ///< Of the first wrong element; empty for a 0-d tensor.
  std::uint64_t wrong_count = 0;
  std::uint64_t wrong_zeros = 0;  ///< Of them, those that are 0.
  std::uint64_t wrong_first = 0;  ///< Their first and last position in row-major order.
  std::uint64_t wrong_last = 0;
  std::uint64_t element_count = 0;
  double tolerance = 0;  ///< Allowed absolute error at the first wrong element.
  double max_error = 0;  ///< Of this leaf's finite elements.
  double spread = 0;     ///< Of what was expected of it: see judge::Tolerance.
};
BOOST_DESCRIBE_STRUCT(Mismatch,
                      (),
                      (kind,
                       path,
                       expected,
                       got,
                       first_index,
                       wrong_count,
                       wrong_zeros,
                       wrong_first,
                       wrong_last,
                       element_count,
                       tolerance,
                       max_error,
                       spread))

/// One comparison of outputs with what was expected.
struct Comparison {
  std::optional<Mismatch> mismatch;  ///< The first leaf that is wrong.
  double max_abs_error = 0;          ///< Over all finite elements of comparable leaves.
  double max_rel_error = 0;
  double mean_abs_error = 0;
  double limit_share = 0;     ///< The largest error in units of what is allowed there.
  bool by_float64 = false;    ///< Held against float64's answer, within judge::ErrorBudget.
  std::uint64_t telling = 0;  ///< Elements where a real or complex number over 1e-30 is expected,
  std::uint64_t zeroed = 0;   ///< and those of them that are 0, be they near enough or not.
};
BOOST_DESCRIBE_STRUCT(Comparison,
                      (),
                      (mismatch,
                       max_abs_error,
                       max_rel_error,
                       mean_abs_error,
                       limit_share,
                       by_float64,
                       telling,
                       zeroed))

/// Launches of one kernel during one call.
struct KernelLaunches {
  std::string name;
  std::string file;
  std::uint32_t line = 0;
  bool own = false;  ///< Its source came with the candidate (by where it lies, not by name).
  std::uint64_t count = 0;
};
BOOST_DESCRIBE_STRUCT(KernelLaunches, (), (name, file, line, own, count))

/// Whose code a kernel is, by where its image came from; its name is never asked.
enum class KernelOrigin : std::uint8_t {
  candidate_triton,  ///< Compiled by Triton in this process.
  candidate_cuda,    ///< Any other image that came with the candidate: load_inline, NVRTC, a file.
  torch,             ///< torch's own kernels, those it compiles at run time included.
  library,           ///< cuBLAS, cuDNN, cuFFT and others of the installation.
  torch_compile,
  unknown,
};
BOOST_DESCRIBE_ENUM(
    KernelOrigin, candidate_triton, candidate_cuda, torch, library, torch_compile, unknown)

[[nodiscard]] constexpr bool is_own(KernelOrigin origin) noexcept {
  return origin == KernelOrigin::candidate_triton || origin == KernelOrigin::candidate_cuda;
}

struct Extent {
  std::uint32_t x = 1, y = 1, z = 1;

  friend auto operator<=>(const Extent&, const Extent&) = default;
};
BOOST_DESCRIBE_STRUCT(Extent, (), (x, y, z))

/// One kernel of a profiled call, launches of one shape together.
struct KernelRecord {
  std::string name;
  KernelOrigin origin = KernelOrigin::unknown;
  Extent grid;                  ///< In blocks.
  Extent block;                 ///< In threads.
  std::uint32_t registers = 0;  ///< Of one thread.
  std::uint64_t static_shared_bytes = 0;
  std::uint64_t dynamic_shared_bytes = 0;
  std::uint64_t count = 0;
  double total_us = 0;  ///< On the device, over all `count` launches.
};
BOOST_DESCRIBE_STRUCT(KernelRecord,
                      (),
                      (name,
                       origin,
                       grid,
                       block,
                       registers,
                       static_shared_bytes,
                       dynamic_shared_bytes,
                       count,
                       total_us))

/// What CUPTI recorded while the candidate was called a few times more, after it was timed.
struct Profile {
  std::uint32_t calls = 0;
  std::vector<KernelRecord> kernels;  ///< The longest first; at most 128.
  std::uint64_t launches = 0;         ///< By the callbacks: what must have a record.
  std::uint64_t records = 0;
  std::uint64_t dropped_records = 0;
  double memory_us = 0;  ///< Copies and fills on the device.
  double busy_us = 0;    ///< In which some kernel, copy or fill ran; what ran side by side, once.
  std::string problem;   ///< Not empty: the records are not complete, and nothing follows.
};
BOOST_DESCRIBE_STRUCT(
    Profile, (), (calls, kernels, launches, records, dropped_records, memory_us, busy_us, problem))

/// Own kernels and all kernels, over all profiled calls.
struct KernelShare {
  std::uint64_t own_count = 0;
  std::uint64_t all_count = 0;
  double own_us = 0;
  double all_us = 0;
};
/// Empty where records are missing: what was not seen is unknown.
[[nodiscard]] std::optional<KernelShare> share_of(const Profile& profile);

/// What becomes of the floating values that get_inputs() has given.
///   given    nothing
///   shifted  the mean is taken off what has one sign; else a standard deviation is added
///   scaled   times 3
///   special  one in 24 each becomes 0, becomes -0, or repeats its neighbour
/// Float32 in `shifted` and `scaled` then moves to just above what TF32 and float16 can hold.
enum class Distribution : std::uint8_t { given, shifted, scaled, special };
BOOST_DESCRIBE_ENUM(Distribution, given, shifted, scaled, special)

/// torch.no_grad(), torch.enable_grad() or torch.inference_mode().
enum class GradMode : std::uint8_t { off, on, inference };
BOOST_DESCRIBE_ENUM(GradMode, off, on, inference)

struct Trial {
  std::uint64_t seed = 0;                ///< kernel_simple: the case's position, from 0.
  std::optional<std::string> case_name;  ///< Of kernel_simple.
  bool compared = true;  ///< False: nothing was there to compare with, `comparison` is empty.
  Comparison comparison;
  std::vector<std::string> mutated_inputs;  ///< "inputs[0]", ...
  std::vector<KernelLaunches> kernels;
  double host_us = 0;  ///< Of the call, by the guest's clock.
  std::string call;    ///< "timed call 17 of 100", where it was no call of its own.
  Distribution inputs = Distribution::given;
  GradMode grad = GradMode::off;
  /// The output is wrong, and bit for bit that of an earlier trial, from 0, where it was right.
  std::optional<std::uint32_t> repeats;
  /// The output is wrong, and right for the inputs as other calls of the request found them.
  bool is_of_other_inputs = false;
  /// New memory had all bits set, and so many elements of a wrong output still have.
  std::uint64_t untouched = 0;
  /// Programs of own kernels that were launched when the call, or one of the same request, was
  /// over.
  std::uint64_t outside_programs = 0;
};
BOOST_DESCRIBE_STRUCT(Trial,
                      (),
                      (seed,
                       case_name,
                       compared,
                       comparison,
                       mutated_inputs,
                       kernels,
                       host_us,
                       call,
                       inputs,
                       grad,
                       repeats,
                       is_of_other_inputs,
                       untouched,
                       outside_programs))

/// Further calls, on fresh inputs, in which launches of the candidate's own kernels did nothing:
/// one with new memory zeroed, one with all its bits set. Right in either, and they do not matter.
struct Contribution {
  std::uint64_t seed = 0;
  std::uint64_t dropped_launches = 0;
  bool output_still_right = false;
  std::string memory;        ///< "zeros" or "ones": where it was still right.
  bool call_failed = false;  ///< It raised instead of answering, so the kernels mattered.
};
BOOST_DESCRIBE_STRUCT(Contribution,
                      (),
                      (seed, dropped_launches, output_still_right, memory, call_failed))

/// A system call that the sandbox refused.
struct Refusal {
  std::string call;  ///< "socket(AF_INET)", "ptrace", "execve" ...
  std::uint64_t count = 0;
};
BOOST_DESCRIBE_STRUCT(Refusal, (), (call, count))

/// What the init above the candidate saw from outside.
struct ProcessReport {
  std::uint32_t processes_left = 0;  ///< Alive in its namespace when the candidate was done.
  std::uint64_t peak_rss_bytes = 0;
  double cpu_s = 0;
  std::vector<Refusal> refusals;
};
BOOST_DESCRIBE_STRUCT(ProcessReport, (), (processes_left, peak_rss_bytes, cpu_s, refusals))

/// What calls on equal inputs did, in programs (blocks of a grid) of own kernels. The first met the
/// inputs first; all code was loaded and tuned before.
struct RepeatedWork {
  std::uint64_t calls = 0;
  std::uint64_t first_programs = 0;
  std::uint64_t least_programs = 0;
  std::uint64_t calls_with_fewer = 0;  ///< Than the first.
};
BOOST_DESCRIBE_STRUCT(RepeatedWork, (), (calls, first_programs, least_programs, calls_with_fewer))

/// Calls of a model, timed one by one.
struct TimedCalls {
  /// In order. On a GPU by the device's clock, until all that the call has set off is done; without
  /// one by the host's.
  std::vector<double> us;
  // Only from a GPU.
  std::vector<double> host_us;  ///< Until forward returned, by the guest's clock.
  /// How long the device went on with work on streams that the caller's does not wait for.
  std::vector<double> behind_us;
  /// Calls whose work was all queued before the first of it ran: the gaps between what the host
  /// queues are not in their times.
  std::uint64_t gated = 0;
};
BOOST_DESCRIBE_STRUCT(TimedCalls, (), (us, host_us, behind_us, gated))

/// The guest's clock, held against the worker's.
struct ClockCheck {
  double timed_us = 0;    ///< All timed calls together, as the guest says.
  double request_us = 0;  ///< The request that they were made in, by the worker's clock.
  double asked_us = 0;    ///< After its last call it was to let so much time pass by its clock,
  double waited_us = 0;   ///< and so much passed by the worker's: the least of some times.
};
BOOST_DESCRIBE_STRUCT(ClockCheck, (), (timed_us, request_us, asked_us, waited_us))

struct Observations {
  Mode mode = Mode::interpreter;
  std::optional<Invalidity> invalidity;
  std::optional<Failure> reference_failure;
  std::optional<Failure> candidate_failure;
  std::vector<std::string> parameter_differences;  ///< Sentences.
  std::vector<Trial> trials;
  /// Not empty: an answer that looks at no input is right in every trial, and which.
  std::string degenerate;
  std::optional<Contribution> contribution;
  std::optional<TimedCalls> candidate_times;
  std::optional<RepeatedWork> timed_work;  ///< Absent where it is unknown, as with CUDA graphs.
  std::optional<TimedCalls> reference_times;
  std::optional<ClockCheck> clock;  ///< Where calls were timed.
  /// Sentences: what stood in its process before its first line and was altered.
  std::vector<std::string> alterations;
  std::optional<Profile> profile;  ///< Only from a GPU.
  /// Not empty: launches could not be watched, and what was not seen is unknown.
  std::string launch_problem;
  std::optional<ProcessReport> process;
};
BOOST_DESCRIBE_STRUCT(Invalidity, (), (in_candidate, what))
BOOST_DESCRIBE_STRUCT(Observations,
                      (),
                      (mode,
                       invalidity,
                       reference_failure,
                       candidate_failure,
                       parameter_differences,
                       trials,
                       degenerate,
                       contribution,
                       candidate_times,
                       timed_work,
                       reference_times,
                       clock,
                       alterations,
                       profile,
                       launch_problem,
                       process))

}  // namespace drk::task
