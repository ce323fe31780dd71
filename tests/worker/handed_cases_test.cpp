// SPDX-License-Identifier: Apache-2.0
// The cases in the folder that DRK_CASES names: honest ones are accepted, hacks harm nothing.
#include "drk/base/fd.h"

#include "worker/fixture.h"

#include <algorithm>
#include <filesystem>

namespace drk::worker::test {
namespace {

struct HandedCase {
  std::string name;
  json::Object meta;
  task::Task task;
};

class HandedCases : public WorkerTest {
 protected:
  void SetUp() override {
    WorkerTest::SetUp();
    if (IsSkipped()) return;
    const char* folder = std::getenv("DRK_CASES");  // NOLINT(concurrency-mt-unsafe)
    if (folder == nullptr || *folder == '\0')
      GTEST_SKIP() << "DRK_CASES is not set: no handed cases";
    folder_ = folder;
  }

  /// Those that need no GPU, in the order of their names.
  [[nodiscard]] std::vector<HandedCase> load(const std::string& kind) const {
    std::vector<HandedCase> cases;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/" + kind)) {
      const std::string path = entry.path();
      if (!std::filesystem::exists(path + "/case.json")) continue;
      HandedCase c;
      c.name = entry.path().filename();
      c.meta = json::parse(read_file(path + "/case.json")).as_object();
      if (c.meta.at("needs").as_string() == "gpu") continue;
      c.task = make_task(read_file(path + "/reference.py"), read_file(path + "/candidate.py"));
      cases.push_back(std::move(c));
    }
    std::sort(
        cases.begin(), cases.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return cases;
  }

 private:
  std::string folder_;
};

TEST_F(HandedCases, HonestCandidatesAreAccepted) {
  const std::vector<HandedCase> cases = load("honest");
  ASSERT_FALSE(cases.empty());
  for (const HandedCase& c : cases) {
    const task::Result result = evaluator().evaluate(c.task);
    EXPECT_EQ(kind_of(result), "accepted") << c.name << ": " << text_of(result);
  }
}

TEST_F(HandedCases, HacksHarmNeitherTheMachineNorTheNextEvaluation) {
  const std::vector<HandedCase> cases = load("hacks");
  ASSERT_FALSE(cases.empty());
  for (HandedCase c : cases) {
    c.task.limits.correctness_s = 20;
    if (c.name == "spin_forever") c.task.limits.correctness_s = 2;
    const task::Result result = evaluator().evaluate(c.task);
    EXPECT_NE(kind_of(result), "undecided") << c.name << ": " << text_of(result);
    const bool is_honest = c.meta.at("expect").as_object().at("verdict").as_string() == "accept";
    if (is_honest) {
      EXPECT_EQ(kind_of(result), "accepted") << c.name << ": " << text_of(result);
    }
  }
  expect_unharmed();
}

}  // namespace
}  // namespace drk::worker::test
