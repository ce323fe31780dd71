// SPDX-License-Identifier: Apache-2.0
// The stages: validate, load, correctness, time, profile, detect; then the verdict. What a call of
// the candidate is, evaluation_calls.cpp says; what is seen from outside, evaluation_evidence.cpp.
#include "worker/evaluation.h"

#include "drk/base/error.h"
#include "drk/base/hash.h"
#include "drk/base/json.h"
#include "drk/base/random.h"
#include "drk/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>
#include <sstream>

namespace drk::worker {

namespace {

constexpr std::uint64_t kFirstShare = 8;  // of the device, for a reference that has not run yet
constexpr std::uint32_t kProfiledCalls = 5;

double limit_of(task::Stage stage, const task::Limits& limits) {
  switch (stage) {
    case task::Stage::validate:
    case task::Stage::load:
      return limits.load_s;
    case task::Stage::correctness:
      return limits.correctness_s;
    case task::Stage::detect:
      return limits.detect_s;
    case task::Stage::time:
    case task::Stage::profile:
      return limits.time_s;
  }
  return limits.total_s;
}

/// A replay needs all seeds; an evaluation that ended early has recorded none.
bool has_seeds(const task::Manifest& manifest) {
  return !manifest.trial_seeds.empty() && manifest.contribution_seed && manifest.timing_seed &&
         manifest.final_seed;
}

/// In a failure of code that lies in a file of its own: its line there. See simple_reference.h.
void point_into_cases(task::Failure& failure) {
  if (!failure.error) return;
  const auto& frames = failure.error->traceback;
  const auto inner = std::find_if(frames.rbegin(), frames.rend(), [](const task::Frame& frame) {
    return frame.file.ends_with("/cases.py");
  });
  failure.error->line.reset();
  if (inner != frames.rend()) failure.error->line = inner->line;
}

/// The failing line's text, from the code that we hold and not from what the guest says.
void point_at_source(std::optional<task::Failure>& failure, const std::string& code) {
  if (!failure || !failure->error || !failure->error->line) return;
  std::istringstream lines(code);
  std::string line;
  for (std::uint32_t i = 0; i < *failure->error->line && std::getline(lines, line); ++i) {
  }
  failure->error->source_line = line;
}

}  // namespace

Evaluation::Evaluation(Lane& lane,
                       const task::Task& task,
                       const EvaluateOptions& options,
                       Means means)
    : lane_(lane),
      gpu_(lane.gpu.get()),
      pool_(lane.pool),
      references_(lane.references),
      task_(task),
      basis_(reference_task_of(task)),
      options_(options),
      is_replay_(options.replay != nullptr && has_seeds(*options.replay)),
      begin_ns_(now_ns()),
      means_(means) {
  result_.task_id = task.task_id;
  task::Manifest& manifest = result_.manifest;
  manifest.created_at = utc_now_text();
  manifest.reference = {sha256_hex(task.reference_code), task.reference_code};
  manifest.candidate = {sha256_hex(task.candidate_code), task.candidate_code};
  static_cast<task::TaskOptions&>(manifest) = static_cast<const task::TaskOptions&>(task);
  manifest.machine = describe_machine(gpu_);
  manifest.mode = result_.mode = observed().mode =
      is_interpreted() ? task::Mode::interpreter : task::Mode::gpu;
}

task::Failure protocol_failure(task::Stage stage, const Error& error) {
  task::Failure failure;
  failure.stage = stage;
  failure.kind = task::FailureKind::protocol_error;
  failure.what = error.what();
  return failure;
}

bool Evaluation::timed(const std::string& name, const std::function<bool()>& stage) {
  const double start_ms = elapsed_ms();
  const bool goes_on = stage();
  result_.timeline.push_back({name, start_ms, elapsed_ms() - start_ms});
  return goes_on;
}

void Evaluation::note_wait(const std::string& what, double start_ms) {
  constexpr double kLeastMs = 1;
  const double waited_ms = elapsed_ms() - start_ms;
  if (waited_ms >= kLeastMs) {
    result_.timeline.push_back({"wait for " + what, start_ms, waited_ms});
  }
}

double Evaluation::elapsed_ms() const noexcept {
  return static_cast<double>(now_ns() - begin_ns_) * 1e-6;
}

void Evaluation::run() {
  const bool complete =
      timed("validate", [&] { return validate(); }) &&
      timed("reference", [&] { return load_reference(); }) &&
      timed("load", [&] { return load_candidate(); }) &&
      timed("correctness", [&] { return check_correctness(); }) &&
      (!task_.measure_performance || timed("time", [&] { return time_calls(); })) &&
      (!profiles() || timed("profile", [&] { return profile(); })) &&
      // Last: what the model remembers of calls that lacked its kernels must harm no other.
      (!detects() || timed("detect", [&] { return detect(); }));
  (void)timed("finish", [&] {
    finish_candidate(complete);
    return complete;
  });
  note_memory_failure();
  note_xids();
  if (!is_interpreted()) gpu_->check_health();  // what a sick device gave is worth nothing
  point_at_source(observed().candidate_failure, task_.candidate_code);
  point_at_source(observed().reference_failure,
                  is_simple() ? task_.cases_code : task_.reference_code);
  result_.verdict = judge::decide(observed(), task_);
  result_.manifest.outcome = task::outcome_kind(result_.verdict);
}

bool Evaluation::validate() {
  progress(task::Stage::validate, "");
  observed().invalidity = task::find_invalidity(task_);
  if (observed().invalidity) return false;
  result_.manifest.versions = pool_.zygote()->hello().versions;
  if (!is_interpreted()) {
    // A context on the GPU is dear: no guest is taken for a text that does not even parse.
    observed().candidate_failure =
        lane_.clerk.find_syntax_error(task_.candidate_code, options_.stop);
    return !observed().candidate_failure;
  }
  if (task_.backend == task::Backend::triton) return true;
  task::Failure failure;
  failure.stage = task::Stage::validate;
  failure.kind = task::FailureKind::needs_gpu;
  failure.what = fmt::format("its backend is {}", json::name_of(task_.backend));
  observed().candidate_failure = std::move(failure);
  return false;
}

void Evaluation::progress(task::Stage stage, const std::string& detail) const {
  if (!options_.on_progress) return;
  options_.on_progress({stage, detail, gpu_ == nullptr ? "cpu" : "cuda:" + gpu_->device().uuid});
}

GuestProcess::Outcome Evaluation::ask_candidate(const guest::Request& request,
                                                std::span<const int> fds,
                                                task::Stage stage,
                                                std::uint64_t max_block_bytes) {
  const double stage_left_s = limit_of(stage, task_.limits) - stage_s_[stage];
  const double left_s = std::min(stage_left_s, task_.limits.total_s - spent_s_);
  AskOptions options;
  options.stage = stage;
  options.limit = std::chrono::duration<double>(std::max(left_s, 0.0));
  options.max_block_bytes = max_block_bytes;
  options.stop = options_.stop;
  const std::int64_t begin_ns = now_ns();
  const double queued_s = candidate_->queued_s();
  GuestProcess::Outcome outcome = candidate_->ask(request, fds, options);
  const double request_s = static_cast<double>(now_ns() - begin_ns) * 1e-9;
  request_us_ = request_s * 1e6;
  const double took_s = request_s - (candidate_->queued_s() - queued_s);
  spent_s_ += took_s;
  stage_s_[stage] += took_s;
  return outcome;
}

void Evaluation::reserve_memory() {
  if (is_interpreted()) return;
  // A first guess; what the reference has needed is known once it has run.
  const std::uint64_t share = gpu_->capacity_bytes() / kFirstShare;
  const std::uint64_t known = gpu_->need_bytes(References::key_of(basis_));
  const std::uint64_t bytes = std::max(means_.memory_bytes, known > 0 ? known : share);
  progress(task::Stage::load, "waits for device memory");
  memory_ = gpu_->reserve(bytes, options_.stop);
  if (memory_.bytes() < gpu_->capacity_bytes()) return;
  // Alone: what waits for others' use is in the way.
  references_.drop_kept();
  pool_.drop_warm();
}

bool Evaluation::load_reference() {
  progress(task::Stage::load, "reference");
  reserve_memory();
  References::Outcome outcome = get_reference();
  if (auto* failure = std::get_if<task::Failure>(&outcome)) {
    note_reference_failure(std::move(*failure));
    return false;
  }
  reference_ = std::get<std::shared_ptr<Reference>>(outcome);
  result_.manifest.init_seed = reference_->init_seed();
  if (is_simple()) return load_cases();
  choose_seeds();
  return true;
}

References::Outcome Evaluation::get_reference() {
  return with_reference(task::Stage::load, [&]() -> References::Outcome {
    if (is_replay_) {
      const task::Manifest& past = *options_.replay;
      return references_.load_fresh(basis_, past.init_seed, past.trial_seeds, options_.stop);
    }
    if (!has_own_cases()) return references_.acquire(basis_, options_.stop);
    // Nobody else will ask for what a candidate brings along: it is not kept.
    const std::uint64_t init_seed = secure_random(std::uint64_t{1} << 63U);
    return references_.load_fresh(basis_, init_seed, {}, options_.stop);
  });
}

void Evaluation::note_reference_failure(task::Failure failure) {
  if (is_simple()) point_into_cases(failure);
  (has_own_cases() ? observed().candidate_failure : observed().reference_failure) =
      std::move(failure);
}

bool Evaluation::load_cases() {
  // What ages a reference's seeds ages these cases' random values.
  reference_->count_use();
  using Outcome = std::variant<std::vector<SimpleCase>, task::Failure>;
  Outcome outcome = with_reference(task::Stage::load, [&]() -> Outcome {
    auto made = reference_->trial(kCasesSeed, basis_, options_.stop);
    if (auto* failure = std::get_if<task::Failure>(&made)) return std::move(*failure);
    return read_simple_cases(std::get<std::shared_ptr<const TrialData>>(made)->inputs.view());
  });
  if (auto* failure = std::get_if<task::Failure>(&outcome)) {
    note_reference_failure(std::move(*failure));
    return false;
  }
  cases_ = std::get<std::vector<SimpleCase>>(std::move(outcome));
  choose_case_seeds();
  return true;
}

/// A case's seed is its position. The first is timed; the last comes after that, so that inputs
/// differ where there are two.
void Evaluation::choose_case_seeds() {
  task::Manifest& manifest = result_.manifest;
  manifest.trial_seeds.clear();
  for (std::uint64_t i = 0; i < cases_.size(); ++i) manifest.trial_seeds.push_back(i);
  const auto compared = std::find_if(manifest.trial_seeds.begin(),
                                     manifest.trial_seeds.end(),
                                     [&](std::uint64_t seed) { return compares(seed); });
  manifest.contribution_seed = compared == manifest.trial_seeds.end() ? 0 : *compared;
  manifest.timing_seed = 0;
  manifest.final_seed = manifest.trial_seeds.back();
}

bool Evaluation::detects() const {
  if (candidate_->prepared() && !candidate_->prepared()->drop_problem.empty()) return false;
  if (!is_simple()) return true;
  return task_.policy.ownership != task::Ownership::free &&
         compares(result_.manifest.contribution_seed.value());
}

void Evaluation::choose_seeds() {
  task::Manifest& manifest = result_.manifest;
  if (is_replay_) {
    manifest.trial_seeds = options_.replay->trial_seeds;
    manifest.contribution_seed = options_.replay->contribution_seed;
    manifest.timing_seed = options_.replay->timing_seed;
    manifest.final_seed = options_.replay->final_seed;
    return;
  }
  const bool all_given = task_.policy.correctness == task::Correctness::kernelgym;
  Reference::Seeds seeds =
      reference_->draw_seeds(task_.num_correct_trials, all_given, task_.measure_performance);
  manifest.contribution_seed = seeds.contribution;
  manifest.timing_seed = seeds.timing;
  manifest.final_seed = seeds.last;
  manifest.trial_seeds = std::move(seeds.trials);
}

void Evaluation::note_feature(const std::string& name, const std::string& problem) {
  if (problem.empty()) {
    result_.isolation.enforced.push_back(name);
  } else {
    result_.isolation.missing.push_back({name, problem});
  }
}

bool Evaluation::load_candidate() {
  progress(task::Stage::load, "candidate");
  sandbox::Limits limits;
  limits.memory_bytes = task_.limits.memory_bytes;
  limits.tmp_bytes = task_.limits.tmp_bytes;
  const double start_ms = elapsed_ms();
  candidate_ = pool_.take(limits, means_.queues);
  note_wait("guest", start_ms);
  if (candidate_->prepared()) observed().launch_problem = candidate_->prepared()->launch_problem;
  // Nobody sees its streams then.
  if (!observed().launch_problem.empty() && needs_queues(guest::kManyStreams)) return false;
  result_.isolation = isolation_of(candidate_->isolation());
  note_feature("code_watch", candidate_->settled().memory_problem);
  note_feature("channel_guard", candidate_->settled().channel_problem);
  if (task_.policy.require_isolation && !result_.isolation.missing.empty()) {
    const task::MissingIsolation& first = result_.isolation.missing.front();
    throw Error(ErrorCode::unavailable,
                fmt::format("isolation was required, but {} is missing ({}); `drk doctor` lists "
                            "what this machine can enforce",
                            first.feature,
                            first.why));
  }
  const Fd source = make_sealed_memory("candidate", std::as_bytes(std::span(task_.candidate_code)));
  const WritableCopy arguments = copy_memory(reference_->init_inputs());
  const std::array fds = {source.get(), arguments.memory.get()};
  guest::LoadCandidate request;
  request.entry_point = task_.candidate_entry_point();
  request.init_seed = reference_->init_seed();
  request.init_inputs = reference_->init_inputs().bundle;
  request.own_init_inputs = is_simple() && task_.cases_source() != task::CasesSource::cases_code;
  auto outcome = ask_candidate(request, fds, task::Stage::load);
  if (auto* failure = std::get_if<task::Failure>(&outcome)) {
    observed().candidate_failure = std::move(*failure);
    return false;
  }
  const auto& answer = std::get<GuestProcess::Answer>(outcome);
  if (!is_simple()) compare_parameters(std::get<guest::Loaded>(answer.reply).parameters);
  return true;
}

void Evaluation::compare_parameters(const std::vector<std::string>& candidate) {
  const std::vector<std::string>& reference = reference_->parameters();
  const auto missing_from = [](const std::vector<std::string>& list, const std::string& item) {
    return std::find(list.begin(), list.end(), item) == list.end();
  };
  for (const std::string& parameter : reference) {
    if (missing_from(candidate, parameter)) {
      observed().parameter_differences.push_back("the candidate lacks " + parameter);
    }
  }
  for (const std::string& parameter : candidate) {
    if (missing_from(reference, parameter)) {
      observed().parameter_differences.push_back("the reference lacks " + parameter);
    }
  }
}

bool Evaluation::restrict_candidate() {
  const auto outcome = ask_candidate(guest::Restrict{}, {}, task::Stage::correctness);
  if (const auto* failure = std::get_if<task::Failure>(&outcome)) {
    observed().candidate_failure = *failure;
    return false;
  }
  const auto& answer = std::get<GuestProcess::Answer>(outcome);
  if (!std::get<guest::Restricted>(answer.reply).in_force) {
    result_.isolation.missing.push_back(
        {json::name_of(sandbox::Feature::seccomp), "the filter that follows warm-up was refused"});
  }
  return true;
}

bool Evaluation::check_correctness() {
  const std::vector<std::uint64_t>& seeds = result_.manifest.trial_seeds;
  grad_modes_ = choose_grad_modes();
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    progress(task::Stage::correctness, fmt::format("trial {} of {}", i + 1, seeds.size()));
    CallPlan plan;
    plan.seed = seeds[i];
    plan.grad = grad_modes_[i];
    if (is_poisoned(i, seeds.size())) plan.fresh_memory = guest::FreshMemory::ones;
    if (!run_trial(plan)) return false;
    if (is_kept(*trial_data_)) trials_data_.push_back(trial_data_);
    // Warm: all code that a call needs is there now.
    if (i == 0 && !restrict_candidate()) return false;
  }
  observed().degenerate = find_degeneracy();
  if (!observed().degenerate.empty()) return false;
  const auto& trials = observed().trials;
  return std::none_of(trials.begin(), trials.end(), [](const task::Trial& trial) {
    return trial.comparison.mismatch.has_value();
  });
}

