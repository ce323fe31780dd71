// SPDX-License-Identifier: Apache-2.0
// What must hold of every queue and result store, whatever it is made of.
//
//   struct Redis { static std::unique_ptr<StoreUnderTest> make(const QueueSetup&); };
//   INSTANTIATE_TYPED_TEST_SUITE_P(Redis, QueueConformance, Redis);
#pragma once

#include "base/error_matchers.h"
#include "gym/queue_desk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace drk::gym {

template <class Store>
class QueueConformance : public testing::Test {};
TYPED_TEST_SUITE_P(QueueConformance);

using Ids = std::vector<std::string>;
using namespace std::chrono_literals;

// ---- submitting

TYPED_TEST_P(QueueConformance, ShowsWhatWasSubmitted) {
  Desk desk(&TypeParam::make);
  Submission submission = task("a", Priority::high, "someone");
  submission.deadline_s = 5;
  const std::vector<Admitted> admitted = desk.submit(SubmitRequest{{submission}, {}});
  ASSERT_EQ(admitted.size(), 1U);
  EXPECT_EQ(admitted[0].admission, Admission::created);
  for (const TaskView& view : {admitted[0].task, desk.view("a")}) {
    EXPECT_EQ(view.id, "a");
    EXPECT_EQ(view.content, "content of a");
    EXPECT_EQ(view.client, "someone");
    EXPECT_EQ(view.workflow, "kernelbench");
    EXPECT_EQ(view.priority, Priority::high);
    EXPECT_EQ(view.state, State::pending);
    EXPECT_EQ(view.attempts, 0U);
    EXPECT_EQ(view.submitted_ms, Desk::kStartMs);
    EXPECT_EQ(view.started_ms, std::nullopt);
    EXPECT_EQ(view.finished_ms, std::nullopt);
    EXPECT_EQ(view.deadline_ms, Desk::kStartMs + 5'000);
    EXPECT_EQ(view.worker + view.last_trouble, "");
    EXPECT_FALSE(view.is_cached || view.is_dead || view.is_no_verdict);
  }
  EXPECT_EQ(desk.queue().find("b"), std::nullopt) << "unknown";
  EXPECT_EQ(desk.result("a"), "none") << "not final";
}

TYPED_TEST_P(QueueConformance, AttachesToATaskOfTheSameIdAndContent) {
  Desk desk(&TypeParam::make);
  desk.submit(task("a"));
  EXPECT_EQ(desk.submit(task("a")), Admission::attached);
  const Lease lease = desk.take();
  EXPECT_EQ(desk.submit(task("a")), Admission::attached);
  EXPECT_TRUE(desk.finish(lease.id, ending("verdict", State::failed)));
  const Admitted admitted = desk.submit(SubmitRequest{{task("a")}, {}}).at(0);
  EXPECT_EQ(admitted.admission, Admission::attached);
  EXPECT_EQ(admitted.task.state, State::failed);
  EXPECT_EQ(desk.take_all(), Ids{});
  EXPECT_EQ(desk.queue().counts().stored, 1U);
}

TYPED_TEST_P(QueueConformance, DoesNothingOnAConflictAndSaysWhatWouldHaveBeen) {
  Desk desk(&TypeParam::make);
  desk.submit(task_of_content("old", "same"));
  desk.finish(desk.take().id, reusable("verdict"));
  desk.submit(task("a"));
  const std::vector<Admitted> admitted = desk.submit(SubmitRequest{
      {task("new"), task("a"), task_of_content("old", "other"), task_of_content("twin", "same")},
      Batch{"batch", "content", {"new", "a", "old", "twin"}}});
  ASSERT_EQ(admitted.size(), 4U);
  EXPECT_EQ(admitted[0].admission, Admission::created);
  EXPECT_EQ(admitted[0].task.id, "new");
  EXPECT_EQ(admitted[1].admission, Admission::attached);
  EXPECT_EQ(admitted[2].admission, Admission::conflict);
  EXPECT_EQ(admitted[2].task.content, "same");
  EXPECT_EQ(admitted[3].admission, Admission::cached);
  EXPECT_EQ(desk.queue().find("new"), std::nullopt);
  EXPECT_EQ(desk.queue().find("twin"), std::nullopt);
  EXPECT_EQ(desk.queue().batch("batch"), std::nullopt);
  EXPECT_EQ(desk.queue().counts().stored, 2U);
}

TYPED_TEST_P(QueueConformance, RefusesWhatCannotBeMeant) {
  Desk desk(&TypeParam::make);
  const auto submitting = [&](const std::vector<Submission>& submissions) {
    return [&desk, submissions] { desk.submit(SubmitRequest{submissions, {}}); };
  };
  EXPECT_TRUE(throws_error(
      ErrorCode::invalid_argument, "twice", submitting({task("a"), task("b"), task("a")})));
  EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, "id", submitting({task("")})));
  EXPECT_EQ(desk.queue().counts().stored, 0U);
  desk.submit(task("a"));
  EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, "positive", [&] { desk.lease("w", 0); }));
  const Lease lease = desk.take();
  EXPECT_TRUE(
      throws_error(ErrorCode::invalid_argument, "positive", [&] { desk.renew({lease.id}, -1); }));
  EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, "pending", [&] {
    desk.finish(lease.id, ending("x", State::pending));
  }));
  EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, "result", [&] {
    Ending with_unknown;
    with_unknown.cached_result = 12345;
    desk.finish(lease.id, with_unknown);
  }));
  EXPECT_EQ(desk.state("a"), State::processing);
}

