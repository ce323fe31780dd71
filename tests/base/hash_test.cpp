// SPDX-License-Identifier: Apache-2.0
// Known SHA-256 vectors (FIPS 180-4 examples).
#include "drk/base/hash.h"

#include <gtest/gtest.h>

#include <string>

namespace drk {
namespace {

TEST(Sha256Hex, GivesThePublishedDigests) {
  const struct {
    std::string bytes;
    std::string digest;
  } cases[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1'000'000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (const auto& c : cases) EXPECT_EQ(sha256_hex(c.bytes), c.digest) << c.bytes.substr(0, 60);
}

TEST(Sha256Hex, CountsNulBytes) {
  EXPECT_NE(sha256_hex(std::string_view("a\0b", 3)), sha256_hex("a"));
}

}  // namespace
}  // namespace drk
