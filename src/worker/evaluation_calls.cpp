// SPDX-License-Identifier: Apache-2.0
// Calls of the candidate: what they are given, what is held against their outputs, what explains a
// wrong one.
#include "drk/base/error.h"
#include "drk/base/json.h"
#include "drk/judge.h"

#include "worker/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>

namespace drk::worker {

namespace {

constexpr std::uint64_t kNeedSlackBytes = std::uint64_t{512} << 20;
constexpr std::uint64_t kKeptBytes = std::uint64_t{64} << 20;  // of one output or trial

/// The candidate may answer with so much more than the reference before we stop reading.
std::uint64_t output_limit(const Block& expected) {
  constexpr std::uint64_t kSlackBytes = std::uint64_t{64} << 20;
  return expected.bundle.block_bytes * 2 + kSlackBytes;
}

/// Of the calls whose outputs were asked for, in order, those that were made.
std::vector<std::uint32_t> calls_to_keep(const guest::Call& call, std::size_t made) {
  const std::set<std::uint32_t> calls(call.sampled_calls.begin(), call.sampled_calls.end());
  return {calls.begin(), calls.lower_bound(static_cast<std::uint32_t>(made))};
}

/// The outputs of the sampled calls, or that of the last. Throws Error{corrupt}.
std::vector<value::Bundle> split_outputs(const guest::Call& call, const value::Bundle& bundle) {
  if (call.sampled_calls.empty()) return {bundle};
  const value::Node& root = bundle.root;
  if (root.kind != value::NodeKind::list) {
    throw Error(ErrorCode::corrupt, "it answered with other outputs than it was asked for");
  }
  std::vector<value::Bundle> outputs;
  for (const value::Node& item : root.items) {
    outputs.push_back({item, bundle.tensors, bundle.block_bytes});
  }
  return outputs;
}

/// Whether the outputs of `calls` calls, like the expected one, can be described in one message.
bool fit_one_message(const TrialData& data, std::size_t calls) {
  return value::description_bytes(data.expected.bundle) * calls <= guest::kMaxDescriptionBytes;
}

task::Comparison bad_leaf_comparison(const guest::BadLeaf& leaf) {
  task::Mismatch mismatch;
  mismatch.kind = leaf.kind;
  mismatch.path = leaf.path;
  mismatch.expected = "a plain tensor or scalar";
  mismatch.got = leaf.what;
  task::Comparison comparison;
  comparison.mismatch = std::move(mismatch);
  return comparison;
}

}  // namespace

bool Evaluation::is_kept(const TrialData& data) noexcept {
  return data.bytes() <= kKeptBytes;
}

const SimpleCase* Evaluation::case_of(std::uint64_t seed) const {
  return is_simple() ? &cases_.at(seed) : nullptr;
}

bool Evaluation::compares(std::uint64_t seed) const {
  const SimpleCase* simple_case = case_of(seed);
  return simple_case == nullptr || (task_.check_correctness && simple_case->has_outputs);
}

Evaluation::GpuRight Evaluation::wait_for_gpu(const CallPlan& plan) {
  GpuRight right;
  if (is_interpreted()) return right;
  const double start_ms = elapsed_ms();
  if (plan.purpose != guest::CallPurpose::run) {
    right.measuring = gpu_->measure(options_.stop);
    note_wait("gpu_alone", start_ms);
  } else if (was_called_) {
    right.running = gpu_->run(options_.stop);
    note_wait("gpu", start_ms);
  }
  // The first call compiles: seconds of the CPU in which others may measure.
  return right;
}

bool Evaluation::take_trial_data(task::Stage stage, std::uint64_t seed) {
  if (trial_data_ && trial_data_->seed == seed) return true;
  trial_data_.reset();  // before the next: one of a large problem takes many GiB
  auto made = with_reference(stage, [&] { return reference_->trial(seed, basis_, options_.stop); });
  if (auto* failure = std::get_if<task::Failure>(&made)) {
    note_reference_failure(std::move(*failure));
    return false;
  }
  trial_data_ = std::get<std::shared_ptr<const TrialData>>(std::move(made));
  return true;
}

std::optional<Evaluation::CallResult> Evaluation::call_candidate(const CallPlan& plan) {
  if (!take_trial_data(plan.stage, plan.seed)) return std::nullopt;
  const TrialData& data = *trial_data_;
  if (!is_interpreted()) note_need();
  guest::Call call;
  give_inputs(data, plan.rewrite_inputs, call);
  call.forward_seed = data.forward_seed;
  if (plan.purpose == guest::CallPurpose::time) {
    ask_for_times(call, task_, plan.calls, !is_interpreted());
  } else {
    call.purpose = plan.purpose;
    call.calls = call.min_calls = plan.calls;
  }
  call.grad = plan.grad;
  call.launches = plan.launches;
  call.fresh_memory = plan.fresh_memory;
  call.want_output = compares(plan.seed);
  call.sampled_calls = plan.sampled_calls;
  call.change_seeds = plan.change_seeds;
  call.max_output_bytes = output_limit(data.expected);
  std::vector<int> fds;
  if (!call.same_inputs) fds.push_back(inputs_.memory.get());
  // The guest may hand over this much for each output that was asked for.
  const std::uint64_t outputs = std::max<std::size_t>(1, call.sampled_calls.size());
  GpuRight right = wait_for_gpu(plan);
  auto outcome = ask_candidate(call, fds, plan.stage, call.max_output_bytes * outputs);
  right = {};
  was_called_ = true;
  if (auto* failure = std::get_if<task::Failure>(&outcome)) {
    observed().candidate_failure = std::move(*failure);
    return std::nullopt;
  }
  try {
    CallResult result = examine(plan, call, std::get<GuestProcess::Answer>(std::move(outcome)));
    if (needs_queues(result.called.streams)) return std::nullopt;
    return result;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt) throw;
    observed().candidate_failure = protocol_failure(plan.stage, error);
    return std::nullopt;
  }
}

