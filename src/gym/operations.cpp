// SPDX-License-Identifier: Apache-2.0
// Leases and how they end.
#include "gym/operations.h"

#include "drk/base/error.h"
#include "drk/base/json.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace drk::gym {

namespace {

Standing standing_of(const TaskRow& row) {
  Standing standing{row.view.state, row.view.is_dead, std::nullopt};
  if (row.view.state == State::pending) standing.due_ms = row.view.deadline_ms;
  if (row.view.state == State::processing) standing.due_ms = row.lease_until_ms;
  return standing;
}

void check_ending(const Ending& ending) {
  if (is_final(ending.state)) return;
  throw Error(ErrorCode::invalid_argument,
              std::string("queue: a task cannot end as ") + json::name_of(ending.state));
}

}  // namespace

std::int64_t ms_of(double seconds) {
  constexpr double kLongestS = 1e9;  // thirty years
  return static_cast<std::int64_t>(std::ceil(std::clamp(seconds, -kLongestS, kLongestS) * 1e3));
}

std::vector<Change> read_live(Tables& tables) {
  std::vector<Change> changes;
  for (TaskRow& row : tables.live()) {
    changes.emplace_back(TaskChange{row.seq, std::nullopt, standing_of(row), std::move(row.view)});
  }
  return changes;
}

Operations::Operations(Tables& tables,
                       LiveTasks live,
                       const SqliteOptions& options,
                       std::uint64_t epoch)
    : tables_(tables),
      options_(options),
      live_(std::move(live)),
      last_seq_(tables.last_seq()),
      last_fence_(epoch << 32U) {}

std::optional<Lease> Operations::lease(const std::string& worker, double lease_s) {
  const std::int64_t until_ms = lease_until_ms(lease_s);
  const std::optional<Seq> next = live_.schedule().next();
  if (!next) return std::nullopt;
  const TaskRow before = tables_.at(*next);
  TaskRow row = before;
  row.view.state = State::processing;
  ++row.view.attempts;
  row.view.started_ms = now_ms_;
  row.view.worker = worker;
  row.lease_until_ms = until_ms;
  row.fence = ++last_fence_;

  Lease lease{{row.view.id, row.fence}, row.view, row.code, tables_.request(row.seq), {}};
  if (!row.force_refresh) {
    if (const auto earlier = tables_.reusable_result(row.view.content, options_.generation)) {
      lease.cached_result = earlier->id;
    }
  }
  update(before, row);
  return lease;
}

std::vector<bool> Operations::renew(const std::vector<LeaseId>& leases, double lease_s) {
  const std::int64_t until_ms = lease_until_ms(lease_s);
  std::vector<bool> are_held;
  for (const LeaseId& lease : leases) {
    const std::optional<TaskRow> before = held(lease);
    are_held.push_back(before.has_value());
    if (!before) continue;
    TaskRow row = *before;
    row.lease_until_ms = until_ms;
    update(*before, row);
  }
  return are_held;
}

bool Operations::finish(const LeaseId& lease, const Ending& ending) {
  check_ending(ending);
  const std::optional<TaskRow> before = held(lease);
  if (!before) return false;
  TaskRow row = *before;
  row.view.state = ending.state;
  row.view.is_no_verdict = ending.is_no_verdict;
  if (ending.cached_result) {
    const std::optional<ResultHead> earlier = tables_.result(*ending.cached_result);
    if (!earlier) {
      throw Error(
          ErrorCode::invalid_argument,
          "queue: there is no result " + std::to_string(*ending.cached_result) + " to end with");
    }
    row.view.state = earlier->state;
    row.view.is_cached = true;
    row.result_id = earlier->id;
  } else {
    const bool is_reusable = ending.is_reusable && !ending.is_no_verdict;
    row.result_id =
        tables_.put_result(row,
                           {ending.result, ending.detail},
                           is_reusable ? std::optional(options_.generation) : std::nullopt);
  }
  end(*before, std::move(row));
  if (ending.trouble) blame(*before, *ending.trouble, false);
  return true;
}

bool Operations::give_back(const LeaseId& lease, const GiveBack& how) {
  const std::optional<TaskRow> before = held(lease);
  if (!before) return false;
  end_attempt(*before, how);
  return true;
}

CancelOutcome Operations::cancel(const std::string& id) {
  const std::optional<TaskRow> row = tables_.find(id);
  if (!row) return CancelOutcome::unknown;
  if (is_final(row->view.state)) return CancelOutcome::already_final;
  end_without_verdict(
      *row, *row, State::cancelled, result_of_end(State::cancelled, "the task was cancelled"));
  return CancelOutcome::cancelled;
}

bool Operations::clear_code(const std::string& code) {
  return tables_.erase_code(code);
}

