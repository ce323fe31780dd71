// SPDX-License-Identifier: Apache-2.0
// Texts that the user names.
#include "input.h"

#include "drk/base/error.h"
#include "drk/base/fd.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace drk::cli {

namespace {

[[noreturn]] void cannot_read(const std::string& name) {
  const int error = errno;
  throw Error(error == ENOENT ? ErrorCode::not_found : ErrorCode::unavailable,
              fmt::format("cannot read {}: {}",
                          name,
                          std::strerror(error)));  // NOLINT(concurrency-mt-unsafe): glibc's is safe
}

std::string read_all(int fd, const std::string& name) {
  std::string text;
  std::array<char, 65536> buffer = {};
  for (;;) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) cannot_read(name);
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
    if (text.size() > kMaxInputBytes) {
      throw Error(ErrorCode::exhausted,
                  fmt::format("{} is larger than {} MiB", name, kMaxInputBytes >> 20));
    }
  }
}

}  // namespace

std::string read_input(const std::string& file) {
  if (file == kStandardInput) return read_all(STDIN_FILENO, "standard input");
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) cannot_read(file);
  return read_all(fd.get(), file);
}

}  // namespace drk::cli
