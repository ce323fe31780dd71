// SPDX-License-Identifier: Apache-2.0
// A client that sends what it is told, however wrong, and reads answers by the rules.
#pragma once

#include "drk/base/fd.h"
#include "drk/http.h"

#include "http/fields.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstdint>
#include <netinet/in.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/time.h>
#include <utility>

namespace drk::http::test {

/// What is wrong with the other side's bytes, or that they do not come.
struct BadAnswer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class RawClient {
 public:
  RawClient() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  explicit RawClient(std::uint16_t port) : RawClient() { connect(port); }

  void connect(std::uint16_t port) {
    const timeval limit{10, 0};  // of each read: a test that hangs says where
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(socket_.get(), generic, sizeof address) != 0) throw BadAnswer("cannot connect");
  }

  /// False when the other side takes no more.
  bool send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  /// The next answer; `is_head` when it has no body whatever its headers say.
  Answer read_answer(bool is_head = false) {
    Answer answer = read_head();
    if (is_head || answer.status < 200 || answer.status == 204) return answer;
    if (const auto length = answer.header("content-length")) {
      answer.body = take(std::stoul(std::string(*length)));
    } else if (answer.header("transfer-encoding")) {
      for (std::string chunk = read_chunk(); !chunk.empty(); chunk = read_chunk()) {
        answer.body += chunk;
      }
    } else {
      while (read_more()) {
      }
      answer.body = std::exchange(input_, {});
    }
    return answer;
  }

  /// Without the bytes of the head: what `read_answer` does step by step.
  Answer read_head() {
    std::string line = take_line();
    if (!line.starts_with("HTTP/1.1 ")) throw BadAnswer("no status line: " + line);
    Answer answer;
    answer.status = static_cast<std::uint32_t>(std::stoul(line.substr(9, 3)));
    while (line = take_line(), !line.empty()) {
      const std::size_t colon = line.find(": ");
      if (colon == std::string::npos) throw BadAnswer("no header: " + line);
      answer.headers.emplace_back(to_lower(line.substr(0, colon)), line.substr(colon + 2));
    }
    return answer;
  }

  /// Empty: the last one.
  std::string read_chunk() {
    const std::size_t size = std::stoul(take_line(), nullptr, 16);
    std::string chunk = take(size);
    if (!take_line().empty()) throw BadAnswer("a chunk is longer than it says");
    return chunk;
  }

  /// True when the other side has closed and nothing is left to read.
  bool is_at_end() { return input_.empty() && !read_more(); }

  void close_sending() { ::shutdown(socket_.get(), SHUT_WR); }
  void close() { socket_.reset(); }
  void shrink_receive_buffer() {
    const int bytes = 4096;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  }

 private:
  /// False at the end; throws when nothing comes.
  bool read_more() {
    std::string more(std::size_t{64} << 10, '\0');
    const ssize_t n = ::recv(socket_.get(), more.data(), more.size(), 0);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) throw BadAnswer("nothing comes");
    if (n <= 0) return false;
    input_.append(more, 0, static_cast<std::size_t>(n));
    return true;
  }

  std::string take(std::size_t size) {
    while (input_.size() < size) {
      if (!read_more()) throw BadAnswer("ends early, after: " + input_);
    }
    std::string text = input_.substr(0, size);
    input_.erase(0, size);
    return text;
  }

  std::string take_line() {
    while (input_.find("\r\n") == std::string::npos) {
      if (!read_more()) throw BadAnswer("ends within a line: " + input_);
    }
    std::string line = take(input_.find("\r\n") + 2);
    line.resize(line.size() - 2);
    return line;
  }

  Fd socket_;
  std::string input_;
};

}  // namespace drk::http::test
