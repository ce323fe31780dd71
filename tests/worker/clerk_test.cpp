// SPDX-License-Identifier: Apache-2.0
// Texts are read in a guest without a device.
#include "worker/clerk.h"

#include "worker/fixture.h"
#include "worker/pool.h"

namespace drk::worker::test {
namespace {

class ClerkTest : public WorkerTest {
 protected:
  void SetUp() override {
    WorkerTest::SetUp();
    if (IsSkipped()) return;
    Options none_warm = options();
    none_warm.warm_guests = 0;
    pool_ = std::make_unique<GuestPool>(none_warm, nullptr);
    clerk_ = std::make_unique<Clerk>([this] {
      ++opened_;
      return pool_->take_without_device();
    });
  }

  std::unique_ptr<GuestPool> pool_;
  std::unique_ptr<Clerk> clerk_;
  int opened_ = 0;
};

TEST_F(ClerkTest, FindsSyntaxErrorsWithTheirLineInOneGuest) {
  const auto failure = clerk_->find_syntax_error("x = 1\ny = (2 +\n", {});
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->kind, task::FailureKind::syntax_error);
  EXPECT_EQ(failure->error->line, 2U);
  EXPECT_FALSE(clerk_->find_syntax_error(kReluCandidate, {}).has_value());
  EXPECT_FALSE(clerk_->find_syntax_error("raise SystemExit  # parsed, never run", {}).has_value());
  EXPECT_EQ(opened_, 1);
}

TEST_F(ClerkTest, GoesOnAfterATextThatBringsTheParserDown) {
  const std::string deep = std::string(90'000, '(') + std::string(9'000, ')');
  const auto failure = clerk_->find_syntax_error(deep, {});
  EXPECT_TRUE(!failure || failure->kind == task::FailureKind::syntax_error);
  EXPECT_FALSE(clerk_->find_syntax_error(kReluCandidate, {}).has_value());
}

}  // namespace
}  // namespace drk::worker::test
