// SPDX-License-Identifier: Apache-2.0
// One connection to a server: all is sent, the sending half closed, all that comes back read.
#pragma once

#include "drk/base/error.h"
#include "drk/base/fd.h"

#include "fuzz/finding.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/socket.h>

namespace drk::fuzz {

struct Received {
  std::string bytes;
  bool was_reset = false;  ///< The other side closed on what it had not read: the end may be lost.
};

class Connection {
 public:
  explicit Connection(std::uint16_t port)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    const int rc = ::connect(socket_.get(), generic, sizeof address);
    if (rc != 0 && errno != EINPROGRESS) throw_errno("connect");
    pollfd ready{socket_.get(), POLLOUT, 0};
    while (::poll(&ready, 1, -1) < 0 && errno == EINTR) {  // libFuzzer's timer interrupts
    }
  }

  /// `on_silence` is called when nothing has come for a moment, and may make something come.
  [[nodiscard]] Received exchange(std::string_view bytes, const std::function<void()>& on_silence) {
    const auto deadline = Clock::now() + kMaxTime;
    unsent_ = bytes;
    bool is_closing = false;
    for (std::chrono::milliseconds silence = kFirstSilence;;) {
      if (unsent_.empty() && !is_closing) {
        is_closing = true;
        ::shutdown(socket_.get(), SHUT_WR);
      }
      pollfd ready{socket_.get(), POLLIN, 0};
      if (!unsent_.empty()) ready.events |= POLLOUT;
      if (::poll(&ready, 1, static_cast<int>(silence.count())) == 0) {
        expect(Clock::now() < deadline, "the server neither answers nor closes");
        on_silence();
        silence = std::min(2 * silence, kLastSilence);
        continue;
      }
      if ((ready.revents & POLLOUT) != 0) send_some();
      if ((ready.revents & ~POLLOUT) != 0 && !receive_some()) return std::move(received_);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kMaxTime{20};
  static constexpr std::chrono::milliseconds kFirstSilence{2};
  static constexpr std::chrono::milliseconds kLastSilence{100};

  void send_some() {
    const ssize_t n = ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      unsent_.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno != EAGAIN && errno != EINTR) {
      unsent_ = {};  // the server takes no more
    }
  }

  /// False at the end.
  bool receive_some() {
    std::array<char, std::size_t{16} << 10> space{};
    const ssize_t n = ::recv(socket_.get(), space.data(), space.size(), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    received_.was_reset = n < 0;
    if (n <= 0) return false;
    received_.bytes.append(space.data(), static_cast<std::size_t>(n));
    return true;
  }

  Fd socket_;
  std::string_view unsent_;
  Received received_;
};

}  // namespace drk::fuzz
