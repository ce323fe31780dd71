// SPDX-License-Identifier: Apache-2.0
// Counters, histograms, and the text that Prometheus reads.
#include "gym/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace drk::gym {

namespace {

struct Help {
  const char* name;
  const char* text;
};

// Every family that the server has; the text is for people who read a scrape.
constexpr std::array kHelp = {
    Help{"drk_submissions_total", "Submissions by what became of them."},
    Help{"drk_tasks_finished_total", "Tasks by final status."},
    Help{"drk_verdicts_total", "Evaluations by outcome."},
    Help{"drk_findings_total", "Findings by reason and severity."},
    Help{"drk_guest_deaths_total", "Guests that did not end by themselves, by cause."},
    Help{"drk_attempts_given_back_total", "Attempts that came to nothing, by cause."},
    Help{"drk_http_requests_total", "Answered requests by route and status."},
    Help{"drk_queue_wait_seconds", "From submission to a lease."},
    Help{"drk_evaluation_seconds", "From lease to result."},
    Help{"drk_stage_seconds", "Stages of evaluations."},
    Help{"drk_http_request_seconds", "From a request to its answer, by route."},
    Help{"drk_queue_depth", "Pending tasks by priority."},
    Help{"drk_processing", "Tasks under evaluation."},
    Help{"drk_dead_letters", "Tasks whose attempts are used up."},
    Help{"drk_stored_tasks", "Tasks in the store."},
    Help{"drk_oldest_pending_seconds", "How long the oldest pending task has waited."},
    Help{"drk_slots", "Evaluations that may run side by side."},
    Help{"drk_http_connections", "Open connections."},
    Help{"drk_resident_bytes", "Resident memory of the server process."},
    Help{"drk_uptime_seconds", "Since the start."},
};

std::string_view help_of(std::string_view name) {
  const auto* found = std::find_if(
      kHelp.begin(), kHelp.end(), [name](const Help& help) { return name == help.name; });
  return found == kHelp.end() ? std::string_view() : found->text;
}

std::string escaped(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text;
}

std::string render(const Labels& labels, const std::string& last = {}) {
  std::string text;
  for (const auto& [name, value] : labels) {
    text += fmt::format("{}{}=\"{}\"", text.empty() ? "" : ",", name, escaped(value));
  }
  if (!last.empty()) text += (text.empty() ? "" : ",") + last;
  return text.empty() ? text : "{" + text + "}";
}

void head(std::string& out, const std::string& name, const char* type) {
  fmt::format_to(
      std::back_inserter(out), "# HELP {} {}\n# TYPE {} {}\n", name, help_of(name), name, type);
}

void write(std::string& out,
           const std::string& name,
           const Labels& labels,
           const Histogram& histogram) {
  std::uint64_t so_far = 0;
  const auto out_it = std::back_inserter(out);
  for (std::size_t i = 0; i < Histogram::kBounds; ++i) {
    so_far += histogram.buckets()[i];
    const std::string bound = fmt::format("le=\"{}\"", Histogram::bound_s(i));
    fmt::format_to(out_it, "{}_bucket{} {}\n", name, render(labels, bound), so_far);
  }
  fmt::format_to(
      out_it, "{}_bucket{} {}\n", name, render(labels, "le=\"+Inf\""), histogram.count());
  fmt::format_to(out_it, "{}_sum{} {}\n", name, render(labels), histogram.sum_s());
  fmt::format_to(out_it, "{}_count{} {}\n", name, render(labels), histogram.count());
}

}  // namespace

void Histogram::observe(double seconds) noexcept {
  std::size_t index = 0;
  while (index < kBounds && seconds > bound_s(index)) ++index;
  ++buckets_[index];
  ++count_;
  sum_s_ += seconds;
}

double Histogram::quantile_s(double quantile) const noexcept {
  if (count_ == 0) return 0;
  const auto wanted = quantile * static_cast<double>(count_);
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i < kBounds; ++i) {
    so_far += buckets_[i];
    if (static_cast<double>(so_far) >= wanted) return bound_s(i);
  }
  return bound_s(kBounds);
}

void Metrics::count(const std::string& name, const Labels& labels, std::uint64_t by) {
  const std::lock_guard lock(mutex_);
  counters_[name][labels] += by;
}

void Metrics::observe(const std::string& name, double seconds, const Labels& labels) {
  const std::lock_guard lock(mutex_);
  histograms_[name][labels].observe(seconds);
}

std::uint64_t Metrics::total(const std::string& name) const {
  std::uint64_t sum = 0;
  for (const auto& [labels, value] : counters(name)) sum += value;
  return sum;
}

std::map<Labels, std::uint64_t> Metrics::counters(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = counters_.find(name);
  return found == counters_.end() ? std::map<Labels, std::uint64_t>() : found->second;
}

Histogram Metrics::histogram(const std::string& name, const Labels& labels) const {
  const auto all = histograms(name);
  const auto found = all.find(labels);
  return found == all.end() ? Histogram() : found->second;
}

std::map<Labels, Histogram> Metrics::histograms(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = histograms_.find(name);
  return found == histograms_.end() ? std::map<Labels, Histogram>() : found->second;
}

std::string Metrics::prometheus(const std::vector<Gauge>& gauges) const {
  std::string out;
  std::string last_name;
  for (const Gauge& gauge : gauges) {
    if (gauge.name != last_name) head(out, gauge.name, "gauge");
    last_name = gauge.name;
    fmt::format_to(
        std::back_inserter(out), "{}{} {}\n", gauge.name, render(gauge.labels), gauge.value);
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [name, family] : counters_) {
    head(out, name, "counter");
    for (const auto& [labels, value] : family) {
      fmt::format_to(std::back_inserter(out), "{}{} {}\n", name, render(labels), value);
    }
  }
  for (const auto& [name, family] : histograms_) {
    head(out, name, "histogram");
    for (const auto& [labels, histogram] : family) write(out, name, labels, histogram);
  }
  return out;
}

}  // namespace drk::gym
