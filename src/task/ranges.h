// SPDX-License-Identifier: Apache-2.0
// The ranges of counts, for requests and for tasks that come another way.
#pragma once

#include <cstdint>

namespace drk::task {

/// Both ends are allowed.
struct Range {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
};

inline constexpr Range kCorrectTrials{1, 20};
inline constexpr Range kPerfTrials{1, 1000};
inline constexpr Range kWarmup{0, 100};

}  // namespace drk::task
