// SPDX-License-Identifier: Apache-2.0
// Kernel launches under Triton's interpreter, counted and (on demand) left out.
//
// The interpreter has no driver below it, so a launch can only be seen inside this process, where
// the candidate can also reach: what is counted here is evidence, not proof. The GPU mode counts
// by the driver instead.
#pragma once

#include "drk/guest.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace drk::guest {

/// Replaces the interpreter's one launch point by a C function. Once, in the zygote; throws
/// PythonRaised when Triton is not the expected version.
/// A kernel whose source lies below one of `system_paths` is not the candidate's own.
void watch_launches(std::vector<std::string> system_paths);

/// Folders of the Python installation.
[[nodiscard]] const std::vector<std::string>& system_paths();
/// False for code of the Python installation, by where its file lies.
[[nodiscard]] bool is_own_file(const std::string& file);

/// Forgets what was counted and sets what launches of own kernels do from now on.
void begin_launches(LaunchMode mode);
struct LaunchLog {
  std::vector<task::KernelLaunches> kernels;  ///< That ran to their end.
  std::uint64_t dropped = 0;
};
[[nodiscard]] LaunchLog launches();
/// Programs (of a grid) of own kernels that ran to their end, since begin_launches.
[[nodiscard]] std::uint64_t own_programs();

}  // namespace drk::guest
