// SPDX-License-Identifier: Apache-2.0
// One GPU, shared by the evaluations that run on it: who measures, who has which memory.
#pragma once

#include "drk/gpu.h"
#include "drk/worker.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

namespace drk::worker {

/// Thread-safe. All waits throw Error{timed_out} when `stop` was requested.
class GpuSlot {
 public:
  /// `watch` may be null: then nobody knows whether the device is well. Not owned.
  /// `capacity_bytes` is what evaluations may have; the rest is for contexts kept ahead of need.
  GpuSlot(gpu::Device device, std::uint64_t capacity_bytes, gpu::Watch* watch);
  GpuSlot(const GpuSlot&) = delete;
  GpuSlot& operator=(const GpuSlot&) = delete;
  ~GpuSlot() = default;

  [[nodiscard]] const gpu::Device& device() const noexcept { return device_; }

  /// A right, until it goes out of scope.
  template <auto GiveBack>
  class Right {
   public:
    Right() = default;
    Right(GpuSlot& slot, std::uint64_t bytes) : slot_(&slot), bytes_(bytes) {}
    Right(Right&& other) noexcept
        : slot_(std::exchange(other.slot_, nullptr)), bytes_(other.bytes_) {}
    Right& operator=(Right&& other) noexcept {
      reset();
      slot_ = std::exchange(other.slot_, nullptr);
      bytes_ = other.bytes_;
      return *this;
    }
    Right(const Right&) = delete;
    Right& operator=(const Right&) = delete;
    ~Right() { reset(); }
    void reset() noexcept {
      if (GpuSlot* slot = std::exchange(slot_, nullptr)) (slot->*GiveBack)(bytes_);
    }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

   private:
    GpuSlot* slot_ = nullptr;
    std::uint64_t bytes_ = 0;
  };

 private:
  void end_running(std::uint64_t ignored) noexcept;
  void end_measuring(std::uint64_t ignored) noexcept;
  void give_memory_back(std::uint64_t bytes) noexcept;

 public:
  using Running = Right<&GpuSlot::end_running>;
  using Measuring = Right<&GpuSlot::end_measuring>;
  using Memory = Right<&GpuSlot::give_memory_back>;

  /// To run kernels beside others that run, while nobody measures.
  [[nodiscard]] Running run(const std::stop_token& stop);
  /// To be the only one that runs. Comes before those that want to run later.
  [[nodiscard]] Measuring measure(const std::stop_token& stop);

  /// So much device memory, as soon as others have given it back; `kAllMemory`: all there is, with
  /// nobody else. More than there is counts as all.
  static constexpr std::uint64_t kAllMemory = UINT64_MAX;
  [[nodiscard]] Memory reserve(std::uint64_t bytes, const std::stop_token& stop);
  [[nodiscard]] std::uint64_t capacity_bytes() const noexcept { return capacity_bytes_; }

  /// What a reference needed, by its key; 0: not known yet.
  void note_need(const std::string& key, std::uint64_t bytes);
  [[nodiscard]] std::uint64_t need_bytes(const std::string& key) const;

  /// A guest on this device died, hung or broke its context: look before the next one is given out.
  void suspect() noexcept { ++suspicions_; }
  [[nodiscard]] std::uint64_t suspicions() const noexcept { return suspicions_; }
  [[nodiscard]] bool is_suspected() const noexcept { return suspicions_ > cleared_; }
  /// Those that there were before a guest's probe passed. Waits until the memory of the dead is
  /// back; throws Error{unavailable} when it does not come.
  void clear_suspicions(std::uint64_t suspicions);
  /// What the driver has reported of the device since then: "Xid 31: GPU memory page fault".
  /// Throws as check_health does.
  [[nodiscard]] std::string xids_since(std::int64_t at_ns);
  [[nodiscard]] DeviceView view() const;
  /// Throws Error{unavailable} when the device must not be used.
  void check_health() const;

 private:
  /// Takes a sample now. Throws Error{unavailable}.
  [[nodiscard]] gpu::Sample look();

  const gpu::Device device_;
  gpu::Watch* const watch_;
  const std::uint64_t capacity_bytes_;
  // Set by whoever ends a guest, read by whoever takes one.
  std::atomic<std::uint64_t> suspicions_ = 0;
  std::atomic<std::uint64_t> cleared_ = 0;

  mutable std::mutex mutex_;  ///< Guards all below.
  std::condition_variable_any changed_;
  std::uint32_t running_ = 0;
  bool measuring_ = false;
  std::uint32_t measure_waiting_ = 0;
  std::uint64_t reserved_bytes_ = 0;
  std::uint32_t reserve_all_waiting_ = 0;
  std::map<std::string, std::uint64_t> needs_;
};

}  // namespace drk::worker
