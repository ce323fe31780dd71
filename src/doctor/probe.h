// SPDX-License-Identifier: Apache-2.0
// One function for each thing that is looked at.
#pragma once

#include "drk/doctor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace drk::doctor {

[[nodiscard]] std::string probe_kernel();
[[nodiscard]] Processor probe_processor();
[[nodiscard]] Memory probe_memory();
/// Of the file system that holds `path`, or would hold it.
[[nodiscard]] Disk probe_disk(const std::string& path);
/// Whether 127.0.0.1:`port` can be listened on.
[[nodiscard]] Port probe_port(std::uint16_t port);
[[nodiscard]] Python probe_python(const Options& options);
/// Asks NVIDIA's libraries in two children, 20 s each at most. CUPTI is looked for in
/// `package_dirs` too.
[[nodiscard]] Graphics probe_graphics(const std::vector<std::string>& package_dirs);
/// Judges a tiny problem.
[[nodiscard]] Trial probe_trial(const Options& options);

}  // namespace drk::doctor