Evaluation::CallResult Evaluation::examine(const CallPlan& plan,
                                           const guest::Call& call,
                                           GuestProcess::Answer answer) {
  CallResult result;
  result.called = std::move(std::get<guest::Called>(answer.reply));
  const guest::Called& called = result.called;
  if (called.times.us.empty() || called.times.us.size() > plan.calls) {
    throw Error(ErrorCode::corrupt, "it answered without having called the model as it was told");
  }
  // Which calls' outputs these are.
  std::vector<std::uint32_t> numbers = {static_cast<std::uint32_t>(called.times.us.size() - 1)};
  if (!call.sampled_calls.empty()) numbers = calls_to_keep(call, called.times.us.size());
  for (const std::uint32_t number : numbers) {
    result.trials.push_back(begin_trial(plan, called, number));
  }
  task::Trial& trial = result.trials.front();
  trial.kernels = called.kernels;
  trial.outside_programs = called.outside_programs;
  for (const std::string& override : called.overrides) note_alteration(override);
  const value::View used = {&trial_data_->inputs.bundle, inputs_.mapping.bytes()};
  trial.mutated_inputs = judge::changed_leaves(trial_data_->inputs.view(), used, "inputs");
  if (trial.compared && called.bad_leaf) {
    trial.comparison = bad_leaf_comparison(*called.bad_leaf);
  } else if (trial.compared) {
    // The candidate has run: what this process says is checked, and its memory sealed, first.
    const auto block = std::make_shared<Block>(
        seal_block(std::move(result.called.output), std::move(answer.memory)));
    const std::vector<value::Bundle> outputs = split_outputs(call, block->bundle);
    if (outputs.size() != numbers.size()) {
      throw Error(ErrorCode::corrupt, "it answered with more or fewer outputs than were asked for");
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Output output = {observed().trials.size() + i, block, outputs[i]};
      judge_output(plan, numbers[i], output, result.trials[i]);
    }
  }
  return result;
}

