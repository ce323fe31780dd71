// SPDX-License-Identifier: Apache-2.0
// Random numbers from getrandom(2).
#include "drk/base/random.h"

#include "drk/base/error.h"

#include <fmt/format.h>

#include <limits>
#include <sys/random.h>

namespace drk {

namespace {

std::uint64_t random_word() {
  std::uint64_t word = 0;
  if (::getrandom(&word, sizeof word, 0) != sizeof word) throw_errno("getrandom");
  return word;
}

}  // namespace

std::uint64_t secure_random(std::uint64_t bound) {
  DRK_CHECK(bound > 0);
  // Rejection keeps the draw uniform: words past the last whole multiple of `bound` are redrawn.
  const std::uint64_t limit = std::numeric_limits<std::uint64_t>::max() / bound * bound;
  for (;;) {
    const std::uint64_t word = random_word();
    if (word < limit) return word % bound;
  }
}

std::string make_id(const std::string& prefix) {
  return fmt::format("{}-{:016x}", prefix, random_word());
}

}  // namespace drk