TYPED_TEST_P(QueueConformance, AnswersByAnEarlierResultOfTheSameContent) {
  Desk desk(&TypeParam::make);
  desk.submit(task_of_content("a", "same"));
  desk.finish(desk.take().id, reusable("does not compile", State::failed));
  desk.advance(1s);
  const Admitted admitted = desk.submit(SubmitRequest{{task_of_content("b", "same")}, {}}).at(0);
  EXPECT_EQ(admitted.admission, Admission::cached);
  EXPECT_EQ(admitted.task.state, State::failed);
  EXPECT_TRUE(admitted.task.is_cached);
  EXPECT_EQ(admitted.task.finished_ms, Desk::kStartMs + 1'000);
  EXPECT_EQ(desk.result("b"), "does not compile");
  EXPECT_EQ(desk.results().result("b")->detail, "detail of does not compile");
  EXPECT_TRUE(desk.hears("b", State::failed));
  EXPECT_EQ(desk.take_all(), Ids{});
  EXPECT_EQ(desk.results().find_content("same")->result, "does not compile");
}

TYPED_TEST_P(QueueConformance, ReusesOnlyReusableResultsOfItsOwnGeneration) {
  Desk desk(&TypeParam::make);
  const auto resubmit = [&](const std::string& id, const Ending& end) {
    EXPECT_EQ(desk.submit(task_of_content(id, "same")), Admission::created) << id;
    EXPECT_TRUE(desk.finish(desk.take().id, end)) << id;
  };
  resubmit("not reusable", ending("one"));
  Ending no_verdict = reusable("two");
  no_verdict.is_no_verdict = true;
  resubmit("no verdict", no_verdict);
  resubmit("reusable", reusable("three"));
  EXPECT_EQ(desk.submit(task_of_content("again", "same")), Admission::cached);
  EXPECT_EQ(desk.results().find_content("other"), std::nullopt);
  desk.reopen("generation 2");
  EXPECT_EQ(desk.results().find_content("same"), std::nullopt);
  resubmit("of the second generation", reusable("four"));
  EXPECT_EQ(desk.results().find_content("same")->result, "four");
  desk.reopen("generation 1");
  EXPECT_EQ(desk.results().find_content("same")->result, "three");
  EXPECT_EQ(desk.result("of the second generation"), "four") << "asked by its id it is there";
}

TYPED_TEST_P(QueueConformance, StartsATaskWithoutAVerdictAnew) {
  Desk desk(&TypeParam::make);
  desk.submit(task("a"));
  desk.finish(desk.take("first").id, [] {
    Ending infra = ending("no GPU", State::failed);
    infra.is_no_verdict = true;
    return infra;
  }());
  EXPECT_TRUE(desk.view("a").is_no_verdict);
  EXPECT_EQ(desk.submit(task_of_content("a", "other")), Admission::conflict);
  const Admitted admitted = desk.submit(SubmitRequest{{task("a")}, {}}).at(0);
  EXPECT_EQ(admitted.admission, Admission::replaced);
  EXPECT_EQ(admitted.task.state, State::pending);
  EXPECT_FALSE(desk.view("a").is_no_verdict);
  EXPECT_EQ(desk.view("a").attempts, 0U);
  EXPECT_EQ(desk.view("a").worker, "");
  EXPECT_EQ(desk.result("a"), "none");
  EXPECT_EQ(desk.queue().counts().stored, 1U);

  desk.cancel("a");
  desk.submit(task_of_content("b", task("a").content));
  desk.finish(desk.take().id, reusable("verdict"));
  const Admitted again = desk.submit(SubmitRequest{{task("a")}, {}}).at(0);
  EXPECT_EQ(again.admission, Admission::replaced);
  EXPECT_EQ(again.task.state, State::completed) << "b's result answers it at once";
  EXPECT_EQ(desk.result("a"), "verdict");
}

TYPED_TEST_P(QueueConformance, ARefreshReplacesWhateverIsThere) {
  Desk desk(&TypeParam::make);
  desk.submit(task("a"));
  EXPECT_EQ(desk.submit(refreshed(task_of_content("a", "other"))), Admission::replaced);
  EXPECT_EQ(desk.view("a").content, "other");

  const Lease lease = desk.take();
  EXPECT_EQ(desk.submit(refreshed(task("a"))), Admission::replaced);
  EXPECT_EQ(desk.renew({lease.id}), std::vector{false});
  EXPECT_FALSE(desk.finish(lease.id, ending("late")));
  EXPECT_FALSE(desk.give_back(lease.id, failed_attempt("late")));
  EXPECT_EQ(desk.state("a"), State::pending);
  EXPECT_EQ(desk.queue().counts().processing, 0U);

  EXPECT_TRUE(desk.finish(desk.take().id, reusable("first")));
  EXPECT_EQ(desk.submit(refreshed(task("a"))), Admission::replaced);
  EXPECT_EQ(desk.result("a"), "none");
  const Lease again = desk.take();
  EXPECT_EQ(again.cached_result, std::nullopt) << "it wants a new one";
  EXPECT_TRUE(desk.finish(again.id, reusable("second")));
  EXPECT_EQ(desk.result("a"), "second");
  EXPECT_EQ(desk.results().find_content(task("a").content)->result, "second") << "the newest";
  EXPECT_EQ(desk.queue().counts().stored, 1U);
  EXPECT_EQ(desk.submit(refreshed(task_of_content("new", task("a").content))), Admission::created);
}

TYPED_TEST_P(QueueConformance, AReplacedTaskLeavesTheCachedAnswersOfOthers) {
  Desk desk(&TypeParam::make);
  desk.submit(task_of_content("a", "same"));
  desk.finish(desk.take().id, reusable("first"));
  desk.submit(task_of_content("b", "same"));
  desk.submit(refreshed(task_of_content("a", "same")));
  EXPECT_EQ(desk.result("b"), "first");
  EXPECT_EQ(desk.results().find_content("same")->result, "first") << "until there is a newer one";
}

TYPED_TEST_P(QueueConformance, AcceptsAllOrNoneWhenItIsFull) {
  QueueSetup setup;
  setup.max_pending = 2;
  Desk desk(&TypeParam::make, setup);
  const auto submit_both = [&](const std::string& a, const std::string& b) {
    desk.submit(SubmitRequest{{task(a), task(b)}, Batch{"batch", "content", {a, b}}});
  };
  desk.submit(task("a"));
  EXPECT_TRUE(throws_error(ErrorCode::exhausted, "limit", [&] { submit_both("b", "c"); }));
  EXPECT_EQ(desk.queue().find("b"), std::nullopt);
  EXPECT_EQ(desk.queue().batch("batch"), std::nullopt);
  submit_both("a", "b");  // one is there already
  EXPECT_EQ(desk.submit(refreshed(task("a"))), Admission::replaced) << "takes its own place";
  EXPECT_TRUE(throws_error(ErrorCode::exhausted, "2", [&] { desk.submit(task("c")); }));
  const Lease lease = desk.take();
  EXPECT_EQ(desk.submit(task("c")), Admission::created) << "a leased task takes no room";
  EXPECT_TRUE(desk.give_back(lease.id, failed_attempt("x"))) << "and always finds room again";
  EXPECT_EQ(desk.queue().counts().pending(), 3U);
}

TYPED_TEST_P(QueueConformance, KeepsBatches) {
  Desk desk(&TypeParam::make);
  const Batch batch{"batch", "content", {"a", "b"}};
  desk.submit(SubmitRequest{{task("a"), task("b")}, batch});
  desk.finish(desk.take().id, ending("verdict"));
  desk.advance(1s);
  const std::vector<Admitted> again = desk.submit(SubmitRequest{{task("a"), task("b")}, batch});
  EXPECT_EQ(again.at(0).admission, Admission::attached);
  EXPECT_EQ(again.at(1).admission, Admission::attached);
  EXPECT_TRUE(throws_error(ErrorCode::conflict, "batch", [&] {
    desk.submit(SubmitRequest{{task("c")}, Batch{"batch", "other", {"c"}}});
  }));
  EXPECT_EQ(desk.queue().find("c"), std::nullopt);
  const std::optional<Batch> kept = desk.queue().batch("batch");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->id, "batch");
  EXPECT_EQ(kept->content, "content");
  EXPECT_EQ(kept->task_ids, (Ids{"a", "b"}));
  EXPECT_EQ(kept->submitted_ms, Desk::kStartMs);
  EXPECT_EQ(desk.queue().batch("other"), std::nullopt);
}