bool Operations::is_due() const {
  return live_.due(now_ms_) || live_.is_ageing_due(now_ms_);
}

void Operations::sweep() {
  if (live_.is_ageing_due(now_ms_)) record(Ageing{now_ms_});
  const std::optional<Seq> seq = live_.due(now_ms_);
  if (!seq) return;
  const TaskRow row = tables_.at(*seq);
  if (row.view.state == State::processing) {
    end_lost_lease(row, "the lease of worker " + row.view.worker + " ran out");
  } else {
    end_without_verdict(
        row,
        row,
        State::timeout,
        result_of_end(State::timeout, "the deadline passed while the task was in the queue"));
  }
}

void Operations::lose_all() {
  for (const TaskRow& row : tables_.live()) {
    if (row.view.state != State::processing) continue;
    end_lost_lease(row, "the server stopped while worker " + row.view.worker + " had the task");
  }
}

std::optional<TaskRow> Operations::held(const LeaseId& lease) {
  std::optional<TaskRow> row = tables_.find(lease.task_id);
  const bool is_held = row && row->view.state == State::processing && row->fence == lease.fence;
  return is_held ? std::move(row) : std::nullopt;
}

void Operations::end_lost_lease(const TaskRow& row, const std::string& why) {
  end_attempt(row,
              {.why = why, .dead_result = {}, .trouble = Trouble{TroubleKind::lost_worker, why}});
}

void Operations::end_attempt(const TaskRow& before, const GiveBack& how) {
  const std::uint32_t allowed = tables_.is_poisoned(before.code) ? 1 : options_.max_attempts;
  const bool is_dead = how.counts && before.view.attempts >= allowed;
  TaskRow row = before;
  row.lease_until_ms.reset();
  row.view.last_trouble = how.why;
  if (!how.counts) --row.view.attempts;
  if (is_dead) {
    row.view.is_dead = true;
    end_without_verdict(
        before,
        row,
        State::failed,
        how.dead_result.empty() ? result_of_end(State::failed, how.why) : how.dead_result);
  } else {
    row.view.state = State::pending;
    update(before, row);
  }
  // An outage of ours says nothing about the code.
  const bool is_outage = how.trouble && how.trouble->kind == TroubleKind::infra;
  if (how.trouble || is_dead) blame(before, how.trouble, is_dead && !is_outage);
}

void Operations::end_without_verdict(const TaskRow& before,
                                     TaskRow after,
                                     State state,
                                     const std::string& result) {
  after.view.state = state;
  after.view.is_no_verdict = true;
  after.result_id = tables_.put_result(after, {result, {}}, std::nullopt);
  end(before, std::move(after));
}

void Operations::end(const TaskRow& before, TaskRow after) {
  after.view.finished_ms = now_ms_;
  after.lease_until_ms.reset();
  tables_.erase_request(after.seq);
  update(before, after);
}

void Operations::blame(const TaskRow& row,
                       const std::optional<Trouble>& trouble,
                       bool is_poisoned) {
  if (row.code.empty()) return;
  CodeNote note{.kind = std::nullopt,
                .what = "its attempts are used up",
                .task_id = row.view.id,
                .now_ms = now_ms_,
                .is_poisoned = is_poisoned};
  if (trouble) {
    note.kind = trouble->kind;
    note.what = trouble->what;
  }
  tables_.note(row.code, note);
}

std::string Operations::result_of_end(State state, const std::string& what) const {
  return options_.result_of_end ? options_.result_of_end(state, what) : std::string();
}

std::int64_t Operations::lease_until_ms(double lease_s) const {
  if (lease_s > 0) return now_ms_ + ms_of(lease_s);
  throw Error(ErrorCode::invalid_argument,
              "queue: a lease of " + std::to_string(lease_s) + " s; it must be positive");
}

void Operations::insert(const TaskRow& row) {
  tables_.insert(row);
  record(TaskChange{row.seq, std::nullopt, standing_of(row), row.view});
}

void Operations::update(const TaskRow& before, const TaskRow& after) {
  tables_.update(after);
  record(TaskChange{after.seq, standing_of(before), standing_of(after), after.view});
}

void Operations::erase(const TaskRow& row) {
  tables_.erase(row.seq);
  if (!is_final(row.view.state)) tables_.erase_request(row.seq);
  if (row.result_id) tables_.erase_own_result(*row.result_id);
  record(TaskChange{row.seq, standing_of(row), std::nullopt, row.view});
}

void Operations::record(Change change) {
  live_.apply(change);
  changes_.push_back(std::move(change));
}

std::vector<Change> Operations::take_changes() {
  return std::exchange(changes_, {});
}

void Operations::restart(LiveTasks live) {
  live_ = std::move(live);
  changes_.clear();
}

}  // namespace drk::gym