bool Evaluation::is_poisoned(std::size_t trial, std::size_t trials) const {
  // On a GPU each such call costs the driver some milliseconds: two of them.
  return is_interpreted() || trial == trials - 1 || trial == trials / 2;
}

std::string Evaluation::find_degeneracy() const {
  constexpr std::size_t kLeast = 3;  // fewer may be alike by chance
  constexpr std::uint64_t kTelling = 8;
  std::uint64_t elements = 0;
  if (is_simple() || trials_data_.size() < kLeast) return "";
  const Block& first = trials_data_.front()->expected;
  for (const value::Tensor& tensor : first.bundle.tensors) {
    elements += static_cast<std::uint64_t>(value::element_count(tensor));
  }
  if (elements < kTelling) return "";
  const auto is_right_everywhere = [&](const value::View& answer) {
    return std::all_of(trials_data_.begin(), trials_data_.end(), [&](const auto& data) {
      const value::Bundle& bundle = data->expected.bundle;
      return bundle == *answer.bundle && !compare_output(*data, answer).mismatch;
    });
  };
  const std::vector<std::byte> zeros(first.bundle.block_bytes);
  if (is_right_everywhere({&first.bundle, zeros})) {
    return fmt::format("an output of zeros is right in all {} trials", trials_data_.size());
  }
  if (is_right_everywhere(first.view())) {
    return fmt::format("the first trial's output is right in all {} trials, whatever the input",
                       trials_data_.size());
  }
  return "";
}

