// SPDX-License-Identifier: Apache-2.0
// From facts to checks: what is enough, what is not, and what mends it.
#include "drk/doctor.h"

#include "doctor/parse.h"

#include <fmt/format.h>

namespace drk::doctor {

namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint64_t kMinMemoryBytes = 4 * kGiB;  // Python with torch, a reference, a candidate
constexpr std::uint64_t kMinCacheBytes = kGiB;       // compiled kernels
constexpr std::uint64_t kMinTemporaryBytes = kGiB / 4;  // one guest's own /tmp
constexpr std::uint64_t kMinSharedBytes = kGiB / 16;    // a container's usual size

Check machine_check(std::string name, std::string found, std::string purpose) {
  return {"machine", std::move(name), Status::ok, std::move(found), std::move(purpose), {}};
}

Check check_processor(const Processor& processor) {
  Check check = machine_check("cpu",
                              fmt::format("{}, {} cores", processor.model, processor.cores),
                              "compiles and interprets candidates");
  if (processor.cores < 2) {
    check.status = Status::warn;
    check.found += "; the judge and a candidate share one, so times are rough";
  }
  return check;
}

Check check_memory(const Memory& memory) {
  std::string found = fmt::format("{} of {} available",
                                  describe_bytes(memory.available_bytes),
                                  describe_bytes(memory.total_bytes));
  std::uint64_t usable_bytes = memory.available_bytes;
  if (memory.limit_bytes) {
    found += fmt::format(", limited to {}", describe_bytes(*memory.limit_bytes));
    usable_bytes = std::min(usable_bytes, *memory.limit_bytes);
  }
  Check check = machine_check("memory", found, "holds Python, the reference and its candidates");
  if (usable_bytes < kMinMemoryBytes) {
    check.status = Status::warn;
    check.remedy = "free some, or raise the container's limit: 4 GiB are needed, 8 are comfortable";
  }
  return check;
}

Check check_disk(std::string name, const Disk& disk, std::uint64_t min_bytes, std::string purpose) {
  Check check = machine_check(std::move(name),
                              fmt::format("{}: {} of {} free",
                                          disk.path,
                                          describe_bytes(disk.free_bytes),
                                          describe_bytes(disk.total_bytes)),
                              std::move(purpose));
  if (disk.free_bytes < min_bytes) {
    check.status = Status::warn;
    check.remedy = fmt::format(
        "make room for {} (df -h {} shows the file system)", describe_bytes(min_bytes), disk.path);
  }
  return check;
}

Check check_port(const Port& port) {
  Check check = machine_check(
      "port", port.address + (port.free ? " is free" : " is taken"), "a server's usual address");
  if (!port.free) {
    check.status = Status::warn;
    check.remedy = "ss -ltnp 'sport = :10907'  # shows who listens there";
  }
  return check;
}

std::string describe_gpus(const Graphics& graphics) {
  std::string text = fmt::format("{} (driver {})", graphics.gpus.size(), *graphics.driver);
  for (std::size_t i = 0; i < graphics.gpus.size(); ++i) {
    const Gpu& gpu = graphics.gpus[i];
    text +=
        fmt::format("; {}: {}, {}, {}", i, gpu.name, describe_bytes(gpu.memory_bytes), gpu.uuid);
  }
  return text;
}

Check check_gpus(const Graphics& graphics) {
  Check check = {
      "gpu", "devices", Status::ok, {}, "times kernels; without one there is no speed claim", {}};
  if (graphics.driver && !graphics.gpus.empty()) {
    check.found = describe_gpus(graphics);
    return check;
  }
  check.status = Status::warn;
  check.found = graphics.driver ? fmt::format("none (driver {})", *graphics.driver)
                                : "none: " + graphics.nvml_problem;
  check.remedy = "nvidia-smi  # must list a GPU; in a container: docker run --gpus all";
  return check;
}

Check check_cuda(const Graphics& graphics) {
  Check check = {"gpu", "cuda", Status::ok, {}, "runs kernels", {}};
  if (graphics.cuda) {
    check.found = fmt::format("CUDA {}, {} devices", *graphics.cuda, graphics.cuda_devices);
    if (graphics.cuda_devices == graphics.gpus.size()) return check;
    check.status = Status::warn;
    check.found += fmt::format(", but NVML shows {}", graphics.gpus.size());
    check.remedy = "env | grep -E 'CUDA_VISIBLE_DEVICES|NVIDIA_'  # may hide some";
    return check;
  }
  if (graphics.gpus.empty()) {
    check.found = "no GPU to run them on";
    return check;
  }
  check.found = graphics.cuda_problem.empty() ? "unknown" : graphics.cuda_problem;
  check.status = Status::warn;
  check.remedy = "nvidia-smi -q | grep -A2 -i error  # a driver that must be reloaded says so";
  return check;
}

Check check_cupti(const Graphics& graphics, const Python& python) {
  Check check = {"gpu", "cupti", Status::ok, {}, "lists the kernels that ran on a GPU", {}};
  if (graphics.cupti_file) {
    check.found = fmt::format("{} (API version {})", *graphics.cupti_file, graphics.cupti_version);
    return check;
  }
  if (graphics.gpus.empty()) {
    check.found = "no GPU to watch";
    return check;
  }
  check.found = graphics.cupti_problem.empty() ? "unknown" : graphics.cupti_problem;
  check.status = Status::warn;
  check.remedy = fmt::format("{} -m pip install nvidia-cuda-cupti", python.path);
  return check;
}

Check check_interpreter(const Python& python) {
  Check check = {"python", "interpreter", Status::ok, {}, "runs references and candidates", {}};
  if (python.problem.empty()) {
    check.found =
        fmt::format("{} (Python {}, by {})", python.path, python.version, python.found_by);
    return check;
  }
  check.status = Status::fail;
  check.found =
      python.path.empty() ? python.problem : fmt::format("{}: {}", python.path, python.problem);
  check.remedy = "make setup";
  return check;
}

Check check_package(const std::string& name,
                    const std::optional<std::string>& version,
                    const std::string& purpose) {
  Check check = {"python", name, Status::ok, version.value_or("not installed"), purpose, {}};
  if (version) return check;
  check.status = Status::fail;
  check.remedy = "make setup";
  return check;
}

Check check_numpy(const Python& python) {
  Check check = check_package("numpy", python.numpy, "Triton's interpreter computes with it");
  if (python.numpy && parse_version(*python.numpy) >= std::vector<std::uint32_t>{2, 5}) {
    check.status = Status::warn;
    check.found += "; Triton's interpreter breaks on range() over a run-time value from 2.5 on";
    check.remedy = fmt::format("{} -m pip install 'numpy<2.5'", python.path);
  }
  return check;
}

Check check_isolation(const Trial& trial) {
  const task::Isolation& isolation = trial.isolation;
  Check check = {"sandbox", "enforced", Status::ok, {}, "keeps candidates off this machine", {}};
  check.found = isolation.enforced.empty() ? "unknown: no guest has started"
                                           : fmt::format("{}", fmt::join(isolation.enforced, ", "));
  if (isolation.enforced.empty()) check.status = Status::warn;
  return check;
}

Check check_missing(const task::MissingIsolation& missing) {
  return {"sandbox",
          missing.feature,
          Status::warn,
          "missing: " + missing.why,
          "with --require-isolation nothing is judged without it",
          {}};
}

Check check_trial(const Trial& trial) {
  Check check = {
      "judge", "trial", Status::ok, {}, "a tiny Triton problem, judged as any other", {}};
  if (trial.accepted) {
    check.found =
        fmt::format("accepted in {:.1f} s (Python started in {:.1f} s, a guest in {:.0f} ms)",
                    trial.evaluation_s,
                    trial.zygote_start_s,
                    trial.guest_start_ms);
    return check;
  }
  check.status = Status::fail;
  check.found =
      trial.outcome.empty() ? trial.problem : fmt::format("{}: {}", trial.outcome, trial.problem);
  check.remedy = "mend what failed above; if nothing did: make setup build";
  return check;
}

}  // namespace