// ---- leasing

TYPED_TEST_P(QueueConformance, LeasesByPriorityThenInOrder) {
  Desk desk(&TypeParam::make);
  desk.submit(task("low", Priority::low, "c"));
  desk.submit(task("normal 1", Priority::normal, "c"));
  desk.submit(task("high 1", Priority::high, "c"));
  desk.submit(task("normal 2", Priority::normal, "c"));
  desk.submit(task("high 2", Priority::high, "c"));
  EXPECT_EQ(desk.take_all(), (Ids{"high 1", "high 2", "normal 1", "normal 2", "low"}));
  EXPECT_FALSE(desk.lease()) << "none is pending";
}

TYPED_TEST_P(QueueConformance, ALeaseTellsWhatAWorkerNeeds) {
  Desk desk(&TypeParam::make);
  desk.submit(task("a"));
  desk.advance(1s);
  const Lease lease = desk.take("worker 7");
  EXPECT_EQ(lease.id.task_id, "a");
  EXPECT_EQ(lease.code, "code of a");
  EXPECT_EQ(lease.request, "request of a");
  EXPECT_EQ(lease.cached_result, std::nullopt);
  for (const TaskView& view : {lease.task, desk.view("a")}) {
    EXPECT_EQ(view.state, State::processing);
    EXPECT_EQ(view.attempts, 1U);
    EXPECT_EQ(view.started_ms, Desk::kStartMs + 1'000);
    EXPECT_EQ(view.worker, "worker 7");
  }
  desk.advance(1s);
  EXPECT_TRUE(desk.finish(lease.id, ending("verdict")));
  EXPECT_EQ(desk.view("a").state, State::completed);
  EXPECT_EQ(desk.view("a").finished_ms, Desk::kStartMs + 2'000);
  EXPECT_FALSE(desk.view("a").is_cached || desk.view("a").is_dead || desk.view("a").is_no_verdict);
  EXPECT_EQ(desk.result("a"), "verdict");
  EXPECT_EQ(desk.results().result("a")->detail, "detail of verdict");
}

TYPED_TEST_P(QueueConformance, ClientsTakeTurns) {
  Desk desk(&TypeParam::make);
  for (const char* id : {"a1", "a2", "a3"}) desk.submit(task(id, Priority::normal, "a"));
  for (const char* id : {"b1", "b2"}) desk.submit(task(id, Priority::normal, "b"));
  EXPECT_EQ(desk.take_all(), (Ids{"a1", "b1", "a2", "b2", "a3"}));
}

TYPED_TEST_P(QueueConformance, TheClientThatHoldsTheFewestLeasesIsNext) {
  Desk desk(&TypeParam::make);
  for (const char* id : {"a1", "a2", "a3"}) desk.submit(task(id, Priority::normal, "a"));
  const Lease first = desk.take();
  desk.take();
  for (const char* id : {"b1", "b2", "b3"}) desk.submit(task(id, Priority::normal, "b"));
  EXPECT_EQ(desk.take().id.task_id, "b1");
  EXPECT_TRUE(desk.finish(first.id, ending("x")));  // one each now: b had the last turn
  EXPECT_EQ(desk.take_all(), (Ids{"a3", "b2", "b3"}));
}

TYPED_TEST_P(QueueConformance, AmongEqualsTheClientThatWaitedLongestIsNext) {
  Desk desk(&TypeParam::make);
  for (const char* id : {"a1", "a2"}) desk.submit(task(id, Priority::normal, "a"));
  desk.submit(task("b1", Priority::normal, "b"));
  desk.finish(desk.take().id, ending("x"));
  EXPECT_EQ(desk.take_all(), (Ids{"b1", "a2"}));
}

TYPED_TEST_P(QueueConformance, AgeRaisesThePriority) {
  Desk desk(&TypeParam::make);
  const auto next = [&] { return desk.take("worker", 1e6).id.task_id; };
  desk.submit(task("old low", Priority::low, "c"));
  desk.advance(10min - 1ms);
  desk.submit(task("normal", Priority::normal, "c"));
  EXPECT_EQ(next(), "normal");
  desk.submit(task("normal 2", Priority::normal, "c"));
  desk.advance(1ms);
  EXPECT_EQ(next(), "old low");

  desk.submit(task("older low", Priority::low, "c"));
  desk.advance(20min - 1ms);
  desk.submit(task("high", Priority::high, "c"));
  EXPECT_EQ(next(), "normal 2") << "high by its age, and before the new one";
  EXPECT_EQ(next(), "high");
  desk.submit(task("high 2", Priority::high, "c"));
  desk.advance(1ms);
  EXPECT_EQ(next(), "older low");
  EXPECT_EQ(desk.view("older low").priority, Priority::low) << "what it was handed in with";
}

TYPED_TEST_P(QueueConformance, OffersAResultOfTheSameContentThatCameMeanwhile) {
  Desk desk(&TypeParam::make);
  desk.submit(task_of_content("a", "same"));
  desk.submit(task_of_content("b", "same"));
  const Lease first = desk.take();
  desk.finish(first.id, reusable("does not compile", State::failed));
  const Lease lease = desk.take();
  ASSERT_TRUE(lease.cached_result);
  Ending by_cache;
  by_cache.cached_result = lease.cached_result;
  EXPECT_TRUE(desk.finish(lease.id, by_cache));
  EXPECT_EQ(desk.state("b"), State::failed) << "as the one it repeats";
  EXPECT_TRUE(desk.view("b").is_cached);
  EXPECT_EQ(desk.result("b"), "does not compile");
}

TYPED_TEST_P(QueueConformance, AFenceIsNeverGivenOutTwice) {
  Desk desk(&TypeParam::make);
  std::uint64_t last = 0;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 3; ++i) {
      desk.submit(refreshed(task("a")));
      const Lease lease = desk.take();
      EXPECT_GT(lease.id.fence, last);
      last = lease.id.fence;
    }
    desk.reopen();
  }
}

