// SPDX-License-Identifier: Apache-2.0
// The workers of this process: take leases, evaluate, hand in what came of it.
#pragma once

#include "drk/gym/queue.h"
#include "drk/worker.h"

#include "gym/crew.h"
#include "gym/log.h"
#include "gym/metrics.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace drk::gym {

struct PipelineOptions {
  std::uint32_t slots = 2;  ///< Evaluations side by side.
  std::string name = "local";
  std::string device = "cpu";
  double lease_s = 30;  ///< Renewed every third of it.
};

/// What a running task is at.
struct RunningView {
  std::string worker;
  std::string stage;
  std::string detail;
  std::string device;
  double progress = 0;  ///< 0 to 1
};

/// One of the places where evaluations run.
struct SlotView {
  std::string worker;
  std::string device;
  std::string task_id;  ///< Empty when it is idle.
  std::int64_t since_ms = 0;
  std::uint64_t finished = 0;
};

/// Thread-safe.
class Pipeline {
 public:
  /// Starts nothing yet. All references must outlive the pipeline.
  Pipeline(PipelineOptions options,
           worker::Evaluator& evaluator,
           Queue& queue,
           Crew& crew,
           Metrics& metrics,
           Log& log);
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;
  ~Pipeline();  ///< As drain(0).

  /// Starts the slots' threads; once, after what hears of the queue's changes is in place.
  void start();
  /// Why evaluations come to nothing at present; empty when they do not.
  [[nodiscard]] std::string problem() const;
  /// Must hear of every change: wakes idle slots, ends what nobody wants any more.
  void on_change(const TaskView& task);
  [[nodiscard]] std::optional<RunningView> running(const std::string& task_id) const;
  [[nodiscard]] std::vector<SlotView> slots() const;
  [[nodiscard]] const std::string& device() const noexcept { return options_.device; }
  [[nodiscard]] std::vector<worker::DeviceView> devices() const { return evaluator_.devices(); }
  /// Takes no further lease; lets evaluations go on for `limit`, then gives their tasks back.
  void drain(std::chrono::milliseconds limit);

 private:
  /// Why an evaluation was told to stop.
  enum class StopReason : std::uint8_t { none, not_wanted, shutdown };
  struct Running {
    LeaseId lease;
    std::stop_source stop;
    StopReason reason = StopReason::none;
    RunningView view;

    /// Only the first reason counts.
    void tell_to_stop(StopReason why) {
      if (reason != StopReason::none) return;
      reason = why;
      stop.request_stop();
    }
  };

  void work(std::size_t slot, const std::stop_token& stop) noexcept;
  [[nodiscard]] std::optional<Lease> take(const std::string& worker);
  void run(const Lease& lease, std::size_t slot);
  /// From here until `leave` it can be told to stop.
  void enter(const Lease& lease, std::size_t slot);
  void leave(const Lease& lease, std::size_t slot) noexcept;
  void evaluate(const Lease& lease, const std::string& worker);
  void hand_in(const Lease& lease, const task::Result& result);
  void give_up(const Lease& lease, const std::string& what);
  /// Gives back what came to nothing by a fault of this machine.
  void retry(const Lease& lease, GiveBack how);
  void note_verdict();
  void end_by_deadline(const Lease& lease);
  void after_stop(const Lease& lease);
  /// Waits for the queue's answer; false when the lease was not held any more. While the store
  /// fails (a full disk) it is asked again: a verdict is not thrown away.
  bool finish(const Lease& lease, Ending ending);
  bool give_back(const Lease& lease, GiveBack how);
  void tell_to_stop(std::uint64_t fence, StopReason reason);
  void note_progress(std::uint64_t fence, const worker::Progress& step);
  void renew_leases();
  void note_metrics(const Lease& lease, const task::Result& result, double seconds);

  const PipelineOptions options_;
  worker::Evaluator& evaluator_;
  Queue& queue_;
  Crew& crew_;
  Metrics& metrics_;
  Log& log_;

  mutable std::mutex mutex_;  ///< Guards all below but the threads.
  std::condition_variable_any changed_;
  std::uint64_t news_ = 0;  ///< Counts what may have made a task pending.
  bool is_draining_ = false;
  std::uint32_t failures_in_a_row_ = 0;  ///< Evaluations without a verdict by a fault of ours.
  std::string problem_;                  ///< Of the last of them.
  std::map<std::uint64_t, Running>
      running_;  ///< By fence: a replaced task may run twice for a bit.
  std::vector<SlotView> slots_;
  Crew::Timer renewal_;

  std::vector<std::jthread> threads_;  ///< Last: end before what they use.
};

}  // namespace drk::gym
