// SPDX-License-Identifier: Apache-2.0
// Our side of a Watch: the thread that hears the child, and what it has heard.
#include "drk/base/child.h"
#include "drk/base/clock.h"
#include "drk/base/error.h"
#include "drk/base/json.h"
#include "drk/gpu.h"

#include "gpu/health.h"
#include "gpu/watcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <utility>

namespace drk::gpu {

namespace {

constexpr std::size_t kKeptEvents = 1000;

std::vector<std::string> uuids_of(const std::vector<Device>& devices) {
  std::vector<std::string> uuids;
  uuids.reserve(devices.size());
  for (const Device& device : devices) uuids.push_back(device.uuid);
  return uuids;
}

}  // namespace

class Watch::Impl {
 public:
  Impl(const std::vector<Device>& devices, WatchOptions options)
      : options_(std::move(options)),
        child_([&](int socket) { watch_devices(socket, uuids_of(devices), options_); }) {
    for (const Device& device : devices) {
      devices_.emplace(device.uuid, Known{{}, Health(now_ns(), options_.hang_limit)});
    }
    thread_ = std::jthread([this] { listen(); });
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() { child_.hang_up(); }

  [[nodiscard]] std::optional<Sample> sample(const std::string& uuid) const {
    const std::lock_guard lock(mutex_);
    return known(uuid).sample;
  }

  [[nodiscard]] std::optional<std::string> sickness(const std::string& uuid) const {
    const std::lock_guard lock(mutex_);
    return known(uuid).health.sickness(now_ns());
  }

  [[nodiscard]] Sample sample_now(const std::string& uuid) {
    std::unique_lock lock(mutex_);
    const Known& device = known(uuid);
    refuse_if_sick(uuid, device);
    Request request;
    request.number = ++requests_;
    request.uuid = uuid;
    // Does not block: each who asks waits for the answer, and a watcher that has not answered for
    // long is not asked, so few requests are ever under way.
    send_message(child_.socket(), json::dump(json::to_json(request)));
    const auto is_answered = [&] { return device.answered >= request.number || has_ended_; };
    if (!heard_.wait_for(lock, options_.hang_limit, is_answered)) {
      throw Error(ErrorCode::timed_out, fmt::format("gpu {}: NVML does not answer", uuid));
    }
    refuse_if_sick(uuid, device);
    if (!device.health.missed().empty()) {
      throw Error(ErrorCode::unavailable, fmt::format("gpu {}: {}", uuid, device.health.missed()));
    }
    return *device.sample;
  }

  [[nodiscard]] std::vector<Event> events_since(std::int64_t at_ns) const {
    const std::lock_guard lock(mutex_);
    std::vector<Event> events;
    for (const Event& event : events_) {
      if (event.at_ns >= at_ns) events.push_back(event);
    }
    return events;
  }

  [[nodiscard]] std::string problem() const {
    const std::lock_guard lock(mutex_);
    return problem_;
  }

 private:
  struct Known {
    std::optional<Sample> sample;
    Health health;
    std::uint64_t answered = 0;  ///< The last request.
  };

  // These need mutex_.
  [[nodiscard]] const Known& known(const std::string& uuid) const {
    const auto found = devices_.find(uuid);
    if (found == devices_.end()) {
      throw Error(ErrorCode::not_found, fmt::format("gpu {}: is not watched", uuid));
    }
    return found->second;
  }

  static void refuse_if_sick(const std::string& uuid, const Known& device) {
    const std::optional<std::string> sickness = device.health.sickness(now_ns());
    if (sickness) throw Error(ErrorCode::unavailable, fmt::format("gpu {}: {}", uuid, *sickness));
  }

  void note(const std::string& problem) {
    if (!problem_.empty()) problem_ += "; ";
    problem_ += problem;
  }

  void take(const Event& event) {
    events_.push_back(event);
    if (events_.size() > kKeptEvents) events_.pop_front();
    for (auto& [uuid, device] : devices_) {
      if (event.uuid.empty() || event.uuid == uuid) device.health.see(event);
    }
  }

  static void take(const Report& report, Known& device) {
    device.answered = std::max(device.answered, report.answers);
    if (report.sample) {
      device.sample = report.sample;
      device.health.see(*report.sample);
    } else if (report.lost) {
      device.health.lose(report.problem);
    } else if (!report.problem.empty()) {
      device.health.miss(report.problem);
    }
  }

  void take(const Report& report) {
    for (const Event& event : report.events) take(event);
    for (auto& [uuid, device] : devices_) {
      if (report.uuid.empty() || report.uuid == uuid) take(report, device);
    }
    if (!report.unseen.empty()) note(report.unseen);
    // What ended the watcher, it says itself if it can: how its process ended adds nothing.
    if (report.lost && report.uuid.empty() && !std::exchange(is_lost_, true)) note(report.problem);
  }

  /// The body of the thread: a border.
  void listen() noexcept {
    ::pthread_setname_np(::pthread_self(), "drk-gpu-watch");
    std::string end;
    try {
      while (const std::optional<Message> message = receive_message(child_.socket())) {
        const auto report = json::from_json<Report>(json::parse(message->text), "report");
        const std::lock_guard lock(mutex_);
        take(report);
        heard_.notify_all();
      }
    } catch (const std::exception& error) {
      end = error.what();
    }
    lose_all(end);
  }

  /// All that is left to do when nothing more will be heard.
  void lose_all(const std::string& why) {
    constexpr std::chrono::milliseconds kGrace{200};
    const std::string end = child_.end(kGrace);  // takes time: without the lock
    const std::lock_guard lock(mutex_);
    Report report;
    report.lost = true;
    report.problem = "the process that watches the GPUs " + (why.empty() ? end : end + ": " + why);
    take(report);
    has_ended_ = true;
    heard_.notify_all();
  }

  const WatchOptions options_;
  ForkedChild child_;

  mutable std::mutex mutex_;
  std::condition_variable heard_;
  std::map<std::string, Known> devices_;  // guarded by mutex_, as are the next
  std::deque<Event> events_;
  std::string problem_;
  std::uint64_t requests_ = 0;
  bool is_lost_ = false;    // nothing is watched any more
  bool has_ended_ = false;  // and nothing more will be heard
  std::jthread thread_;     // last: it uses all of the above
};

Watch::Watch(const std::vector<Device>& devices, WatchOptions options)
    : impl_(std::make_unique<Impl>(devices, std::move(options))) {}

Watch::~Watch() = default;

std::optional<Sample> Watch::sample(const std::string& uuid) const {
  return impl_->sample(uuid);
}

Sample Watch::sample_now(const std::string& uuid) {
  return impl_->sample_now(uuid);
}

std::optional<std::string> Watch::sickness(const std::string& uuid) const {
  return impl_->sickness(uuid);
}

std::vector<Event> Watch::events_since(std::int64_t at_ns) const {
  return impl_->events_since(at_ns);
}

std::string Watch::problem() const {
  return impl_->problem();
}

}  // namespace drk::gpu
