// SPDX-License-Identifier: Apache-2.0
// The server beside a GPU: it lists what NVIDIA's own tool lists, and judges.
#include "drk/base/json.h"
#include "drk/base/subprocess.h"
#include "drk/http.h"

#include "cli/program.h"
#include "worker/fixture.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sstream>
#include <thread>

namespace drk::cli {
namespace {

std::set<std::string> uuids_by_nvidia_smi() {
  const ProgramResult listed =
      run_program({"nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"},
                  {"PATH=" + variable("PATH")},
                  std::chrono::seconds(30));
  std::set<std::string> uuids;
  std::istringstream lines(listed.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("GPU-")) uuids.insert(line);
  }
  return uuids;
}

TEST(ServerGpu, ListsTheGpusAndJudges) {
  std::set<std::string> expected;
  try {
    expected = uuids_by_nvidia_smi();
  } catch (const Error& error) {
    GTEST_SKIP() << "no nvidia-smi: " << error.what();
  }
  if (expected.empty()) GTEST_SKIP() << "nvidia-smi lists no GPU";
  const Program home;
  ChildProcess server = home.start({"serve",
                                    "--port",
                                    "0",
                                    "--data-dir",
                                    home.path("data"),
                                    "--log-file",
                                    home.path("log"),
                                    "--python",
                                    worker::test::options().python});
  std::string url;
  for (int i = 0; i < 1200 && url.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
    const std::string printed = read_file(home.path("stderr"));
    const std::size_t at = printed.find("http://");
    const std::size_t end = printed.find('\n', at);
    if (at != std::string::npos && end != std::string::npos) url = printed.substr(at, end - at);
  }
  ASSERT_FALSE(url.empty()) << read_file(home.path("stderr"));
  http::ClientOptions options;
  options.url = url;
  http::Client client(options);
  const json::Value health = json::parse(client.send("GET", "/health").body);
  std::set<std::string> listed;
  for (const auto& gpu : health.at("gpu_status").as_object()) {
    listed.insert(std::string(gpu.key()));
    EXPECT_GT(gpu.value().at("memory_bytes").to_number<std::uint64_t>(), std::uint64_t{1} << 30);
  }
  EXPECT_EQ(listed, expected);
  json::Object task;
  task["task_id"] = "t1";
  task["reference_code"] = worker::test::kReluReference;
  task["kernel_code"] = worker::test::kReluCandidate;
  const http::Answer answer = client.send("POST", "/evaluate", json::dump(task));
  EXPECT_EQ(answer.status, 200U) << answer.body;
  EXPECT_TRUE(json::parse(answer.body).at("correctness").as_bool()) << answer.body;
  ::kill(server.pid(), SIGTERM);
  EXPECT_TRUE(server.wait_for(std::chrono::seconds(40)).has_value());
}

}  // namespace
}  // namespace drk::cli
