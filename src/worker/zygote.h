// SPDX-License-Identifier: Apache-2.0
// The zygote process: a Python with torch and triton imported, from which guests are forked.
#pragma once

#include "drk/base/fd.h"
#include "drk/base/subprocess.h"
#include "drk/gpu.h"
#include "drk/guest.h"

#include <mutex>
#include <string>
#include <vector>

namespace drk::worker {

/// The worker's ends of a new guest's channels.
struct GuestChannels {
  Fd control, status, standard_output, standard_error;
  Fd pidfd;  ///< Of its init.
};

/// Thread-safe. A zygote that died stays dead: its owner makes a new one.
class Zygote {
 public:
  /// Starts it and waits until it is ready (seconds: it imports torch).
  /// Its guests see `device` alone, as number 0; null: none, and Triton is interpreted.
  /// `cuda_home` is the toolkit; empty: the first that is found.
  /// Throws Error{unavailable} with what it printed when it does not come up.
  Zygote(const std::string& python,
         const std::string& guest_dir,
         const gpu::Device* device,
         const std::string& cuda_home);

  [[nodiscard]] const guest::Hello& hello() const noexcept { return hello_; }
  [[nodiscard]] double start_s() const noexcept { return start_s_; }
  [[nodiscard]] bool is_alive() const noexcept;
  /// Throws Error{unavailable} when the zygote is gone or the kernel refuses the process.
  [[nodiscard]] GuestChannels spawn(const sandbox::Cell& cell);

 private:
  [[nodiscard]] Message exchange(std::string_view request, std::span<const int> fds);
  [[nodiscard]] std::string printed() const;

  Fd log_;  ///< Memory that takes its standard error.
  Fd socket_;
  ChildProcess process_;
  guest::Hello hello_;
  double start_s_ = 0;
  std::mutex mutex_;  ///< One request at a time on `socket_`.
};

}  // namespace drk::worker
