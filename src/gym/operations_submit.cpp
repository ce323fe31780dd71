// SPDX-License-Identifier: Apache-2.0
// Submitting: what is to become of each task, and then all of them or none.
#include "drk/base/error.h"

#include "gym/operations.h"

#include <cmath>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace drk::gym {

namespace {

void check_submissions(const std::vector<Submission>& submissions) {
  std::unordered_set<std::string_view> ids;
  for (const Submission& submission : submissions) {
    if (submission.id.empty()) {
      throw Error(ErrorCode::invalid_argument, "queue: a task without an id");
    }
    if (submission.deadline_s && std::isnan(*submission.deadline_s)) {
      throw Error(ErrorCode::invalid_argument,
                  "queue: the deadline of task " + submission.id + " is not a number");
    }
    if (!ids.insert(submission.id).second) {
      throw Error(ErrorCode::invalid_argument,
                  "queue: task id " + submission.id + " is twice in one request");
    }
  }
}

}  // namespace

std::vector<Admitted> Operations::submit(SubmitRequest request) {
  check_submissions(request.submissions);
  std::optional<std::string> known_content;
  if (request.batch) known_content = tables_.batch_content(request.batch->id);
  if (known_content && *known_content != request.batch->content) {
    throw Error(ErrorCode::conflict,
                "queue: batch " + request.batch->id + " is known with other tasks");
  }

  std::vector<Plan> plans;
  bool has_conflict = false;
  for (Submission& submission : request.submissions) {
    plans.push_back(plan(std::move(submission)));
    has_conflict |= plans.back().admission == Admission::conflict;
  }
  std::vector<Admitted> admitted;
  if (has_conflict) {
    for (const Plan& plan : plans) {
      const bool stays =
          plan.admission == Admission::conflict || plan.admission == Admission::attached;
      admitted.push_back({plan.admission, stays ? plan.old->view : new_row(plan).view});
    }
    return admitted;
  }
  check_room(plans);

  for (Plan& plan : plans) admitted.push_back(carry_out(std::move(plan)));
  if (request.batch && !known_content) {
    request.batch->submitted_ms = now_ms_;
    tables_.put_batch(*request.batch);
  }
  return admitted;
}

Operations::Plan Operations::plan(Submission submission) {
  Plan plan;
  plan.old = tables_.find(submission.id);
  const bool refresh = submission.force_refresh;
  if (plan.old && !refresh && plan.old->view.content != submission.content) {
    plan.admission = Admission::conflict;
  } else if (plan.old && !refresh && !plan.old->view.is_no_verdict) {
    plan.admission = Admission::attached;
  } else {
    if (!refresh) plan.earlier = tables_.reusable_result(submission.content, options_.generation);
    plan.admission = plan.old       ? Admission::replaced
                     : plan.earlier ? Admission::cached
                                    : Admission::created;
  }
  plan.submission = std::move(submission);
  return plan;
}

void Operations::check_room(const std::vector<Plan>& plans) const {
  std::uint64_t coming = 0;
  std::uint64_t going = 0;
  for (const Plan& plan : plans) {
    if (plan.admission == Admission::attached) continue;
    if (!plan.earlier) ++coming;
    if (plan.old && plan.old->view.state == State::pending) ++going;
  }
  const std::uint64_t pending = live_.schedule().pending();
  if (coming <= going || pending + coming - going <= options_.max_pending) return;
  throw Error(ErrorCode::exhausted,
              "queue: " + std::to_string(pending) + " tasks are pending, " +
                  std::to_string(coming) + " more would exceed the limit of " +
                  std::to_string(options_.max_pending) + "; try again later");
}

TaskRow Operations::new_row(const Plan& plan) const {
  const Submission& from = plan.submission;
  TaskRow row;
  row.code = from.code;
  row.force_refresh = from.force_refresh;
  row.view.id = from.id;
  row.view.content = from.content;
  row.view.client = from.client;
  row.view.workflow = from.workflow;
  row.view.priority = from.priority;
  row.view.submitted_ms = now_ms_;
  if (from.deadline_s) row.view.deadline_ms = now_ms_ + ms_of(*from.deadline_s);
  if (plan.earlier) {
    row.view.state = plan.earlier->state;
    row.view.finished_ms = now_ms_;
    row.view.is_cached = true;
    row.result_id = plan.earlier->id;
  }
  return row;
}

Admitted Operations::carry_out(Plan plan) {
  if (plan.admission == Admission::attached) return {plan.admission, std::move(plan.old->view)};
  if (plan.old) erase(*plan.old);
  TaskRow row = new_row(plan);
  row.seq = ++last_seq_;
  if (!plan.earlier) tables_.put_request(row.seq, plan.submission.request);
  insert(row);
  return {plan.admission, std::move(row.view)};
}

}  // namespace drk::gym
