// SPDX-License-Identifier: Apache-2.0
// The watch over the real driver: what it counts, records and leaves out.
#include "guest/kernel_watch.h"

#include "drk/base/clock.h"
#include "drk/base/error.h"

#include "guest/device_clock.h"
#include "guest/pass_through.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace drk::guest::test {
namespace {

using cupti::Address;
using cupti::Function;
using cupti::Graph;
using cupti::GraphExec;
using cupti::Library;
using cupti::Module;
using cupti::Stream;
using task::KernelOrigin;

constexpr const char* kPtx = R"(.version 7.0
.target sm_52
.address_size 64
.extern .shared .align 4 .b8 dynamic[];
.visible .entry set_word(.param .u64 target, .param .u32 value) {
  .reg .b64 %rd<3>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [target];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}
.visible .entry add_one(.param .u64 target) {
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [target];
  cvta.to.global.u64 %rd2, %rd1;
  red.global.add.u32 [%rd2], 1;
  ret;
}
.visible .entry spin(.param .u64 duration_ns) {
  .reg .pred %p<2>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [duration_ns];
  mov.u64 %rd2, %globaltimer;
again:
  mov.u64 %rd3, %globaltimer;
  sub.u64 %rd4, %rd3, %rd2;
  setp.lt.u64 %p1, %rd4, %rd1;
  @%p1 bra again;
  ret;
}
.visible .entry take_shared(.param .u64 target) {
  .shared .align 4 .b8 fixed[1024];
  .reg .b64 %rd<3>;
  .reg .b32 %r<5>;
  ld.param.u64 %rd1, [target];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %tid.x;
  st.shared.u32 [fixed], %r1;
  st.shared.u32 [dynamic], %r1;
  bar.sync 0;
  ld.shared.u32 %r2, [fixed];
  ld.shared.u32 %r3, [dynamic];
  add.u32 %r4, %r2, %r3;
  st.global.u32 [%rd2], %r4;
  ret;
}
)";

constexpr int kMaxDynamicSharedBytes = 8;  // CU_FUNC_ATTRIBUTE_...
constexpr unsigned kNonBlocking = 1;       // CU_STREAM_...
constexpr int kGlobal = 0;                 // CU_STREAM_CAPTURE_MODE_..., the strictest

/// The driver as a candidate sees it.
struct Calls : cupti::Driver {
  int (*init)(unsigned) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*primary_ctx_retain)(void**, int) = nullptr;
  int (*ctx_set_current)(void*) = nullptr;
  int (*module_unload)(Module) = nullptr;
  int (*library_load_data)(Library*, const void*, void*, void*, unsigned, void*, void*, unsigned) =
      nullptr;
  int (*library_get_kernel)(Function*, Library, const char*) = nullptr;
  int (*kernel_get_function)(Function*, Function) = nullptr;
  int (*launch_cooperative)(Function,
                            unsigned,
                            unsigned,
                            unsigned,
                            unsigned,
                            unsigned,
                            unsigned,
                            unsigned,
                            Stream,
                            void**) = nullptr;
  int (*stream_create)(Stream*, unsigned) = nullptr;
  int (*stream_begin_capture)(Stream, int) = nullptr;
  int (*stream_end_capture)(Stream, Graph*) = nullptr;
  int (*graph_instantiate)(GraphExec*, Graph, unsigned long long) = nullptr;
  int (*graph_launch)(GraphExec, Stream) = nullptr;
  int (*graph_destroy)(Graph) = nullptr;
  int (*graph_exec_destroy)(GraphExec) = nullptr;
};

