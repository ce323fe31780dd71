// SPDX-License-Identifier: Apache-2.0
// Which tasks somebody still waits for: work that nobody wants any more is cancelled.
#pragma once

#include "gym/crew.h"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace drk::gym {

/// Tasks whose submitter waits on its connection. Others (posted async) are none of its business.
/// Thread-safe.
class Interest {
 public:
  /// Held while somebody waits for a task, by what answers it: whether that was called, dropped or
  /// destroyed, the wait is over. Null for a task that is none of our business.
  using Token = std::shared_ptr<void>;

  /// `abandoned` is called on the crew, when nobody has waited for or asked about a task for
  /// `grace`: long enough for a client to post again after a time-out.
  Interest(Crew& crew,
           std::chrono::milliseconds grace,
           std::function<void(const std::string& task_id)> abandoned)
      : crew_(crew), grace_(grace), abandoned_(std::move(abandoned)) {}

  [[nodiscard]] Token submitted(const std::string& task_id);  ///< By a client that waits.
  [[nodiscard]] Token joined(const std::string& task_id);     ///< One more waits.
  void kept(const std::string& task_id);                      ///< Somebody posted it async.
  void asked(const std::string& task_id);
  void ended(const std::string& task_id);  ///< It is final.

 private:
  struct Entry {
    std::uint64_t generation = 0;  ///< A task that is posted anew is another one.
    std::uint32_t waiting = 0;
    Crew::Timer timer;
  };
  [[nodiscard]] Token wait_on(const std::string& task_id, Entry& entry);
  void left(const std::string& task_id, std::uint64_t generation);
  void start_timer(const std::string& task_id, Entry& entry);
  void expire(const std::string& task_id, std::uint64_t generation);

  Crew& crew_;
  const std::chrono::milliseconds grace_;
  const std::function<void(const std::string&)> abandoned_;
  std::mutex mutex_;  ///< Guards all below.
  std::uint64_t last_generation_ = 0;
  std::map<std::string, Entry> entries_;
};

}  // namespace drk::gym
