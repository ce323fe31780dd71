// SPDX-License-Identifier: Apache-2.0
// The register of hosts and workers.
#include "gym/registry.h"

#include "drk/base/clock.h"
#include "drk/base/error.h"
#include "drk/base/hash.h"

#include <fmt/format.h>

#include <algorithm>

namespace drk::gym {

namespace {

constexpr std::int64_t kLostAfterMs = 60'000;  // without a heartbeat
constexpr std::size_t kMaxWorkers = 10'000;    // the register is in memory
constexpr std::size_t kMaxNameBytes = 256;

void check_length(const std::string& text, const char* name) {
  if (text.size() <= kMaxNameBytes) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: longer than {} bytes", name, kMaxNameBytes));
}

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_device(std::string_view device) {
  if (device == "cpu") return true;
  if (!device.starts_with("cuda:")) return false;
  device.remove_prefix(5);
  return (is_digits(device) && device.size() <= 3) || device.starts_with("GPU-") ||
         device.starts_with("MIG-");
}

}  // namespace

std::string Registry::allocate_node(const std::string& hostname, const std::string& name) {
  if (hostname.empty()) throw Error(ErrorCode::invalid_argument, "hostname: is required");
  check_length(hostname, "hostname");
  check_length(name, "node_name");
  const std::lock_guard lock(mutex_);
  if (name.empty()) {
    for (const auto& [known, host] : hosts_) {
      if (host == hostname) return known;
    }
  }
  std::string id = name.empty() ? "node-" + sha256_hex(hostname).substr(0, 8) : name;
  if (hosts_.size() >= kMaxWorkers && !hosts_.contains(id)) {
    throw Error(ErrorCode::exhausted, "too many nodes are registered");
  }
  const auto [entry, is_new] = hosts_.try_emplace(id, hostname);
  if (entry->second == hostname) return id;
  throw Error(ErrorCode::conflict,
              fmt::format("node name {} belongs to host {}; choose another", id, entry->second));
}

void Registry::register_worker(const Worker& worker) {
  if (worker.id.empty()) throw Error(ErrorCode::invalid_argument, "worker_id: is required");
  check_length(worker.id, "worker_id");
  check_length(worker.device, "device");
  check_length(worker.node_id, "node_id");
  check_length(worker.hostname, "hostname");
  if (!is_device(worker.device)) {
    throw Error(ErrorCode::conflict,
                fmt::format("device \"{}\" is unknown; it is cpu, cuda:INDEX or cuda:GPU-UUID",
                            worker.device));
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [id, known] : workers_) {
    if (id != worker.id && worker.device != "cpu" && known.worker.device == worker.device &&
        known.worker.node_id == worker.node_id && known.worker.hostname == worker.hostname) {
      throw Error(ErrorCode::conflict,
                  fmt::format("device {} of that node is worker {}'s", worker.device, id));
    }
  }
  if (workers_.size() >= kMaxWorkers) {
    std::erase_if(workers_, [](const auto& entry) {
      return unix_now_ms() - entry.second.heartbeat_ms > kLostAfterMs;
    });
  }
  if (workers_.size() >= kMaxWorkers && !workers_.contains(worker.id)) {
    throw Error(ErrorCode::exhausted, "too many workers are registered");
  }
  workers_[worker.id] = {worker, unix_now_ms(), false};
}

void Registry::unregister_worker(const std::string& id) {
  const std::lock_guard lock(mutex_);
  if (workers_.erase(id) == 0) throw Error(ErrorCode::not_found, "no worker " + id);
}

void Registry::heartbeat(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(id);
  if (found == workers_.end()) throw Error(ErrorCode::not_found, "no worker " + id);
  found->second.heartbeat_ms = unix_now_ms();
}

void Registry::evict(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(id);
  if (found == workers_.end()) throw Error(ErrorCode::not_found, "no worker " + id);
  found->second.is_evicted = true;
}

std::map<std::string, WorkerView> Registry::workers() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, WorkerView> views;
  for (const auto& [id, known] : workers_) {
    WorkerView view;
    view.device = known.worker.device;
    const bool is_lost = unix_now_ms() - known.heartbeat_ms > kLostAfterMs;
    view.status = is_lost ? "lost" : (known.is_evicted ? "evicted" : "online");
    view.last_heartbeat = utc_text(known.heartbeat_ms);
    view.node_id = known.worker.node_id;
    view.hostname = known.worker.hostname;
    views[id] = view;
  }
  return views;
}

}  // namespace drk::gym
