// SPDX-License-Identifier: Apache-2.0
// The zygote's loop: forks a sandboxed guest for each request of the worker.
#pragma once

#include "drk/base/fd.h"

#include <string>

namespace drk::guest {

struct TorchFunctions;

/// Says hello and serves until the worker closes `socket`, in the zygote; in a forked guest, serves
/// that guest. Ends the process in either case: Python's shutdown would run foreign code.
[[noreturn]] void serve_zygote(const TorchFunctions& torch,
                               Fd socket,
                               const std::string& hello) noexcept;

}  // namespace drk::guest
