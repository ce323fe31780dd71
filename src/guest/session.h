// SPDX-License-Identifier: Apache-2.0
// The life of one guest: requests come in, calls are made, replies go out.
#pragma once

#include "drk/base/fd.h"
#include "drk/sandbox.h"

#include <string>

namespace drk::guest {

struct TorchFunctions;

/// Serves `control` until the worker closes it. Holds the GIL throughout.
/// Never returns into Python: the caller ends the process.
void serve_guest(const TorchFunctions& torch,
                 Fd control,
                 const sandbox::Plan& plan,
                 const std::string& scratch) noexcept;

}  // namespace drk::guest
