// SPDX-License-Identifier: Apache-2.0
// Fuzz target: bytes as what a client sends over one connection to a whole server.
#include "drk/base/hash.h"

#include "fuzz/border.h"

#include <cstddef>
#include <cstdint>
#include <string>

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer looks for this name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // What is used first is cleaned up last: OpenSSL, after the threads that use it.
  static const std::string kFirstUse = drk::sha256_hex("");
  static drk::fuzz::Border border;  // libFuzzer has no other place to keep it
  border.replay({reinterpret_cast<const char*>(data), size});
  return 0;
}
