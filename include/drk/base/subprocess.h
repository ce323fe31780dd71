// SPDX-License-Identifier: Apache-2.0
// Child programs: started by posix_spawn (safe in a process with threads), killed by their owner.
#pragma once

#include "drk/base/fd.h"

#include <chrono>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace drk {

/// The child has no other descriptors of ours than these.
struct ProgramOptions {
  std::vector<std::string> arguments;    ///< arguments[0] is the program, looked up in PATH.
  std::vector<std::string> environment;  ///< "NAME=value"; nothing is inherited.
  int stdin_fd = -1;                     ///< -1: /dev/null.
  int stdout_fd = -1;                    ///< -1: /dev/null.
  int stderr_fd = -1;                    ///< -1: /dev/null.
  int extra_fd = -1;                     ///< becomes descriptor 3 of the child, when given.
};

/// Owns one child process, in a session of its own; the destructor kills and reaps it, and kills
/// what it started in that session's process group. Not thread-safe.
class ChildProcess {
 public:
  ChildProcess() = default;
  [[nodiscard]] static ChildProcess start(const ProgramOptions& options);
  ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() { kill_and_reap(); }

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// The wait status if the child ends within `limit`, reaping it.
  [[nodiscard]] std::optional<int> wait_for(std::chrono::milliseconds limit) noexcept;
  /// The wait status; blocks until the child ends. 0 when there is none.
  [[nodiscard]] int wait() noexcept;
  void kill_and_reap() noexcept;

 private:
  pid_t pid_ = -1;
};

struct ProgramResult {
  int exit_code = -1;  ///< 128 + signal when it was killed by one.
  bool timed_out = false;
  std::string output;  ///< stdout and stderr together, at most 1 MiB.
};

/// Runs a program to its end or to `limit`, whichever comes first.
/// Throws Error{not_found} when there is no such program.
[[nodiscard]] ProgramResult run_program(const std::vector<std::string>& arguments,
                                        const std::vector<std::string>& environment,
                                        std::chrono::milliseconds limit);

}  // namespace drk
