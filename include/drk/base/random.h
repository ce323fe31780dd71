// SPDX-License-Identifier: Apache-2.0
// Secrets: numbers that a candidate must not be able to guess.
#pragma once

#include <cstdint>
#include <string>

namespace drk {

/// A number from the kernel's generator, uniform over [0, bound). `bound` must be positive.
[[nodiscard]] std::uint64_t secure_random(std::uint64_t bound);
/// A fresh identifier: `prefix`, a dash, 16 hex digits.
[[nodiscard]] std::string make_id(const std::string& prefix);

}  // namespace drk
