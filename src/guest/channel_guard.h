// SPDX-License-Identifier: Apache-2.0
// A channel that only the core's own code can use, although a candidate runs in its process.
#pragma once

#include <string>

namespace drk::guest {

/// From here on a system call on `socket` that the core's code has not made ends the process with
/// SIGSYS, and nobody else can hand a descriptor to another socket. By a seccomp filter that looks
/// at the caller's address, for all threads. Empty, or why there is no such guard.
/// Code that jumps into the core's own system call is not told apart.
[[nodiscard]] std::string guard_channel(int socket);

}  // namespace drk::guest
