// SPDX-License-Identifier: Apache-2.0
// One evaluation: the stages, in order, and what each leaves in the result.
#pragma once

#include "drk/base/error.h"
#include "drk/worker.h"

#include "worker/lane.h"
#include "worker/simple_reference.h"

#include <map>
#include <random>
#include <type_traits>

namespace drk::worker {

/// What an evaluation is given of its device.
struct Means {
  std::uint64_t memory_bytes = 0;  ///< 0: what its reference is known to need.
  Queues queues = Queues::few;
};

class Evaluation {
 public:
  Evaluation(Lane& lane, const task::Task& task, const EvaluateOptions& options, Means means);

  /// Runs every stage that makes sense after the one before and decides. Throws Error when this
  /// machine (not the candidate, not the problem) cannot go on; `result()` is then incomplete.
  void run();
  [[nodiscard]] task::Result take_result() { return std::move(result_); }
  /// With more it may well run, or run faster: the result is worth nothing then. A model found no
  /// device memory although others held some; it uses more streams than it has queues.
  [[nodiscard]] const std::optional<Means>& wants() const noexcept { return wants_; }

 private:
  // The stages; each false when nothing after it makes sense.
  [[nodiscard]] bool validate();
  [[nodiscard]] bool load_reference();
  [[nodiscard]] bool load_cases();  ///< The second half of it, of kernel_simple.
  [[nodiscard]] bool load_candidate();
  [[nodiscard]] bool check_correctness();
  [[nodiscard]] bool detect();
  [[nodiscard]] bool time_calls();
  [[nodiscard]] bool profiles() const;
  [[nodiscard]] bool profile();
  void finish_candidate(bool complete);  ///< Whether all that was to be done was done.

  /// Of its isolation: in force where there is no problem.
  void note_feature(const std::string& name, const std::string& problem);
  void note_alteration(const std::string& what);
  /// Notes what became of the machine code that was there before the candidate's.
  void look_at_code();
  /// After its last call: the process still answers, and its clock runs as ours.
  void hold_clock_against_ours();

  /// One call of the candidate on the inputs of `seed`, compared with what the reference made, or
  /// with what the case says.
  struct CallPlan {
    task::Stage stage = task::Stage::correctness;
    std::uint64_t seed = 0;
    guest::LaunchMode launches = guest::LaunchMode::run;
    guest::FreshMemory fresh_memory = guest::FreshMemory::as_is;
    std::uint32_t calls = 1;
    bool rewrite_inputs = false;  ///< In place: same objects, same pointers, new values.
    task::GradMode grad = task::GradMode::off;
    guest::CallPurpose purpose = guest::CallPurpose::run;
    /// See guest::Call. The sampled calls find the values of the seed or, where their change is not
    /// 0, those of `changed`.
    std::vector<std::uint32_t> sampled_calls;
    std::vector<std::uint64_t> change_seeds;
    struct {
      std::uint64_t seed = 0;
      std::shared_ptr<const TrialData> data;
    } changed;  ///< The one change that the reference has answered.
  };
  struct CallResult {
    std::vector<task::Trial> trials;  ///< The sampled calls, or the last one.
    guest::Called called;
  };
  struct Output {
    std::size_t trial = 0;  ///< Its place among the observations' trials.
    std::shared_ptr<const Block> block;
    value::Bundle bundle;  ///< A part of the block's.

    [[nodiscard]] value::View view() const noexcept { return {&bundle, block->mapping.bytes()}; }
  };
  /// Empty when it failed; the failure is then in the observations.
  [[nodiscard]] std::optional<CallResult> call_candidate(const CallPlan& plan);
  /// What the candidate's call is given: new memory, or the last call's rewritten.
  void give_inputs(const TrialData& data, bool rewrite_inputs, guest::Call& call);
  [[nodiscard]] bool run_trial(const CallPlan& plan);
  /// What the call has given, judged. Throws Error{corrupt} when the guest lies.
  [[nodiscard]] CallResult examine(const CallPlan& plan,
                                   const guest::Call& call,
                                   GuestProcess::Answer answer);
  /// The values that a call found in its inputs.
  [[nodiscard]] const TrialData& data_of(const CallPlan& plan, std::size_t number) const;
  /// One call, not compared yet.
  [[nodiscard]] task::Trial begin_trial(const CallPlan& plan,
                                        const guest::Called& called,
                                        std::size_t number) const;
  void judge_output(const CallPlan& plan, std::size_t number, Output output, task::Trial& trial);
  [[nodiscard]] task::Comparison compare_output(const TrialData& data,
                                                const value::View& output) const;
  /// A wrong output that is an earlier right one, or holds what new memory held.
  void explain(const CallPlan& plan, const value::View& output, task::Trial& trial) const;
  void note_trials(CallResult& result);
  /// Takes the values of a seed, made now or kept. False when that failed.
  [[nodiscard]] bool take_trial_data(task::Stage stage, std::uint64_t seed);
  /// Small enough to be held until the end.
  [[nodiscard]] static bool is_kept(const TrialData& data) noexcept;
  /// Of the trials, and of those that follow the timed calls. Each mode is among them, from three
  /// on; where it is, nobody can know beforehand, and a replay finds it again.
  [[nodiscard]] std::vector<task::GradMode> choose_grad_modes() const;
  /// Trials behind the timed calls: what a candidate froze meanwhile is wrong there.
  [[nodiscard]] bool run_last_trials();
  /// Chooses the timed calls whose outputs are looked at: nobody can know them beforehand.
  void choose_sampled_calls(CallPlan& plan);
  /// Has most of the plan's calls find a few elements changed, and `plan.changed` be what the
  /// reference has answered to one change; none where the problem does not take that.
  void change_inputs(CallPlan& plan, std::mt19937_64& random);
  /// An answer that does not look at its input, and is right everywhere.
  [[nodiscard]] std::string find_degeneracy() const;
  /// Of kernel_simple: the case that a seed stands for, and whether its output is compared.
  [[nodiscard]] const SimpleCase* case_of(std::uint64_t seed) const;
  [[nodiscard]] bool compares(std::uint64_t seed) const;