TYPED_TEST_P(QueueConformance, OnlyTheNewestLeaseCounts) {
  Desk desk(&TypeParam::make);
  desk.submit(task("a"));
  const Lease first = desk.take("first");
  desk.give_back(first.id, failed_attempt("x"));
  EXPECT_FALSE(desk.finish(first.id, ending("too late"))) << "pending";
  const Lease second = desk.take("second");
  EXPECT_EQ(desk.renew({first.id, second.id, LeaseId{"unknown", 1}}),
            (std::vector{false, true, false}));
  EXPECT_FALSE(desk.finish(first.id, ending("too late")));
  EXPECT_FALSE(desk.give_back(first.id, failed_attempt("too late")));
  EXPECT_TRUE(desk.finish(second.id, ending("in time")));
  EXPECT_FALSE(desk.finish(second.id, ending("twice")));
  EXPECT_FALSE(desk.give_back(second.id, failed_attempt("twice")));
  EXPECT_EQ(desk.result("a"), "in time");
}

TYPED_TEST_P(QueueConformance, OneOfManyFinishersWins) {
  Desk desk(&TypeParam::make);
  for (int round = 0; round < 20; ++round) {
    const std::string id = "task " + std::to_string(round);
    desk.submit(task(id));
    const Lease lease = desk.take();
    std::atomic<int> winners = 0;
    std::atomic<int> winner = -1;
    {
      std::vector<std::jthread> threads;
      threads.reserve(8);
      for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&, i] {
          if (!desk.finish(lease.id, ending(std::to_string(i)))) return;
          ++winners;
          winner = i;
        });
      }
    }
    EXPECT_EQ(winners, 1);
    EXPECT_EQ(desk.result(id), std::to_string(winner));
  }
}

// ---- leases that come to nothing

TYPED_TEST_P(QueueConformance, ALeaseThatRanOutIsALostWorker) {
  Desk desk(&TypeParam::make);
  desk.submit(task("a"));
  const Lease lease = desk.take("worker 7", 10);
  desk.advance(10s);
  ASSERT_TRUE(desk.hears("a", State::pending, 2));
  EXPECT_EQ(desk.renew({lease.id}), std::vector{false});
  EXPECT_FALSE(desk.finish(lease.id, ending("late")));
  const TaskView view = desk.view("a");
  EXPECT_EQ(view.state, State::pending);
  EXPECT_EQ(view.attempts, 1U);
  EXPECT_NE(view.last_trouble.find("worker 7"), std::string::npos) << view.last_trouble;
  ASSERT_TRUE(desk.code("code of a"));
  EXPECT_EQ(desk.code("code of a")->lost_workers, 1U);
  EXPECT_EQ(desk.take().task.attempts, 2U);
}

TYPED_TEST_P(QueueConformance, ARenewedLeaseLastsLonger) {
  Desk desk(&TypeParam::make);
  desk.submit(task("a"));
  const Lease lease = desk.take("worker", 10);
  for (int i = 0; i < 5; ++i) {
    desk.advance(9s);
    EXPECT_EQ(desk.renew({lease.id}, 10), std::vector{true});
  }
  EXPECT_EQ(desk.view("a").attempts, 1U);
  EXPECT_TRUE(desk.finish(lease.id, ending("verdict")));
  EXPECT_EQ(desk.heard().size(), 3U) << "pending, processing, completed: no change by renewing";
}

TYPED_TEST_P(QueueConformance, WithItsAttemptsUsedUpATaskIsDead) {
  Desk desk(&TypeParam::make);
  desk.submit(task("a"));
  for (int attempt = 1; attempt <= 3; ++attempt) {
    const Lease lease = desk.take();
    EXPECT_EQ(lease.task.attempts, attempt);
    const std::string why = "attempt " + std::to_string(attempt);
    EXPECT_TRUE(desk.give_back(lease.id, failed_attempt(why, Trouble{TroubleKind::crash, "SEGV"})));
    EXPECT_EQ(desk.view("a").last_trouble, why);
  }
  const TaskView view = desk.view("a");
  EXPECT_EQ(view.state, State::failed);
  EXPECT_TRUE(view.is_dead);
  EXPECT_TRUE(view.is_no_verdict);
  EXPECT_EQ(view.finished_ms, Desk::kStartMs);
  EXPECT_EQ(desk.result("a"), "dead: attempt 3");
  EXPECT_EQ(desk.queue().counts().dead, 1U);
  EXPECT_EQ(desk.take_all(), Ids{});
  const std::optional<CodeHistory> code = desk.code("code of a");
  ASSERT_TRUE(code);
  EXPECT_EQ(code->crashes, 3U);
  EXPECT_TRUE(code->is_poisoned);

  EXPECT_EQ(desk.submit(task("a")), Admission::replaced);
  EXPECT_FALSE(desk.view("a").is_dead);
  EXPECT_EQ(desk.queue().counts().dead, 0U);
}

