// SPDX-License-Identifier: Apache-2.0
// Judges the cases of suites on several threads that share one evaluator.
#pragma once

#include "drk/suite.h"
#include "drk/worker.h"

#include "terminal.h"

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

namespace drk::cli {

class BenchRunner {
 public:
  struct Options {
    std::uint32_t jobs = 1;
    task::Mode mode = task::Mode::interpreter;  ///< What needs a GPU is left out without one.
    std::optional<std::uint32_t> trials;        ///< Else as many as a task has by itself.
    std::optional<double> timeout_s;            ///< Else as a task has it.
    std::optional<std::uint64_t>
        shuffle;             ///< In an order, and by numbers of trials, drawn from it.
    bool fail_fast = false;  ///< Start no further case after one that is not met.
    std::stop_token stop;
    ProgressLine::Manner progress = ProgressLine::Manner::silent;
    /// Called with each row as it comes, by one thread at a time.
    std::function<void(const suite::Row&)> on_row;
  };

  /// `evaluator` and `cases` must outlive it.
  BenchRunner(worker::Evaluator& evaluator, const std::vector<suite::Case>& cases, Options options);

  /// The rows of all cases that were judged or skipped, in the order of the cases; fewer than
  /// cases when stopped. Call it once. Throws what an evaluation threw, save for the stop.
  [[nodiscard]] std::vector<suite::Row> run();

 private:
  void work() noexcept;
  void judge(std::size_t index);
  void add(std::size_t index, suite::Row row);
  void show_progress(const suite::Case& one, const worker::Progress& step);

  worker::Evaluator& evaluator_;
  const std::vector<suite::Case>& cases_;
  Options options_;

  std::vector<std::size_t> order_;              // constant after construction
  std::vector<std::uint32_t> trials_of_cases_;  // the same; empty where they are not drawn
  std::atomic<std::size_t> next_ = 0;           // the first in that order that no thread has taken
  std::atomic<bool> is_ending_ = false;         // set by a case or a fault; read before each case

  std::mutex mutex_;  // guards all below, and the calls of on_row
  std::vector<std::optional<suite::Row>> rows_;
  std::size_t done_ = 0;
  std::exception_ptr fault_;
  ProgressLine progress_;
};

}  // namespace drk::cli
