// SPDX-License-Identifier: Apache-2.0
// The lines of drk top.
#include "render_top.h"

#include "remote.h"

#include <fmt/format.h>

#include <vector>

namespace drk::cli {

namespace {

const json::Object& object_in(const json::Object& object, const char* name) {
  static const json::Object kNone;
  const json::Value* value = object.if_contains(name);
  return value != nullptr && value->is_object() ? value->get_object() : kNone;
}

double number_in(const json::Object& object, const char* name) {
  const json::Value* value = object.if_contains(name);
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

std::string duration(double seconds) {
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string mib(double bytes) {
  return fmt::format("{:.0f} MiB", bytes / (1 << 20));
}

/// The first characters (not bytes) of a harmless text.
std::string cut(const std::string& text, std::size_t columns) {
  std::size_t bytes = 0;
  for (std::size_t seen = 0; bytes < text.size() && seen < columns; ++seen) {
    ++bytes;
    while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U) {
      ++bytes;
    }
  }
  return text.substr(0, bytes);
}

/// What the server says comes from clients and candidates: one harmless line of it.
std::string said(const json::Object& object, const char* name, const char* fallback = "") {
  return one_line(text_of(object, name, fallback));
}

class Page {
 public:
  Page(std::size_t rows, std::size_t columns) : rows_(rows), columns_(columns) {}

  template <class Paint>
  void add(const std::string& text, Paint paint) {
    if (lines_ < rows_) text_ += paint(cut(text, columns_)) + "\n";
    ++lines_;
  }
  void add(const std::string& text) {
    add(text, [](std::string line) { return line; });
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  const std::size_t rows_;
  const std::size_t columns_;
  std::size_t lines_ = 0;
  std::string text_;
};

void add_head(const TopView& view, const Style& style, Page& page) {
  const json::Object& queue = object_in(view.health, "queue_status");
  const json::Object& lengths = object_in(queue, "queues");
  const json::Object& speed = object_in(view.metrics, "performance_metrics");
  const json::Object& resources = object_in(view.metrics, "resource_metrics");
  const std::string status = said(view.health, "status", "unknown");
  page.add(fmt::format("drkernel {} at {}: {}, up {}, {}",
                       said(view.health, "version"),
                       view.url,
                       status,
                       duration(number_in(view.health, "uptime")),
                       said(view.health, "mode")),
           [&](const std::string& line) {
             return status == "healthy" ? style.good(line) : style.doubtful(line);
           });
  if (const std::string problem = said(view.health, "problem"); !problem.empty()) {
    page.add("problem   " + problem, [&](const std::string& line) { return style.bad(line); });
  }
  page.add(fmt::format("queue     {} pending (high {}, normal {}, low {}), oldest {}, {} dead",
                       number_in(queue, "pending"),
                       number_in(lengths, "high"),
                       number_in(lengths, "normal"),
                       number_in(lengths, "low"),
                       duration(number_in(queue, "oldest_pending_s")),
                       number_in(queue, "dead_letter")));
  page.add(fmt::format("done      {} tasks; evaluation mean {}, p95 {}; wait mean {}",
                       number_in(view.health, "total_processed"),
                       duration(number_in(speed, "evaluation_mean_s")),
                       duration(number_in(speed, "evaluation_p95_s")),
                       duration(number_in(speed, "queue_wait_mean_s"))));
  page.add(fmt::format("machine   {} resident, {} connections, {} of {} slots busy",
                       mib(number_in(object_in(resources, "memory"), "resident_bytes")),
                       number_in(resources, "connections"),
                       number_in(resources, "busy_slots"),
                       number_in(resources, "slots")));
}

void add_counts(const TopView& view, Page& page) {
  const json::Object& errors = object_in(view.metrics, "error_metrics");
  std::string verdicts;
  for (const auto& entry : object_in(errors, "outcomes")) {
    verdicts += fmt::format("{}{} {}",
                            verdicts.empty() ? "" : ", ",
                            std::string(entry.key()),
                            json::dump(entry.value()));
  }
  if (!verdicts.empty()) page.add("verdicts  " + verdicts);
}

const boost::json::array& tasks_in(const json::Object& answer) {
  static const boost::json::array kNone;
  const json::Value* value = answer.if_contains("tasks");
  return value != nullptr && value->is_array() ? value->get_array() : kNone;
}

void add_tasks(const TopView& view, const Style& style, Page& page) {
  page.add("");
  page.add(fmt::format("{:<28} {:<11} {:<12} {}", "TASK", "STATUS", "CLIENT", "AT"),
           [&](const std::string& line) { return style.faint(line); });
  for (const json::Value& value : tasks_in(view.running)) {
    const json::Object& task = value.get_object();
    page.add(fmt::format("{:<28} {:<11} {:<12} {} on {}",
                         cut(said(task, "task_id"), 28),
                         "processing",
                         cut(said(task, "client"), 12),
                         describe_step(said(task, "stage", "start"), said(task, "detail")),
                         said(task, "worker")));
  }
  for (const json::Value& value : tasks_in(view.pending)) {
    const json::Object& task = value.get_object();
    page.add(fmt::format("{:<28} {:<11} {:<12} {}, {} ahead",
                         cut(said(task, "task_id"), 28),
                         "pending",
                         cut(said(task, "client"), 12),
                         said(task, "priority"),
                         number_in(task, "queue_ahead")));
  }
}

}  // namespace

std::string render_top(const TopView& view,
                       const Style& style,
                       std::size_t rows,
                       std::size_t columns) {
  Page page(rows, columns);
  add_head(view, style, page);
  add_counts(view, page);
  add_tasks(view, style, page);
  return page.take();
}

}  // namespace drk::cli
