// SPDX-License-Identifier: Apache-2.0
// Functions of ours in a child process.
#include "drk/base/child.h"

#include "drk/base/clock.h"
#include "drk/base/error.h"
#include "drk/base/fd.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <exception>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace drk {

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

/// The child's side of ForkedChild: a border, and never returns into the copy of our stack.
[[noreturn]] void live(const std::function<void(int)>& body, int socket) noexcept {
  constexpr int kSocket = STDERR_FILENO + 1;
  ::setsid();  // Ctrl-C in our terminal is meant for us alone
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
  ::dup2(socket, kSocket);
  // A child that holds a listening socket of ours keeps its port when we are gone.
  ::close_range(kSocket + 1, ~0U, 0);
  int status = 0;
  try {
    body(kSocket);
  } catch (const std::exception&) {
    status = 1;
  }
  ::_exit(status);
}

/// The wait status of a child that ends within `limit`.
std::optional<int> reap_within(pid_t child, std::chrono::milliseconds limit) noexcept {
  const Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  pollfd ended = {handle.get(), POLLIN, 0};
  const Deadline deadline(limit);
  while (::poll(&ended, 1, static_cast<int>(deadline.left().count())) < 0 && errno == EINTR) {
  }
  int status = 0;
  if (::waitpid(child, &status, WNOHANG) != child) return std::nullopt;
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

ForkedChild::ForkedChild(const std::function<void(int socket)>& body) {
  auto [ours, theirs] = make_socket_pair();
  pid_ = ::fork();
  if (pid_ < 0) throw_errno("fork");
  if (pid_ == 0) live(body, theirs.get());
  socket_ = std::move(ours);
}

ForkedChild::~ForkedChild() {
  hang_up();
  if (pid_ >= 0) reap(std::chrono::milliseconds(0));
}

void ForkedChild::hang_up() const noexcept {
  ::shutdown(socket_.get(), SHUT_RDWR);
}

std::optional<int> ForkedChild::reap(std::chrono::milliseconds grace) noexcept {
  constexpr std::chrono::seconds kPatience{2};
  std::optional<int> status = reap_within(pid_, grace);
  if (!status) {
    ::kill(pid_, SIGKILL);
    status = reap_within(pid_, kPatience);
  }
  pid_ = -1;
  return status;
}

std::string ForkedChild::end(std::chrono::milliseconds grace) {
  DRK_CHECK(pid_ >= 0);
  const std::optional<int> status = reap(grace);
  if (!status) return "hangs and cannot be killed";
  if (WIFSIGNALED(*status)) return fmt::format("ended by signal {}", WTERMSIG(*status));
  return fmt::format("ended with status {}", WEXITSTATUS(*status));
}

}  // namespace drk
