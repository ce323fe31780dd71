// SPDX-License-Identifier: Apache-2.0
// The child process of a Watch.
#include "gpu/watcher.h"

#include "drk/base/clock.h"
#include "drk/base/error.h"
#include "drk/base/fd.h"
#include "drk/base/json.h"

#include "gpu/nvml.h"

#include <algorithm>
#include <map>
#include <poll.h>
#include <sys/prctl.h>

namespace drk::gpu {

namespace {

constexpr std::chrono::milliseconds kEventPeriod{50};

void send(int socket, const Report& report) {
  send_message(socket, json::dump(json::to_json(report)));
}

class Watcher {
 public:
  Watcher(int socket, const std::vector<std::string>& uuids, const WatchOptions& options)
      : socket_(socket), interval_(options.interval), nvml_(options.library) {
    for (const std::string& uuid : uuids) devices_[uuid] = nullptr;
  }

  void run() {
    for (const auto& [uuid, device] : devices_) register_events(uuid);
    Deadline next_samples(std::chrono::milliseconds(0));
    do {
      tell_events();
      if (next_samples.passed()) {
        next_samples = Deadline(interval_);
        for (const auto& [uuid, device] : devices_) tell_sample({0, uuid});
      }
    } while (serve(std::min(next_samples.left(), kEventPeriod)));
  }

 private:
  /// Answers a request if one comes within `limit`; false when the owner is gone.
  bool serve(std::chrono::milliseconds limit) {
    pollfd readable = {socket_, POLLIN, 0};
    if (::poll(&readable, 1, static_cast<int>(limit.count())) <= 0) return true;
    const std::optional<Message> message = receive_message(socket_);
    if (!message) return false;
    const auto request = json::from_json<Request>(json::parse(message->text), "request");
    tell_events();  // before the answer: see Watch::sample_now
    tell_sample(request);
    return true;
  }

  NvmlDevice device(const std::string& uuid) {
    NvmlDevice& device = devices_[uuid];
    if (device == nullptr) device = nvml_.by_uuid(uuid);
    return device;
  }

  /// A device that is lost already is told so by its first sample.
  void register_events(const std::string& uuid) {
    try {
      nvml_.register_events(device(uuid), uuid);
    } catch (const Error& error) {  // the border of one device's events
      Report report;
      report.uuid = uuid;
      report.unseen = uuid + ": no Xid events: " + error.what();
      send(socket_, report);
    }
  }

  void tell_events() {
    Report report;
    report.events = nvml_.take_events();
    if (!report.events.empty()) send(socket_, report);
  }

  void tell_sample(const Request& request) {
    Report report;
    report.answers = request.number;
    report.uuid = request.uuid;
    try {
      report.sample = nvml_.sample(device(request.uuid));
    } catch (const Error& error) {  // the border of one device's sample
      report.problem = error.what();
      report.lost = error.code() == ErrorCode::not_found;
    }
    send(socket_, report);
  }

  int socket_;
  std::chrono::milliseconds interval_;
  Nvml nvml_;
  std::map<std::string, NvmlDevice> devices_;  ///< Null until NVML has told the handle.
};

}  // namespace

void watch_devices(int socket, const std::vector<std::string>& uuids, const WatchOptions& options) {
  ::prctl(PR_SET_NAME, "drk-nvml");
  try {
    Watcher(socket, uuids, options).run();
  } catch (const Error& error) {  // no NVML; or nobody reads, and this is not read either
    Report report;
    report.problem = error.what();
    report.lost = true;
    send(socket, report);
  }
}

}  // namespace drk::gpu
