// SPDX-License-Identifier: Apache-2.0
// Tasks on their way: the queue, and what becomes of them. The interface that every store of them
// implements (tests/gym/queue_conformance.h says what must hold).
#pragma once

#include "drk/base/error.h"
#include "drk/task/priority.h"

#include <boost/describe.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace drk::gym {

/// pending -> processing -> one of the others, which is final. A processing task that is given
/// back, or whose lease ran out, is pending again.
enum class State : std::uint8_t { pending, processing, completed, failed, timeout, cancelled };
BOOST_DESCRIBE_ENUM(State, pending, processing, completed, failed, timeout, cancelled)

[[nodiscard]] inline bool is_final(State state) noexcept {
  return state != State::pending && state != State::processing;
}

using task::Priority;

/// A task as it is handed in.
struct Submission {
  std::string id;
  std::string content;  ///< Hash of all that decides the result: same content, same result.
  std::string code;     ///< Hash of the candidate's code, which troubles are counted by.
  std::string client;   ///< Shares are fair between clients.
  std::string workflow;
  Priority priority = Priority::normal;
  std::optional<double> deadline_s;  ///< From now, time in the queue included.
  bool force_refresh = false;        ///< Replaces what has this id; never answered by the cache.
  std::string request;               ///< What a worker needs; the queue does not read it.
};

/// What is known of a task.
struct TaskView {
  std::string id;
  std::string content;
  std::string client;
  std::string workflow;
  Priority priority = Priority::normal;
  State state = State::pending;
  std::uint32_t attempts = 0;     ///< Leases that count: handed out and not given back for free.
  std::int64_t submitted_ms = 0;  ///< Unix time, as are all below.
  std::optional<std::int64_t> started_ms;  ///< Of the last lease.
  std::optional<std::int64_t> finished_ms;
  std::optional<std::int64_t> deadline_ms;
  std::string worker;          ///< Of the last lease.
  std::string last_trouble;    ///< Why the last lease came to nothing.
  bool is_cached = false;      ///< Answered by an earlier result of the same content.
  bool is_dead = false;        ///< In the dead-letter list: attempts used up.
  bool is_no_verdict = false;  ///< Final, but nothing was found out: asking again starts anew.
};

/// What became of one submission.
enum class Admission : std::uint8_t {
  created,
  attached,  ///< A task of this id and content is there already.
  cached,    ///< Created and finished at once by an earlier result of the same content.
  replaced,  ///< It took the place of a task of this id.
  conflict,  ///< A task of this id and other content is there: nothing was done.
};
BOOST_DESCRIBE_ENUM(Admission, created, attached, cached, replaced, conflict)

struct Admitted {
  Admission admission = Admission::created;
  TaskView task;
};

/// Tasks that were handed in together. `content` is a hash over the ids and contents.
struct Batch {
  std::string id;
  std::string content;
  std::vector<std::string> task_ids;
  std::int64_t submitted_ms = 0;
};

struct SubmitRequest {
  std::vector<Submission> submissions;
  std::optional<Batch> batch;
};

/// One lease of one task. A `fence` is never given out twice; only the newest one counts.
struct LeaseId {
  std::string task_id;
  std::uint64_t fence = 0;
};

struct Lease {
  LeaseId id;
  TaskView task;
  std::string code;
  std::string request;
  /// A final result of the same content that came in meanwhile, if any: finish with it.
  std::optional<std::int64_t> cached_result;
};

/// Something that went wrong with a candidate's code, beyond being wrong.
enum class TroubleKind : std::uint8_t { crash, timeout, out_of_memory, lost_worker, infra };
BOOST_DESCRIBE_ENUM(TroubleKind, crash, timeout, out_of_memory, lost_worker, infra)

struct Trouble {
  TroubleKind kind = TroubleKind::crash;
  std::string what;
};

/// How a lease ends for good. `state` is final. What is no verdict is never reusable.
struct Ending {
  State state = State::completed;
  std::string result;          ///< Short form, JSON, without ids and times.
  std::string detail;          ///< Long form, JSON; may be empty.
  bool is_reusable = false;    ///< May answer later submissions of the same content.
  bool is_no_verdict = false;  ///< See TaskView.
  /// Lease::cached_result: in place of `state`, `result` and `detail`.
  std::optional<std::int64_t> cached_result;
  std::optional<Trouble> trouble;
};

/// How a lease ends with the task pending again, or dead when its attempts are used up: failed,
/// without a verdict, and its code poisoned.
struct GiveBack {
  bool counts = true;       ///< As an attempt. False: the worker stops, and it is not to blame.
  std::string why;          ///< For people.
  std::string dead_result;  ///< Its result if it is dead now; empty: as when its worker is lost.
  std::optional<Trouble> trouble;
};

struct StoredResult {
  std::string result;
  std::string detail;
};

