// SPDX-License-Identifier: Apache-2.0
// Evaluations on a GPU: what is measured, and that no candidate spoils the next one.
#include "gpu/gpu_fixture.h"

#include <algorithm>
#include <map>
#include <thread>

namespace drk::worker::test {
namespace {

std::string kernel_names(const task::Result& result) {
  return result.observations.profile ? json::dump(json::to_json(*result.observations.profile)) : "";
}

class GpuEvaluations : public GpuTest {};

TEST_F(GpuEvaluations, GiveSpeedupCoverageAndRecords) {
  const task::Result result = judge(gpu_task(relu_reference(1U << 22U), kReluCandidate));
  const task::Accepted* accepted = accepted_of(result);
  ASSERT_NE(accepted, nullptr) << text_of(result);
  EXPECT_EQ(result.mode, task::Mode::gpu);
  EXPECT_EQ(result.manifest.machine.gpu_uuid, listing().devices.at(0).uuid);
  ASSERT_TRUE(accepted->timing && accepted->reference_timing && accepted->speedup);
  EXPECT_EQ(accepted->timing->clock, "device");
  // 32 MiB cross the memory bus: no GPU does that in 2 us, and none needs 10 ms.
  EXPECT_GT(accepted->timing->median_us, 2);
  EXPECT_LT(accepted->timing->median_us, 10'000);
  ASSERT_TRUE(result.observations.profile.has_value());
  const task::Profile& profile = *result.observations.profile;
  EXPECT_EQ(profile.problem, "");
  ASSERT_FALSE(profile.kernels.empty());
  EXPECT_EQ(profile.kernels[0].name, "relu_kernel");
  EXPECT_EQ(profile.kernels[0].origin, task::KernelOrigin::candidate_triton);
  EXPECT_EQ(profile.kernels[0].grid.x, (1U << 22U) / 1024);
  EXPECT_EQ(profile.kernels[0].count, profile.calls);
  EXPECT_GT(profile.kernels[0].registers, 0U);
  EXPECT_GT(accepted->coverage.value_or(0), 0.99) << kernel_names(result);
}

TEST_F(GpuEvaluations, TimeByEachProtocol) {
  std::map<task::Protocol, task::Timing> times;
  for (const auto protocol : {task::Protocol::cold,
                              task::Protocol::warm,
                              task::Protocol::rotating,
                              task::Protocol::kernelgym}) {
    task::Task task = gpu_task(relu_reference(1U << 21U), kReluCandidate);
    task.policy.protocol = protocol;
    const task::Result result = judge(task);
    const task::Accepted* accepted = accepted_of(result);
    ASSERT_NE(accepted, nullptr) << text_of(result);
    ASSERT_TRUE(accepted->timing && accepted->reference_timing && accepted->speedup);
    times[protocol] = *accepted->timing;
    fmt::print("{:<10} median {:.2f} us, mean {:.2f}, reference {:.2f}, {} of {} calls gated\n",
               json::name_of(protocol),
               accepted->timing->median_us,
               accepted->timing->mean_us,
               accepted->reference_timing->median_us,
               accepted->timing->gated,
               accepted->timing->count);
    EXPECT_EQ(accepted->timing->count, task.num_perf_trials);
  }
  // 16 MiB in all, which an L2 cache may hold: whether it does is the protocol's doing.
  const double warm_us = times[task::Protocol::warm].median_us;
  EXPECT_GT(times[task::Protocol::cold].median_us, warm_us);
  EXPECT_GT(times[task::Protocol::rotating].median_us, warm_us);
  EXPECT_GT(times[task::Protocol::warm].gated, 0U);
  EXPECT_EQ(times[task::Protocol::kernelgym].gated, 0U);
}

TEST_F(GpuEvaluations, SeeOneDeviceAsNumberZero) {
  const std::string code = candidate_with(
      "assert torch.cuda.device_count() == 1 and x.device == torch.device('cuda:0'), x.device\n"
      "        mine = [n for n in os.listdir('/dev') if n.startswith('nvidia') and "
      "n[6:].isdigit()]\n"
      "        assert len(mine) == 1, mine\n"
      "        return torch.relu(x)");
  task::Task task = gpu_task(kReluReference, code);
  task.policy.ownership = task::Ownership::free;
  const task::Result result = judge(task);
  EXPECT_EQ(kind_of(result), "accepted") << text_of(result);
  EXPECT_TRUE(result.isolation.missing.empty()) << json::dump(json::to_json(result.isolation));
}

TEST_F(GpuEvaluations, FindWhatIsWrongOrNotItsOwn) {
  const std::string wrong = candidate_with("return torch.relu(x) + 0.01");
  EXPECT_EQ(kind_of(judge(gpu_task(kReluReference, wrong))), "wrong_output");
  const std::string host = candidate_with("return torch.relu(x.cpu())");
  const task::Result on_host = judge(gpu_task(kReluReference, host));
  ASSERT_EQ(kind_of(on_host), "wrong_output") << text_of(on_host);
  EXPECT_EQ(std::get<task::WrongOutput>(on_host.verdict.outcome).mismatch.kind,
            task::MismatchKind::device);
  const task::Result torch_only =
      judge(gpu_task(kReluReference, candidate_with("return torch.relu(x)")));
  ASSERT_EQ(kind_of(torch_only), "rejected") << text_of(torch_only);
  EXPECT_EQ(std::get<task::Rejected>(torch_only.verdict.outcome).reason,
            task::Reason::no_candidate_kernel);
}

TEST_F(GpuEvaluations, FindADecoyByItsMissingContribution) {
  std::string decoy = kReluCandidate;
  const std::string returned = "        return y\n";
  decoy.replace(decoy.find(returned), returned.size(), "        return torch.relu(x)\n");
  const task::Result result = judge(gpu_task(kReluReference, decoy));
  ASSERT_EQ(kind_of(result), "rejected") << text_of(result);
  EXPECT_EQ(std::get<task::Rejected>(result.verdict.outcome).reason, task::Reason::decoy_kernel);
}

TEST_F(GpuEvaluations, RunNvrtcAndTorchCompile) {
  const std::string code = R"PY(
import torch
import torch.nn as nn

SOURCE = """
extern "C" __global__ void my_relu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
"""

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = torch.cuda._compile_kernel(SOURCE, "my_relu")

    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        self.kernel(((n + 255) // 256, 1, 1), (256, 1, 1), (x, y, n))
        return y
)PY";
  task::Task task = gpu_task(relu_reference(1U << 20U), code);
  task.backend = task::Backend::cuda_nvrtc;
  task.reference_backend = task::ReferenceBackend::torch_compile;
  task.limits.time_s = 120;
  const task::Result result = judge(task);
  ASSERT_EQ(kind_of(result), "accepted") << text_of(result);
  ASSERT_FALSE(result.observations.profile->kernels.empty());
  EXPECT_EQ(result.observations.profile->kernels[0].origin, task::KernelOrigin::candidate_cuda)
      << kernel_names(result);
}

TEST_F(GpuEvaluations, RunALoadInlineExtension) {
  const std::string code = R"PY(
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = """
__global__ void my_relu(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
torch::Tensor relu(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  my_relu<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""
module = load_inline(name="my_relu", cpp_sources="torch::Tensor relu(torch::Tensor x);",
                     cuda_sources=CUDA, functions=["relu"])

class ModelNew(nn.Module):
    def forward(self, x):
        return module.relu(x)
)PY";
  task::Task task = gpu_task(relu_reference(1U << 20U), code);
  task.backend = task::Backend::cuda;
  const task::Result result = judge(task);
  ASSERT_EQ(kind_of(result), "accepted") << text_of(result);
  ASSERT_FALSE(result.observations.profile->kernels.empty());
  EXPECT_EQ(result.observations.profile->kernels[0].origin, task::KernelOrigin::candidate_cuda)
      << kernel_names(result);
  std::printf("load_inline, cold: %s\n", json::dump(json::to_json(result.timeline)).c_str());
  const task::Result again = judge(task);
  EXPECT_EQ(kind_of(again), "accepted") << text_of(again);
  std::printf("load_inline, from the store: %s\n",
              json::dump(json::to_json(again.timeline)).c_str());
}

std::string triton_candidate(const std::string& kernel_body,
                             const std::string& launch,
                             const std::string& before_return = "") {
  return "import os\nimport torch\nimport torch.nn as nn\nimport triton\n"
         "import triton.language as tl\n\n@triton.jit\n"
         "def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):\n" +
         kernel_body +
         "\nclass ModelNew(nn.Module):\n    def forward(self, x):\n"
         "        y = torch.empty_like(x)\n        " +
         launch + "\n" + before_return + "        return y\n";
}

TEST_F(GpuEvaluations, GiveManyStreamsQueuesOfTheirOwn) {
  // One after the other on each stream, stream after stream: streams that share a queue wait.
  const std::string code = triton_candidate(
      "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
      "    tl.store(y_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)\n",
      "k[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)",
      "        main = torch.cuda.current_stream()\n"
      "        for s in STREAMS:\n"
      "            s.wait_stream(main)\n"
      "            with torch.cuda.stream(s):\n"
      "                for _ in range(4):\n"
      "                    torch.cuda._sleep(1_000_000)\n"
      "        for s in STREAMS:\n"
      "            main.wait_stream(s)\n");
  const auto median_us = [&](int streams) {
    const std::string made =
        "\nSTREAMS = [torch.cuda.Stream() for _ in range(" + std::to_string(streams) + ")]\n";
    const task::Result result = judge(gpu_task(kReluReference, code + made));
    EXPECT_EQ(kind_of(result), "accepted") << text_of(result);
    const auto& times = result.observations.candidate_times;
    if (!times || times->us.empty()) return 0.0;
    std::vector<double> us = times->us;
    std::nth_element(us.begin(), us.begin() + static_cast<std::ptrdiff_t>(us.size() / 2), us.end());
    return us[us.size() / 2];
  };
  const double one_us = median_us(1);
  const double four_us = median_us(4);
  std::printf("one stream: %.0f us, four: %.0f us\n", one_us, four_us);
  EXPECT_GT(one_us, 0);
  EXPECT_LT(four_us, 1.3 * one_us) << "side by side";
}

// --- what must not spoil the next evaluation ---

struct BadCandidate {
  const char* name;
  std::string code;
  std::vector<std::string> outcomes;
  std::string cuda;  ///< The driver's name for it, where there is one.
};

std::vector<BadCandidate> bad_candidates() {
  const std::string copy =
      "    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
      "    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)\n";
  const std::string far =
      "    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)\n"
      "    tl.store(y_ptr + (i << 40), i)\n";
  const std::string usual = "k[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)";
  const std::string spin =
      "    v = tl.load(x_ptr)\n    while v < 1e30:\n        v = tl.load(x_ptr, volatile=True)\n"
      "    tl.store(y_ptr, v)\n";
  return {
      {"writes_out_of_bounds",
       triton_candidate(far, usual),
       {"crashed"},
       "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {"loops_for_ever_on_the_device",
       triton_candidate(spin, "k[(132,)](x, y, 1, BLOCK=16)"),
       {"timed_out"},
       ""},
      {"asks_for_all_memory",
       candidate_with("self.hold = [torch.empty(1 << 30, device='cuda') for _ in range(1000)]\n"
                      "        return torch.relu(x)"),
       {"resource_exhausted"},
       ""},
      {"launches_an_absurd_grid",
       triton_candidate(copy, "k[(2147483647, 65536, 65536)](x, y, x.numel(), BLOCK=1024)"),
       {"runtime_failed", "compile_failed", "crashed", "wrong_output"},
       ""},
      {"crashes_the_compiler",
       triton_candidate("    i = tl.arange(0, BLOCK)\n    x = tl.load(x_ptr + i)\n"
                        "    tl.inline_asm_elementwise('nonsense $0, $1;', '=r,r', [x], "
                        "dtype=tl.float32, is_pure=True, pack=1)\n    tl.store(y_ptr + i, "
                        "tl.inline_asm_elementwise('nonsense $0, $1;', '=r,r', [x], "
                        "dtype=tl.float32, is_pure=True, pack=1))\n",
                        "k[(1,)](x, y, x.numel(), BLOCK=1024)"),
       {"compile_failed", "runtime_failed"},
       ""},
      {"wants_more_shared_memory_than_there_is",
       triton_candidate("    i = tl.arange(0, BLOCK)\n"
                        "    a = tl.load(x_ptr + i[:, None] * BLOCK + i[None, :])\n"
                        "    tl.store(y_ptr + i[:, None] * BLOCK + i[None, :], tl.dot(a, a))\n",
                        "k[(1,)](x, y, 1, BLOCK=256)"),
       {"compile_failed", "runtime_failed"},
       ""},
      {"poisons_its_context_and_exits_0",
       triton_candidate(far,
                        usual,
                        "        try:\n            torch.cuda.synchronize()\n"
                        "        except Exception:\n            os._exit(0)\n"),
       {"crashed"},
       ""},
  };
}

TEST_F(GpuEvaluations, GoOnAfterEveryKindOfBadCandidate) {
  for (const BadCandidate& bad : bad_candidates()) {
    SCOPED_TRACE(bad.name);
    task::Task task = gpu_task(relu_reference(1U << 18U), bad.code);
    task.limits.correctness_s = 15;
    const task::Result result = judge(task);
    EXPECT_NE(std::find(bad.outcomes.begin(), bad.outcomes.end(), kind_of(result)),
              bad.outcomes.end())
        << kind_of(result) << " " << text_of(result);
    const task::Failure* failure = failure_of(result);
    if (!bad.cuda.empty() && failure != nullptr) {
      EXPECT_EQ(failure->cuda, bad.cuda) << failure->what;
    }
    if (failure != nullptr) std::printf("%s: %s\n", bad.name, failure->what.c_str());
    expect_gpu_unharmed();
  }
}

TEST_F(GpuEvaluations, UseTwoHundredKilobytesOfSharedMemory) {
  // 3 stages of two 128 x 128 float16 tiles, of which each takes 32 KiB.
  const std::string code = R"(
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def k(a_ptr, b_ptr, c_ptr, N: tl.constexpr, B: tl.constexpr, K: tl.constexpr):
    r = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), dtype=tl.float32)
    for s in range(0, N, K):
        i = s + tl.arange(0, K)
        a = tl.load(a_ptr + r[:, None] * N + i[None, :])
        b = tl.load(b_ptr + i[:, None] * N + c[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + r[:, None] * N + c[None, :], acc)

class ModelNew(nn.Module):
    def forward(self, a, b):
        n = a.shape[0]
        out = torch.empty((n, n), device=a.device, dtype=torch.float32)
        k[(n // 128, n // 128)](a, b, out, n, 128, 128, num_stages=3, num_warps=8)
        return out
)";
  const std::string reference = R"(
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, a, b):
        return a.float() @ b.float()

def get_inputs():
    return [torch.randn(1024, 1024).half(), torch.randn(1024, 1024).half()]

def get_init_inputs():
    return []
)";
  const task::Result result = judge(gpu_task(reference, code));
  ASSERT_EQ(kind_of(result), "accepted") << text_of(result);
  const task::KernelRecord& kernel = result.observations.profile->kernels.at(0);
  EXPECT_GT(kernel.dynamic_shared_bytes, 190U * 1024) << kernel_names(result);
}

// --- memory ---

TEST_F(GpuEvaluations, LetALargeProblemAndSmallOnesLiveTogether) {
  // 13 GB: 6.5 GB of input, as much of output.
  const std::uint64_t large = std::uint64_t{1625} << 20U;
  if (listing().devices.at(0).memory_bytes < std::uint64_t{60} << 30U) {
    GTEST_SKIP() << "the device has less than 60 GiB";
  }
  std::vector<std::string> problems(3);
  {
    std::vector<std::jthread> threads;
    threads.emplace_back([&] {
      task::Task task = gpu_task(relu_reference(large), kReluCandidate);
      task.num_correct_trials = 1;
      task.measure_performance = false;  // each call takes seconds, for the copies
      const task::Result result = judge(task);
      if (kind_of(result) != "accepted") problems[0] = text_of(result);
      std::printf("13 GB: %s\n", json::dump(json::to_json(result.timeline)).c_str());
    });
    for (std::size_t i = 1; i < problems.size(); ++i) {
      threads.emplace_back([&, i] {
        for (int round = 0; round < 6; ++round) {
          const task::Result result =
              judge(gpu_task(relu_reference((1U << 20U) + i * 1024), kReluCandidate));
          if (kind_of(result) != "accepted") problems[i] = text_of(result);
        }
      });
    }
  }
  for (const std::string& problem : problems) EXPECT_EQ(problem, "");
}

TEST_F(GpuEvaluations, SayHowMuchAProblemNeeds) {
  const std::string reference = R"(
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.stack([x] * 400).sum(dim=0)

def get_inputs():
    return [torch.rand(1 << 28)]

def get_init_inputs():
    return []
)";
  const task::Result result = judge(gpu_task(reference, kReluCandidate));
  ASSERT_EQ(kind_of(result), "invalid") << text_of(result);
  EXPECT_EQ(result.verdict.fault, task::Fault::task);
  EXPECT_NE(text_of(result).find("GiB"), std::string::npos) << text_of(result);
  expect_gpu_unharmed();
}

}  // namespace
}  // namespace drk::worker::test
