// SPDX-License-Identifier: Apache-2.0
// The face of the module: parts put together, faults of this machine turned into verdicts.
#include "drk/base/clock.h"
#include "drk/base/error.h"
#include "drk/base/random.h"
#include "drk/worker.h"

#include "worker/evaluation.h"

namespace drk::worker {

class Evaluator::Impl {
 public:
  explicit Impl(Options options)
      : options_(std::move(options)), pool_(options_), references_(options_, pool_) {}

  task::Result evaluate(const task::Task& task, const EvaluateOptions& options) {
    task::Task named = task;
    if (named.task_id.empty()) named.task_id = make_id("task");
    // A fault of this machine is tried once more: the pool has new processes for it by then.
    for (bool is_last_attempt = false;; is_last_attempt = true) {
      Evaluation evaluation(options_, pool_, references_, named, options);
      try {
        evaluation.run();
        return evaluation.take_result();
      } catch (const Error& error) {
        if (error.code() == ErrorCode::internal || error.code() == ErrorCode::timed_out) throw;
        if (is_last_attempt) return undecided(evaluation.take_result(), error);
      }
    }
  }

  Environment environment() {
    Environment environment;
    const std::shared_ptr<Zygote> zygote = pool_.zygote();
    environment.zygote_start_s = zygote->start_s();
    environment.versions = zygote->hello().versions;
    environment.machine = describe_machine();
    const std::int64_t begin_ns = now_ns();
    const std::unique_ptr<GuestProcess> guest = pool_.take(sandbox::Limits{});
    environment.isolation = isolation_of(guest->isolation());
    environment.guest_start_ms = static_cast<double>(now_ns() - begin_ns) * 1e-6;
    return environment;
  }

 private:
  [[nodiscard]] static task::Result undecided(task::Result result, const Error& error) {
    result.verdict = {};
    result.verdict.outcome = task::Undecided{error.what(), std::nullopt};
    result.verdict.fault = task::Fault::infra;
    result.manifest.outcome = task::outcome_kind(result.verdict);
    return result;
  }

  const Options options_;
  GuestPool pool_;
  References references_;
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

Environment Evaluator::environment() {
  return impl_->environment();
}

}  // namespace drk::worker
