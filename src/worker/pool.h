// SPDX-License-Identifier: Apache-2.0
// Guests ahead of need: the zygote, and a few closed cells that wait for a candidate.
#pragma once

#include "drk/worker.h"

#include "worker/builder.h"
#include "worker/gpu_slot.h"
#include "worker/guest_process.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace drk::worker {

/// Hardware queues of a context: how many streams surely work side by side. A context with few
/// takes the driver half the time to make, and to end.
enum class Queues : std::uint8_t { few, as_usual };
constexpr std::uint32_t kFewQueues = 2;

/// Thread-safe.
class GuestPool {
 public:
  /// Guests have contexts on `gpu`, made ahead of need; null: they have none. Not owned.
  GuestPool(const Options& options, GpuSlot* gpu);
  GuestPool(const GuestPool&) = delete;
  GuestPool& operator=(const GuestPool&) = delete;
  ~GuestPool();

  /// The zygote, started now if need be, or anew when the last one is gone.
  /// Throws Error{unavailable}.
  [[nodiscard]] std::shared_ptr<Zygote> zygote();
  /// A guest of its own for the caller: a warm one when `limits` are the usual and few queues do.
  /// Throws Error{unavailable}.
  [[nodiscard]] std::unique_ptr<GuestProcess> take(const sandbox::Limits& limits,
                                                   Queues queues = Queues::few);
  /// One that may run compilers as well, made now: for a reference under torch.compile.
  [[nodiscard]] std::unique_ptr<GuestProcess> take_with_compilers(const sandbox::Limits& limits);
  /// One that has no device and judges nothing.
  [[nodiscard]] std::unique_ptr<GuestProcess> take_without_device();
  /// Cells without a device that may execute programs; for as long as this pool lives.
  [[nodiscard]] Toolboxes toolboxes();
  /// Ends the guests that wait, so that their memory is free.
  void drop_warm();

 private:
  enum class Purpose : std::uint8_t { judging, judging_and_compiling, compiling };
  [[nodiscard]] std::unique_ptr<GuestProcess> spawn(const sandbox::Limits& limits,
                                                    Purpose purpose,
                                                    Queues queues = Queues::few);
  [[nodiscard]] std::unique_ptr<GuestProcess> take_warm();
  template <class Take>
  void with_device_checked(const Take& take);
  /// A zygote takes its guests along when it ends.
  void forget_dead_zygote();
  void refill(const std::stop_token& stop);
  /// When nobody has asked for a while: those beyond the least that is kept warm.
  [[nodiscard]] std::vector<std::unique_ptr<GuestProcess>> shrink();

  const Options options_;
  GpuSlot* const gpu_;
  const sandbox::CgroupRoot cgroups_;

  std::mutex zygote_mutex_;
  std::shared_ptr<Zygote> zygote_;  ///< Shared with calls that are spawning from it.

  Builder builder_;  ///< For the guests of this pool; its toolboxes are guests too.

  std::mutex warm_mutex_;
  std::condition_variable_any wanted_;
  std::vector<std::unique_ptr<GuestProcess>> warm_;
  bool active_ = false;        ///< Nothing is warmed before the first guest was asked for.
  std::size_t target_;         ///< So many are kept warm: follows the load.
  std::int64_t last_take_ns_;  ///< Of a guest with the usual limits.
  std::size_t coming_ = 0;     ///< Being made by refillers.
  std::vector<std::jthread> refillers_;  ///< Last: end before what they use.
};

}  // namespace drk::worker
