// SPDX-License-Identifier: Apache-2.0
// drk serve and what talks to it, as users meet them.
#include "drk/base/error.h"
#include "drk/base/fd.h"
#include "drk/base/json.h"

#include "base/error_matchers.h"
#include "cli/program.h"
#include "render_top.h"
#include "tokens.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <thread>

namespace drk::cli {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A server in a folder of its own; ends with the test.
class ServeCli : public testing::Test {
 protected:
  void start(std::vector<std::string> options) {
    std::vector<std::string> arguments = {
        "serve", "--port", "0", "--data-dir", home_.path("data"), "--log-file", home_.path("log")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    server_ = home_.start(std::move(arguments), "", environment());
    for (int i = 0; i < 400 && url_.empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
      const std::string printed = read_file(home_.path("stderr"));
      const std::size_t at = printed.find("http");
      const std::size_t end = printed.find('\n', at);
      if (at != std::string::npos && end != std::string::npos) url_ = printed.substr(at, end - at);
    }
    ASSERT_FALSE(url_.empty()) << read_file(home_.path("stderr"));
  }

  [[nodiscard]] Ended run(std::vector<std::string> arguments) const {
    std::vector<std::string> variables = environment();
    variables.push_back("DRK_SERVER=" + url_);
    return program_.run(std::move(arguments), "", variables);
  }

  [[nodiscard]] static std::vector<std::string> environment() {
    return {"DRK_PYTHON=" + variable("DRK_PYTHON"),
            "PATH=" + variable("PATH"),
            "HOME=" + variable("HOME")};
  }

  Program home_;  ///< The server's.
  Program program_;
  ChildProcess server_;
  std::string url_;
  const std::string problem_ = std::string(DRK_SOURCE_DIR) + "/problems/level1/gelu_tanh";
  const std::string reference_ = problem_ + "/reference.py";
  const std::string good_ = problem_ + "/candidates/good.py";
};

TEST_F(ServeCli, SubmitStatusCancel) {
  start({"--jobs", "0"});
  const Ended submitted = run({"submit", reference_, good_, "--id", "t1", "--priority", "low"});
  EXPECT_EQ(submitted.exit_code, 0) << submitted.err;
  EXPECT_EQ(submitted.out, "t1\n");
  const Ended status = run({"status", "t1"});
  EXPECT_TRUE(has(status.out, "status      pending\n")) << status.out;
  EXPECT_TRUE(has(status.out, "priority    low\n")) << status.out;
  EXPECT_TRUE(has(status.out, "waits       this server has no workers\n")) << status.out;
  const Ended cancelled = run({"cancel", "t1", "unknown"});
  EXPECT_EQ(cancelled.exit_code, 1);
  EXPECT_EQ(cancelled.out, "t1 cancelled\n");
  EXPECT_TRUE(has(cancelled.err, "no task unknown")) << cancelled.err;
  EXPECT_TRUE(has(run({"status", "t1"}).out, "status      cancelled\n"));
  EXPECT_EQ(run({"status", "unknown"}).exit_code, 2);
  EXPECT_EQ(run({"submit", reference_, good_, "--id", "t1", "--priority", "low"}).exit_code, 0);
  EXPECT_TRUE(has(run({"status", "t1"}).out, "status      pending\n")) << "it starts anew";
  const Ended conflict = run({"submit", reference_, good_, "--id", "t1", "--trials", "3"});
  EXPECT_EQ(conflict.exit_code, 2);
  EXPECT_TRUE(has(conflict.err, "409")) << conflict.err;
}

TEST_F(ServeCli, SubmitWaitsForTheVerdict) {
  if (variable("DRK_PYTHON").empty()) GTEST_SKIP() << "DRK_PYTHON is unset";
  start({});
  const Ended good = run({"submit", reference_, good_, "--wait", "--trials", "1"});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_TRUE(has(good.out, "ACCEPTED")) << good.out;
  const Ended bad = run({"submit", reference_, reference_, "--wait", "--json"});
  EXPECT_EQ(bad.exit_code, 1) << bad.err;
  EXPECT_TRUE(has(bad.out, "\"compiled\": false")) << bad.out;
}

TEST_F(ServeCli, TopShowsTheQueue) {
  start({"--jobs", "0"});
  (void)run({"submit", reference_, good_, "--id", "a-task"});
  const Ended top = run({"top", "--once"});
  EXPECT_EQ(top.exit_code, 0) << top.err;
  EXPECT_TRUE(has(top.out, "1 pending (high 0, normal 1, low 0)")) << top.out;
  EXPECT_TRUE(has(top.out, "a-task")) << top.out;
  const json::Value as_json = json::parse(run({"top", "--json"}).out);
  EXPECT_EQ(as_json.at("pending").as_array().size(), 1U);
}

TEST_F(ServeCli, WithoutAServerItSaysSo) {
  url_ = "http://127.0.0.1:1";
  for (const char* command : {"top", "status"}) {
    std::vector<std::string> arguments = {command};
    if (std::string(command) == "status") arguments.emplace_back("t1");
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.exit_code, 2);
    EXPECT_TRUE(has(ended.err, "127.0.0.1:1")) << ended.err;
  }
}

TEST_F(ServeCli, AsksForTokens) {
  start({"--jobs", "0", "--tokens", program_.file("tokens", "# who\nalice secret-of-alice-1\n")});
  const Ended none = run({"status", "t1"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(has(none.err, "401")) << none.err;
  const Ended some = run({"submit", reference_, good_, "--token", "secret-of-alice-1"});
  EXPECT_EQ(some.exit_code, 0) << some.err;
}

TEST_F(ServeCli, RefusesWhatCannotBeMeant) {
  struct Case {
    std::vector<std::string> options;
    std::string part;
  };
  const std::vector<Case> cases = {
      {{"--host", "0.0.0.0"}, "--tokens"},
      {{"--jobs", "1000"}, "--jobs"},
      {{"--tls-cert", "x"}, "--tls-key"},
      {{"--tls-cert", "/nope", "--tls-key", "/nope"}, "/nope"},
      {{"--tokens", program_.file("bad", "alice short\n")}, "line 1"},
      {{"--host", "no.such.host.invalid", "--tokens", program_.file("t", "a secret-of-alice-1\n")},
       "no.such.host.invalid"},
      {{"--data-dir", "/proc/nope"}, "/proc/nope"},
  };
  for (const Case& one : cases) {
    std::vector<std::string> arguments = {"serve", "--port", "0"};
    arguments.insert(arguments.end(), one.options.begin(), one.options.end());
    if (one.options.front() != "--jobs") arguments.insert(arguments.end(), {"--jobs", "0"});
    if (one.options.front() != "--data-dir") {
      arguments.insert(arguments.end(), {"--data-dir", program_.path("data")});
    }
    const Ended ended = program_.run(arguments, "", environment());
    EXPECT_EQ(ended.exit_code, 2) << one.part << ended.out;
    EXPECT_TRUE(has(ended.err, one.part)) << ended.err;
  }
}

TEST_F(ServeCli, OneServerAFolder) {
  start({"--jobs", "0"});
  const Ended second = program_.run(
      {"serve", "--port", "0", "--jobs", "0", "--data-dir", home_.path("data")}, "", environment());
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_TRUE(has(second.err, home_.path("data"))) << second.err;
}

TEST_F(ServeCli, StopsWhenTold) {
  start({"--jobs", "0"});
  ::kill(server_.pid(), SIGTERM);
  const std::optional<int> status = server_.wait_for(std::chrono::seconds(20));
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 0) << *status;
  EXPECT_TRUE(has(read_file(home_.path("log")), "server stopped"));
}

TEST(Tokens, AreNamesAndTokens) {
  const auto tokens =
      parse_tokens("# who\n\nalice secret-of-alice-1\n bob\tsecret-of-bob-123 \n", "f");
  ASSERT_EQ(tokens.size(), 2U);
  EXPECT_EQ(tokens.at("secret-of-alice-1"), "alice");
  EXPECT_EQ(tokens.at("secret-of-bob-123"), "bob");
  for (const char* bad : {"",
                          "# none\n",
                          "alice\n",
                          "alice a b\n",
                          "alice short\n",
                          "a secret-of-alice-1\nb secret-of-alice-1\n"}) {
    EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, "f", [&] {
      (void)parse_tokens(bad, "f");
    })) << bad;
  }
}

TEST(RenderTop, FitsItsWindowAndShowsNoControlCharacters) {
  TopView view;
  view.url = "http://127.0.0.1:10907";
  view.health = json::parse(R"({"status": "healthy", "version": "1", "uptime": 3700,
      "queue_status": {"pending": 2, "queues": {"high": 1, "normal": 1, "low": 0}}})")
                    .as_object();
  view.metrics = json::parse(R"({"error_metrics": {"outcomes": {"accepted": 3}}})").as_object();
  view.pending = json::parse(R"({"tasks": [{"task_id": "evil\u001b[2J", "client": "ä\nb",
      "priority": "high", "queue_ahead": 1}, {"task_id": "t2"}, {"task_id": "t3"}]})")
                     .as_object();
  const std::string text = render_top(view, Style(false), 8, 80);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 8);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_TRUE(has(text, "up 1 h 01 min")) << text;
  EXPECT_TRUE(has(text, "verdicts  accepted 3\n")) << text;
  EXPECT_TRUE(has(text, "high, 1 ahead")) << text;
  EXPECT_FALSE(has(text, "t3")) << text;
  std::size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  EXPECT_LE(longest, 81U);  // one character of two bytes
}

}  // namespace
}  // namespace drk::cli