TYPED_TEST_P(QueueConformance, ADeadTaskWithoutAResultGetsTheOneOfItsEnd) {
  QueueSetup setup;
  setup.max_attempts = 1;
  Desk desk(&TypeParam::make, setup);
  desk.submit(task("a"));
  GiveBack how;
  how.why = "gone";
  desk.give_back(desk.take().id, how);
  EXPECT_EQ(desk.result("a"), "3: gone");  // State::failed
  ASSERT_TRUE(desk.code("code of a"));
  EXPECT_TRUE(desk.code("code of a")->is_poisoned);

  desk.submit(task("b"));
  desk.take("worker", 1);
  desk.advance(1s);
  ASSERT_TRUE(desk.hears("b", State::failed));
  EXPECT_TRUE(desk.view("b").is_dead);
  EXPECT_EQ(desk.result("b"), "3: the lease of worker worker ran out");
}

TYPED_TEST_P(QueueConformance, AnOutageDoesNotPoisonACode) {
  QueueSetup setup;
  setup.max_attempts = 1;
  Desk desk(&TypeParam::make, setup);
  desk.submit(task("a"));
  GiveBack how;
  how.why = "no interpreter";
  how.trouble = Trouble{TroubleKind::infra, "no interpreter"};
  desk.give_back(desk.take().id, how);
  EXPECT_TRUE(desk.view("a").is_dead);
  ASSERT_TRUE(desk.code("code of a"));
  EXPECT_EQ(desk.code("code of a")->infra, 1U);
  EXPECT_FALSE(desk.code("code of a")->is_poisoned);
}

TYPED_TEST_P(QueueConformance, APoisonedCodeGetsASingleAttempt) {
  Desk desk(&TypeParam::make);
  const auto submit = [&](const std::string& id, const std::string& code) {
    Submission submission = task(id);
    submission.code = code;
    desk.submit(submission);
  };
  submit("a", "bad");
  for (int i = 0; i < 3; ++i) desk.give_back(desk.take().id, failed_attempt("x"));
  EXPECT_TRUE(desk.view("a").is_dead);
  submit("b", "bad");
  desk.give_back(desk.take().id, free_of_charge("the server stops"));
  EXPECT_FALSE(desk.view("b").is_dead) << "it had none yet";
  desk.give_back(desk.take().id, failed_attempt("x"));
  EXPECT_TRUE(desk.view("b").is_dead);

  EXPECT_TRUE(desk.clear_code("bad"));
  EXPECT_FALSE(desk.clear_code("bad"));
  EXPECT_FALSE(desk.clear_code("never seen"));
  EXPECT_FALSE(desk.code("bad"));
  submit("c", "bad");
  desk.give_back(desk.take().id, failed_attempt("x"));
  EXPECT_FALSE(desk.view("c").is_dead);
}

TYPED_TEST_P(QueueConformance, WhatIsGivenBackForFreeDoesNotCount) {
  QueueSetup setup;
  setup.max_attempts = 1;
  Desk desk(&TypeParam::make, setup);
  desk.submit(task("a"));
  for (int i = 0; i < 5; ++i) {
    desk.give_back(desk.take().id, free_of_charge("the server stops"));
    EXPECT_EQ(desk.view("a").attempts, 0U);
  }
  EXPECT_EQ(desk.state("a"), State::pending);
  EXPECT_EQ(desk.view("a").last_trouble, "the server stops");
  EXPECT_EQ(desk.queue().troubled_codes().size(), 0U);
}

TYPED_TEST_P(QueueConformance, AGivenBackTaskHasItsOldPlace) {
  Desk desk(&TypeParam::make);
  for (const char* id : {"a", "b", "c"}) desk.submit(task(id));
  const Lease lease = desk.take();
  desk.take();
  desk.give_back(lease.id, failed_attempt("x"));
  EXPECT_EQ(desk.take_all(), (Ids{"a", "c"}));
}

