// SPDX-License-Identifier: Apache-2.0
// Functions of ours in a child process: what they open, leak or hang on is gone with the child.
#pragma once

#include "drk/base/fd.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>

namespace drk {

/// What `body` returned, at most 64 KiB. The caller must have one thread only: after fork the
/// child holds every lock that another thread held. Kills the child when it is not done by `limit`.
/// Throws Error{timed_out, unavailable}: "no answer within 20 s", "ended by signal 11".
[[nodiscard]] std::string run_in_child(const std::function<std::string()>& body,
                                       std::chrono::milliseconds limit);

/// Owns a child that runs a function for as long as it likes, and a socket to it.
///
/// The child is in a session of its own, ignores SIGINT, SIGTERM and SIGHUP, and has no descriptor
/// of ours but its end of the socket and the standard ones: it ends when `body` returns, which it
/// must when the socket closes. Where we have more threads than one, `body` must take no lock that
/// another of them could have held; malloc, stdio and dlopen are safe, as glibc resets theirs.
class ForkedChild {
 public:
  explicit ForkedChild(const std::function<void(int socket)>& body);
  ForkedChild(const ForkedChild&) = delete;
  ForkedChild& operator=(const ForkedChild&) = delete;
  ~ForkedChild();  ///< As `hang_up` and `end`.

  /// Carries messages of send_message and receive_message.
  [[nodiscard]] int socket() const noexcept { return socket_.get(); }
  /// Ends what waits on the socket, on either side. Thread-safe.
  void hang_up() const noexcept;
  /// Gives the child `grace` to end, kills it, and tells how it ended: "ended by signal 11". A
  /// child that hangs in the kernel does not die before the kernel lets go of it: after two seconds
  /// it is left to itself, and reaped by init when we are gone. Once; not thread-safe.
  std::string end(std::chrono::milliseconds grace);

 private:
  /// None when it cannot be killed.
  std::optional<int> reap(std::chrono::milliseconds grace) noexcept;

  Fd socket_;
  pid_t pid_ = -1;
};

}  // namespace drk
