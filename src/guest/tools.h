// SPDX-License-Identifier: Apache-2.0
// Runs compilers in a toolbox: a cell of its own, without a device, in which exec is allowed.
//
// What runs here is chosen by the candidate's sources and flags, so this process and all that it
// starts are as little to be believed as the candidate. It lives for one build, and what it makes
// reaches nobody whose files and flags were others.
#pragma once

#include "drk/guest.h"

#include <cstddef>
#include <span>
#include <string>

namespace drk::guest {

/// Writes the files below `scratch` and runs the steps there. `product_bytes` is set when the
/// product is there and small enough; a product that is not counts as a failed command.
/// Throws Error{unavailable} when the files cannot be written.
[[nodiscard]] ToolsRan run_tools(const RunTools& request,
                                 std::span<const std::byte> files,
                                 const std::string& scratch);

}  // namespace drk::guest
