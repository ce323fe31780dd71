// SPDX-License-Identifier: Apache-2.0
// Guests ahead of need: the zygote, and a few closed cells that wait for a candidate.
#pragma once

#include "drk/worker.h"

#include "worker/guest_process.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace drk::worker {

/// Thread-safe.
class GuestPool {
 public:
  explicit GuestPool(const Options& options);
  GuestPool(const GuestPool&) = delete;
  GuestPool& operator=(const GuestPool&) = delete;
  ~GuestPool();

  /// The zygote, started now if need be, or anew when the last one is gone.
  /// Throws Error{unavailable}.
  [[nodiscard]] std::shared_ptr<Zygote> zygote();
  /// A guest of its own for the caller: a warm one when `limits` are the usual.
  /// Throws Error{unavailable}.
  [[nodiscard]] std::unique_ptr<GuestProcess> take(const sandbox::Limits& limits);

 private:
  [[nodiscard]] std::unique_ptr<GuestProcess> spawn(const sandbox::Limits& limits);
  /// A zygote takes its guests along when it ends.
  void forget_dead_zygote();
  void refill(const std::stop_token& stop);
  /// Keeps one less warm when nobody has asked for a while; those that are too many.
  [[nodiscard]] std::vector<std::unique_ptr<GuestProcess>> shrink();

  const Options options_;
  const sandbox::CgroupRoot cgroups_;

  std::mutex zygote_mutex_;
  std::shared_ptr<Zygote> zygote_;  ///< Shared with calls that are spawning from it.

  std::mutex users_mutex_;
  std::set<std::uint32_t> users_;  ///< Host users in use.

  std::mutex warm_mutex_;
  std::condition_variable_any wanted_;
  std::vector<std::unique_ptr<GuestProcess>> warm_;
  bool active_ = false;        ///< Nothing is warmed before the first guest was asked for.
  std::size_t target_;         ///< So many are kept warm: follows the load.
  std::int64_t last_take_ns_;  ///< Of a guest with the usual limits.
  std::jthread refiller_;      ///< Last: ends before what it uses.
};

}  // namespace drk::worker
