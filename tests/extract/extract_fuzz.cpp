// SPDX-License-Identifier: Apache-2.0
// libFuzzer entry: any bytes are a reply, and what is taken is a run of its lines.
#include "drk/extract.h"

#include "run_of_lines.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view reply(reinterpret_cast<const char*>(data), size);
  const auto got = drk::extract::extract_code(reply);
  const bool has_code = got.rule != drk::extract::Rule::none;
  if (has_code == got.code.empty() || has_code != got.first_line.has_value()) std::abort();
  if (!drk::extract::is_run_of_lines(reply, got)) std::abort();
  if (got.block_index && *got.block_index >= got.block_count) std::abort();
  static_cast<void>(drk::extract::looks_like_reply(reply));
  return 0;
}
