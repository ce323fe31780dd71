// SPDX-License-Identifier: Apache-2.0
// Hosts and workers that made themselves known.
#pragma once

#include <boost/describe.hpp>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace drk::gym {

struct WorkerView {
  std::string device;
  std::string status;  ///< "idle" or "busy" (here), "online", "evicted" or "lost" (elsewhere)
  std::string last_heartbeat;
  std::string node_id;
  std::string hostname;
  std::string task_id;
};
BOOST_DESCRIBE_STRUCT(WorkerView, (), (device, status, last_heartbeat, node_id, hostname, task_id))

/// Thread-safe.
class Registry {
 public:
  /// The node's id: its name, else one that its host always gets. Throws Error{conflict} when the
  /// name belongs to another host.
  [[nodiscard]] std::string allocate_node(const std::string& hostname, const std::string& name);

  struct Worker {
    std::string id;
    std::string device;  ///< "cuda:0", "cuda:GPU-<uuid>", "cpu"
    std::string node_id;
    std::string hostname;
  };
  /// Throws Error{conflict} for a device that another worker of that node has, or that is none.
  void register_worker(const Worker& worker);
  /// Throw Error{not_found} for a worker that is not registered.
  void unregister_worker(const std::string& id);
  void heartbeat(const std::string& id);
  void evict(const std::string& id);

  [[nodiscard]] std::map<std::string, WorkerView> workers() const;

 private:
  struct Known {
    Worker worker;
    std::int64_t heartbeat_ms = 0;
    bool is_evicted = false;
  };

  mutable std::mutex mutex_;                  ///< Guards all below.
  std::map<std::string, std::string> hosts_;  ///< By node id.
  std::map<std::string, Known> workers_;
};

}  // namespace drk::gym