Report assess(Facts facts) {
  Report report;
  report.can_judge = facts.trial.accepted;
  const auto add = [&](Check check) { report.checks.push_back(std::move(check)); };
  add(machine_check("kernel", facts.kernel, "gives the sandbox its means"));
  add(check_processor(facts.processor));
  add(check_memory(facts.memory));
  add(check_disk("cache", facts.cache, kMinCacheBytes, "holds the Python environment"));
  add(check_disk(
      "tmp", facts.temporary, kMinTemporaryBytes, "scratch of references and candidates"));
  add(check_disk(
      "shm", facts.shared_memory, kMinSharedBytes, "shared memory of PyTorch's workers"));
  add(check_port(facts.port));
  add(check_gpus(facts.graphics));
  add(check_cuda(facts.graphics));
  add(check_cupti(facts.graphics, facts.python));
  add(check_interpreter(facts.python));
  if (facts.python.problem.empty()) {
    add(check_package("torch", facts.python.torch, "the reference is written in it"));
    add(check_package("triton", facts.python.triton, "candidates are written in it"));
    add(check_numpy(facts.python));
  }
  add(check_isolation(facts.trial));
  for (const task::MissingIsolation& missing : facts.trial.isolation.missing) {
    add(check_missing(missing));
  }
  add(check_trial(facts.trial));
  report.facts = std::move(facts);
  return report;
}

}  // namespace drk::doctor