Calls open_calls() {
  Calls calls;
  static_cast<cupti::Driver&>(calls) = cupti::open_driver();
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW);
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr) throw Error(ErrorCode::unavailable, name);
  };
  find("cuInit", calls.init);
  find("cuDeviceGet", calls.device_get);
  find("cuDevicePrimaryCtxRetain", calls.primary_ctx_retain);
  find("cuCtxSetCurrent", calls.ctx_set_current);
  find("cuModuleUnload", calls.module_unload);
  find("cuLibraryLoadData", calls.library_load_data);
  find("cuLibraryGetKernel", calls.library_get_kernel);
  find("cuKernelGetFunction", calls.kernel_get_function);
  find("cuLaunchCooperativeKernel", calls.launch_cooperative);
  find("cuStreamCreate", calls.stream_create);
  find("cuStreamBeginCapture_v2", calls.stream_begin_capture);
  find("cuStreamEndCapture", calls.stream_end_capture);
  find("cuGraphInstantiateWithFlags", calls.graph_instantiate);
  find("cuGraphLaunch", calls.graph_launch);
  find("cuGraphDestroy", calls.graph_destroy);
  find("cuGraphExecDestroy", calls.graph_exec_destroy);
  return calls;
}

/// Every place where CUPTI could be, the likeliest first.
std::vector<std::string> cupti_files() {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  if (const char* given = std::getenv("DRK_CUPTI")) files.emplace_back(given);
  std::vector<fs::path> prefixes = {"/usr/local", "/usr"};
  if (const char* python = std::getenv("DRK_PYTHON")) {
    prefixes.insert(prefixes.begin(), fs::path(python).parent_path().parent_path());
  }
  for (const fs::path& prefix : prefixes) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(prefix / "lib", error)) {
      for (const char* packages : {"site-packages", "dist-packages"}) {
        const fs::path file = entry.path() / packages / "nvidia/cu13/lib/libcupti.so.13";
        if (fs::exists(file, error)) files.push_back(file.string());
      }
    }
  }
  files.insert(files.end(),
               {"libcupti.so.13",
                "/usr/local/cuda/lib64/libcupti.so.13",
                "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13"});
  return files;
}