const TrialData& Evaluation::data_of(const CallPlan& plan, std::size_t number) const {
  if (number >= plan.change_seeds.size()) return *trial_data_;
  return plan.change_seeds[number] == plan.changed.seed ? *plan.changed.data : *trial_data_;
}

task::Trial Evaluation::begin_trial(const CallPlan& plan,
                                    const guest::Called& called,
                                    std::size_t number) const {
  const TrialData& data = data_of(plan, number);
  task::Trial trial;
  trial.seed = data.seed;
  if (const SimpleCase* simple_case = case_of(data.seed)) trial.case_name = simple_case->name;
  trial.compared = compares(data.seed);
  trial.inputs = data.distribution;
  trial.grad = plan.grad;
  trial.host_us = called.times.us[number];
  if (plan.calls > 1) {
    trial.call = fmt::format("{} {} of {}{}",
                             plan.purpose == guest::CallPurpose::time ? "timed call" : "call",
                             number + 1,
                             called.times.us.size(),
                             &data != trial_data_.get() ? ", a few elements changed" : "");
  }
  return trial;
}

void Evaluation::judge_output(const CallPlan& plan,
                              std::size_t number,
                              Output output,
                              task::Trial& trial) {
  const TrialData& data = data_of(plan, number);
  trial.comparison = compare_output(data, output.view());
  if (trial.comparison.mismatch) {
    trial.is_of_other_inputs =
        &data != trial_data_.get() && !compare_output(*trial_data_, output.view()).mismatch;
    explain(plan, output.view(), trial);
  } else if (output.block->bundle.block_bytes <= kKeptBytes) {
    right_outputs_.push_back(std::move(output));
  }
}

void Evaluation::explain(const CallPlan& plan,
                         const value::View& output,
                         task::Trial& trial) const {
  // Of few numbers two may well be equal by chance.
  constexpr std::uint64_t kTelling = 8;
  if (trial.comparison.mismatch->element_count < kTelling) return;
  if (plan.fresh_memory == guest::FreshMemory::ones) {
    trial.untouched = judge::count_all_bits_set(output);
  }
  const auto right = std::find_if(right_outputs_.begin(), right_outputs_.end(), [&](const auto& r) {
    return !judge::compare(r.view(), output, judge::Tolerance{}).mismatch;
  });
  if (right != right_outputs_.end()) trial.repeats = static_cast<std::uint32_t>(right->trial);
}

task::Comparison Evaluation::compare_output(const TrialData& data,
                                            const value::View& output) const {
  const value::View expected = data.expected.view();
  if (const SimpleCase* simple_case = case_of(data.seed)) {
    const judge::Tolerance tolerance = {.atol = simple_case->atol, .rtol = simple_case->rtol};
    return judge::compare(expected, output, tolerance);
  }
  if (data.exact) return judge::compare(expected, data.exact->view(), data.budget, output);
  return judge::compare(expected, output, task_.policy.correctness);
}

void Evaluation::give_inputs(const TrialData& data, bool rewrite_inputs, guest::Call& call) {
  // Inputs whose shapes vary from seed to seed cannot be rewritten in place.
  if (rewrite_inputs && inputs_.memory && inputs_layout_ == data.inputs.bundle) {
    rewrite(inputs_, data.inputs);
    call.same_inputs = true;
    return;
  }
  inputs_ = copy_memory(data.inputs);
  inputs_layout_ = data.inputs.bundle;
  call.inputs = data.inputs.bundle;
}

bool Evaluation::run_trial(const CallPlan& plan) {
  std::optional<CallResult> result = call_candidate(plan);
  auto& failure = observed().candidate_failure;
  const bool is_usual = plan.grad == task::GradMode::off;
  if (!result && !is_usual && failure && failure->kind == task::FailureKind::call_error) {
    // Code that was written for one mode may well raise in another.
    failure.reset();
    CallPlan without = plan;
    without.grad = task::GradMode::off;
    result = call_candidate(without);
  }
  if (!result) return false;
  note_trials(*result);
  return true;
}

