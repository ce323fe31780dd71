// SPDX-License-Identifier: Apache-2.0
// What the watch makes of callbacks and records, over a driver that is none. The real ones are
// asked in tests/gpu/kernel_watch_gpu_test.cpp.
#include "guest/kernel_watch.h"

#include "drk/base/error.h"

#include "guest/fake_cuda.h"
#include "guest/pass_through.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <type_traits>

namespace drk::guest::test {
namespace {

using cupti::DriverCall;
using cupti::Function;
using cupti::GraphExec;
using task::KernelOrigin;

constexpr const char* kPtx = ".version 7.0";

std::string text_of(const LaunchLog& log) {
  std::string text;
  for (const task::KernelLaunches& kernel : log.kernels) {
    text += kernel.name + (kernel.own ? " own " : " other ") + std::to_string(kernel.count) + "; ";
  }
  return text + std::to_string(log.dropped) + " dropped";
}

class KernelWatchTest : public ::testing::Test {
 protected:
  Function own(const char* name) { return cuda_.function(cuda_.load_module(kPtx), name); }

  FakeCuda cuda_;
  KernelWatch watch_{cuda_.api(), cuda_.driver(), {DRK_PASS_THROUGH_DIR}};
};

TEST_F(KernelWatchTest, CountsAcceptedLaunchesByName) {
  EXPECT_EQ(watch_.drop_problem(), "");
  const Function add = own("_Z3addPf");
  const Function scale = own("scale");
  watch_.begin_calls(LaunchMode::run);
  EXPECT_EQ(text_of(watch_.launches()), "0 dropped");
  for (const DriverCall call : {DriverCall::launch_kernel,
                                DriverCall::launch_kernel_ptsz,
                                DriverCall::launch_cooperative,
                                DriverCall::launch_cooperative_ptsz,
                                DriverCall::launch_grid}) {
    EXPECT_EQ(cuda_.launch(add, 1, call), 0);
  }
  cuda_.launch(scale);
  cuda_.launch_result = 1;
  cuda_.launch(scale);
  EXPECT_EQ(text_of(watch_.launches()), "add(float*) own 5; scale own 1; 0 dropped");
  watch_.begin_calls(LaunchMode::run);
  EXPECT_EQ(text_of(watch_.launches()), "0 dropped");
}

TEST_F(KernelWatchTest, SeesWhoseLibraryCalledTheDriver) {
  // From the inside out: this program, where the callback runs; the driver; its caller.
  const auto origin_from = [&](const char* caller) {
    struct Load {
      FakeCuda* cuda;
      cupti::Module module;
    } load = {&cuda_, nullptr};
    const auto run = [](void* first, const void* image) {
      auto& asked = *static_cast<Load*>(first);
      asked.module = asked.cuda->load_module(static_cast<const char*>(image));
      return 0;
    };
    // On the heap: what lies in this program's own file is the candidate's, whoever loads it.
    const std::string image = std::string(kPtx) + "\n.target sm_52";
    Step inner = {run, &load, image.c_str()};
    Step outer = {pass_through_of(DRK_PASS_THROUGH_DIR, "libcuda.so.pass"), &inner, nullptr};
    (void)pass_through_of(DRK_PASS_THROUGH_DIR, caller)(&outer, nullptr);
    watch_.begin_records();
    cuda_.launch(cuda_.function(load.module, "k"));
    return watch_.end_records(1).kernels.at(0).origin;
  };
  EXPECT_EQ(origin_from("libcublas_pass.so"), KernelOrigin::library);
  EXPECT_EQ(origin_from("libtorch_cuda_pass.so"), KernelOrigin::torch);
  EXPECT_EQ(origin_from("cuda_utils_pass.so"), KernelOrigin::candidate_triton);
  EXPECT_EQ(origin_from("libcuda.so.pass"), KernelOrigin::candidate_cuda);  // called from here
}

TEST_F(KernelWatchTest, FollowsAKernelToItsLibrary) {
  const Function kernel = cuda_.kernel(cuda_.load_library(kPtx), "gemm");
  watch_.begin_calls(LaunchMode::run);
  cuda_.launch(kernel);
  cuda_.launch(cuda_.function_of(kernel));
  EXPECT_EQ(text_of(watch_.launches()), "gemm own 2; 0 dropped");
}

TEST_F(KernelWatchTest, ForgetsAFunctionWithItsModule) {
  const cupti::Module module = cuda_.load_module(kPtx);
  const Function function = cuda_.function(module, "k");
  watch_.begin_calls(LaunchMode::run);
  cuda_.launch(function);
  cuda_.unload_module(module);
  cuda_.launch(function);  // what is at this address now came from no load that was seen
  EXPECT_EQ(text_of(watch_.launches()), "k own 1; k other 1; 0 dropped");
}

TEST_F(KernelWatchTest, LeavesOwnKernelsOutOnDemand) {
  const Function k = own("k");
  const Function early = cuda_.function(nullptr, "early");  // loaded before the watch began
  watch_.begin_calls(LaunchMode::drop);
  cuda_.launch(k);
  cuda_.launch(early);
  EXPECT_EQ(text_of(watch_.launches()), "early other 1; 1 dropped");
}

TEST_F(KernelWatchTest, CountsCapturedLaunchesWhenTheyRun) {
  const Function a = own("a");
  const Function b = cuda_.kernel(cuda_.load_library(kPtx), "b");
  watch_.begin_calls(LaunchMode::run);
  const GraphExec exec = cuda_.capture([&] {
    cuda_.launch(a);
    cuda_.launch(b);
    cuda_.launch(a);
  });
  EXPECT_EQ(text_of(watch_.launches()), "0 dropped");
  for (int i = 0; i < 3; ++i) cuda_.replay(exec);
  EXPECT_EQ(text_of(watch_.launches()), "a own 6; b own 3; 0 dropped");
  EXPECT_TRUE(watch_.has_replayed());
  EXPECT_EQ(watch_.streams(), kManyStreams) << "a graph spreads its kernels as it likes";

  watch_.begin_calls(LaunchMode::drop);
  cuda_.replay(exec);
  EXPECT_EQ(watch_.kept_launches(), 3U);
}

TEST(StreamCountTest, CountsDifferentStreamsUpToMany) {
  StreamCount streams;
  std::array<char, kManyStreams + 2> handles = {};
  const auto stream = [&](std::size_t i) { return reinterpret_cast<cupti::Stream>(&handles[i]); };
  EXPECT_EQ(streams.count(), 0U);
  streams.saw(nullptr, false);
  streams.saw(nullptr, false);
  EXPECT_EQ(streams.count(), 1U);
  streams.saw(nullptr, true);
  std::jthread([&] { streams.saw(nullptr, true); }).join();
  EXPECT_EQ(streams.count(), 3U) << "a thread's null stream is its own";
  for (std::size_t i = 0; i < handles.size(); ++i) streams.saw(stream(i), true);
  EXPECT_EQ(streams.count(), kManyStreams);
  streams.reset();
  streams.saw(stream(0), true);
  streams.saw(stream(1), false);
  EXPECT_EQ(streams.count(), 2U);
}

TEST_F(KernelWatchTest, HoldsOtherStreamsBehindTheClock) {
  using cupti::DriverCall;
  const Function k = own("k");
  char event = 0, stream = 0;
  auto* side = reinterpret_cast<cupti::Stream>(&stream);
  auto* legacy = reinterpret_cast<cupti::Stream>(cupti::kLegacyStream);
  auto* per_thread = reinterpret_cast<cupti::Stream>(cupti::kPerThreadStream);
  cuda_.launch(k, 1, DriverCall::launch_kernel, side);
  EXPECT_TRUE(cuda_.waits.empty()) << "no clock runs";
  watch_.hold_streams_behind(&event);
  cuda_.launch(k);
  cuda_.launch(k, 1, DriverCall::launch_kernel, legacy);
  EXPECT_TRUE(cuda_.waits.empty()) << "the clock's own stream";
  cuda_.launch(k, 1, DriverCall::launch_kernel, side);
  cuda_.launch(k, 1, DriverCall::launch_kernel, side);
  cuda_.launch(k, 1, DriverCall::launch_kernel_ptsz);
  const std::vector<std::pair<cupti::Stream, cupti::Event>> once = {{side, &event},
                                                                    {per_thread, &event}};
  EXPECT_EQ(cuda_.waits, once);
  EXPECT_TRUE(watch_.let_streams_go());
  cuda_.launch(k, 1, DriverCall::launch_kernel, side);
  EXPECT_EQ(cuda_.waits.size(), 2U);
  watch_.hold_streams_behind(&event);
  EXPECT_FALSE(watch_.let_streams_go());
}

TEST_F(KernelWatchTest, LeavesTheClocksKernelOut) {
  const Function gate = own("gate");
  watch_.leave_out(gate);
  cuda_.launch(gate);
  EXPECT_EQ(text_of(watch_.launches()), "0 dropped");
  EXPECT_EQ(watch_.own_programs(), 0U);
}

TEST_F(KernelWatchTest, RecordsEveryLaunch) {
  const Function a = own("a");
  const Function b = own("b");
  const GraphExec exec = cuda_.capture([&] { cuda_.launch(b); });
  watch_.begin_records();
  for (int i = 0; i < 20'000; ++i) cuda_.launch(a, 7);  // more than one buffer
  cuda_.launch(a, 8);
  cuda_.replay(exec);
  const task::Profile profile = watch_.end_records(5);
  EXPECT_EQ(profile.problem, "");
  EXPECT_EQ(profile.calls, 5U);
  EXPECT_EQ(profile.launches, 20'002U);
  EXPECT_EQ(profile.records, 20'002U);
  ASSERT_EQ(profile.kernels.size(), 3U);
  const task::KernelRecord& longest = profile.kernels[0];
  EXPECT_EQ(longest.name, "a");
  EXPECT_EQ(longest.origin, KernelOrigin::candidate_cuda);
  EXPECT_EQ(longest.grid, (task::Extent{7, 1, 1}));
  EXPECT_EQ(longest.block, (task::Extent{32, 1, 1}));
  EXPECT_EQ(longest.registers, 24U);
  EXPECT_EQ(longest.count, 20'000U);
  EXPECT_DOUBLE_EQ(longest.total_us, 40'000);  // 2 us each
  EXPECT_DOUBLE_EQ(profile.busy_us, 2) << "all of them at the same time";
  EXPECT_EQ(profile.kernels[1].origin, KernelOrigin::candidate_cuda);
  EXPECT_EQ(profile.kernels[2].origin, KernelOrigin::candidate_cuda);

  watch_.begin_records();
  cuda_.launch(b);
  EXPECT_EQ(watch_.end_records(1).records, 1U);
}

TEST_F(KernelWatchTest, TellsWhenRecordsAreNotComplete) {
  const Function a = own("a");
  const GraphExec exec = cuda_.capture([&] { cuda_.launch(a); });
  const auto profile_of = [&](const std::function<void()>& work) {
    watch_.begin_records();
    work();
    std::string problem = watch_.end_records(1).problem;
    cuda_.callbacks_come = cuda_.records_come = cuda_.times_are_known = true;
    return problem;
  };
  EXPECT_EQ(profile_of([&] { cuda_.launch(a); }), "");
  EXPECT_EQ(profile_of([&] {
              cuda_.records_come = false;
              cuda_.launch(a);
              cuda_.records_come = true;
            }),
            "1 launches were seen, but 0 records");
  EXPECT_EQ(profile_of([&] { cuda_.records_come = false; }),
            "records were switched off: a kernel launched at the end has none");
  EXPECT_EQ(profile_of([&] { cuda_.callbacks_come = false; }),
            "CUPTI's callbacks stopped while the candidate ran");
  EXPECT_EQ(profile_of([&] {
              cuda_.drop_records = 2;
              cuda_.launch(a);
              cuda_.launch(a);
            }),
            "2 records were dropped");
  EXPECT_EQ(profile_of([&] {
              cuda_.times_are_known = false;
              cuda_.launch(a);
            }),
            "1 records have no time");
  EXPECT_EQ(profile_of([&] {
              cuda_.alter(exec);
              cuda_.replay(exec);
            }),
            "1 graphs ran whose kernels are not known");
}

TEST(KernelWatchBeginning, NeedsTheOnlySubscription) {
  FakeCuda cuda;
  const KernelWatch first(cuda.api(), cuda.driver(), {});
  try {
    const KernelWatch second(cuda.api(), cuda.driver(), {});
    FAIL() << "two watches";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
    EXPECT_STREQ(error.what(), "guest: cuptiSubscribe: CUPTI_ERROR_FAKE (39)");
  }
}

TEST(KernelWatchBeginning, FindsOutThatNothingCanBeLeftOut) {
  FakeCuda cuda;
  cuda.swaps_work = false;
  KernelWatch watch(cuda.api(), cuda.driver(), {});
  EXPECT_NE(watch.drop_problem().find("left out, it wrote 0x5eed"), std::string::npos)
      << watch.drop_problem();
  const Function k = cuda.function(cuda.load_module(kPtx), "k");
  watch.begin_calls(LaunchMode::drop);
  cuda.launch(k);
  EXPECT_EQ(text_of(watch.launches()), "k own 1; 0 dropped");
}

TEST(KernelWatchBeginning, FindsOutThatCallbacksDoNotCome) {
  FakeCuda cuda;
  cuda.callbacks_come = false;
  EXPECT_THROW(KernelWatch(cuda.api(), cuda.driver(), {}), Error);
  cuda.callbacks_come = true;  // the failed one is not subscribed any more
  EXPECT_EQ(KernelWatch(cuda.api(), cuda.driver(), {}).drop_problem(), "");
}

TEST(KernelWatchBeginning, StaysWhereItIs) {
  static_assert(!std::is_move_constructible_v<KernelWatch>);
  static_assert(std::is_nothrow_destructible_v<KernelWatch>);
}

}  // namespace
}  // namespace drk::guest::test
