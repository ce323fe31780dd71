// SPDX-License-Identifier: Apache-2.0
// Waits and interest, against a real store.
#include "gym/waiters.h"

#include "drk/gym/sqlite_store.h"

#include "gym/ending.h"
#include "gym/interest.h"
#include "gym/serving.h"

#include <gtest/gtest.h>

#include <future>

namespace drk::gym {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

class WaitersTest : public testing::Test {
 protected:
  WaitersTest() {
    store_.listen([this](const TaskView& task) { waiters_.on_change(task); });
  }

  void submit(const std::string& id) {
    SubmitRequest request;
    Submission submission;
    submission.id = id;
    submission.content = id;
    request.submissions.push_back(submission);
    std::promise<void> done;
    store_.submit(std::move(request), [&](const auto&) { done.set_value(); });
    done.get_future().wait();
  }
  void cancel(const std::string& id) {
    std::promise<void> done;
    store_.cancel(id, [&](const auto&) { done.set_value(); });
    done.get_future().wait();
  }

  static SqliteOptions options(const std::string& folder) {
    SqliteOptions options;
    options.folder = folder;
    options.result_of_end = result_without_verdict;
    return options;
  }
  static bool is_final_view(const TaskView& task) { return is_final(task.state); }

  const test::Folder folder_;
  Crew crew_{2, [](const char* what) { ADD_FAILURE() << what; }};
  SqliteStore store_{options(folder_.path())};
  Waiters waiters_{store_, crew_};
};

TEST_F(WaitersTest, HearOfTheChangeTheyWaitFor) {
  submit("t1");
  std::promise<State> state;
  waiters_.wait(
      "t1", is_final_view, std::nullopt, [&](const auto& task) { state.set_value(task->state); });
  cancel("t1");
  EXPECT_EQ(state.get_future().get(), State::cancelled);
}

TEST_F(WaitersTest, AreAnsweredAtOnceWhenItIsSoAlreadyOrThereIsNoTask) {
  submit("t1");
  cancel("t1");
  std::promise<State> state;
  waiters_.wait(
      "t1", is_final_view, std::nullopt, [&](const auto& task) { state.set_value(task->state); });
  EXPECT_EQ(state.get_future().get(), State::cancelled);
  std::promise<bool> found;
  waiters_.wait("unknown", is_final_view, std::nullopt, [&](const auto& task) {
    found.set_value(task.has_value());
  });
  EXPECT_FALSE(found.get_future().get());
}

TEST_F(WaitersTest, EndWithTheirTimeOrWhenReleased) {
  submit("t1");
  std::promise<State> timed;
  waiters_.wait("t1", is_final_view, 20ms, [&](const auto& task) { timed.set_value(task->state); });
  EXPECT_EQ(timed.get_future().get(), State::pending);
  std::promise<State> released;
  waiters_.wait(
      "t1", is_final_view, 60s, [&](const auto& task) { released.set_value(task->state); });
  waiters_.release_all();
  EXPECT_EQ(released.get_future().get(), State::pending);
}

TEST_F(WaitersTest, DroppedOnesAreNotCalled) {
  submit("t1");
  std::atomic<int> calls = 0;
  const Waiters::Handle handle =
      waiters_.wait("t1", is_final_view, std::nullopt, [&](const auto&) { ++calls; });
  waiters_.drop(handle);
  waiters_.drop(handle);
  cancel("t1");
  crew_.stop();
  EXPECT_EQ(calls, 0);
}

TEST_F(WaitersTest, AreCalledOnceWhateverComesTogether) {
  constexpr int kWaits = 200;
  submit("t1");
  std::atomic<int> calls = 0;
  for (int i = 0; i < kWaits; ++i) {
    waiters_.wait(
        "t1", is_final_view, std::chrono::milliseconds(i % 5), [&](const auto&) { ++calls; });
  }
  cancel("t1");
  waiters_.release_all();
  std::this_thread::sleep_for(50ms);
  crew_.stop();
  EXPECT_EQ(calls, kWaits);
}

class InterestTest : public testing::Test {
 protected:
  [[nodiscard]] bool is_abandoned_within(std::chrono::milliseconds limit) {
    return abandoned_.get_future().wait_for(limit) == std::future_status::ready;
  }
  Crew crew_{1, [](const char* what) { ADD_FAILURE() << what; }};
  std::promise<std::string> abandoned_;
  Interest interest_{crew_, 50ms, [this](const std::string& id) { abandoned_.set_value(id); }};
};

TEST_F(InterestTest, WhatTheLastOneLeftIsAbandoned) {
  Interest::Token submitter = interest_.submitted("t1");
  Interest::Token other = interest_.joined("t1");
  submitter.reset();
  std::this_thread::sleep_for(100ms);
  other.reset();
  EXPECT_EQ(abandoned_.get_future().get(), "t1");
}

TEST_F(InterestTest, WhatIsAskedForOrJoinedInTimeIsNot) {
  interest_.submitted("t1").reset();
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(20ms);
    interest_.asked("t1");
  }
  const Interest::Token token = interest_.joined("t1");
  EXPECT_FALSE(is_abandoned_within(150ms));
}

TEST_F(InterestTest, FinalTasksAndThoseOfNobodyAreForgotten) {
  Interest::Token token = interest_.submitted("t1");
  interest_.ended("t1");
  token.reset();
  EXPECT_EQ(interest_.joined("t1"), nullptr);
  EXPECT_EQ(interest_.joined("t2"), nullptr);  // posted async
  EXPECT_FALSE(is_abandoned_within(150ms));
}

TEST_F(InterestTest, WhatSomebodyPostedAsyncIsKept) {
  Interest::Token token = interest_.submitted("t1");
  interest_.kept("t1");
  token.reset();
  EXPECT_FALSE(is_abandoned_within(150ms));
}

TEST_F(InterestTest, WhoLeftAnEarlierTaskOfTheIdDoesNotCount) {
  Interest::Token early = interest_.submitted("t1");
  const Interest::Token late = interest_.submitted("t1");  // posted anew
  early.reset();
  EXPECT_FALSE(is_abandoned_within(150ms));
}

}  // namespace
}  // namespace drk::gym