void Evaluation::note_trials(CallResult& result) {
  auto& trials = observed().trials;
  std::move(result.trials.begin(), result.trials.end(), std::back_inserter(trials));
}

bool Evaluation::needs_queues(std::uint32_t streams) {
  const bool needs = means_.queues == Queues::few && streams > kFewQueues &&
                     task_.measure_performance && !is_interpreted();
  if (needs) wants_ = {means_.memory_bytes, Queues::as_usual};
  return needs;
}

void Evaluation::note_need() {
  // The candidate's turn comes beside the reference's weights, and it may be less thrifty.
  const std::uint64_t need = 2 * reference_->peak_bytes() + kNeedSlackBytes;
  gpu_->note_need(References::key_of(basis_), need);
}

void Evaluation::choose_sampled_calls(CallPlan& plan) {
  constexpr std::uint32_t kAlways = 3;   // calls that are made however long they take
  constexpr std::uint32_t kMostly = 10;  // that are made unless each takes very long
  constexpr std::size_t kOutputs = 6;    // those that are chosen here, and some slack
  if (is_simple() || task_.policy.correctness == task::Correctness::kernelgym) return;
  if (plan.calls < kAlways || !take_trial_data(plan.stage, plan.seed)) return;
  if (!is_kept(*trial_data_) || !fit_one_message(*trial_data_, kOutputs)) return;
  // Drawn from the secret seed, so that a replay looks at the same calls.
  std::mt19937_64 random(plan.seed);
  const auto below = [&](std::uint32_t bound) {
    return static_cast<std::uint32_t>(random() % bound);
  };
  // Of those that are always made two find equal inputs, one after the other: they must cause equal
  // work. The third comes before or behind them.
  const std::uint32_t changed = below(2) * (kAlways - 1);
  const std::uint32_t equal = changed == 0 ? 1 : 0;
  plan.sampled_calls = {changed, equal + 1};
  std::vector<std::uint32_t> unchanged = {equal, equal + 1};
  if (plan.calls >= kAlways + 2) {
    const std::uint32_t rest = plan.calls - kAlways;
    const std::uint32_t early = below(std::min(rest, kMostly - kAlways));
    const std::uint32_t one = below(rest);
    const std::uint32_t other = (one + 1 + below(rest - 1)) % rest;
    for (const std::uint32_t call : {early, one, other}) {
      plan.sampled_calls.push_back(kAlways + call);
    }
    unchanged.push_back(kAlways + one);
  }
  change_inputs(plan, random);
  if (plan.change_seeds.empty()) return;
  // Both kinds are looked at, early and late: whatever inputs an answer is kept for, it is wrong in
  // one of them.
  for (const std::uint32_t call : plan.sampled_calls) plan.change_seeds[call] = plan.changed.seed;
  for (const std::uint32_t call : unchanged) plan.change_seeds[call] = 0;
}

void Evaluation::change_inputs(CallPlan& plan, std::mt19937_64& random) {
  constexpr std::uint32_t kUnchangedOneIn = 4;
  const std::uint64_t known = random() | 1U;  // 0 is no change
  auto made = with_reference(plan.stage, [&] {
    return reference_->changed_trial(*trial_data_, known, basis_, options_.stop);
  });
  auto* data = std::get_if<std::shared_ptr<const TrialData>>(&made);
  if (data == nullptr || !*data) return;  // none of the problem's values may be changed
  plan.changed = {known, *data};
  for (std::uint32_t i = 0; i < plan.calls; ++i) {
    plan.change_seeds.push_back(random() % kUnchangedOneIn == 0 ? 0 : random() | 1U);
  }
}

}  // namespace drk::worker
