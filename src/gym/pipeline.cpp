// SPDX-License-Identifier: Apache-2.0
// Slots: each takes a lease, evaluates, hands in; a timer keeps the leases.
#include "gym/pipeline.h"

#include "drk/base/clock.h"
#include "drk/base/json.h"
#include "drk/task/result.h"

#include "gym/ending.h"

#include <fmt/format.h>

#include <future>
#include <pthread.h>

namespace drk::gym {

namespace {

constexpr std::chrono::seconds kIdleLook(1);  // an idle slot looks for itself, news or not
// What ails the machine may pass: a slot holds the task so long, times its attempts.
constexpr std::chrono::milliseconds kRetryPause(500);
// Beyond, nothing on this machine gets a verdict.
constexpr std::uint32_t kMaxFailuresInARow = 4;
constexpr std::chrono::milliseconds kOutagePause(5'000);
constexpr std::uint32_t kMaxStoreFailures = 20;

/// How far an evaluation is when it enters a stage, by the usual shares of its time.
double progress_at(task::Stage stage) noexcept {
  switch (stage) {
    case task::Stage::validate:
      return 0.02;
    case task::Stage::load:
      return 0.1;
    case task::Stage::correctness:
      return 0.3;
    case task::Stage::detect:
      return 0.6;
    case task::Stage::time:
      return 0.8;
    case task::Stage::profile:
      return 0.9;
  }
  return 0;
}

/// Asks the queue and waits for its answer, on a thread that may be held up. Throws its Error.
template <class T, class Ask>
T wait_for(Ask ask) {
  std::promise<std::variant<T, Error>> promise;
  ask([&promise](std::variant<T, Error> answer) { promise.set_value(std::move(answer)); });
  std::variant<T, Error> answer = promise.get_future().get();
  if (const auto* error = std::get_if<Error>(&answer)) throw Error(*error);
  return std::get<T>(std::move(answer));
}

}  // namespace

Pipeline::Pipeline(PipelineOptions options,
                   worker::Evaluator& evaluator,
                   Queue& queue,
                   Crew& crew,
                   Metrics& metrics,
                   Log& log)
    : options_(std::move(options)),
      evaluator_(evaluator),
      queue_(queue),
      crew_(crew),
      metrics_(metrics),
      log_(log) {
  for (std::size_t i = 0; i < options_.slots; ++i) {
    slots_.push_back({fmt::format("{}-{}", options_.name, i), options_.device, "", unix_now_ms()});
  }
}

void Pipeline::start() {
  renew_leases();
  for (std::size_t i = 0; i < options_.slots; ++i) {
    threads_.emplace_back([this, i](const std::stop_token& stop) { work(i, stop); });
    ::pthread_setname_np(threads_.back().native_handle(), fmt::format("drk-slot-{}", i).c_str());
  }
}

Pipeline::~Pipeline() {
  drain(std::chrono::milliseconds(0));
}

void Pipeline::on_change(const TaskView& task) {
  if (task.state == State::processing) return;
  const std::lock_guard lock(mutex_);
  if (task.state == State::pending) {
    ++news_;
    changed_.notify_all();
  }
  // Final by somebody else, or replaced by a newer task of this id. What was handed in from here
  // is told of too, and has nothing left to stop.
  for (auto& [fence, running] : running_) {
    if (running.lease.task_id == task.id) running.tell_to_stop(StopReason::not_wanted);
  }
}

std::optional<RunningView> Pipeline::running(const std::string& task_id) const {
  const std::lock_guard lock(mutex_);
  std::optional<RunningView> newest;
  for (const auto& [fence, running] : running_) {
    if (running.lease.task_id == task_id) newest = running.view;
  }
  return newest;
}

std::vector<SlotView> Pipeline::slots() const {
  const std::lock_guard lock(mutex_);
  return slots_;
}

void Pipeline::drain(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  is_draining_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, limit, [this] { return running_.empty(); });
  for (auto& [fence, running] : running_) running.tell_to_stop(StopReason::shutdown);
  lock.unlock();
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
  lock.lock();
  renewal_ = Crew::Timer();
}

void Pipeline::work(std::size_t slot, const std::stop_token& stop) noexcept {
  std::uint64_t seen = 0;
  for (;;) {
    std::string worker;
    {
      const std::lock_guard lock(mutex_);
      if (is_draining_) return;
      worker = slots_[slot].worker;
      seen = news_;
    }
    try {
      if (const std::optional<Lease> lease = take(worker)) {
        run(*lease, slot);
        continue;
      }
    } catch (const std::exception& error) {  // the store's trouble: it may pass
      log_.error("slot failed", {{"worker", worker}, {"error", error.what()}});
    }
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, kIdleLook, [&] { return is_draining_ || news_ != seen; });
  }
}

std::optional<Lease> Pipeline::take(const std::string& worker) {
  return wait_for<std::optional<Lease>>(
      [&](auto done) { queue_.lease(worker, options_.lease_s, std::move(done)); });
}

