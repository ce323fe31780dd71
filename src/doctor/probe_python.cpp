// SPDX-License-Identifier: Apache-2.0
// The interpreter: its version and packages, from metadata (importing torch takes seconds).
#include "drk/base/error.h"
#include "drk/base/subprocess.h"

#include "doctor/parse.h"
#include "doctor/probe.h"

#include <fmt/format.h>

namespace drk::doctor {

namespace {

constexpr std::chrono::seconds kLimit{30};

constexpr const char* kQuestion = R"(
import json, platform, sysconfig
from importlib.metadata import PackageNotFoundError, version
answer = {"version": platform.python_version(),
          "package_dirs": sorted({sysconfig.get_path(n) for n in ("purelib", "platlib")})}
for name in ("torch", "triton", "numpy"):
    try:
        answer[name] = version(name)
    except PackageNotFoundError:
        pass
print(json.dumps(answer))
)";

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

void ask(const std::vector<std::string>& environment, Python& python) {
  const ProgramResult result = run_program({python.path, "-c", kQuestion}, environment, kLimit);
  if (result.timed_out) {
    python.problem = fmt::format("it does not answer within {} s", kLimit.count());
  } else if (result.exit_code != 0) {
    python.problem =
        fmt::format("it ended with status {}: {}", result.exit_code, first_line(result.output));
  } else {
    parse_python_answer(result.output, python);
  }
}

}  // namespace

Python probe_python(const Options& options) {
  Python python;
  python.path = options.python;
  python.found_by = options.found_by;
  python.problem = options.python_problem;
  if (python.path.empty()) return python;
  try {
    ask(options.environment, python);
  } catch (const Error& error) {  // the border of this probe: a broken interpreter is a fact
    python.problem = error.what();
  }
  return python;
}

}  // namespace drk::doctor
