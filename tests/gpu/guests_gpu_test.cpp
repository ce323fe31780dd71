// SPDX-License-Identifier: Apache-2.0
// On a machine with a GPU: the same sandbox holds, and interpreted guests do not see the device.
#include "worker/fixture.h"

#include <algorithm>
#include <filesystem>

namespace drk::worker::test {
namespace {

class GuestsBesideAGpu : public WorkerTest {
 protected:
  void SetUp() override {
    WorkerTest::SetUp();
    if (IsSkipped()) return;
    if (!std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "no NVIDIA device here";
  }
};

TEST_F(GuestsBesideAGpu, AreClosedInFull) {
  const Environment environment = evaluator().environment();
  for (const task::MissingIsolation& missing : environment.isolation.missing) {
    ADD_FAILURE() << missing.feature << ": " << missing.why;
  }
}

TEST_F(GuestsBesideAGpu, SeeNoDevice) {
  const std::string code = candidate_with(
      "assert not torch.cuda.is_available()\n"
      "        assert not [n for n in os.listdir('/dev') if n.startswith('nvidia')]\n"
      "        return torch.relu(x)");
  const task::Result result = evaluator().evaluate(make_torch_task(kReluReference, code));
  EXPECT_EQ(kind_of(result), "accepted") << text_of(result);
}

TEST_F(GuestsBesideAGpu, JudgeByTheInterpreter) {
  const task::Result result = evaluator().evaluate(make_task(kReluReference, kReluCandidate));
  EXPECT_EQ(kind_of(result), "accepted") << text_of(result);
  EXPECT_EQ(result.mode, task::Mode::interpreter);
}

}  // namespace
}  // namespace drk::worker::test