bool Evaluation::detect() {
  progress(task::Stage::detect, "does the kernel matter?");
  CallPlan plan;
  plan.stage = task::Stage::detect;
  plan.seed = result_.manifest.contribution_seed.value();
  plan.launches = guest::LaunchMode::drop;
  task::Contribution contribution;
  contribution.seed = plan.seed;
  for (const auto memory : {guest::FreshMemory::zeros, guest::FreshMemory::ones}) {
    plan.fresh_memory = memory;
    const std::optional<CallResult> result = call_candidate(plan);
    if (!result) {
      // Without its kernels' results a model may well raise: then they mattered.
      auto& failure = observed().candidate_failure;
      if (!failure || failure->kind != task::FailureKind::call_error) return false;
      failure.reset();
      contribution.call_failed = true;
      break;
    }
    // A graph that was captured earlier runs its kernels all the same: nothing is learnt.
    if (result->called.kept_launches > 0) return true;
    contribution.dropped_launches = result->called.dropped_launches;
    if (!result->trials.front().comparison.mismatch) {
      contribution.output_still_right = true;
      contribution.memory = json::name_of(memory);
      break;
    }
  }
  observed().contribution = contribution;
  return true;
}

bool Evaluation::time_calls() {
  const std::uint32_t calls =
      is_interpreted() ? std::min(task_.num_perf_trials, lane_.options.interpreter_timed_calls)
                       : task_.num_perf_trials;
  progress(task::Stage::time, fmt::format("up to {} calls", calls));
  CallPlan plan;
  plan.stage = task::Stage::time;
  plan.seed = result_.manifest.timing_seed.value();
  plan.calls = calls;
  plan.purpose = guest::CallPurpose::time;
  choose_sampled_calls(plan);
  std::optional<CallResult> timed_calls = call_candidate(plan);
  if (!timed_calls) return false;
  task::ClockCheck& clock = observed().clock.emplace();
  clock.request_us = request_us_;
  for (const double us : timed_calls->called.times.us) clock.timed_us += us;
  observed().candidate_times = std::move(timed_calls->called.times);
  look_at_code();
  observed().timed_work = timed_calls->called.work;
  // They count as trials: a candidate that froze its answer meanwhile is wrong.
  note_trials(*timed_calls);
  if (!run_last_trials()) return false;
  if (is_simple()) return true;  // nothing to be faster than
  progress(task::Stage::time, "reference");
  Reference::TimesOutcome reference = reference_->times(basis_, calls, options_.stop);
  if (auto* failure = std::get_if<task::Failure>(&reference)) {
    note_reference_failure(std::move(*failure));
    return false;
  }
  observed().reference_times = std::get<task::TimedCalls>(std::move(reference));
  return true;
}

