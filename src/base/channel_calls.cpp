// SPDX-License-Identifier: Apache-2.0
#include "base/channel_calls.h"

#include <cerrno>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__

// The linker's, of the section below.
// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming)
extern "C" {
[[gnu::visibility("hidden")]] extern const char __start_drk_channel;
[[gnu::visibility("hidden")]] extern const char __stop_drk_channel;
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming)

namespace drk {

namespace {

[[gnu::noinline, gnu::section("drk_channel")]] long system_call(long number,
                                                                long socket,
                                                                const msghdr* header,
                                                                long flags) noexcept {
  long result = number;
  // NOLINTNEXTLINE(hicpp-no-assembler): the one way to know the instruction's address
  asm volatile("syscall"
               : "+a"(result)
               : "D"(socket), "S"(header), "d"(flags)
               : "rcx", "r11", "memory");
  return result;
}

}  // namespace

CallerRange channel_callers() noexcept {
  return {reinterpret_cast<std::uint64_t>(&__start_drk_channel),
          reinterpret_cast<std::uint64_t>(&__stop_drk_channel)};
}

}  // namespace drk

#else

namespace drk {

namespace {

long system_call(long number, long socket, const msghdr* header, long flags) noexcept {
  const long result = ::syscall(number, socket, header, flags);
  return result < 0 ? -errno : result;
}

}  // namespace

CallerRange channel_callers() noexcept {
  return {};
}

}  // namespace drk

#endif

namespace drk {

namespace {

ssize_t as_c_library(long result) noexcept {
  if (result >= 0) return result;
  errno = static_cast<int>(-result);
  return -1;
}

}  // namespace

ssize_t channel_send(int socket, const msghdr& header) noexcept {
  return as_c_library(system_call(SYS_sendmsg, socket, &header, MSG_NOSIGNAL));
}

ssize_t channel_receive(int socket, msghdr& header) noexcept {
  return as_c_library(system_call(SYS_recvmsg, socket, &header, MSG_CMSG_CLOEXEC));
}

}  // namespace drk