/// Where a pending task stands, should no lease end and nothing be submitted meanwhile.
struct Place {
  std::uint64_t position = 1;      ///< 1: next.
  std::uint64_t ahead_higher = 0;  ///< Ahead of it by priority.
  std::uint64_t ahead_same = 0;    ///< Ahead of it in its own priority.
};

struct QueueCounts {
  std::uint64_t pending_low = 0;
  std::uint64_t pending_normal = 0;
  std::uint64_t pending_high = 0;
  std::uint64_t processing = 0;
  std::uint64_t dead = 0;
  std::uint64_t stored = 0;             ///< Tasks in all, final ones included.
  std::uint64_t oldest_pending_ms = 0;  ///< How long the oldest has waited.
  [[nodiscard]] std::uint64_t pending() const noexcept {
    return pending_low + pending_normal + pending_high;
  }
};

/// Troubles of one candidate code.
struct CodeHistory {
  std::string code;
  std::uint64_t crashes = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t out_of_memory = 0;
  std::uint64_t lost_workers = 0;
  std::uint64_t infra = 0;
  std::string last_task_id;
  std::string last_what;
  std::int64_t last_ms = 0;
  /// It cost a task all its attempts, and workers with them: it gets a single one from now on.
  bool is_poisoned = false;
};

struct ListFilter {
  std::optional<State> state;
  bool dead_only = false;
  bool retried_only = false;  ///< With an attempt behind them.
  std::string client;         ///< Empty: any.
  std::uint32_t limit = 100;
};

enum class CancelOutcome : std::uint8_t { cancelled, unknown, already_final };

/// Thread-safe. What changes something is done in the order of the calls and is durable when `done`
/// is called, on a thread of the queue's own that must not be held up. `done` may be empty and must
/// not throw. When the store cannot write, it is Error{unavailable} and nothing was changed. What
/// only asks answers at once.
class Queue {
 public:
  template <class T>
  using Done = std::function<void(std::variant<T, Error>)>;

  Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  virtual ~Queue() = default;

  /// All or none: with a conflict among them nothing is done (each says what would have been), and
  /// without room for all of them it is Error{exhausted}. A batch whose id is known with other
  /// content is Error{conflict}. Ids within one request differ (else Error{invalid_argument}).
  ///
  /// A task whose end was no verdict (cancelled, infra) is started anew, as Admission::replaced
  /// (and is final at once when an earlier result of its content answers it).
  /// A force_refresh replaces whatever is there; a worker that holds it loses its lease.
  virtual void submit(SubmitRequest request, Done<std::vector<Admitted>> done) = 0;

  /// The next task by priority, then fair between clients (the one that holds the fewest leases of
  /// that priority, then the one that waited longest for a turn), then in order of submission. Ten
  /// minutes after its submission a task counts as one priority higher, after twenty as two. Empty
  /// when none is pending.
  virtual void lease(const std::string& worker,
                     double lease_s,
                     Done<std::optional<Lease>> done) = 0;
  /// Prolongs leases; tells which of them are still held.
  virtual void renew(std::vector<LeaseId> leases, double lease_s, Done<std::vector<bool>> done) = 0;
  /// True when the lease was held and the task is final now, by this call alone.
  virtual void finish(const LeaseId& lease, Ending ending, Done<bool> done) = 0;
  virtual void give_back(const LeaseId& lease, GiveBack how, Done<bool> done) = 0;
  virtual void cancel(const std::string& id, Done<CancelOutcome> done) = 0;
  /// Forgets a code's troubles; true when it had any.
  virtual void clear_code(const std::string& code, Done<bool> done) = 0;

  [[nodiscard]] virtual std::optional<TaskView> find(const std::string& id) = 0;
  /// Of a pending task.
  [[nodiscard]] virtual std::optional<Place> place(const std::string& id) = 0;
  /// Newest first.
  [[nodiscard]] virtual std::vector<TaskView> list(const ListFilter& filter) = 0;
  [[nodiscard]] virtual QueueCounts counts() = 0;
  [[nodiscard]] virtual std::vector<CodeHistory> troubled_codes() = 0;
  [[nodiscard]] virtual std::optional<Batch> batch(const std::string& id) = 0;

  /// `changed` hears of every change of a task's state, once it is durable, on the queue's thread
  /// and before the `done` of what caused it. Set it once, before anything is submitted.
  virtual void listen(std::function<void(const TaskView&)> changed) = 0;
};

/// What tasks ended with. Thread-safe.
class ResultStore {
 public:
  ResultStore() = default;
  ResultStore(const ResultStore&) = delete;
  ResultStore& operator=(const ResultStore&) = delete;
  virtual ~ResultStore() = default;

  /// Of a final task; empty for any other.
  [[nodiscard]] virtual std::optional<StoredResult> result(const std::string& task_id) = 0;
  /// The newest reusable one of that content.
  [[nodiscard]] virtual std::optional<StoredResult> find_content(const std::string& content) = 0;
};

}  // namespace drk::gym
