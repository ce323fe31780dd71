// SPDX-License-Identifier: Apache-2.0
// Fuzz target: bytes as a request body, and as anything else that is read from JSON.
#include "fuzz/wire.h"

#include <cstddef>
#include <cstdint>

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer looks for this name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  drk::fuzz::replay_wire({reinterpret_cast<const char*>(data), size});
  return 0;
}
