// SPDX-License-Identifier: Apache-2.0
// Texts of the system and of Python, read: pure.
#pragma once

#include "drk/doctor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drk::doctor {

/// The first "model name" of /proc/cpuinfo.
[[nodiscard]] std::optional<std::string> parse_cpu_model(std::string_view cpuinfo);
/// One line of /proc/meminfo, such as "MemTotal", in bytes.
[[nodiscard]] std::optional<std::uint64_t> parse_meminfo(std::string_view meminfo,
                                                         std::string_view name);
/// A control group's memory.max or limit_in_bytes; none when it sets no limit.
[[nodiscard]] std::optional<std::uint64_t> parse_memory_limit(std::string_view text);
/// The numbers that a version starts with: {2, 5} for "2.5rc1" and {2, 11, 0} for "2.11.0+cu130".
[[nodiscard]] std::vector<std::uint32_t> parse_version(std::string_view text);
/// "13.0" of CUDA's 13000.
[[nodiscard]] std::string cuda_version_text(int version);
/// Adds what the question of probe_python prints to `python`. Throws Error{invalid_argument}.
void parse_python_answer(std::string_view json, Python& python);
/// The first and the last line of a text: of a traceback they tell what it was and why it failed.
[[nodiscard]] std::string first_and_last_line(std::string_view text);
/// "23.4 GiB"
[[nodiscard]] std::string describe_bytes(std::uint64_t bytes);

}  // namespace drk::doctor
