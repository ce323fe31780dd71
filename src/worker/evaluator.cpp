// SPDX-License-Identifier: Apache-2.0
// The face of the module: parts put together, faults of this machine turned into verdicts.
#include "drk/base/clock.h"
#include "drk/base/error.h"
#include "drk/base/random.h"
#include "drk/worker.h"

#include "worker/evaluation.h"
#include "worker/lane.h"

#include <algorithm>

namespace drk::worker {

namespace {

constexpr std::uint64_t kContextBytes = std::uint64_t{640} << 20;  // that a guest holds unused
constexpr std::uint64_t kContextsInUse = 4;  // beside those that are kept for later

/// Contexts kept ahead of need may take a quarter of the device.
Options options_for(const gpu::Device& device, Options options) {
  const auto contexts = static_cast<std::uint32_t>(device.memory_bytes / 4 / kContextBytes);
  options.kept_references = std::clamp(contexts / 2, 1U, std::max(1U, options.kept_references));
  options.max_warm_guests = std::clamp(contexts / 2, 1U, std::max(1U, options.max_warm_guests));
  options.warm_guests = std::min(options.warm_guests, options.max_warm_guests);
  return options;
}

std::unique_ptr<GpuSlot> slot_of(const gpu::Device& device,
                                 const Options& options,
                                 gpu::Watch* watch) {
  const std::uint64_t contexts = kContextsInUse + options.kept_references + options.max_warm_guests;
  const std::uint64_t set_aside_bytes = std::min(contexts * kContextBytes, device.memory_bytes / 2);
  return std::make_unique<GpuSlot>(device, device.memory_bytes - set_aside_bytes, watch);
}

}  // namespace

class Evaluator::Impl {
 public:
  explicit Impl(Options options) {
    if (options.gpus.empty()) {
      lanes_.push_back(std::make_unique<Lane>(std::move(options), nullptr));
      return;
    }
    watch_ = std::make_unique<gpu::Watch>(options.gpus);
    for (const gpu::Device& device : options.gpus) {
      const Options own = options_for(device, options);
      lanes_.push_back(std::make_unique<Lane>(own, slot_of(device, own, watch_.get())));
    }
  }

  task::Result evaluate(const task::Task& task, const EvaluateOptions& options) {
    task::Task named = task;
    if (named.task_id.empty()) named.task_id = make_id("task");
    Means means;
    // A fault of this machine is tried once more: the pool has new processes for it by then, and
    // where there is another GPU, it is tried there.
    const Lane* failed = nullptr;
    for (;;) {
      const LaneUse use(choose(named, failed));
      Evaluation evaluation(use.lane, named, options, means);
      try {
        evaluation.run();
        if (!evaluation.wants()) return evaluation.take_result();
        means = *evaluation.wants();
      } catch (const Error& error) {
        if (error.code() == ErrorCode::internal || error.code() == ErrorCode::timed_out) throw;
        if (failed != nullptr) return undecided(evaluation.take_result(), error);
        failed = &use.lane;
      }
    }
  }

  [[nodiscard]] std::vector<DeviceView> devices() const {
    std::vector<DeviceView> views;
    for (const std::unique_ptr<Lane>& lane : lanes_) {
      if (lane->gpu) views.push_back(lane->gpu->view());
    }
    return views;
  }

  Environment environment() {
    Environment environment;
    Lane& lane = first_well();
    const std::shared_ptr<Zygote> zygote = lane.pool.zygote();
    environment.zygote_start_s = zygote->start_s();
    environment.versions = zygote->hello().versions;
    environment.machine = describe_machine(lane.gpu.get());
    const std::int64_t begin_ns = now_ns();
    const std::unique_ptr<GuestProcess> guest = lane.pool.take(sandbox::Limits{});
    environment.isolation = isolation_of(guest->isolation());
    environment.guest_start_ms = static_cast<double>(now_ns() - begin_ns) * 1e-6;
    return environment;
  }

 private:
  /// Counts an evaluation on a lane while it lasts.
  struct LaneUse {
    explicit LaneUse(Lane& used) : lane(used) { ++lane.evaluations; }
    LaneUse(const LaneUse&) = delete;
    LaneUse& operator=(const LaneUse&) = delete;
    ~LaneUse() { --lane.evaluations; }
    Lane& lane;
  };

  [[nodiscard]] static bool is_well(const Lane& lane) {
    return !lane.gpu || lane.gpu->view().problem.empty();
  }

  [[nodiscard]] Lane& first_well() {
    const auto found =
        std::find_if(lanes_.begin(), lanes_.end(), [](const auto& lane) { return is_well(*lane); });
    return found == lanes_.end() ? *lanes_.front() : **found;
  }

  /// The least busy one that is well; among equals one that has the reference. Another than
  /// `failed`, if any.
  [[nodiscard]] Lane& choose(const task::Task& task, const Lane* failed) {
    if (lanes_.size() == 1) return *lanes_.front();
    const std::string key = References::key_of(reference_task_of(task));
    Lane* best = nullptr;
    std::uint64_t best_load = 0;
    for (const std::unique_ptr<Lane>& lane : lanes_) {
      if (lane.get() == failed || !is_well(*lane)) continue;
      const std::uint64_t load =
          2 * std::uint64_t{lane->evaluations} + (lane->references.is_kept(key) ? 0 : 1);
      if (best != nullptr && load >= best_load) continue;
      best = lane.get();
      best_load = load;
    }
    return best == nullptr ? first_well() : *best;
  }

  [[nodiscard]] static task::Result undecided(task::Result result, const Error& error) {
    result.verdict = {};
    result.verdict.outcome = task::Undecided{error.what(), std::nullopt};
    result.verdict.fault = task::Fault::infra;
    result.manifest.outcome = task::outcome_kind(result.verdict);
    return result;
  }

  std::unique_ptr<gpu::Watch> watch_;         ///< Null without a GPU. Outlives the lanes.
  std::vector<std::unique_ptr<Lane>> lanes_;  ///< At least one.
};

Evaluator::Evaluator(Options options) {
  if (options.python.empty() || options.guest_dir.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "worker: no Python interpreter or guest folder was named");
  }
  impl_ = std::make_unique<Impl>(std::move(options));
}

Evaluator::~Evaluator() = default;

task::Result Evaluator::evaluate(const task::Task& task, const EvaluateOptions& options) {
  return impl_->evaluate(task, options);
}

std::vector<DeviceView> Evaluator::devices() const {
  return impl_->devices();
}

Environment Evaluator::environment() {
  return impl_->environment();
}

}  // namespace drk::worker