std::string find_cupti() {
  for (const std::string& file : cupti_files()) {
    if (::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return file;  // stays loaded
  }
  return {};
}

std::string text_of(const LaunchLog& log) {
  std::string text;
  for (const task::KernelLaunches& kernel : log.kernels) {
    text += kernel.name + (kernel.own ? " own " : " other ") + std::to_string(kernel.count) + "; ";
  }
  return text + std::to_string(log.dropped) + " dropped";
}

std::string text_of(const task::Profile& profile) {
  std::string text = fmt::format("{} launches, {} records, {} dropped, {} us of memory, '{}'",
                                 profile.launches,
                                 profile.records,
                                 profile.dropped_records,
                                 profile.memory_us,
                                 profile.problem);
  for (const task::KernelRecord& kernel : profile.kernels) {
    text +=
        fmt::format("\n  {} {}: {} times, {} us, grid {} {} {}, block {} {} {}, {} regs, {}+{} B",
                    kernel.name,
                    static_cast<int>(kernel.origin),
                    kernel.count,
                    kernel.total_us,
                    kernel.grid.x,
                    kernel.grid.y,
                    kernel.grid.z,
                    kernel.block.x,
                    kernel.block.y,
                    kernel.block.z,
                    kernel.registers,
                    kernel.static_shared_bytes,
                    kernel.dynamic_shared_bytes);
  }
  return text;
}

/// One context and one watch for all tests, as in a guest.
struct Stage {
  Stage() : cuda(open_calls()) {
    check(cuda.init(0));
    int device = 0;
    check(cuda.device_get(&device, 0));
    check(cuda.primary_ctx_retain(&context, device));
    check(cuda.ctx_set_current(context));
    check(cuda.mem_alloc(&word, 4));
  }

  static void check(int status) {
    if (status != 0) throw Error(ErrorCode::unavailable, fmt::format("CUDA answered {}", status));
  }

  Calls cuda;
  void* context = nullptr;
  Address word = 0;
};

class KernelWatchOnAGpu : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string cupti = find_cupti();
    if (cupti.empty()) {
      why_not() = "no CUPTI found: set DRK_CUPTI";
      return;
    }
    try {
      stage() = std::make_unique<Stage>();
    } catch (const Error& error) {
      why_not() = std::string("no GPU to be used: ") + error.what();
      return;
    }
    // Not caught: with a GPU and CUPTI there, the watch must work.
    const std::int64_t begin_ns = now_ns();
    the_watch() =
        std::make_unique<KernelWatch>(cupti, std::vector<std::string>{DRK_PASS_THROUGH_DIR});
    fmt::print(
        "{}: watching after {:.1f} ms\n", cupti, static_cast<double>(now_ns() - begin_ns) * 1e-6);
  }
  static void TearDownTestSuite() { the_watch().reset(); }

  void SetUp() override {
    if (!why_not().empty()) GTEST_SKIP() << why_not();
    ASSERT_TRUE(the_watch()) << "the watch did not begin";
    module_ = load();
    set_word_ = function("set_word");
    add_one_ = function("add_one");
    spin_ = function("spin");
    take_shared_ = function("take_shared");
    reset_word();
    watch().begin_calls(LaunchMode::run);
  }

  // gtest gives a suite nothing but statics to keep things in.
  static std::unique_ptr<Stage>& stage() {
    static std::unique_ptr<Stage> instance;
    return instance;
  }
  static std::unique_ptr<KernelWatch>& the_watch() {
    static std::unique_ptr<KernelWatch> instance;
    return instance;
  }
  static std::string& why_not() {
    static std::string instance;
    return instance;
  }
  static KernelWatch& watch() { return *the_watch(); }
  static const Calls& cuda() { return stage()->cuda; }

  static Module load() {
    Module module = nullptr;
    EXPECT_EQ(cuda().module_load_data(&module, kPtx), 0);
    return module;
  }
  /// The driver is called by a library of that name.
  static Module load_from(const char* library) {
    Module module = nullptr;
    // On the heap: what lies in this program's own file is the candidate's, whoever loads it.
    const std::string image = kPtx;
    Step step = {
        reinterpret_cast<decltype(Step::call)>(cuda().module_load_data), &module, image.c_str()};
    EXPECT_EQ(pass_through_of(DRK_PASS_THROUGH_DIR, library)(&step, nullptr), 0);
    return module;
  }
  Function function(const char* name) const {
    Function found = nullptr;
    EXPECT_EQ(cuda().module_get_function(&found, module_, name), 0) << name;
    return found;
  }
  static Library load_library() {
    Library library = nullptr;
    EXPECT_EQ(cuda().library_load_data(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0),
              0);
    return library;
  }

  static void launch_add_one(Function function, Stream stream = nullptr) {
    std::array<void*, 1> parameters = {&stage()->word};
    ASSERT_EQ(
        cuda().launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters.data(), nullptr), 0);
  }
  static void launch_set_word(Function function, std::uint32_t value, Stream stream = nullptr) {
    std::array<void*, 2> parameters = {&stage()->word, &value};
    ASSERT_EQ(
        cuda().launch_kernel(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters.data(), nullptr),
        0);
  }
  static Stream make_stream() {
    Stream stream = nullptr;
    EXPECT_EQ(cuda().stream_create(&stream, kNonBlocking), 0);
    return stream;
  }
  template <class Launches>
  static GraphExec capture(const Launches& launches) {
    Stream stream = make_stream();
    Graph graph = nullptr;
    GraphExec exec = nullptr;
    EXPECT_EQ(cuda().stream_begin_capture(stream, kGlobal), 0);
    launches(stream);
    EXPECT_EQ(cuda().stream_end_capture(stream, &graph), 0);
    EXPECT_EQ(cuda().graph_instantiate(&exec, graph, 0), 0);
    EXPECT_EQ(cuda().graph_destroy(graph), 0);  // as torch does
    return exec;
  }

  static void synchronize() { ASSERT_EQ(cuda().ctx_synchronize(), 0); }
  static void reset_word() { ASSERT_EQ(cuda().memset_d32(stage()->word, 0, 1), 0); }
  static std::uint32_t word() {
    std::uint32_t value = 0;
    EXPECT_EQ(cuda().ctx_synchronize(), 0);
    EXPECT_EQ(cuda().memcpy_to_host(&value, stage()->word, sizeof value), 0);
    return value;
  }
  /// Of what `work` launches.
  template <class Work>
  static task::Profile profile_of(const Work& work) {
    watch().begin_records();
    work();
    synchronize();
    return watch().end_records(1);
  }

  Module module_ = nullptr;
  Function set_word_ = nullptr;
  Function add_one_ = nullptr;
  Function spin_ = nullptr;
  Function take_shared_ = nullptr;
};