void Pipeline::enter(const Lease& lease, std::size_t slot) {
  const std::lock_guard lock(mutex_);
  Running running;
  running.lease = lease.id;
  running.view.worker = slots_[slot].worker;
  if (is_draining_) running.tell_to_stop(StopReason::shutdown);
  running_.emplace(lease.id.fence, std::move(running));
  slots_[slot].task_id = lease.id.task_id;
  slots_[slot].since_ms = unix_now_ms();
}

void Pipeline::leave(const Lease& lease, std::size_t slot) noexcept {
  const std::lock_guard lock(mutex_);
  running_.erase(lease.id.fence);
  slots_[slot].task_id.clear();
  slots_[slot].since_ms = unix_now_ms();
  ++slots_[slot].finished;
  changed_.notify_all();
}

void Pipeline::run(const Lease& lease, std::size_t slot) {
  enter(lease, slot);
  try {
    // Cancelled before it was known to be running: nobody has told us to stop.
    const std::optional<TaskView> now = queue_.find(lease.id.task_id);
    if (!now || now->state != State::processing) {
      tell_to_stop(lease.id.fence, StopReason::not_wanted);
    }
    evaluate(lease, lease.task.worker);
  } catch (const std::exception& error) {  // ours, whatever it is: the task must not be lost
    log_.error("evaluation failed", {{"task_id", lease.id.task_id}, {"error", error.what()}});
    try {
      give_up(lease, error.what());
    } catch (const std::exception& again) {  // the store's: the lease runs out, unrenewed
      log_.error("task not given back", {{"task_id", lease.id.task_id}, {"error", again.what()}});
    }
  }
  leave(lease, slot);
}

void Pipeline::evaluate(const Lease& lease, const std::string& worker) {
  const std::string& id = lease.id.task_id;
  const std::int64_t waited_ms = unix_now_ms() - lease.task.submitted_ms;
  metrics_.observe("drk_queue_wait_seconds", static_cast<double>(waited_ms) * 1e-3);
  log_.info("task started",
            {{"task_id", id},
             {"worker", worker},
             {"attempt", lease.task.attempts},
             {"queue_ms", waited_ms}});
  if (lease.cached_result) {
    Ending ending;
    ending.cached_result = lease.cached_result;
    finish(lease, std::move(ending));
    return;
  }
  Crew::Timer deadline;
  if (lease.task.deadline_ms) {
    const std::chrono::milliseconds left(*lease.task.deadline_ms - unix_now_ms());
    deadline = crew_.after(std::max(left, std::chrono::milliseconds(0)),
                           [this, lease] { end_by_deadline(lease); });
  }
  worker::EvaluateOptions options;
  {
    const std::lock_guard lock(mutex_);
    options.stop = running_.at(lease.id.fence).stop.get_token();
  }
  options.on_progress = [this, &lease](const worker::Progress& step) {
    note_progress(lease.id.fence, step);
  };
  const std::int64_t begin_ns = now_ns();
  try {
    const task::Task task = task::task_from_json(json::parse(lease.request));
    const task::Result result = evaluator_.evaluate(task, options);
    note_metrics(lease, result, static_cast<double>(now_ns() - begin_ns) * 1e-9);
    hand_in(lease, result);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timed_out) throw;
    after_stop(lease);
  }
}

void Pipeline::hand_in(const Lease& lease, const task::Result& result) {
  Decision decision = decide_ending(result);
  if (decision.is_infra) {
    GiveBack how;
    how.why = decision.what;
    how.dead_result = decision.ending.result;
    how.trouble = Trouble{TroubleKind::infra, decision.what};
    retry(lease, std::move(how));
    return;
  }
  note_verdict();
  const State state = decision.ending.state;
  if (!finish(lease, std::move(decision.ending))) return;
  log_.info("task finished",
            {{"task_id", lease.id.task_id},
             {"fence", lease.id.fence},
             {"status", json::name_of(state)},
             {"outcome", decision.outcome}});
}

void Pipeline::give_up(const Lease& lease, const std::string& what) {
  GiveBack how;
  how.why = what;
  how.dead_result = result_without_verdict(State::failed, what);
  how.trouble = Trouble{TroubleKind::infra, what};
  retry(lease, std::move(how));
}

void Pipeline::retry(const Lease& lease, GiveBack how) {
  metrics_.count("drk_attempts_given_back_total", {{"cause", "infra"}});
  log_.warn("attempt gave no verdict",
            {{"task_id", lease.id.task_id}, {"attempt", lease.task.attempts}, {"why", how.why}});
  {
    std::unique_lock lock(mutex_);
    ++failures_in_a_row_;
    problem_ = how.why;
    // Every evaluation fails: it is not this task, and must not cost it its attempts.
    const bool is_outage = failures_in_a_row_ > kMaxFailuresInARow;
    how.counts = !is_outage;
    const auto pause = is_outage ? kOutagePause : lease.task.attempts * kRetryPause;
    changed_.wait_for(lock, pause, [this] { return is_draining_; });
  }
  give_back(lease, std::move(how));
}

