// SPDX-License-Identifier: Apache-2.0
// What this machine is, and its sandbox in the result's words.
#include "drk/base/error.h"
#include "drk/base/json.h"

#include "worker/evaluation.h"

#include <sstream>
#include <sys/utsname.h>
#include <thread>

namespace drk::worker {

namespace {

std::string cpu_model() {
  try {
    std::istringstream lines(read_file("/proc/cpuinfo"));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("model name")) return line.substr(line.find(": ") + 2);
    }
  } catch (const Error&) {  // a machine without /proc/cpuinfo has no name for it
  }
  return "unknown";
}

/// "580.65.06", from a line like "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  ...".
std::string driver_version() {
  try {
    std::istringstream words(read_file("/proc/driver/nvidia/version"));
    for (std::string word; words >> word;) {
      if (word.find_first_not_of("0123456789.") == std::string::npos && word.size() > 3)
        return word;
    }
  } catch (const Error&) {  // a driver of another kind has no such file
  }
  return "unknown";
}

}  // namespace

task::Machine describe_machine(const GpuSlot* gpu) {
  task::Machine machine;
  utsname name = {};
  if (::uname(&name) == 0) {
    machine.kernel = std::string(name.sysname) + " " + name.release + " " + name.machine;
  }
  static const std::string kCpu = cpu_model();  // read once
  machine.cpu = kCpu;
  machine.cores = std::thread::hardware_concurrency();
  if (gpu != nullptr) {
    machine.gpu = gpu->device().name;
    machine.gpu_uuid = gpu->device().uuid;
    machine.gpu_pci_bus_id = gpu->device().pci_bus_id;
    static const std::string kDriver = driver_version();  // as long as it is loaded
    machine.gpu_driver = kDriver;
  }
  return machine;
}

task::Isolation isolation_of(const sandbox::Report& report) {
  task::Isolation isolation;
  for (const sandbox::Feature feature : report.enforced) {
    isolation.enforced.emplace_back(json::name_of(feature));
  }
  for (const sandbox::Missing& missing : report.missing) {
    isolation.missing.push_back({json::name_of(missing.feature), missing.why});
  }
  return isolation;
}

}  // namespace drk::worker