bool Evaluation::run_last_trials() {
  progress(task::Stage::time, "last trial");
  const task::Manifest& manifest = result_.manifest;
  for (std::size_t i = manifest.trial_seeds.size(); i < grad_modes_.size(); ++i) {
    const bool is_last = i == grad_modes_.size() - 1;
    CallPlan plan;
    plan.stage = task::Stage::time;
    plan.seed = is_last ? manifest.final_seed.value() : manifest.trial_seeds.back();
    plan.rewrite_inputs = true;
    plan.grad = grad_modes_[i];
    if (!run_trial(plan)) return false;
  }
  return true;
}

std::vector<task::GradMode> Evaluation::choose_grad_modes() const {
  using task::GradMode;
  constexpr std::size_t kAll = 3;  // modes, the first call's being the usual one
  const task::Manifest& manifest = result_.manifest;
  const std::size_t trials = manifest.trial_seeds.size();
  const std::size_t least = is_simple() ? 0 : kAll;
  // A first call is as everybody makes it: code warms up there.
  std::vector<GradMode> modes(task_.measure_performance ? std::max(trials + 1, least) : trials);
  if (is_simple() || modes.size() < 2) return modes;
  std::mt19937_64 random(manifest.contribution_seed.value() ^ manifest.final_seed.value());
  for (std::size_t i = 1; i < modes.size(); ++i) {
    const GradMode others[] = {GradMode::off, GradMode::off, GradMode::on, GradMode::inference};
    modes[i] = others[random() % std::size(others)];
  }
  std::array unusual = {GradMode::on, GradMode::inference};
  if (random() % 2 == 0) std::swap(unusual[0], unusual[1]);
  const std::size_t places = modes.size() - 1;
  const std::size_t place = random() % places;
  modes[1 + place] = unusual[0];
  if (places > 1) modes[1 + (place + 1 + random() % (places - 1)) % places] = unusual[1];
  return modes;
}

bool Evaluation::profiles() const {
  return !is_interpreted() && result_.observations.launch_problem.empty();
}

bool Evaluation::profile() {
  progress(task::Stage::profile, "kernel records");
  CallPlan plan;
  plan.stage = task::Stage::profile;
  plan.seed = result_.manifest.final_seed.value();  // whose inputs it has in hand
  plan.rewrite_inputs = true;
  plan.calls = kProfiledCalls;
  plan.purpose = guest::CallPurpose::profile;
  std::optional<CallResult> result = call_candidate(plan);
  if (!result) return false;
  observed().profile = std::move(result->called.profile);
  note_trials(*result);
  return true;
}

}  // namespace drk::worker
