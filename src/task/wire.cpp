// SPDX-License-Identifier: Apache-2.0
// Result to KernelGYM's result body.
#include "drk/task/wire.h"

#include "drk/task/describe.h"

#include <boost/json/array.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace drk::task {

namespace {

constexpr double kNotMeasured = -1;

/// What an outcome is in the old terms; the table is in wire.h.
struct OldTerms {
  const char* status = "failed";
  bool compiled = false;
  json::Value correct = false;
  json::Value decoy = nullptr;
  std::optional<std::string_view> error_code = {};
  std::string error_message = {};
};

const char* compile_error_code(FailureKind kind) {
  switch (kind) {
    case FailureKind::syntax_error:
      return "SYNTAX_ERROR";
    case FailureKind::import_error:
      return "IMPORT_ERROR";
    case FailureKind::no_entry_point:
    case FailureKind::construct_error:
      return "INSTANTIATION_ERROR";
    default:
      return "COMPILATION_ERROR";
  }
}

/// The model exists from the stage after `load` on.
bool had_loaded(const Failure& failure) {
  return failure.stage != Stage::validate && failure.stage != Stage::load;
}

OldTerms failed_run(const Failure& failure, const char* error_code) {
  const bool compiled = had_loaded(failure);
  return {.status = compiled ? "completed" : "failed",
          .compiled = compiled,
          .error_code = error_code,
          .error_message = describe(failure)};
}

/// "reason: evidence" of the finding that decided.
std::string rejection_message(const Verdict& verdict, Reason reason) {
  const auto finding =
      std::find_if(verdict.findings.begin(), verdict.findings.end(), [reason](const Finding& f) {
        return f.reason == reason && f.severity == Severity::reject;
      });
  const std::string name = json::name_of(reason);
  return finding == verdict.findings.end() ? name : name + ": " + finding->evidence;
}

/// A way of being wrong that takes no intent.
bool is_mistake(Reason reason) noexcept {
  return reason == Reason::wrong_output || reason == Reason::partial_output ||
         reason == Reason::uninitialized_output || reason == Reason::precision_downgrade;
}

class OldTermsOf {
 public:
  explicit OldTermsOf(const Result& result) : result_(result) {}

  OldTerms operator()(const Accepted& outcome) const {
    return {.status = "completed",
            .compiled = true,
            .correct = outcome.checked ? json::Value(true) : json::Value(nullptr),
            .decoy = no_decoy()};
  }
  OldTerms operator()(const WrongOutput& outcome) const {
    return {.status = "completed",
            .compiled = true,
            .decoy = cheats() ? json::Value(true) : no_decoy(),
            .error_code = "CORRECTNESS_ERROR",
            .error_message = describe(outcome.mismatch)};
  }
  OldTerms operator()(const Rejected& outcome) const {
    if (result_.verdict.fault == Fault::task) {  // the problem's, whatever the candidate does
      return {.compiled = true,
              .error_code = "VALIDATION_ERROR",
              .error_message = rejection_message(result_.verdict, outcome.reason)};
    }
    return {.status = "completed",
            .compiled = true,
            .decoy = true,
            .error_code = "CORRECTNESS_ERROR",
            .error_message = rejection_message(result_.verdict, outcome.reason)};
  }
  OldTerms operator()(const CompileFailed& outcome) const {
    return {.error_code = compile_error_code(outcome.failure.kind),
            .error_message = describe(outcome.failure)};
  }
  OldTerms operator()(const RuntimeFailed& outcome) const {
    return failed_run(outcome.failure, "RUNTIME_ERROR");
  }
  OldTerms operator()(const Crashed& outcome) const {
    return failed_run(outcome.failure, "RUNTIME_ERROR");
  }
  OldTerms operator()(const ResourceExhausted& outcome) const {
    return failed_run(outcome.failure, "RESOURCE_ERROR");
  }
  OldTerms operator()(const TimedOut& outcome) const {
    OldTerms terms = failed_run(outcome.failure, "TIMEOUT_ERROR");
    terms.status = "timeout";
    return terms;
  }
  OldTerms operator()(const Invalid& outcome) const {
    return {.error_code = "VALIDATION_ERROR", .error_message = outcome.what};
  }
  OldTerms operator()(const Undecided& outcome) const {
    return {.error_code = "SYSTEM_ERROR", .error_message = outcome.what};
  }

 private:
  [[nodiscard]] json::Value no_decoy() const {
    return result_.mode == Mode::gpu ? json::Value(false) : json::Value(nullptr);
  }

  /// Beside being wrong.
  [[nodiscard]] bool cheats() const {
    return std::any_of(result_.verdict.findings.begin(),
                       result_.verdict.findings.end(),
                       [](const Finding& finding) {
                         return finding.severity == Severity::reject && !is_mistake(finding.reason);
                       });
  }

