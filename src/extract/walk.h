// SPDX-License-Identifier: Apache-2.0
// Goes through a reply once, and tells what it finds outside the reasoning: text and blocks.
#pragma once

#include "block.h"
#include "candidates.h"
#include "cursor.h"

#include <cstddef>
#include <string_view>
#include <vector>

namespace drk::extract {

/// Adds to `candidates` what stands in `reply`.
void walk_reply(std::string_view reply, std::string_view entry_point, Candidates& candidates);

/// The blocks in the code of a block that may be a wrapper, wrappers among them opened in turn.
/// Empty if `outer` is no wrapper, or if what it wraps is no better.
[[nodiscard]] std::vector<Block> wrapped_blocks(const Block& outer,
                                                std::string_view entry_point,
                                                int depth = 0);

}  // namespace drk::extract