/// The clock beside the watch, as in a guest.
class DeviceClockOnAGpu : public KernelWatchOnAGpu {
 protected:
  static constexpr double kSpinUs = 300;

  void SetUp() override {
    KernelWatchOnAGpu::SetUp();
    if (IsSkipped()) return;
    driver_.emplace();
    clock_.emplace(*driver_);
    watch().leave_out(static_cast<Function>(clock_->gate_kernel()));
    ASSERT_EQ(cuda().mem_alloc(&flush_, clock_->flush_bytes()), 0);
  }
  void TearDown() override {
    if (flush_ == 0) return;
    EXPECT_EQ(cuda().mem_free(flush_), 0);
  }

  void launch_spin(Stream stream) const {
    auto duration_ns = static_cast<std::uint64_t>(kSpinUs * 1e3);
    std::array<void*, 1> parameters = {&duration_ns};
    ASSERT_EQ(cuda().launch_kernel(spin_, 1, 1, 1, 1, 1, 1, 0, stream, parameters.data(), nullptr),
              0);
  }
  template <class Work>
  DeviceTime time_of(const Work& work) {
    clock_->empty_l2(flush_);
    clock_->start(true);
    watch().hold_streams_behind(clock_->opening());
    work();
    return clock_->stop(watch().let_streams_go());
  }
  static void wait_us(double us) {
    const std::int64_t end_ns = now_ns() + static_cast<std::int64_t>(us * 1e3);
    while (now_ns() < end_ns) {
    }
  }

  std::optional<CudaDriver> driver_;
  std::optional<DeviceClock> clock_;
  Address flush_ = 0;
};

TEST_F(DeviceClockOnAGpu, LeavesTheHostsGapsOut) {
  constexpr int kLaunches = 20;
  constexpr double kGapUs = 50;
  for (int i = 0; i < 5; ++i) {
    const DeviceTime time = time_of([&] {
      for (int k = 0; k < kLaunches; ++k) {
        launch_add_one(add_one_);
        wait_us(kGapUs);
      }
    });
    fmt::print("{} launches, {} us apart: {:.1f} us\n", kLaunches, kGapUs, time.us);
    EXPECT_TRUE(time.gated);
    EXPECT_GT(time.us, kLaunches * 0.5);
    EXPECT_LT(time.us, kLaunches * kGapUs / 4);
    EXPECT_EQ(time.behind_us, 0);
  }
  EXPECT_EQ(word(), 5U * kLaunches);
  EXPECT_EQ(text_of(watch().launches()), "add_one own 100; 0 dropped") << "the gate is nobody's";
}

TEST_F(DeviceClockOnAGpu, CountsWorkOnOtherStreams) {
  Stream side = make_stream();
  const DeviceTime escaped = time_of([&] { launch_spin(side); });
  EXPECT_TRUE(escaped.gated);
  EXPECT_GT(escaped.us, 0.95 * kSpinUs);
  EXPECT_LT(escaped.us, 1.5 * kSpinUs);
  EXPECT_GT(escaped.behind_us, 0.9 * kSpinUs);

  const DeviceTime both = time_of([&] {
    launch_spin(nullptr);
    launch_spin(side);
  });
  EXPECT_LT(both.us, 1.5 * kSpinUs) << "side by side";
  EXPECT_LT(both.behind_us, 50);

  const GraphExec exec = capture([&](Stream stream) { launch_spin(stream); });
  const DeviceTime replayed = time_of([&] { ASSERT_EQ(cuda().graph_launch(exec, side), 0); });
  EXPECT_GT(replayed.us, 0.95 * kSpinUs);
  EXPECT_EQ(cuda().graph_exec_destroy(exec), 0);
}

