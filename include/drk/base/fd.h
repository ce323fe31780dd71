// SPDX-License-Identifier: Apache-2.0
// Owners of descriptors and mappings, and messages that carry descriptors.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace drk {

/// Owns one file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  void reset() noexcept;

 private:
  int fd_ = -1;
};

/// Owns one memory mapping; readable, and writable only when made so.
class Mapping {
 public:
  Mapping() = default;
  /// Maps `size_bytes` of `fd`, shared. A size of 0 gives an empty mapping. Throws Error.
  [[nodiscard]] static Mapping shared(int fd, std::size_t size_bytes, bool writable);
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_bytes_(std::exchange(other.size_bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { reset(); }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_bytes_}; }
  /// Gives up the memory without unmapping it; the caller unmaps `size` bytes.
  [[nodiscard]] std::byte* release() noexcept {
    size_bytes_ = 0;
    return std::exchange(data_, nullptr);
  }
  void reset() noexcept;

 private:
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

/// Anonymous shared memory of exactly `size_bytes`, which no holder can grow or shrink (so that a
/// mapping of it never faults). Close-on-exec.
[[nodiscard]] Fd make_shared_memory(const char* name, std::size_t size_bytes);
/// The same, filled with `content` and sealed against every write.
[[nodiscard]] Fd make_sealed_memory(const char* name, std::span<const std::byte> content);
/// Seals against writing; false when somebody still holds a writable mapping.
[[nodiscard]] bool seal_against_writes(int fd) noexcept;
[[nodiscard]] std::size_t file_size_bytes(int fd);
[[nodiscard]] std::string read_file(const std::string& path);
void write_file(const std::string& path, std::string_view content);

struct Pipe {
  Fd read, write;
};
[[nodiscard]] Pipe make_pipe();
/// Two connected ends of a datagram-preserving local socket (SOCK_SEQPACKET), close-on-exec.
[[nodiscard]] std::pair<Fd, Fd> make_socket_pair();

/// A text with descriptors, as one message.
struct Message {
  std::string text;
  std::vector<Fd> fds;
};
inline constexpr std::size_t kMaxMessageBytes = std::size_t{160} * 1024;
inline constexpr std::size_t kMaxMessageFds = 8;

/// Sends one message, whose text is not empty; blocks. Throws Error{unavailable} when the other
/// side is gone, Error{exhausted} when the text is longer than `kMaxMessageBytes`.
void send_message(int socket, std::string_view text, std::span<const int> fds = {});
/// Receives one message; blocks. Empty when the other side closed. Throws Error{corrupt} when the
/// message was longer than `kMaxMessageBytes` or carried more than `kMaxMessageFds` descriptors.
[[nodiscard]] std::optional<Message> receive_message(int socket);

}  // namespace drk
