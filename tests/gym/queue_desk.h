// SPDX-License-Identifier: Apache-2.0
// A store under test: calls that wait for their answer, a clock that the test moves, and a record
// of what the listener heard.
#pragma once

#include "drk/base/error.h"
#include "drk/gym/queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace drk::gym {

/// What a test wants of its store. A store must look at leases and deadlines within some 10 ms.
struct QueueSetup {
  std::uint64_t max_pending = 1'000;
  std::uint32_t max_attempts = 3;
  std::string generation = "generation 1";
  std::function<std::string(State state, const std::string& what)> result_of_end;
  std::function<std::int64_t()> unix_ms;
};

/// A store whose data outlive it: what make() returns is empty at first.
class StoreUnderTest {
 public:
  StoreUnderTest() = default;
  StoreUnderTest(const StoreUnderTest&) = delete;
  StoreUnderTest& operator=(const StoreUnderTest&) = delete;
  virtual ~StoreUnderTest() = default;
  virtual Queue& queue() = 0;
  virtual ResultStore& results() = 0;
  /// As after a stop and a start of the server.
  virtual void reopen(const QueueSetup& setup) = 0;
};

class Desk {
 public:
  using Make = std::unique_ptr<StoreUnderTest> (*)(const QueueSetup&);
  struct Heard {
    std::string id;
    State state = State::pending;
    friend bool operator==(const Heard&, const Heard&) = default;
  };
  static constexpr std::int64_t kStartMs = 1'700'000'000'000;

  explicit Desk(Make make, QueueSetup setup = {}) : setup_(std::move(setup)) {
    setup_.unix_ms = [this] { return now_ms_.load(); };
    setup_.result_of_end = [](State state, const std::string& what) {
      return std::to_string(static_cast<int>(state)) + ": " + what;
    };
    store_ = make(setup_);
    listen();
  }
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;
  ~Desk() { store_.reset(); }  // the store calls back into what follows it here

  [[nodiscard]] Queue& queue() { return store_->queue(); }
  [[nodiscard]] ResultStore& results() { return store_->results(); }
  void reopen() { reopen(setup_.generation); }
  void reopen(const std::string& generation) {
    setup_.generation = generation;
    store_->reopen(setup_);
    listen();
  }
  void advance(std::chrono::milliseconds time) { now_ms_ += time.count(); }
  [[nodiscard]] std::int64_t now_ms() const { return now_ms_; }

  /// Calls `start` with a `done` and waits for the answer; an Error is thrown.
  template <class T, class Start>
  static T ask(Start start) {
    auto promise = std::make_shared<std::promise<std::variant<T, Error>>>();  // shared with `done`
    std::future<std::variant<T, Error>> future = promise->get_future();
    start([promise](std::variant<T, Error> answer) { promise->set_value(std::move(answer)); });
    if (future.wait_for(std::chrono::seconds(60)) != std::future_status::ready) {
      throw Error(ErrorCode::timed_out, "the queue did not answer");
    }
    std::variant<T, Error> answer = future.get();
    if (const Error* error = std::get_if<Error>(&answer)) throw Error(*error);
    return std::get<T>(std::move(answer));
  }

  std::vector<Admitted> submit(SubmitRequest request) {
    return ask<std::vector<Admitted>>(
        [&](auto done) { queue().submit(std::move(request), std::move(done)); });
  }
  Admission submit(Submission submission) {
    return submit(SubmitRequest{{std::move(submission)}, std::nullopt}).at(0).admission;
  }
  std::optional<Lease> lease(const std::string& worker = "worker", double lease_s = 60) {
    return ask<std::optional<Lease>>(
        [&](auto done) { queue().lease(worker, lease_s, std::move(done)); });
  }
  /// The lease of a task that must be there.
  Lease take(const std::string& worker = "worker", double lease_s = 60) {
    std::optional<Lease> taken = lease(worker, lease_s);
    if (!taken) throw Error(ErrorCode::not_found, "no task is pending");
    return *std::move(taken);
  }
  /// Leases all that is pending; their ids in order.
  std::vector<std::string> take_all() {
    std::vector<std::string> ids;
    while (const std::optional<Lease> taken = lease()) ids.push_back(taken->id.task_id);
    return ids;
  }
  std::vector<bool> renew(std::vector<LeaseId> leases, double lease_s = 60) {
    return ask<std::vector<bool>>(
        [&](auto done) { queue().renew(std::move(leases), lease_s, std::move(done)); });
  }
  bool finish(const LeaseId& lease, Ending ending) {
    return ask<bool>([&](auto done) { queue().finish(lease, std::move(ending), std::move(done)); });
  }
  bool give_back(const LeaseId& lease, GiveBack how) {
    return ask<bool>([&](auto done) { queue().give_back(lease, std::move(how), std::move(done)); });
  }
  CancelOutcome cancel(const std::string& id) {
    return ask<CancelOutcome>([&](auto done) { queue().cancel(id, std::move(done)); });
  }
  bool clear_code(const std::string& code) {
    return ask<bool>([&](auto done) { queue().clear_code(code, std::move(done)); });
  }

