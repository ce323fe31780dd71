// SPDX-License-Identifier: Apache-2.0
// A few threads for work that must not hold up the ones it arises on, and timers that run there.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

namespace drk::gym {

/// Thread-safe. Jobs may throw: what they throw goes to `on_fault`.
class Crew {
 public:
  using Job = std::function<void()>;

  Crew(std::uint32_t threads, std::function<void(const char* what)> on_fault);
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew();  ///< As `stop`.

  void post(Job job);
  /// Cancelled when destroyed; a job that has begun goes on.
  class Timer {
   public:
    Timer() = default;

   private:
    friend class Crew;
    explicit Timer(std::shared_ptr<void> alive) : alive_(std::move(alive)) {}
    std::shared_ptr<void> alive_;
  };
  [[nodiscard]] Timer after(std::chrono::milliseconds delay, Job job);
  /// Completes the jobs that have begun, drops the others and timers, ends the threads.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drk::gym