void Pipeline::note_verdict() {
  const std::lock_guard lock(mutex_);
  failures_in_a_row_ = 0;
  problem_.clear();
}

std::string Pipeline::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

void Pipeline::end_by_deadline(const Lease& lease) {
  std::string stage;
  if (const std::optional<RunningView> running = this->running(lease.id.task_id)) {
    stage = running->stage;
  }
  Ending ending;
  ending.state = State::timeout;
  ending.is_no_verdict = true;
  ending.result = result_without_verdict(
      State::timeout,
      fmt::format("the deadline passed during {}, after {:.1f} s in all",
                  stage.empty() ? "the start" : stage,
                  static_cast<double>(unix_now_ms() - lease.task.submitted_ms) * 1e-3));
  // At once, whatever the evaluation is busy with; it hears of it as of any other end.
  queue_.finish(lease.id, std::move(ending), [this, id = lease.id.task_id](const auto& answer) {
    const bool* is_ended = std::get_if<bool>(&answer);
    if (is_ended != nullptr && *is_ended) {
      log_.info("task finished", {{"task_id", id}, {"status", "timeout"}});
    }
  });
}

void Pipeline::after_stop(const Lease& lease) {
  StopReason reason = StopReason::none;
  std::string stage;
  {
    const std::lock_guard lock(mutex_);
    const Running& running = running_.at(lease.id.fence);
    reason = running.reason;
    stage = running.view.stage;
  }
  switch (reason) {
    case StopReason::none:
    case StopReason::not_wanted:
      log_.info("evaluation stopped", {{"task_id", lease.id.task_id}, {"stage", stage}});
      return;
    case StopReason::shutdown: {
      GiveBack how;
      how.counts = false;
      how.why = "the server stopped";
      give_back(lease, std::move(how));
      log_.info("task given back", {{"task_id", lease.id.task_id}});
      return;
    }
  }
}

bool Pipeline::finish(const Lease& lease, Ending ending) {
  for (std::uint32_t failures = 0;; ++failures) {
    try {
      return wait_for<bool>([&](auto done) { queue_.finish(lease.id, ending, std::move(done)); });
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unavailable || failures == kMaxStoreFailures) throw;
      log_.error("end not stored", {{"task_id", lease.id.task_id}, {"error", error.what()}});
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kRetryPause, [this] { return is_draining_; });
    }
  }
}

bool Pipeline::give_back(const Lease& lease, GiveBack how) {
  return wait_for<bool>(
      [&](auto done) { queue_.give_back(lease.id, std::move(how), std::move(done)); });
}

void Pipeline::tell_to_stop(std::uint64_t fence, StopReason reason) {
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(fence);
  if (found != running_.end()) found->second.tell_to_stop(reason);
}

void Pipeline::note_progress(std::uint64_t fence, const worker::Progress& step) {
  const std::lock_guard lock(mutex_);
  RunningView& view = running_.at(fence).view;
  view.stage = json::name_of(step.stage);
  view.detail = step.detail;
  view.device = step.device;
  view.progress = progress_at(step.stage);
}

void Pipeline::renew_leases() {
  std::vector<LeaseId> leases;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, running] : running_) leases.push_back(running.lease);
    const auto interval = std::chrono::duration<double>(options_.lease_s / 3);
    renewal_ = crew_.after(std::chrono::duration_cast<std::chrono::milliseconds>(interval),
                           [this] { renew_leases(); });
  }
  if (leases.empty()) return;
  queue_.renew(
      leases, options_.lease_s, [this, leases](const std::variant<std::vector<bool>, Error>& held) {
        const auto* answers = std::get_if<std::vector<bool>>(&held);
        if (answers == nullptr) return;  // asked again in a while
        for (std::size_t i = 0; i < leases.size(); ++i) {
          if (!(*answers)[i]) tell_to_stop(leases[i].fence, StopReason::not_wanted);
        }
      });
}

void Pipeline::note_metrics(const Lease& lease, const task::Result& result, double seconds) {
  metrics_.observe("drk_evaluation_seconds", seconds);
  for (const task::Span& span : result.timeline) {
    metrics_.observe("drk_stage_seconds", span.duration_ms * 1e-3, {{"stage", span.name}});
  }
  metrics_.count("drk_verdicts_total", {{"outcome", task::outcome_kind(result.verdict)}});
  for (const task::Finding& finding : result.verdict.findings) {
    metrics_.count(
        "drk_findings_total",
        {{"reason", json::name_of(finding.reason)}, {"severity", json::name_of(finding.severity)}});
  }
  if (const std::string cause = death_cause(result); !cause.empty()) {
    metrics_.count("drk_guest_deaths_total", {{"cause", cause}});
    log_.warn("guest died", {{"task_id", lease.id.task_id}, {"cause", cause}});
  }
}

}  // namespace drk::gym