TYPED_TEST_P(QueueConformance, CountsTheTroublesOfACode) {
  Desk desk(&TypeParam::make);
  const auto end_with = [&](const std::string& id, TroubleKind kind) {
    Submission submission = task(id);
    submission.code = "bad";
    desk.submit(submission);
    desk.advance(1s);
    Ending end = ending("verdict", State::failed);
    end.trouble = Trouble{kind, "trouble of " + id};
    EXPECT_TRUE(desk.finish(desk.take().id, end));
  };
  end_with("a", TroubleKind::crash);
  end_with("b", TroubleKind::timeout);
  end_with("c", TroubleKind::out_of_memory);
  end_with("d", TroubleKind::infra);
  end_with("e", TroubleKind::lost_worker);
  end_with("f", TroubleKind::crash);
  const std::vector<CodeHistory> codes = desk.queue().troubled_codes();
  ASSERT_EQ(codes.size(), 1U);
  EXPECT_EQ(codes[0].code, "bad");
  EXPECT_EQ(codes[0].crashes, 2U);
  EXPECT_EQ(codes[0].timeouts, 1U);
  EXPECT_EQ(codes[0].out_of_memory, 1U);
  EXPECT_EQ(codes[0].infra, 1U);
  EXPECT_EQ(codes[0].lost_workers, 1U);
  EXPECT_EQ(codes[0].last_task_id, "f");
  EXPECT_EQ(codes[0].last_what, "trouble of f");
  EXPECT_EQ(codes[0].last_ms, Desk::kStartMs + 6'000);
  EXPECT_FALSE(codes[0].is_poisoned);
}

// ---- ends without a worker

TYPED_TEST_P(QueueConformance, APendingTaskPastItsDeadlineTimesOut) {
  Desk desk(&TypeParam::make);
  Submission submission = task("a");
  submission.deadline_s = 10;
  desk.submit(submission);
  desk.advance(10s - 1ms);
  EXPECT_EQ(desk.submit(task("b")), Admission::created);
  EXPECT_EQ(desk.state("a"), State::pending);
  desk.advance(1ms);
  EXPECT_TRUE(desk.hears("a", State::timeout));
  EXPECT_EQ(desk.take_all(), Ids{"b"});
  const TaskView view = desk.view("a");
  EXPECT_EQ(view.state, State::timeout);
  EXPECT_TRUE(view.is_no_verdict);
  EXPECT_FALSE(view.is_dead);
  EXPECT_EQ(view.finished_ms, Desk::kStartMs + 10'000);
  EXPECT_EQ(desk.result("a"), "4: the deadline passed while the task was in the queue");
}

TYPED_TEST_P(QueueConformance, AProcessingTaskPastItsDeadlineIsLeftToItsWorker) {
  Desk desk(&TypeParam::make);
  Submission submission = task("a");
  submission.deadline_s = 10;
  desk.submit(submission);
  submission = task("b");
  submission.deadline_s = 10;
  desk.submit(submission);
  const Lease lease = desk.take("worker", 30);
  desk.take("worker", 30);
  desk.advance(20s);
  EXPECT_TRUE(desk.finish(lease.id, ending("verdict")));
  EXPECT_EQ(desk.state("a"), State::completed);
  desk.advance(10s);
  EXPECT_TRUE(desk.hears("b", State::timeout)) << "when its lease has run out too";
}

TYPED_TEST_P(QueueConformance, CancelsWhatIsNotFinal) {
  Desk desk(&TypeParam::make);
  desk.submit(task("a"));
  const Lease lease = desk.take();
  desk.submit(task("b"));
  EXPECT_EQ(desk.cancel("a"), CancelOutcome::cancelled);
  EXPECT_EQ(desk.cancel("b"), CancelOutcome::cancelled);
  EXPECT_EQ(desk.cancel("a"), CancelOutcome::already_final);
  EXPECT_EQ(desk.cancel("c"), CancelOutcome::unknown);
  EXPECT_EQ(desk.renew({lease.id}), std::vector{false});
  EXPECT_FALSE(desk.finish(lease.id, ending("late")));
  EXPECT_FALSE(desk.give_back(lease.id, failed_attempt("late")));
  for (const char* id : {"a", "b"}) {
    EXPECT_EQ(desk.state(id), State::cancelled);
    EXPECT_TRUE(desk.view(id).is_no_verdict);
    EXPECT_EQ(desk.view(id).finished_ms, Desk::kStartMs);
    EXPECT_EQ(desk.result(id), "5: the task was cancelled");
  }
  EXPECT_EQ(desk.take_all(), Ids{});
  desk.submit(task("d"));
  desk.finish(desk.take().id, ending("verdict"));
  EXPECT_EQ(desk.cancel("d"), CancelOutcome::already_final);
  EXPECT_EQ(desk.result("d"), "verdict");
}

// ---- looking

TYPED_TEST_P(QueueConformance, EveryCallSeesTheOnesBeforeIt) {
  Desk desk(&TypeParam::make);
  // Nobody waits in between, so they may all be done at once.
  std::vector<Lease> leases;
  for (int i = 0; i < 50; ++i) {
    desk.queue().submit({{task("task " + std::to_string(i))}, {}}, {});
    desk.queue().lease("worker", 60, [&](std::variant<std::optional<Lease>, Error> lease) {
      leases.push_back(*std::get<0>(std::move(lease)));
    });
    desk.queue().submit({{task("")}, {}}, {});  // refused, and nobody else with it
    if (i % 2 == 1) desk.queue().cancel("task " + std::to_string(i), {});
  }
  EXPECT_EQ(desk.cancel("unknown"), CancelOutcome::unknown);
  ASSERT_EQ(leases.size(), 50U);
  for (int i = 0; i < 50; ++i) {
    const Lease& lease = leases[static_cast<std::size_t>(i)];
    EXPECT_EQ(lease.id.task_id, "task " + std::to_string(i));
    EXPECT_EQ(desk.finish(lease.id, ending("x")), i % 2 == 0);
  }
}

TYPED_TEST_P(QueueConformance, TheListenerHearsEveryChangeBeforeItsDone) {
  Desk desk(&TypeParam::make);
  using Heard = Desk::Heard;
  desk.submit(task("a"));
  EXPECT_EQ(desk.heard(), (std::vector{Heard{"a", State::pending}}));
  const Lease lease = desk.take();
  EXPECT_EQ(desk.heard().back(), (Heard{"a", State::processing}));
  desk.give_back(lease.id, failed_attempt("x"));
  EXPECT_EQ(desk.heard().back(), (Heard{"a", State::pending}));
  const Lease again = desk.take();
  desk.finish(again.id, ending("x"));
  EXPECT_EQ(desk.heard().back(), (Heard{"a", State::completed}));
  desk.finish(again.id, ending("x"));
  desk.submit(task("a"));
  EXPECT_EQ(desk.heard().size(), 5U) << "nothing changed";
  desk.submit(refreshed(task("a")));
  desk.submit(refreshed(task("a")));
  desk.cancel("a");
  EXPECT_EQ(desk.heard(),
            (std::vector{Heard{"a", State::pending},
                         Heard{"a", State::processing},
                         Heard{"a", State::pending},
                         Heard{"a", State::processing},
                         Heard{"a", State::completed},
                         Heard{"a", State::pending},
                         Heard{"a", State::pending},
                         Heard{"a", State::cancelled}}));
}

TYPED_TEST_P(QueueConformance, WhatIsHeardCanBeFound) {
  Desk desk(&TypeParam::make);
  std::atomic<int> wrong = 0;
  desk.queue().listen([&](const TaskView& heard) {
    const std::optional<TaskView> found = desk.queue().find(heard.id);
    if (!found || found->state != heard.state) ++wrong;
    if (is_final(heard.state) && !desk.results().result(heard.id)) ++wrong;
  });
  for (int i = 0; i < 20; ++i) {
    desk.submit(task("task " + std::to_string(i)));
    desk.finish(desk.take().id, ending("x"));
  }
  EXPECT_EQ(wrong, 0);
}

TYPED_TEST_P(QueueConformance, ADoneMayAskForMore) {
  Desk desk(&TypeParam::make);
  std::promise<bool> finished;
  desk.queue().submit({{task("a")}, {}}, [&](const auto&) {
    desk.queue().lease("worker", 60, [&](std::variant<std::optional<Lease>, Error> lease) {
      desk.queue().finish(std::get<0>(lease)->id, ending("x"), [&](std::variant<bool, Error> done) {
        finished.set_value(std::get<bool>(done));
      });
    });
  });
  EXPECT_TRUE(finished.get_future().get());
}

TYPED_TEST_P(QueueConformance, ListsTheNewestFirst) {
  Desk desk(&TypeParam::make);
  const auto ids = [&](const ListFilter& filter) {
    Ids found;
    for (const TaskView& view : desk.queue().list(filter)) found.push_back(view.id);
    return found;
  };
  for (const char* id : {"a", "b", "c", "d"}) {
    desk.submit(task(id, Priority::normal, id == std::string("c") ? "other" : "client"));
  }
  for (int i = 0; i < 3; ++i) {  // "a" is dead, and "b" leased
    desk.give_back(desk.take().id, failed_attempt("x"));
  }
  EXPECT_EQ(ids({}), (Ids{"d", "c", "b", "a"}));
  ListFilter filter;
  filter.limit = 2;
  EXPECT_EQ(ids(filter), (Ids{"d", "c"}));
  filter = {};
  filter.client = "client";
  EXPECT_EQ(ids(filter), (Ids{"d", "b", "a"}));
  filter.state = State::pending;
  filter.limit = 1;
  EXPECT_EQ(ids(filter), (Ids{"d"}));
  filter = {};
  filter.state = State::failed;
  const Ids failed = ids(filter);
  filter = {};
  filter.dead_only = true;
  EXPECT_EQ(ids(filter), failed);
  filter.client = "nobody";
  EXPECT_EQ(ids(filter), Ids{});
  desk.submit(refreshed(task("a")));
  EXPECT_EQ(ids({}), (Ids{"a", "d", "c", "b"})) << "a is the newest now";
}

TYPED_TEST_P(QueueConformance, CountsWhatThereIs) {
  Desk desk(&TypeParam::make);
  EXPECT_EQ(desk.queue().counts().oldest_pending_ms, 0U);
  desk.submit(task("low", Priority::low, "c"));
  desk.advance(1s);
  desk.submit(task("normal 1", Priority::normal, "c"));
  desk.submit(task("normal 2", Priority::normal, "c"));
  desk.submit(task("high", Priority::high, "c"));
  desk.advance(1s);
  desk.take();
  const QueueCounts counts = desk.queue().counts();
  EXPECT_EQ(counts.pending_low, 1U);
  EXPECT_EQ(counts.pending_normal, 2U);
  EXPECT_EQ(counts.pending_high, 0U);
  EXPECT_EQ(counts.pending(), 3U);
  EXPECT_EQ(counts.processing, 1U);
  EXPECT_EQ(counts.dead, 0U);
  EXPECT_EQ(counts.stored, 4U);
  EXPECT_EQ(counts.oldest_pending_ms, 2'000U);
  desk.cancel("low");
  EXPECT_EQ(desk.queue().counts().oldest_pending_ms, 1'000U);
  EXPECT_EQ(desk.queue().counts().stored, 4U);
}

TYPED_TEST_P(QueueConformance, TellsThePlaceOfAPendingTask) {
  Desk desk(&TypeParam::make);
  desk.submit(task("low", Priority::low, "a"));
  desk.submit(task("a1", Priority::normal, "a"));
  desk.submit(task("a2", Priority::normal, "a"));
  desk.submit(task("b1", Priority::normal, "b"));
  desk.submit(task("high", Priority::high, "a"));
  desk.take();
  desk.submit(task("high 2", Priority::high, "a"));
  const auto place = [&](const std::string& id) { return desk.queue().place(id).value(); };
  EXPECT_EQ(place("high 2").position, 1U);
  EXPECT_EQ(place("a1").position, 2U);
  EXPECT_EQ(place("b1").position, 3U);
  EXPECT_EQ(place("a2").position, 4U);
  EXPECT_EQ(place("a2").ahead_higher, 1U);
  EXPECT_EQ(place("a2").ahead_same, 2U);
  EXPECT_EQ(place("low").position, 5U);
  EXPECT_EQ(place("low").ahead_higher, 4U);
  EXPECT_FALSE(desk.queue().place("high")) << "processing";
  EXPECT_FALSE(desk.queue().place("unknown"));
  EXPECT_EQ(desk.take_all(), (Ids{"high 2", "a1", "b1", "a2", "low"}));
}

// ---- stopping and starting

TYPED_TEST_P(QueueConformance, KeepsEverythingOverARestart) {
  Desk desk(&TypeParam::make);
  desk.submit(SubmitRequest{{task_of_content("final", "same"), task("dead")},
                            Batch{"batch", "content", {"final", "dead"}}});
  desk.finish(desk.take().id, reusable("verdict"));
  for (int i = 0; i < 3; ++i) {
    desk.give_back(desk.take().id, failed_attempt("x", Trouble{TroubleKind::crash, "SEGV"}));
  }
  Submission late = task("late", Priority::low, "someone");
  late.deadline_s = 100;
  desk.submit(late);
  desk.submit(task("b", Priority::high, "c"));
  desk.submit(task("a", Priority::high, "c"));
  desk.give_back(desk.take().id, failed_attempt("once"));
  const TaskView before = desk.view("b");
  desk.reopen();

  EXPECT_EQ(desk.view("final").state, State::completed);
  EXPECT_EQ(desk.result("final"), "verdict");
  EXPECT_EQ(desk.results().find_content("same")->result, "verdict");
  EXPECT_TRUE(desk.view("dead").is_dead);
  EXPECT_EQ(desk.queue().batch("batch")->task_ids, (Ids{"final", "dead"}));
  EXPECT_EQ(desk.code("code of dead")->crashes, 3U);
  EXPECT_TRUE(desk.code("code of dead")->is_poisoned);
  const TaskView after = desk.view("b");
  EXPECT_EQ(after.attempts, 1U);
  EXPECT_EQ(after.last_trouble, "once");
  EXPECT_EQ(after.submitted_ms, before.submitted_ms);
  EXPECT_EQ(after.worker, "worker");
  EXPECT_EQ(desk.view("late").deadline_ms, Desk::kStartMs + 100'000);
  const QueueCounts counts = desk.queue().counts();
  EXPECT_EQ(counts.stored, 5U);
  EXPECT_EQ(counts.dead, 1U);
  EXPECT_EQ(counts.pending_high, 2U);
  EXPECT_EQ(counts.pending_low, 1U);
  EXPECT_EQ(desk.queue().place("late")->position, 3U);

  const Lease lease = desk.take();
  EXPECT_EQ(lease.id.task_id, "b");
  EXPECT_EQ(lease.request, "request of b");
  EXPECT_EQ(lease.code, "code of b");
  EXPECT_EQ(desk.take().id.task_id, "a");
  desk.advance(100s);
  EXPECT_TRUE(desk.hears("late", State::timeout));
}

TYPED_TEST_P(QueueConformance, ARestartEndsAllLeases) {
  QueueSetup setup;
  setup.max_attempts = 2;
  Desk desk(&TypeParam::make, setup);
  desk.submit(task("a"));
  const Lease lease = desk.take("worker 7");
  desk.reopen();
  EXPECT_EQ(desk.state("a"), State::pending);
  EXPECT_EQ(desk.view("a").attempts, 1U);
  EXPECT_NE(desk.view("a").last_trouble.find("worker 7"), std::string::npos);
  EXPECT_EQ(desk.code("code of a")->lost_workers, 1U);
  EXPECT_FALSE(desk.finish(lease.id, ending("late")));
  desk.take("worker 8");
  desk.reopen();
  EXPECT_EQ(desk.state("a"), State::failed);
  EXPECT_TRUE(desk.view("a").is_dead);
  EXPECT_TRUE(desk.view("a").is_no_verdict);
  EXPECT_TRUE(desk.code("code of a")->is_poisoned);
  EXPECT_NE(desk.result("a").find("worker 8"), std::string::npos) << desk.result("a");
  EXPECT_EQ(desk.queue().counts().dead, 1U);
  EXPECT_EQ(desk.queue().counts().processing, 0U);
}

TYPED_TEST_P(QueueConformance, ManyThreadsLoseNothing) {
  Desk desk(&TypeParam::make);
  constexpr int kEach = 60;
  std::atomic<int> finished = 0;
  std::atomic<int> cancelled = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < kEach; ++i) {
          const std::string id = std::to_string(thread) + "-" + std::to_string(i);
          EXPECT_EQ(desk.submit(task(id)), Admission::created);
          EXPECT_TRUE(desk.queue().find(id));
          if (i % 10 == 0 && desk.cancel(id) == CancelOutcome::cancelled) ++cancelled;
          EXPECT_GE(desk.queue().counts().stored, static_cast<std::uint64_t>(i + 1));
        }
      });
      threads.emplace_back([&] {
        while (finished + cancelled < 4 * kEach) {
          const std::optional<Lease> lease = desk.lease();
          if (lease && desk.finish(lease->id, ending(lease->id.task_id))) ++finished;
        }
      });
    }
  }
  EXPECT_EQ(finished + cancelled, 4 * kEach);
  std::map<std::string, int> finals;
  for (const Desk::Heard& heard : desk.heard()) finals[heard.id] += is_final(heard.state) ? 1 : 0;
  EXPECT_EQ(finals.size(), 4U * kEach);
  for (const auto& [id, times] : finals) EXPECT_EQ(times, 1) << id;
  const QueueCounts counts = desk.queue().counts();
  EXPECT_EQ(counts.stored, 4U * kEach);
  EXPECT_EQ(counts.pending() + counts.processing, 0U);
}

