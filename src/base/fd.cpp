// SPDX-License-Identifier: Apache-2.0
// Descriptors, mappings, sealed memory and descriptor passing.
#include "drk/base/fd.h"

#include "drk/base/error.h"

#include "base/channel_calls.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace drk {

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Fd::reset() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Mapping Mapping::shared(int fd, std::size_t size_bytes, bool writable) {
  Mapping mapping;
  if (size_bytes == 0) return mapping;
  const int protection = PROT_READ | (writable ? PROT_WRITE : 0);
  void* data = ::mmap(nullptr, size_bytes, protection, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) throw_errno("mmap of " + std::to_string(size_bytes) + " bytes");
  mapping.data_ = static_cast<std::byte*>(data);
  mapping.size_bytes_ = size_bytes;
  return mapping;
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this != &other) {
    reset();
    data_ = std::exchange(other.data_, nullptr);
    size_bytes_ = std::exchange(other.size_bytes_, 0);
  }
  return *this;
}

void Mapping::reset() noexcept {
  if (data_ != nullptr) ::munmap(std::exchange(data_, nullptr), std::exchange(size_bytes_, 0));
}

Fd make_shared_memory(const char* name, std::size_t size_bytes) {
  Fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) throw_errno("memfd_create");
  if (::ftruncate(fd.get(), static_cast<off_t>(size_bytes)) != 0) throw_errno("ftruncate of memfd");
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) throw_errno("seal memfd");
  return fd;
}

Fd make_sealed_memory(const char* name, std::span<const std::byte> content) {
  Fd fd = make_shared_memory(name, content.size());
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t n =
        ::pwrite(fd.get(), content.data() + done, content.size() - done, static_cast<off_t>(done));
    if (n <= 0) throw_errno("write to memfd");
    done += static_cast<std::size_t>(n);
  }
  if (!seal_against_writes(fd.get())) throw_errno("seal memfd");
  return fd;
}

bool seal_against_writes(int fd) noexcept {
  return ::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) == 0;
}

std::size_t file_size_bytes(int fd) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) throw_errno("fstat");
  return static_cast<std::size_t>(status.st_size);
}

std::string read_file(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    const bool missing = errno == ENOENT;
    throw Error(missing ? ErrorCode::not_found : ErrorCode::unavailable,
                "cannot read " + path + ": " +
                    std::strerror(errno));  // NOLINT(concurrency-mt-unsafe): glibc's is safe
  }
  std::string content;
  std::array<char, 65536> buffer = {};
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno("cannot read " + path);
    if (n == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

void write_file(const std::string& path, std::string_view content) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) throw_errno("cannot write " + path);
  while (!content.empty()) {
    const ssize_t n = ::write(fd.get(), content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw_errno("cannot write " + path);
    content.remove_prefix(static_cast<std::size_t>(n));
  }
}

Pipe make_pipe() {
  std::array<int, 2> ends = {};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno("pipe2");
  return {Fd(ends[0]), Fd(ends[1])};
}

std::pair<Fd, Fd> make_socket_pair() {
  std::array<int, 2> ends = {};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw_errno("socketpair");
  }
  return {Fd(ends[0]), Fd(ends[1])};
}

namespace {

struct ControlBuffer {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxMessageFds)> bytes;
};

std::vector<Fd> take_fds(msghdr& header) {
  std::vector<Fd> fds;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
  return fds;
}

}  // namespace

void send_message(int socket, std::string_view text, std::span<const int> fds) {
  DRK_CHECK(!text.empty());  // the other side could not tell it from a closed socket
  DRK_CHECK(fds.size() <= kMaxMessageFds);
  if (text.size() > kMaxMessageBytes) {
    throw Error(ErrorCode::exhausted,
                "message of " + std::to_string(text.size()) + " bytes is over the limit of " +
                    std::to_string(kMaxMessageBytes));
  }
  iovec part = {const_cast<char*>(text.data()), text.size()};  // sendmsg does not write to it
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  ControlBuffer control = {};
  if (!fds.empty()) {
    header.msg_control = control.bytes.data();
    header.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(c), fds.data(), sizeof(int) * fds.size());
  }
  while (channel_send(socket, header) < 0) {
    if (errno != EINTR) throw_errno("sendmsg");
  }
}

std::optional<Message> receive_message(int socket) {
  Message message;
  message.text.resize(kMaxMessageBytes);
  iovec part = {message.text.data(), message.text.size()};
  ControlBuffer control = {};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes.data();
  header.msg_controllen = control.bytes.size();
  ssize_t n = 0;
  while ((n = channel_receive(socket, header)) < 0) {
    if (errno == ECONNRESET) return std::nullopt;
    if (errno != EINTR) throw_errno("recvmsg");
  }
  message.fds = take_fds(header);
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    throw Error(ErrorCode::corrupt, "received a message that is longer than the protocol allows");
  }
  if (n == 0) return std::nullopt;
  message.text.resize(static_cast<std::size_t>(n));
  return message;
}

}  // namespace drk
