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

}  // namespace

task::Machine describe_machine() {
  task::Machine machine;
  utsname name = {};
  if (::uname(&name) == 0) {
    machine.kernel = std::string(name.sysname) + " " + name.release + " " + name.machine;
  }
  static const std::string kCpu = cpu_model();  // read once
  machine.cpu = kCpu;
  machine.cores = std::thread::hardware_concurrency();
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
