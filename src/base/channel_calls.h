// SPDX-License-Identifier: Apache-2.0
// The two system calls of a channel, made at a place of their own: a filter can tell by the address
// who has made one. See guest/channel_guard.h.
#pragma once

#include <cstdint>
#include <sys/socket.h>

namespace drk {

/// As the C library's: -1, and errno.
[[nodiscard]] ssize_t channel_send(int socket, const msghdr& header) noexcept;
[[nodiscard]] ssize_t channel_receive(int socket, msghdr& header) noexcept;

/// Where the kernel sees both calls come from: begin < address <= end. Empty where they are made by
/// the C library.
struct CallerRange {
  std::uint64_t begin = 0, end = 0;
};
[[nodiscard]] CallerRange channel_callers() noexcept;

}  // namespace drk
