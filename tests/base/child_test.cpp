// SPDX-License-Identifier: Apache-2.0
// What hangs or dies in a child does not take us with it.
#include "drk/base/child.h"

#include "drk/base/error.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace drk {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

std::string error_in_child(const std::function<std::string()>& body,
                           std::chrono::milliseconds limit) {
  try {
    return run_in_child(body, limit);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(RunInChild, ReturnsWhatTheBodyReturned) {
  EXPECT_EQ(run_in_child([] { return std::string("an answer"); }, 10s), "an answer");
}

TEST(RunInChild, TellsHowTheChildEnded) {
  const auto hang = [] {
    ::pause();
    return std::string();
  };
  const auto die = [] {
    ::raise(SIGKILL);
    return std::string();
  };
  const auto fail = []() -> std::string { throw Error(ErrorCode::unavailable, "no"); };
  EXPECT_EQ(error_in_child(hang, 50ms), "no answer within 0 s");
  EXPECT_EQ(error_in_child(die, 10s), "ended by signal 9");
  EXPECT_EQ(error_in_child(fail, 10s), "gave no answer");
}

/// Sends back what it receives.
void echo(int socket) {
  while (const std::optional<Message> message = receive_message(socket)) {
    send_message(socket, message->text);
  }
}

TEST(ForkedChild, TalksOverItsSocketAndEndsWhenItCloses) {
  ForkedChild child(echo);
  send_message(child.socket(), "a word");
  EXPECT_EQ(receive_message(child.socket())->text, "a word");
  child.hang_up();
  EXPECT_EQ(child.end(10s), "ended with status 0");
}

TEST(ForkedChild, HasNoOtherDescriptorOfOurs) {
  const Fd ours(::fcntl(STDERR_FILENO, F_DUPFD, 20));
  ForkedChild child([&](int socket) {
    send_message(socket, ::fcntl(ours.get(), F_GETFD) < 0 ? "closed" : "open");
  });
  EXPECT_EQ(receive_message(child.socket())->text, "closed");
}

TEST(ForkedChild, IgnoresRequestsToStop) {
  ForkedChild child([](int socket) {
    send_message(socket, std::to_string(::getpid()));
    echo(socket);
  });
  const pid_t pid = std::stoi(receive_message(child.socket())->text);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) EXPECT_EQ(::kill(pid, signal), 0);
  send_message(child.socket(), "still here");
  EXPECT_EQ(receive_message(child.socket())->text, "still here");
}

TEST(ForkedChild, TellsHowItEnded) {
  ForkedChild hangs([](int) { ::pause(); });
  hangs.hang_up();
  EXPECT_EQ(hangs.end(50ms), "ended by signal 9");
  ForkedChild fails([](int) { throw Error(ErrorCode::unavailable, "no"); });
  EXPECT_FALSE(receive_message(fails.socket()).has_value());
  EXPECT_EQ(fails.end(10s), "ended with status 1");
}

}  // namespace
}  // namespace drk
