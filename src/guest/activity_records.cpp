// SPDX-License-Identifier: Apache-2.0
// Buffers for CUPTI, and the walk over them.
#include "guest/activity_records.h"

#include <array>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace drk::guest {

namespace {

using cupti::Activity;

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxBuffers = 256;
constexpr std::array kKinds = {Activity::concurrent_kernel, Activity::memcpy, Activity::memset};

struct Buffer {
  std::unique_ptr<std::uint8_t[]> bytes;
  std::size_t valid = 0;
};

struct Store {
  std::mutex mutex;
  std::vector<Buffer> completed;  // guarded by mutex
  std::size_t handed_out = 0;     // guarded by mutex; completed or not, and not yet visited
};

/// A Store that is never destroyed, as CUPTI gives buffers back while the process exits.
union Forever {
  Forever() : store() {}
  Forever(const Forever&) = delete;
  Forever& operator=(const Forever&) = delete;
  ~Forever() {}
  Store store;
};

// CUPTI's buffer callbacks carry no user pointer, hence the one static of this file.
Store& store() {
  static Forever instance;
  return instance.store;
}

void on_requested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* max_records) noexcept {
  *buffer = nullptr;
  *bytes = 0;
  *max_records = 0;  // as many as fit
  const std::lock_guard lock(store().mutex);
  if (store().handed_out >= kMaxBuffers) return;
  std::unique_ptr<std::uint8_t[]> made(new (std::nothrow) std::uint8_t[kBufferBytes]);
  if (!made) return;
  *buffer = made.release();  // on_completed owns it next
  *bytes = kBufferBytes;
  ++store().handed_out;
}

void on_completed(void* /*context*/,
                  std::uint32_t /*stream*/,
                  std::uint8_t* bytes,
                  std::size_t /*size*/,
                  std::size_t valid) noexcept {
  Buffer buffer{std::unique_ptr<std::uint8_t[]>(bytes), valid};
  const std::lock_guard lock(store().mutex);
  try {
    if (valid != 0) {
      store().completed.push_back(std::move(buffer));
      return;
    }
  } catch (const std::bad_alloc&) {
    // Its records are missing, which their number tells.
  }
  --store().handed_out;
}

std::vector<Buffer> take_completed() {
  const std::lock_guard lock(store().mutex);
  store().handed_out -= store().completed.size();
  return std::exchange(store().completed, {});
}

}  // namespace

std::string ActivityRecords::begin() {
  if (std::exchange(began_, true)) {
    (void)api_.flush_all(cupti::kFlushForced);
    (void)take_completed();
  }
  // Each time, as whoever shares the process could have put its own in their place.
  int status = api_.register_callbacks(on_requested, on_completed);
  if (status != 0) return cupti::failure_text(api_, "cuptiActivityRegisterCallbacks", status);
  for (const Activity kind : kKinds) {
    status = api_.enable(kind);
    if (status != 0) return cupti::failure_text(api_, "cuptiActivityEnable", status);
  }
  std::size_t dropped_before = 0;
  (void)api_.dropped_records(nullptr, 0, &dropped_before);  // asking sets it to 0
  return {};
}

ActivityRecords::Ended ActivityRecords::end(const Visitor& visitor) {
  Ended ended;
  int status = api_.flush_all(0);
  if (status != 0) ended.problem = cupti::failure_text(api_, "cuptiActivityFlushAll", status);
  std::size_t dropped = 0;
  status = api_.dropped_records(nullptr, 0, &dropped);
  if (status != 0 && ended.problem.empty()) {
    ended.problem = cupti::failure_text(api_, "cuptiActivityGetNumDroppedRecords", status);
  }
  ended.dropped = dropped;
  for (const Activity kind : kKinds) (void)api_.disable(kind);
  for (const Buffer& buffer : take_completed()) visit(buffer.bytes.get(), buffer.valid, visitor);
  return ended;
}

void ActivityRecords::visit(std::uint8_t* buffer, std::size_t valid, const Visitor& visitor) const {
  cupti::ActivityHeader* record = nullptr;
  while (api_.next_record(buffer, valid, &record) == 0 && record != nullptr) {
    switch (record->kind) {
      case Activity::concurrent_kernel:
        visitor.kernel(*reinterpret_cast<const cupti::KernelActivity*>(record));
        break;
      case Activity::memcpy:
      case Activity::memset:
        visitor.memory(*reinterpret_cast<const cupti::MemoryActivity*>(record));
        break;
      default:
        break;
    }
  }
}

}  // namespace drk::guest
