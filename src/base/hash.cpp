// SPDX-License-Identifier: Apache-2.0
// SHA-256 by OpenSSL.
#include "drk/base/hash.h"

#include "drk/base/error.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

namespace drk {

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  unsigned int size = 0;
  const int ok =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  DRK_CHECK(ok == 1);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

}  // namespace drk
