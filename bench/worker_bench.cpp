// SPDX-License-Identifier: Apache-2.0
// What drkernel adds to a candidate's own time: guest cycles, and evaluations with a zygote up.
#include "drk/worker.h"

#include "drk/base/clock.h"
#include "drk/base/error.h"

#include "worker/memory.h"
#include "worker/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace drk::worker {
namespace {

constexpr const char* kReference = R"(
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(256, 256)]

def get_init_inputs():
    return []
)";

constexpr const char* kCandidate = R"(
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(y_ptr + offs, tl.maximum(tl.load(x_ptr + offs, mask=mask), 0.0), mask=mask)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096)
        return y
)";

void print(const std::string& what, std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  fmt::print("{:<52} {:9.1f} {:9.1f} {:9.1f}  {:4}\n",
             what,
             samples[samples.size() / 2],
             samples.front(),
             samples.back(),
             samples.size());
}

std::vector<double> repeat_ms(int count, const std::function<double()>& run) {
  std::vector<double> samples;
  samples.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) samples.push_back(run());
  return samples;
}

double since_ms(std::int64_t begin_ns) {
  return static_cast<double>(now_ns() - begin_ns) * 1e-6;
}

/// A guest from nothing to nothing: fork, sandbox, load a model, one torch call, reap.
double guest_cycle_ms(GuestPool& pool) {
  const Fd source =
      make_sealed_memory("reference", std::as_bytes(std::span(std::string_view(kReference))));
  const int source_fd = source.get();
  const std::int64_t begin_ns = now_ns();
  const std::unique_ptr<GuestProcess> guest = pool.take(sandbox::Limits{});
  (void)guest->ask(guest::LoadReference{"Model", 1}, {&source_fd, 1}, AskOptions{});
  auto made = std::get<GuestProcess::Answer>(guest->ask(guest::MakeInputs{7}, {}, AskOptions{}));
  const Block inputs =
      seal_block(std::get<guest::InputsMade>(made.reply).inputs, std::move(made.memory));
  const WritableCopy copy = copy_memory(inputs);
  guest::Call call;
  call.inputs = inputs.bundle;
  call.max_output_bytes = 1 << 24;
  const int fd = copy.memory.get();
  const auto outcome = guest->ask(call, {&fd, 1}, AskOptions{});
  DRK_CHECK(std::holds_alternative<GuestProcess::Answer>(outcome));
  DRK_CHECK(guest->finish().has_value());
  return since_ms(begin_ns);
}

/// The time of the candidate's own calls, by the guest's clock.
double own_ms(const task::Result& result) {
  double us = 0;
  if (const auto& times = result.observations.candidate_times) {
    us = std::accumulate(times->us.begin(), times->us.end(), 0.0);
  }
  for (const task::Trial& trial : result.observations.trials) us += trial.host_us;
  return us * 1e-3;
}

int run(const Options& options) {
  fmt::print("{:<52} {:>9} {:>9} {:>9}  {:>4}\n", "", "median", "min", "max", "n");
  {
    Options cold = options;
    cold.warm_guests = 0;
    GuestPool pool(cold, nullptr);
    print("zygote start (ms)", {pool.zygote()->start_s() * 1e3});
    print("guest cycle, none kept warm (ms)", repeat_ms(100, [&] { return guest_cycle_ms(pool); }));
  }
  Evaluator evaluator(options);
  task::Task task;
  task.reference_code = kReference;
  task.candidate_code = kCandidate;
  (void)evaluator.evaluate(task);
  std::vector<double> total, added;
  for (int i = 0; i < 30; ++i) {
    const std::int64_t begin_ns = now_ns();
    const task::Result result = evaluator.evaluate(task);
    DRK_CHECK(task::is_accepted(result.verdict));
    total.push_back(since_ms(begin_ns));
    added.push_back(total.back() - own_ms(result));
  }
  print("warm evaluation, 5 trials, 25 timed calls (ms)", total);
  print("  beyond the candidate's own calls (ms)", added);
  return 0;
}

}  // namespace
}  // namespace drk::worker

int main() {
  try {
    drk::worker::Options options;
    const char* python = std::getenv("DRK_PYTHON");  // NOLINT(concurrency-mt-unsafe)
    options.python = python == nullptr ? "" : python;
    options.guest_dir =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../lib/drk/guest";
    return drk::worker::run(options);
  } catch (const std::exception& error) {
    std::fputs("worker_bench: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
    return 2;
  }
}