  [[nodiscard]] bool is_simple() const noexcept {
    return task_.workflow == task::Workflow::kernel_simple;
  }
  /// The cases are the candidate's own: what goes wrong with them is held against it.
  [[nodiscard]] bool has_own_cases() const noexcept {
    return is_simple() && task_.cases_source() == task::CasesSource::kernel_code;
  }
  void note_reference_failure(task::Failure failure);
  /// Lets the reference's guest work. One that runs the candidate's own cases may lie as the
  /// candidate's may: a corrupt answer is then a failure of the candidate. `work` returns a variant
  /// that can hold one.
  template <class Work>
  [[nodiscard]] std::invoke_result_t<Work> with_reference(task::Stage stage, const Work& work);
  /// Whether the candidate's kernels must have mattered, and where that can be found out.
  [[nodiscard]] bool detects() const;

  [[nodiscard]] References::Outcome get_reference();
  void choose_seeds();
  void choose_case_seeds();
  void compare_parameters(const std::vector<std::string>& candidate);

  void progress(task::Stage stage, const std::string& detail) const;
  /// Asks within what is left to the stage and to the whole evaluation. Only the candidate's own
  /// time counts: neither the start of Python nor the reference's work is held against it.
  [[nodiscard]] GuestProcess::Outcome ask_candidate(const guest::Request& request,
                                                    std::span<const int> fds,
                                                    task::Stage stage,
                                                    std::uint64_t max_block_bytes = 0);
  /// Whether new memory has all bits set in a trial.
  [[nodiscard]] bool is_poisoned(std::size_t trial, std::size_t trials) const;
  [[nodiscard]] bool restrict_candidate();
  [[nodiscard]] task::Observations& observed() noexcept { return result_.observations; }
  [[nodiscard]] double elapsed_ms() const noexcept;
  /// Runs a stage and notes it in the timeline; what the stage returned.
  [[nodiscard]] bool timed(const std::string& name, const std::function<bool()>& stage);

  /// A span of its own, within a stage's, for what was waited since then.
  void note_wait(const std::string& what, double start_ms);

  /// The right to the GPU that a call needs; held until the call is over.
  struct GpuRight {
    GpuSlot::Running running;
    GpuSlot::Measuring measuring;
  };
  [[nodiscard]] GpuRight wait_for_gpu(const CallPlan& plan);
  void reserve_memory();
  void note_need();
  /// True when times would suffer from the few queues that it has.
  [[nodiscard]] bool needs_queues(std::uint32_t streams);
  void note_xids();
  /// Out of memory while others had some: not the model's own limit yet.
  void note_memory_failure();
  [[nodiscard]] bool is_interpreted() const noexcept { return gpu_ == nullptr; }

  Lane& lane_;
  GpuSlot* const gpu_;  ///< Null: by the interpreter.
  GuestPool& pool_;
  References& references_;
  const task::Task& task_;
  const task::Task basis_;  ///< What the reference guest works by: `task_`, or its cases'.
  const EvaluateOptions& options_;
  const bool is_replay_;  ///< With recorded seeds.
  const std::int64_t begin_ns_;
  double spent_s_ = 0;                     ///< By the candidate, in all.
  double request_us_ = 0;                  ///< Its last request, by our clock.
  std::map<task::Stage, double> stage_s_;  ///< By stage.

  const Means means_;
  std::optional<Means> wants_;
  GpuSlot::Memory memory_;
  bool was_called_ = false;  ///< Its first call, which compiles, is over.

  std::shared_ptr<Reference> reference_;  ///< Shared with the cache and other evaluations.
  std::vector<SimpleCase> cases_;         ///< Of kernel_simple.
  std::unique_ptr<GuestProcess> candidate_;
  std::shared_ptr<const TrialData> trial_data_;  ///< Of the last call; shared with the cache.
  /// Of the correctness trials, while they are small enough to be kept.
  std::vector<std::shared_ptr<const TrialData>> trials_data_;
  std::vector<Output> right_outputs_;       ///< Likewise.
  std::vector<task::GradMode> grad_modes_;  ///< See choose_grad_modes().
  value::Bundle inputs_layout_;             ///< Of `inputs_`.
  WritableCopy inputs_;                     ///< What the candidate's last call was given.
  task::Result result_;
};

/// A guest that answered with what our core never sends.
[[nodiscard]] task::Failure protocol_failure(task::Stage stage, const Error& error);

template <class Work>
std::invoke_result_t<Work> Evaluation::with_reference(task::Stage stage, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::corrupt || !has_own_cases()) throw;
    return protocol_failure(stage, error);
  }
}

/// What this machine is, for manifests.
[[nodiscard]] task::Machine describe_machine(const GpuSlot* gpu);
[[nodiscard]] task::Isolation isolation_of(const sandbox::Report& report);

}  // namespace drk::worker
