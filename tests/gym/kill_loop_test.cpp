// SPDX-License-Identifier: Apache-2.0
// The server is killed at random moments while it takes tasks and judges them: what it accepted is
// neither lost nor done twice. DRK_KILLS says how often (6 when it is not set).
#include "drk/base/random.h"

#include "cli/program.h"
#include "gym/serving.h"
#include "worker/fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

namespace drk::gym {
namespace {

using test::request;

class KillLoop : public worker::test::WorkerTest {
 protected:
  void start() {
    child_ = program_.start({"serve",
                             "--port",
                             "0",
                             "--data-dir",
                             program_.path("data"),
                             "--log-file",
                             program_.path("log"),
                             "--max-attempts",
                             "20",
                             "--python",
                             worker::test::options().python});
    std::string printed;
    for (int i = 0; i < 400 && printed.find("listening on ") == std::string::npos; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
      printed = read_file(program_.path("stderr"));
    }
    const std::size_t at = printed.find("http://");
    ASSERT_NE(at, std::string::npos) << printed;
    url_ = printed.substr(at, printed.find('\n', at) - at);
  }

  void kill_server() { child_.kill_and_reap(); }

  [[nodiscard]] std::optional<http::Answer> send(std::string_view method,
                                                 const std::string& target,
                                                 const std::string& body = {}) const {
    try {
      http::ClientOptions options;
      options.url = url_;
      http::Client client(options);
      return client.send(method, target, body);
    } catch (const Error&) {  // it was killed just now
      return std::nullopt;
    }
  }

  /// Submits until `stop`; what was answered with 202 counts as accepted.
  void submit_until(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const std::string id = fmt::format("t{}", next_++);
      json::Object body = request(id);
      body["reference_code"] = worker::test::kReluReference;
      body["kernel_code"] = std::string(worker::test::kReluCandidate) + "# " + id + "\n";
      body["num_correct_trials"] = 1;
      body["run_performance"] = false;
      const auto answer = send("POST", "/evaluate?async=1", json::dump(body));
      if (answer && answer->status == 202) accepted_.push_back(id);
      // So many are done in one life of the server, more or less.
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
    }
  }

  /// Results that a client has seen must not change any more.
  void look_at_results() {
    for (const std::string& id : accepted_) {
      const auto answer = send("GET", "/results/" + id);
      if (!answer || answer->status != 200) continue;
      const auto [seen, is_new] = results_.try_emplace(id, answer->body);
      if (seen->second != answer->body) ++changed_;
    }
  }

  cli::Program program_;
  ChildProcess child_;
  std::string url_;
  std::uint64_t next_ = 0;
  std::vector<std::string> accepted_;
  std::map<std::string, std::string> results_;
  std::size_t changed_ = 0;
};

TEST_F(KillLoop, LosesNothingAndDoublesNothing) {
  const std::string wanted = cli::variable("DRK_KILLS");
  const int kills = wanted.empty() ? 6 : std::stoi(wanted);
  for (int kill = 0; kill < kills; ++kill) {
    ASSERT_NO_FATAL_FAILURE(start());
    {
      std::jthread submitter([this](const std::stop_token& stop) { submit_until(stop); });
      // Python needs two to three seconds: some die before their first evaluation, most within one.
      std::this_thread::sleep_for(std::chrono::milliseconds(500 + secure_random(5500)));
      kill_server();
    }
    ASSERT_NO_FATAL_FAILURE(start());
    look_at_results();
    kill_server();
  }
  ASSERT_NO_FATAL_FAILURE(start());
  std::size_t lost = 0;
  std::size_t unfinished = 0;
  for (const std::string& id : accepted_) {
    const auto answer = send("GET", "/results/" + id + "?wait=120");
    ASSERT_TRUE(answer.has_value());
    if (answer->status == 404) ++unfinished;
    const auto status = send("GET", "/status/" + id);
    if (status->status == 404) ++lost;
  }
  look_at_results();
  // Each end is logged after it is durable, so one that is logged twice was made twice.
  std::map<std::string, int> ends;
  std::istringstream log(read_file(program_.path("log")));
  for (std::string line; std::getline(log, line);) {
    if (line.find("\"event\":\"task finished\"") == std::string::npos) continue;
    const json::Value entry = json::parse(line);
    ++ends[std::string(entry.at("task_id").as_string())];
  }
  std::size_t doubled = changed_;
  for (const auto& [id, count] : ends) doubled += count > 1 ? 1 : 0;
  fmt::print("kill loop: {} kills, {} accepted, {} lost, {} doubled\n",
             2 * kills,
             accepted_.size(),
             lost,
             doubled);
  EXPECT_GE(accepted_.size(), static_cast<std::size_t>(kills));
  EXPECT_EQ(lost, 0U);
  EXPECT_EQ(unfinished, 0U);
  EXPECT_EQ(doubled, 0U);
  // Ends by itself, and leaves nothing to come back to.
  ::kill(child_.pid(), SIGTERM);
  const auto status = child_.wait_for(std::chrono::seconds(40));
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 0) << *status;
}

}  // namespace
}  // namespace drk::gym