REGISTER_TYPED_TEST_SUITE_P(QueueConformance,
                            ShowsWhatWasSubmitted,
                            AttachesToATaskOfTheSameIdAndContent,
                            DoesNothingOnAConflictAndSaysWhatWouldHaveBeen,
                            RefusesWhatCannotBeMeant,
                            AnswersByAnEarlierResultOfTheSameContent,
                            ReusesOnlyReusableResultsOfItsOwnGeneration,
                            StartsATaskWithoutAVerdictAnew,
                            ARefreshReplacesWhateverIsThere,
                            AReplacedTaskLeavesTheCachedAnswersOfOthers,
                            AcceptsAllOrNoneWhenItIsFull,
                            KeepsBatches,
                            LeasesByPriorityThenInOrder,
                            ALeaseTellsWhatAWorkerNeeds,
                            ClientsTakeTurns,
                            TheClientThatHoldsTheFewestLeasesIsNext,
                            AmongEqualsTheClientThatWaitedLongestIsNext,
                            AgeRaisesThePriority,
                            OffersAResultOfTheSameContentThatCameMeanwhile,
                            AFenceIsNeverGivenOutTwice,
                            OnlyTheNewestLeaseCounts,
                            OneOfManyFinishersWins,
                            ALeaseThatRanOutIsALostWorker,
                            ARenewedLeaseLastsLonger,
                            WithItsAttemptsUsedUpATaskIsDead,
                            ADeadTaskWithoutAResultGetsTheOneOfItsEnd,
                            AnOutageDoesNotPoisonACode,
                            APoisonedCodeGetsASingleAttempt,
                            WhatIsGivenBackForFreeDoesNotCount,
                            AGivenBackTaskHasItsOldPlace,
                            CountsTheTroublesOfACode,
                            APendingTaskPastItsDeadlineTimesOut,
                            AProcessingTaskPastItsDeadlineIsLeftToItsWorker,
                            CancelsWhatIsNotFinal,
                            EveryCallSeesTheOnesBeforeIt,
                            TheListenerHearsEveryChangeBeforeItsDone,
                            WhatIsHeardCanBeFound,
                            ADoneMayAskForMore,
                            ListsTheNewestFirst,
                            CountsWhatThereIs,
                            TellsThePlaceOfAPendingTask,
                            KeepsEverythingOverARestart,
                            ARestartEndsAllLeases,
                            ManyThreadsLoseNothing);

}  // namespace drk::gym