TEST_F(DeviceClockOnAGpu, DoesWithoutTheGateWhereTheHostWaits) {
  std::vector<bool> gated;
  const std::int64_t begin_ns = now_ns();
  for (int i = 0; i < 20; ++i) {
    const DeviceTime time = time_of([&] {
      launch_spin(nullptr);
      synchronize();
    });
    gated.push_back(time.gated);
    EXPECT_GT(time.us, 0.95 * kSpinUs);
    EXPECT_LT(time.us, 3 * kSpinUs);
  }
  EXPECT_EQ(std::count(gated.begin(), gated.end(), true), 0);
  const double took_ms = static_cast<double>(now_ns() - begin_ns) * 1e-6;
  fmt::print("20 calls that wait for the device: {:.1f} ms\n", took_ms);
  EXPECT_LT(took_ms, 60) << "the gate was closed over and over";
}

TEST_F(DeviceClockOnAGpu, RepeatsItself) {
  std::vector<double> us;
  for (int i = 0; i < 200; ++i) us.push_back(time_of([&] { launch_spin(nullptr); }).us);
  std::sort(us.begin(), us.end());
  fmt::print("a spin of {} us: median {:.2f}, 5 % {:.2f}, 95 % {:.2f}\n",
             kSpinUs,
             us[us.size() / 2],
             us[us.size() / 20],
             us[us.size() - us.size() / 20]);
  EXPECT_NEAR(us[us.size() / 2], kSpinUs, 0.03 * kSpinUs);
}

TEST_F(KernelWatchOnAGpu, FoundThatKernelsCanBeLeftOut) {
  EXPECT_EQ(watch().drop_problem(), "");
}

TEST_F(KernelWatchOnAGpu, CountsEveryKindOfLaunch) {
  std::array<void*, 1> parameters = {&stage()->word};
  launch_add_one(add_one_);
  cupti::LaunchConfig config = {};
  config.grid = config.block = {1, 1, 1};
  ASSERT_EQ(cuda().launch_kernel_ex(&config, add_one_, parameters.data(), nullptr), 0);
  ASSERT_EQ(cuda().launch_cooperative(add_one_, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters.data()),
            0);
  const Library library = load_library();
  Function kernel = nullptr, derived = nullptr;
  ASSERT_EQ(cuda().library_get_kernel(&kernel, library, "add_one"), 0);
  launch_add_one(kernel);
  ASSERT_EQ(cuda().kernel_get_function(&derived, kernel), 0);
  launch_add_one(derived);
  EXPECT_EQ(word(), 5U);
  EXPECT_EQ(text_of(watch().launches()), "add_one own 5; 0 dropped");
  // 2000 threads do not fit a block: refused, so not counted.
  EXPECT_NE(
      cuda().launch_kernel(add_one_, 1, 1, 1, 2000, 1, 1, 0, nullptr, parameters.data(), nullptr),
      0);
  EXPECT_EQ(text_of(watch().launches()), "add_one own 5; 0 dropped");
}

TEST_F(KernelWatchOnAGpu, FollowsReloadedModules) {
  for (int round = 0; round < 6; ++round) {
    const Module module = load();
    Function function = nullptr;
    ASSERT_EQ(cuda().module_get_function(&function, module, "add_one"), 0);
    launch_add_one(function);
    synchronize();
    ASSERT_EQ(cuda().module_unload(module), 0);
  }
  EXPECT_EQ(text_of(watch().launches()), "add_one own 6; 0 dropped");
}

TEST_F(KernelWatchOnAGpu, SeesWhoseLibraryCalledTheDriver) {
  const auto origin_from = [&](const char* library) {
    const Module module = load_from(library);
    Function function = nullptr;
    EXPECT_EQ(cuda().module_get_function(&function, module, "add_one"), 0);
    const task::Profile profile = profile_of([&] { launch_add_one(function); });
    EXPECT_EQ(profile.kernels.size(), 1U) << text_of(profile);
    return profile.kernels.empty() ? KernelOrigin::unknown : profile.kernels[0].origin;
  };
  EXPECT_EQ(origin_from("libcublas_pass.so"), KernelOrigin::library);
  EXPECT_EQ(origin_from("libtorch_cuda_pass.so"), KernelOrigin::torch);
  EXPECT_EQ(origin_from("cuda_utils_pass.so"), KernelOrigin::candidate_triton);
}

