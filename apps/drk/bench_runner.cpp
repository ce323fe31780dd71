// SPDX-License-Identifier: Apache-2.0
// Judges the cases of suites on several threads.
#include "bench_runner.h"

#include "drk/base/clock.h"
#include "drk/base/error.h"
#include "drk/base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <pthread.h>
#include <random>
#include <thread>

namespace drk::cli {

namespace {

double seconds_since(std::int64_t start_ns) {
  return static_cast<double>(now_ns() - start_ns) / 1e9;
}

}  // namespace

BenchRunner::BenchRunner(worker::Evaluator& evaluator,
                         const std::vector<suite::Case>& cases,
                         Options options)
    : evaluator_(evaluator),
      cases_(cases),
      options_(std::move(options)),
      order_(cases.size()),
      rows_(cases.size()),
      progress_(options_.progress) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  if (!options_.shuffle) return;
  constexpr std::uint32_t kLeastTrials = 3, kMostTrials = 8;
  std::mt19937_64 random(*options_.shuffle);
  std::shuffle(order_.begin(), order_.end(), random);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto more = static_cast<std::uint32_t>(random() % (kMostTrials - kLeastTrials + 1));
    trials_of_cases_.push_back(kLeastTrials + more);
  }
}

std::vector<suite::Row> BenchRunner::run() {
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < options_.jobs; ++i) {
      threads.emplace_back([this] { work(); });
      ::pthread_setname_np(threads.back().native_handle(), "bench");
    }
  }
  progress_.clear();
  if (fault_) std::rethrow_exception(fault_);
  std::vector<suite::Row> rows;
  for (std::optional<suite::Row>& row : rows_) {
    if (row) rows.push_back(*std::move(row));
  }
  return rows;
}

/// The body of a thread, and so a border.
void BenchRunner::work() noexcept {
  try {
    while (!is_ending_ && !options_.stop.stop_requested()) {
      const std::size_t place = next_++;
      if (place >= order_.size()) return;
      judge(order_[place]);
    }
  } catch (const std::exception&) {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    // Told to stop, an evaluation throws: that is no fault.
    if (!fault_ && !options_.stop.stop_requested()) fault_ = std::current_exception();
  }
}

void BenchRunner::judge(std::size_t index) {
  const suite::Case& one = cases_[index];
  if (one.needs_gpu && options_.mode == task::Mode::interpreter) {
    return add(index, suite::skip(one, "needs a GPU"));
  }
  task::Task task = suite::make_task(one);
  if (!trials_of_cases_.empty()) task.num_correct_trials = trials_of_cases_[index];
  if (options_.trials) task.num_correct_trials = *options_.trials;
  if (options_.timeout_s) task.limits.total_s = *options_.timeout_s;
  worker::EvaluateOptions how;
  how.stop = options_.stop;
  how.on_progress = [&](const worker::Progress& step) { show_progress(one, step); };
  const std::int64_t start_ns = now_ns();
  const task::Result result = evaluator_.evaluate(task, how);
  suite::Row row = suite::compare(one, result, seconds_since(start_ns));
  row.note = one_line(row.note);  // may quote what the candidate said
  add(index, std::move(row));
}

void BenchRunner::add(std::size_t index, suite::Row row) {
  const std::lock_guard lock(mutex_);
  if (options_.fail_fast && row.agreement == suite::Agreement::unmet) is_ending_ = true;
  progress_.clear();
  ++done_;
  if (options_.on_row) options_.on_row(row);
  rows_[index] = std::move(row);
}

void BenchRunner::show_progress(const suite::Case& one, const worker::Progress& step) {
  const std::lock_guard lock(mutex_);
  progress_.show(one_line(fmt::format("{} of {} done; {}/{}: {} {}",
                                      done_,
                                      cases_.size(),
                                      one.problem,
                                      one.candidate,
                                      json::name_of(step.stage),
                                      step.detail)));
}

}  // namespace drk::cli