  const Result& result_;
};

std::string error_name(const Failure& failure) {
  return failure.error ? failure.error->type : json::name_of(failure.kind);
}

void add_failure(const Result& result, json::Object& metadata) {
  const Failure* failure = failure_of(result.verdict.outcome);
  if (std::holds_alternative<Invalid>(result.verdict.outcome)) {
    metadata["validation_error"] = json::to_json(std::get<Invalid>(result.verdict.outcome).what);
  } else if (failure != nullptr) {
    const bool compiling = std::holds_alternative<CompileFailed>(result.verdict.outcome);
    const std::string key = compiling ? "compilation_error" : "runtime_error";
    metadata[key] = json::to_json(describe(*failure));
    metadata[key + "_name"] = json::to_json(error_name(*failure));
  }
}

/// Trials are more than were asked for where calls were timed: those are not counted.
std::size_t planned_trials(const Manifest& manifest) {
  return manifest.workflow == Workflow::kernel_simple ? manifest.trial_seeds.size()
                                                      : manifest.num_correct_trials;
}

/// "(3 / 5)", of the trials in which something was compared.
void add_trial_count(const Result& result, json::Object& metadata) {
  std::size_t planned = planned_trials(result.manifest);
  const auto& trials = result.observations.trials;
  std::size_t passed = 0;
  for (const Trial& trial : std::span(trials).first(std::min(planned, trials.size()))) {
    if (!trial.compared) --planned;
    if (trial.compared && !trial.comparison.mismatch) ++passed;
  }
  metadata["correctness_trials"] = fmt::format("({} / {})", passed, planned);
}

void add_trials(const Result& result, json::Object& metadata) {
  if (result.observations.trials.empty()) return;
  add_trial_count(result, metadata);
  boost::json::array max_difference;
  boost::json::array avg_difference;
  for (const Trial& trial : result.observations.trials) {
    if (!trial.compared) continue;
    // Texts, as KernelBench writes them, but with digits that matter for small numbers too.
    max_difference.emplace_back(fmt::format("{:.6g}", trial.comparison.max_abs_error));
    avg_difference.emplace_back(fmt::format("{:.6g}", trial.comparison.mean_abs_error));
  }
  metadata["max_difference"] = std::move(max_difference);
  metadata["avg_difference"] = std::move(avg_difference);
}

void add_cases(const Result& result, json::Object& metadata) {
  if (result.manifest.workflow != Workflow::kernel_simple) return;
  boost::json::array failed;
  for (const Trial& trial : result.observations.trials) {
    const json::Value name = json::to_json(trial.case_name.value_or(""));
    // Calls that are timed give a case a second trial.
    if (!trial.comparison.mismatch || std::find(failed.begin(), failed.end(), name) != failed.end())
      continue;
    failed.push_back(name);
  }
  metadata["cases_source"] = json::name_of(result.manifest.cases_source());
  metadata["num_cases"] = result.manifest.trial_seeds.size();
  metadata["correctness_failed_cases"] = std::move(failed);
}

std::string device_of(Mode mode) {
  return mode == Mode::gpu ? "cuda:0" : "cpu";  // as the candidate sees it
}

/// Times in ms. On a CPU they say how long the interpreter took, which `device` tells.
json::Object runtime_stats(const Timing& timing, Mode mode) {
  json::Object stats;
  stats["mean"] = timing.mean_us / 1000;
  stats["std"] = timing.std_us / 1000;
  stats["min"] = timing.min_us / 1000;
  stats["max"] = timing.max_us / 1000;
  stats["median"] = timing.median_us / 1000;
  stats["num_trials"] = timing.count;
  stats["device"] = device_of(mode);
  stats["clock"] = timing.clock;
  return stats;
}

std::string percent(double part, double whole) {
  return fmt::format("{:.2f}%", whole > 0 ? 100 * part / whole : 0.0);
}

json::Object kernel_row(const KernelRecord& kernel) {
  json::Object row;
  row["name"] = json::to_json(kernel.name);
  row["cuda_time_us"] = kernel.total_us;
  row["cpu_time_us"] = 0.0;  // kernels have none; operators, which do, are not among these rows
  row["count"] = kernel.count;
  row["origin"] = json::name_of(kernel.origin);
  row["grid"] = json::to_json(kernel.grid);
  row["block"] = json::to_json(kernel.block);
  row["registers"] = kernel.registers;
  row["shared_bytes"] = kernel.static_shared_bytes + kernel.dynamic_shared_bytes;
  return row;
}

/// Times are device times over all profiled calls. Where records are missing the keys are absent.
void add_profile(const Result& result, json::Object& metadata) {
  metadata["triton_profiler_used"] = result.observations.profile.has_value();
  if (!result.observations.profile) return;
  const Profile& profile = *result.observations.profile;
  if (!profile.problem.empty()) metadata["profiling_problem"] = json::to_json(profile.problem);
  const auto share = share_of(profile);
  if (!share) return;
  boost::json::array rows, matches;
  for (const KernelRecord& kernel : profile.kernels) {
    rows.push_back(kernel_row(kernel));
    if (is_own(kernel.origin)) matches.push_back(json::to_json(kernel.name));
  }
  metadata["triton_profiler_matches"] = std::move(matches);
  metadata["num_custom_kernels"] = share->own_count;
  metadata["num_total_kernels"] = share->all_count;
  metadata["triton_kernel_coverage"] =
      percent(static_cast<double>(share->own_count), static_cast<double>(share->all_count));
  metadata["custom_kernel_cuda_time_in_profiling_us"] = share->own_us;
  metadata["total_kernel_run_time_in_profiling_us"] = share->all_us;
  metadata["custom_kernel_cuda_time_coverage"] = percent(share->own_us, share->all_us);
  json::Object profiling;
  profiling["kernel_count"] = rows.size();
  profiling["kernels"] = std::move(rows);
  profiling["calls"] = profile.calls;
  profiling["total_cuda_time_us"] = share->all_us;
  profiling["total_cpu_time_us"] = 0.0;
  profiling["memory_time_us"] = profile.memory_us;
  metadata["profiling"] = std::move(profiling);
}

json::Object metadata_of(const Result& result, const OldTerms& terms) {
  json::Object metadata;
  metadata["device"] = device_of(result.mode);
  const Machine& machine = result.manifest.machine;
  metadata["hardware"] = json::to_json(machine.gpu.empty() ? machine.cpu : machine.gpu);
  if (!machine.gpu.empty()) {
    metadata["gpu_name"] = json::to_json(machine.gpu);
    metadata["gpu_uuid"] = json::to_json(machine.gpu_uuid);
  }
  metadata["backend"] = json::name_of(result.manifest.backend);
  metadata["num_correct_trials"] = result.manifest.num_correct_trials;
  metadata["num_perf_trials"] = result.manifest.num_perf_trials;
  metadata["reference_backend"] = json::name_of(result.manifest.reference_backend);
  add_profile(result, metadata);
  add_trials(result, metadata);
  add_cases(result, metadata);
  if (terms.error_code == "CORRECTNESS_ERROR") {
    metadata["correctness_issue"] = json::to_json(terms.error_message);
  }
  add_failure(result, metadata);
  if (const auto* accepted = std::get_if<Accepted>(&result.verdict.outcome)) {
    if (accepted->timing) {
      metadata["runtime_stats"] = runtime_stats(*accepted->timing, result.mode);
    }
  }
  // Ours, beyond the old keys.
  metadata["outcome"] = outcome_kind(result.verdict);
  metadata["mode"] = json::name_of(result.mode);
  if (result.verdict.fault) metadata["fault"] = json::name_of(*result.verdict.fault);
  metadata["findings"] = json::to_json(result.verdict.findings);
  return metadata;
}

/// Only a GPU's times are claims about speed; see wire.h.
void add_runtimes(const Result& result, json::Object& body) {
  const auto* accepted = std::get_if<Accepted>(&result.verdict.outcome);
  const bool measured = accepted != nullptr && result.mode == Mode::gpu;
  const auto headline_ms = [&](const std::optional<Timing>& timing) {
    const Protocol protocol = result.manifest.policy.protocol;
    return measured && timing ? headline_us(*timing, protocol) / 1000 : kNotMeasured;
  };
  body["reference_runtime"] =
      headline_ms(accepted == nullptr ? std::nullopt : accepted->reference_timing);
  body["kernel_runtime"] = headline_ms(accepted == nullptr ? std::nullopt : accepted->timing);
  body["speedup"] = measured ? accepted->speedup.value_or(0) : 0.0;
}

double processing_time_s(const Result& result) {
  double end_ms = 0;
  for (const Span& span : result.timeline) {
    end_ms = std::max(end_ms, span.start_ms + span.duration_ms);
  }
  return end_ms / 1000;
}

}  // namespace

json::Object wire_result(const Result& result) {
  const OldTerms terms = std::visit(OldTermsOf(result), result.verdict.outcome);
  json::Object body;
  body["task_id"] = json::to_json(result.task_id);
  body["status"] = terms.status;
  body["compiled"] = terms.compiled;
  body["correctness"] = terms.correct;
  body["decoy_kernel"] = terms.decoy;
  add_runtimes(result, body);
  body["metadata"] = metadata_of(result, terms);
  if (terms.error_code) {
    body["error_message"] = json::to_json(terms.error_message);
    body["error_code"] = *terms.error_code;
  }
  body["processing_time"] = processing_time_s(result);
  if (result.verdict.fault) body["fault"] = json::name_of(*result.verdict.fault);
  body["timeline"] = json::to_json(result.timeline);
  return body;
}

}  // namespace drk::task