TEST_F(KernelWatchOnAGpu, RecordsShapes) {
  std::array<void*, 1> parameters = {&stage()->word};
  const task::Profile profile = profile_of([&] {
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(cuda().launch_kernel(
                    take_shared_, 3, 2, 1, 64, 2, 1, 2048, nullptr, parameters.data(), nullptr),
                0);
    }
    launch_add_one(add_one_);
  });
  EXPECT_EQ(profile.problem, "") << text_of(profile);
  EXPECT_EQ(profile.launches, 4U);
  EXPECT_EQ(profile.records, 4U);
  ASSERT_EQ(profile.kernels.size(), 2U) << text_of(profile);
  const bool first = profile.kernels[0].name == "take_shared";
  const task::KernelRecord& kernel = profile.kernels[first ? 0 : 1];
  EXPECT_EQ(kernel.name, "take_shared");
  EXPECT_EQ(kernel.origin, KernelOrigin::candidate_cuda);
  EXPECT_EQ(kernel.grid, (task::Extent{3, 2, 1}));
  EXPECT_EQ(kernel.block, (task::Extent{64, 2, 1}));
  EXPECT_EQ(kernel.static_shared_bytes, 1024U);
  EXPECT_EQ(kernel.dynamic_shared_bytes, 2048U);
  EXPECT_GT(kernel.registers, 0U);
  EXPECT_EQ(kernel.count, 3U);
}

TEST_F(KernelWatchOnAGpu, RecordsTimes) {
  std::uint64_t duration_ns = 1'000'000;
  std::array<void*, 1> parameters = {&duration_ns};
  const task::Profile profile = profile_of([&] {
    for (int i = 0; i < 5; ++i) {
      ASSERT_EQ(
          cuda().launch_kernel(spin_, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters.data(), nullptr), 0);
    }
  });
  EXPECT_EQ(profile.problem, "") << text_of(profile);
  ASSERT_EQ(profile.kernels.size(), 1U) << text_of(profile);
  EXPECT_EQ(profile.kernels[0].count, 5U);
  EXPECT_GT(profile.kernels[0].total_us, 5 * 990);
  EXPECT_LT(profile.kernels[0].total_us, 5 * 1200);
}

TEST_F(KernelWatchOnAGpu, RecordsCopiesAndFills) {
  const task::Profile profile = profile_of([&] {
    Address block = 0;
    ASSERT_EQ(cuda().mem_alloc(&block, 256 << 20), 0);
    ASSERT_EQ(cuda().memset_d32(block, 1, (256 << 20) / 4), 0);
    synchronize();
    ASSERT_EQ(cuda().mem_free(block), 0);
  });
  EXPECT_EQ(profile.problem, "") << text_of(profile);
  EXPECT_GT(profile.memory_us, 10);  // 256 MiB at 4.8 TB/s: 56 us
  EXPECT_EQ(profile.launches, 0U);
}

TEST_F(KernelWatchOnAGpu, LeavesOwnKernelsOut) {
  watch().begin_calls(LaunchMode::drop);
  launch_set_word(set_word_, 7);
  std::uint32_t value = 8;
  std::array<void*, 2> parameters = {&stage()->word, &value};
  cupti::LaunchConfig config = {};
  config.grid = {100, 1, 1};
  config.block = {1024, 1, 1};
  ASSERT_EQ(cuda().launch_kernel_ex(&config, set_word_, parameters.data(), nullptr), 0);
  ASSERT_EQ(cuda().launch_cooperative(set_word_, 4, 1, 1, 32, 1, 1, 0, nullptr, parameters.data()),
            0);
  EXPECT_EQ(word(), 0U);
  EXPECT_EQ(text_of(watch().launches()), "3 dropped");
  watch().begin_calls(LaunchMode::run);
  launch_set_word(set_word_, 9);
  EXPECT_EQ(word(), 9U);
  EXPECT_EQ(text_of(watch().launches()), "set_word own 1; 0 dropped");
}

