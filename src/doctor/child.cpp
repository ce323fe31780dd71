// SPDX-License-Identifier: Apache-2.0
// Runs a function in a child of its own.
#include "doctor/child.h"

#include "drk/base/clock.h"
#include "drk/base/error.h"
#include "drk/base/fd.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <exception>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace drk::doctor {

namespace {

constexpr std::size_t kMaxAnswerBytes = std::size_t{64} << 10;

/// Runs in the child: a border, and never returns into the copy of our stack.
[[noreturn]] void answer(const std::function<std::string()>& body, int fd) noexcept {
  int status = 1;
  try {
    const std::string text = body();
    const ssize_t written = ::write(fd, text.data(), std::min(text.size(), kMaxAnswerBytes));
    status = written == static_cast<ssize_t>(text.size()) ? 0 : 1;
  } catch (const std::exception&) {
    status = 2;
  }
  ::_exit(status);
}

/// Everything up to the end of the pipe; false when it does not end by the deadline.
bool read_to_end(int fd, const Deadline& deadline, std::string& text) {
  std::array<char, 4096> buffer = {};
  for (;;) {
    pollfd readable = {fd, POLLIN, 0};
    const int ready = ::poll(&readable, 1, static_cast<int>(deadline.left().count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n <= 0) return true;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

int reap(pid_t child) noexcept {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

std::string run_in_child(const std::function<std::string()>& body,
                         std::chrono::milliseconds limit) {
  Pipe pipe = make_pipe();
  const pid_t child = ::fork();
  if (child < 0) throw_errno("fork");
  if (child == 0) answer(body, pipe.write.get());
  pipe.write.reset();
  std::string text;
  const bool ended = read_to_end(pipe.read.get(), Deadline(limit), text);
  if (!ended) ::kill(child, SIGKILL);
  const int status = reap(child);
  if (!ended) {
    throw Error(
        ErrorCode::timed_out,
        fmt::format("no answer within {:.0f} s", std::chrono::duration<double>(limit).count()));
  }
  if (WIFSIGNALED(status)) {
    throw Error(ErrorCode::unavailable, fmt::format("ended by signal {}", WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) != 0) throw Error(ErrorCode::unavailable, "gave no answer");
  return text;
}

}  // namespace drk::doctor