  /// Of a task that must be there.
  [[nodiscard]] TaskView view(const std::string& id) {
    std::optional<TaskView> found = queue().find(id);
    if (!found) throw Error(ErrorCode::not_found, "no task " + id);
    return *std::move(found);
  }
  [[nodiscard]] State state(const std::string& id) { return view(id).state; }
  /// The short form of a result; "none" when there is none.
  [[nodiscard]] std::string result(const std::string& id) {
    return results().result(id).value_or(StoredResult{"none", {}}).result;
  }
  /// Of one code; empty when it has no troubles.
  [[nodiscard]] std::optional<CodeHistory> code(const std::string& code) {
    for (CodeHistory& history : queue().troubled_codes()) {
      if (history.code == code) return std::move(history);
    }
    return std::nullopt;
  }

  [[nodiscard]] std::vector<Heard> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }
  /// Waits until the listener has heard that of the task, since the start of the test.
  testing::AssertionResult hears(const std::string& id, State state, int times = 1) {
    std::unique_lock lock(mutex_);
    const bool came = changed_.wait_for(lock, std::chrono::seconds(30), [&] {
      return std::count(heard_.begin(), heard_.end(), Heard{id, state}) >= times;
    });
    return came ? testing::AssertionSuccess()
                : testing::AssertionFailure() << "never heard that of " << id;
  }

 private:
  void listen() {
    queue().listen([this](const TaskView& task) {
      {
        const std::lock_guard lock(mutex_);
        heard_.push_back({task.id, task.state});
      }
      changed_.notify_all();
    });
  }

  QueueSetup setup_;
  std::atomic<std::int64_t> now_ms_ = kStartMs;
  std::unique_ptr<StoreUnderTest> store_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Heard> heard_;  // guarded by mutex_
};

/// A submission of its own content and code.
inline Submission task(const std::string& id) {
  Submission submission;
  submission.id = id;
  submission.content = "content of " + id;
  submission.code = "code of " + id;
  submission.client = "client";
  submission.workflow = "kernelbench";
  submission.request = "request of " + id;
  return submission;
}
inline Submission task(const std::string& id, Priority priority, const std::string& client) {
  Submission submission = task(id);
  submission.priority = priority;
  submission.client = client;
  return submission;
}
inline Submission task_of_content(const std::string& id, const std::string& content) {
  Submission submission = task(id);
  submission.content = content;
  return submission;
}
inline Submission refreshed(Submission submission) {
  submission.force_refresh = true;
  return submission;
}

inline Ending ending(const std::string& result, State state = State::completed) {
  Ending ending;
  ending.state = state;
  ending.result = result;
  ending.detail = "detail of " + result;
  return ending;
}
inline Ending reusable(const std::string& result, State state = State::completed) {
  Ending ending = gym::ending(result, state);
  ending.is_reusable = true;
  return ending;
}
inline GiveBack failed_attempt(const std::string& why,
                               std::optional<Trouble> trouble = std::nullopt) {
  GiveBack how;
  how.why = why;
  how.dead_result = "dead: " + why;
  how.trouble = std::move(trouble);
  return how;
}
inline GiveBack free_of_charge(const std::string& why) {
  GiveBack how = failed_attempt(why);
  how.counts = false;
  return how;
}

}  // namespace drk::gym