TEST_F(KernelWatchOnAGpu, LeavesKernelsOutThatTakeMuchSharedMemory) {
  constexpr int kBytes = 200 * 1024;
  if (cuda().func_set_attribute(take_shared_, kMaxDynamicSharedBytes, kBytes) != 0) {
    GTEST_SKIP() << "this device has less shared memory";
  }
  std::array<void*, 1> parameters = {&stage()->word};
  for (const LaunchMode mode : {LaunchMode::drop, LaunchMode::run}) {
    watch().begin_calls(mode);
    ASSERT_EQ(cuda().launch_kernel(
                  take_shared_, 1, 1, 1, 1, 1, 1, kBytes, nullptr, parameters.data(), nullptr),
              0);
    cupti::LaunchConfig config = {};
    config.grid = config.block = {1, 1, 1};
    config.shared_bytes = kBytes;
    ASSERT_EQ(cuda().launch_kernel_ex(&config, take_shared_, parameters.data(), nullptr), 0);
    synchronize();
  }
}

TEST_F(KernelWatchOnAGpu, RunsWhatIsNotTheCandidatesInEitherMode) {
  const Module module = load_from("libcublas_pass.so");
  Function function = nullptr;
  ASSERT_EQ(cuda().module_get_function(&function, module, "set_word"), 0);
  watch().begin_calls(LaunchMode::drop);
  launch_set_word(function, 5);
  EXPECT_EQ(word(), 5U);
  EXPECT_EQ(text_of(watch().launches()), "set_word other 1; 0 dropped");
}

TEST_F(KernelWatchOnAGpu, SeesStreamsAndThreads) {
  constexpr int kThreads = 4, kStreams = 4, kEach = 50;
  const task::Profile profile = profile_of([&] {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        ASSERT_EQ(cuda().ctx_set_current(stage()->context), 0);
        for (int s = 0; s < kStreams; ++s) {
          Stream stream = make_stream();
          for (int i = 0; i < kEach; ++i) launch_add_one(add_one_, stream);
        }
      });
    }
  });
  EXPECT_EQ(profile.problem, "") << text_of(profile);
  EXPECT_EQ(profile.records, 800U);
  EXPECT_EQ(word(), 800U);
  EXPECT_EQ(text_of(watch().launches()), "add_one own 800; 0 dropped");
  EXPECT_EQ(watch().streams(), kManyStreams);
}

TEST_F(KernelWatchOnAGpu, LosesNoneOfAHundredThousand) {
  constexpr std::uint32_t kLaunches = 100'000;
  const auto launch_all = [&] {
    const std::int64_t begin_ns = now_ns();
    for (std::uint32_t i = 0; i < kLaunches; ++i) launch_add_one(add_one_);
    const double each_ns = static_cast<double>(now_ns() - begin_ns) / kLaunches;
    synchronize();
    return each_ns;
  };
  const double counted_ns = launch_all();
  double recorded_ns = 0;
  const task::Profile profile = profile_of([&] { recorded_ns = launch_all(); });
  const double after_ns = launch_all();
  fmt::print("a launch takes the host {:.0f} ns counted, {:.0f} ns recorded, {:.0f} ns after\n",
             counted_ns,
             recorded_ns,
             after_ns);
  EXPECT_EQ(profile.problem, "") << text_of(profile);
  EXPECT_EQ(profile.launches, kLaunches);
  EXPECT_EQ(profile.records, kLaunches);
  EXPECT_EQ(profile.dropped_records, 0U);
  EXPECT_EQ(word(), 3 * kLaunches);
  EXPECT_EQ(text_of(watch().launches()), "add_one own 300000; 0 dropped");
}

