// SPDX-License-Identifier: Apache-2.0
// Counts and times of this server, and their Prometheus text.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace drk::gym {

/// Label names and values, in the order in which they are shown.
using Labels = std::vector<std::pair<std::string, std::string>>;

/// Seconds in buckets that double from 1 ms to 524 s.
class Histogram {
 public:
  static constexpr std::size_t kBounds = 20;
  [[nodiscard]] static double bound_s(std::size_t index) noexcept {
    return 0.001 * static_cast<double>(std::uint64_t{1} << index);
  }
  void observe(double seconds) noexcept;
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] double sum_s() const noexcept { return sum_s_; }
  /// The upper bound of the bucket in which the quantile lies; 0 when nothing was observed.
  [[nodiscard]] double quantile_s(double quantile) const noexcept;
  /// Of that bucket alone; the last is for all beyond the bounds.
  [[nodiscard]] const std::array<std::uint64_t, kBounds + 1>& buckets() const noexcept {
    return buckets_;
  }

 private:
  std::array<std::uint64_t, kBounds + 1> buckets_{};
  std::uint64_t count_ = 0;
  double sum_s_ = 0;
};

/// Thread-safe. A family is told apart by its name; its help is given where it is first used.
class Metrics {
 public:
  void count(const std::string& name, const Labels& labels = {}, std::uint64_t by = 1);
  void observe(const std::string& name, double seconds, const Labels& labels = {});

  [[nodiscard]] std::uint64_t total(const std::string& name) const;  ///< Over all labels.
  [[nodiscard]] std::map<Labels, std::uint64_t> counters(const std::string& name) const;
  [[nodiscard]] Histogram histogram(const std::string& name, const Labels& labels = {}) const;
  [[nodiscard]] std::map<Labels, Histogram> histograms(const std::string& name) const;

  /// In the text format 0.0.4. `gauges` are added as they are now.
  struct Gauge {
    std::string name;
    Labels labels;
    double value = 0;
  };
  [[nodiscard]] std::string prometheus(const std::vector<Gauge>& gauges) const;
  static constexpr const char* kContentType = "text/plain; version=0.0.4; charset=utf-8";

 private:
  mutable std::mutex mutex_;  ///< Guards all below.
  std::map<std::string, std::map<Labels, std::uint64_t>> counters_;
  std::map<std::string, std::map<Labels, Histogram>> histograms_;
};

}  // namespace drk::gym
