// SPDX-License-Identifier: Apache-2.0
// Waiting for one's turn, and for memory.
#include "worker/gpu_slot.h"

#include "drk/base/clock.h"
#include "drk/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <unistd.h>

namespace drk::worker {

namespace {

constexpr std::size_t kMaxNeeds = 4096;
constexpr std::chrono::seconds kMemoryBackLimit(5);
constexpr std::chrono::milliseconds kLook(20);

/// A process that holds memory and is no more. In a container NVML may count as the host does:
/// where no number is one of ours, none tells anything.
bool has_ghost(const gpu::Sample& sample) {
  const auto living = std::count_if(
      sample.processes.begin(), sample.processes.end(), [](const gpu::Process& process) {
        return ::access(fmt::format("/proc/{}", process.pid).c_str(), F_OK) == 0;
      });
  return living > 0 && living < static_cast<std::ptrdiff_t>(sample.processes.size());
}

}  // namespace

GpuSlot::GpuSlot(gpu::Device device, std::uint64_t capacity_bytes, gpu::Watch* watch)
    : device_(std::move(device)), watch_(watch), capacity_bytes_(capacity_bytes) {}

GpuSlot::Running GpuSlot::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait(lock, stop, [&] { return !measuring_ && measure_waiting_ == 0; })) {
    throw Error(ErrorCode::timed_out, "worker: told to stop while it waited for the GPU");
  }
  ++running_;
  return {*this, 0};
}

GpuSlot::Measuring GpuSlot::measure(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  ++measure_waiting_;
  const bool granted = changed_.wait(lock, stop, [&] { return !measuring_ && running_ == 0; });
  --measure_waiting_;
  if (!granted) {
    changed_.notify_all();
    throw Error(ErrorCode::timed_out, "worker: told to stop while it waited for the GPU");
  }
  measuring_ = true;
  return {*this, 0};
}

void GpuSlot::end_running(std::uint64_t /*ignored*/) noexcept {
  const std::lock_guard lock(mutex_);
  --running_;
  changed_.notify_all();
}

void GpuSlot::end_measuring(std::uint64_t /*ignored*/) noexcept {
  const std::lock_guard lock(mutex_);
  measuring_ = false;
  changed_.notify_all();
}

GpuSlot::Memory GpuSlot::reserve(std::uint64_t bytes, const std::stop_token& stop) {
  const bool wants_all = bytes >= capacity_bytes_;
  const std::uint64_t wanted = std::min(bytes, capacity_bytes_);
  std::unique_lock lock(mutex_);
  // Who wants all would wait for ever behind a stream of those that want little.
  if (wants_all) ++reserve_all_waiting_;
  const bool granted = changed_.wait(lock, stop, [&] {
    if (!wants_all && reserve_all_waiting_ > 0) return false;
    return capacity_bytes_ - reserved_bytes_ >= wanted;
  });
  if (wants_all) --reserve_all_waiting_;
  if (!granted) {
    changed_.notify_all();
    throw Error(ErrorCode::timed_out, "worker: told to stop while it waited for device memory");
  }
  reserved_bytes_ += wanted;
  return {*this, wanted};
}

void GpuSlot::give_memory_back(std::uint64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  reserved_bytes_ -= bytes;
  changed_.notify_all();
}

void GpuSlot::note_need(const std::string& key, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (needs_.size() >= kMaxNeeds) needs_.clear();
  std::uint64_t& need = needs_[key];
  need = std::max(need, bytes);
}

std::uint64_t GpuSlot::need_bytes(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = needs_.find(key);
  return found == needs_.end() ? 0 : found->second;
}

gpu::Sample GpuSlot::look() {
  try {
    return watch_->sample_now(device_.uuid);
  } catch (const Error& error) {
    // A device that does not answer is no evaluation that was told to stop.
    throw Error(ErrorCode::unavailable, error.what());
  }
}

void GpuSlot::clear_suspicions(std::uint64_t suspicions) {
  const Deadline deadline(kMemoryBackLimit);
  while (watch_ != nullptr && has_ghost(look())) {
    if (deadline.passed()) {
      throw Error(ErrorCode::unavailable,
                  fmt::format("worker: {} ({}) still holds memory of a process that ended {} s ago",
                              device_.name,
                              device_.uuid,
                              kMemoryBackLimit.count()));
    }
    std::this_thread::sleep_for(kLook);
  }
  std::uint64_t cleared = cleared_;
  while (cleared < suspicions && !cleared_.compare_exchange_weak(cleared, suspicions)) {
  }
}

std::string GpuSlot::xids_since(std::int64_t at_ns) {
  std::string text;
  if (watch_ == nullptr) return text;
  (void)look();  // brings what the driver knows by now
  for (const gpu::Event& event : watch_->events_since(at_ns)) {
    if (event.uuid != device_.uuid || event.kind == gpu::XidKind::harmless) continue;
    text += (text.empty() ? "" : ", ") + event.what;
  }
  return text;
}

DeviceView GpuSlot::view() const {
  DeviceView view = {device_, std::nullopt, ""};
  if (watch_ == nullptr) return view;
  view.sample = watch_->sample(device_.uuid);
  view.problem = watch_->sickness(device_.uuid).value_or("");
  return view;
}

void GpuSlot::check_health() const {
  if (watch_ == nullptr) return;
  if (const auto why = watch_->sickness(device_.uuid)) {
    throw Error(ErrorCode::unavailable,
                fmt::format("worker: {} ({}) is not used: {}", device_.name, device_.uuid, *why));
  }
}

}  // namespace drk::worker