TEST_F(KernelWatchOnAGpu, RecordsReplays) {
  const Library library = load_library();
  Function kernel = nullptr;
  ASSERT_EQ(cuda().library_get_kernel(&kernel, library, "add_one"), 0);
  const GraphExec exec = capture([&](Stream stream) {
    launch_add_one(add_one_, stream);
    launch_add_one(kernel, stream);
    launch_set_word(set_word_, 5, stream);
    launch_add_one(add_one_, stream);
  });
  EXPECT_EQ(text_of(watch().launches()), "0 dropped");  // captured is not launched
  const Stream stream = make_stream();
  const task::Profile profile = profile_of([&] {
    for (int i = 0; i < 3; ++i) ASSERT_EQ(cuda().graph_launch(exec, stream), 0);
    launch_add_one(add_one_, stream);
  });
  EXPECT_EQ(word(), 7U);
  EXPECT_EQ(profile.problem, "") << text_of(profile);
  EXPECT_EQ(watch().streams(), kManyStreams) << "a graph of four";
  EXPECT_EQ(profile.launches, 13U);
  EXPECT_EQ(profile.records, 13U);
  for (const task::KernelRecord& record : profile.kernels) {
    EXPECT_EQ(record.origin, KernelOrigin::candidate_cuda) << text_of(profile);
  }
  EXPECT_EQ(text_of(watch().launches()), "add_one own 10; set_word own 3; 0 dropped");

  watch().begin_calls(LaunchMode::drop);
  ASSERT_EQ(cuda().graph_launch(exec, stream), 0);
  synchronize();
  EXPECT_EQ(watch().kept_launches(), 4U);
  EXPECT_EQ(cuda().graph_exec_destroy(exec), 0);
}

TEST_F(KernelWatchOnAGpu, CapturesTheEmptyKernelInPlaceOfOwnOnes) {
  watch().begin_calls(LaunchMode::drop);
  const GraphExec exec = capture([&](Stream stream) { launch_set_word(set_word_, 5, stream); });
  ASSERT_EQ(cuda().graph_launch(exec, nullptr), 0);
  EXPECT_EQ(word(), 0U);
  EXPECT_EQ(text_of(watch().launches()), "drk_empty other 1; 1 dropped");
  EXPECT_EQ(watch().kept_launches(), 0U);
  const task::Profile profile = profile_of([&] { (void)cuda().graph_launch(exec, nullptr); });
  EXPECT_EQ(profile.problem, "") << text_of(profile);
  EXPECT_EQ(cuda().graph_exec_destroy(exec), 0);
}

TEST_F(KernelWatchOnAGpu, RepeatsItsRecords) {
  for (int round = 0; round < 5; ++round) {
    const std::int64_t begin_ns = now_ns();
    const task::Profile profile = profile_of([&] {
      for (int i = 0; i < 10; ++i) launch_add_one(add_one_);
    });
    fmt::print("records on and off: {:.2f} ms\n", static_cast<double>(now_ns() - begin_ns) * 1e-6);
    EXPECT_EQ(profile.problem, "") << text_of(profile);
    EXPECT_EQ(profile.records, 10U);
    launch_add_one(add_one_);  // between two sessions
    synchronize();
  }
}

TEST_F(KernelWatchOnAGpu, TellsThatRecordsWereSwitchedOff) {
  const cupti::Api api = cupti::open_cupti(find_cupti());
  task::Profile profile = profile_of([&] {
    launch_add_one(add_one_);
    ASSERT_EQ(api.disable(cupti::Activity::concurrent_kernel), 0);
    launch_add_one(add_one_);
  });
  EXPECT_NE(profile.problem, "") << text_of(profile);
  fmt::print("switched off: {}\n", profile.problem);
  profile = profile_of([&] {
    ASSERT_EQ(api.disable(cupti::Activity::concurrent_kernel), 0);
    launch_add_one(add_one_);
    ASSERT_EQ(api.enable(cupti::Activity::concurrent_kernel), 0);
  });
  EXPECT_NE(profile.problem, "") << text_of(profile);
  fmt::print("switched off and on: {}\n", profile.problem);
  profile = profile_of([&] { launch_add_one(add_one_); });
  EXPECT_EQ(profile.problem, "") << text_of(profile);
}

}  // namespace
}  // namespace drk::guest::test
