// SPDX-License-Identifier: Apache-2.0
// What the server says of itself: health, metrics, queue, workers, monitoring.
#include "drk/base/clock.h"
#include "drk/base/fd.h"
#include "drk/version.h"

#include "gym/api.h"

#include <fmt/format.h>

#include <sstream>
#include <sys/sysinfo.h>
#include <unistd.h>

namespace drk::gym {

namespace {

MemoryAnswer memory() {
  MemoryAnswer answer;
  std::istringstream fields(read_file("/proc/self/statm"));
  std::uint64_t size_pages = 0;
  std::uint64_t resident_pages = 0;
  fields >> size_pages >> resident_pages;
  answer.resident_bytes = resident_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  struct sysinfo info = {};
  if (::sysinfo(&info) == 0) {
    answer.total_bytes = std::uint64_t{info.totalram} * info.mem_unit;
    answer.available_bytes = std::uint64_t{info.freeram + info.bufferram} * info.mem_unit;
  }
  return answer;
}

double mean_s(const Histogram& histogram) {
  return histogram.count() == 0 ? 0 : histogram.sum_s() / static_cast<double>(histogram.count());
}

/// Counts by the value of a family's first label.
std::map<std::string, std::uint64_t> by_label(const Metrics& metrics, const std::string& name) {
  std::map<std::string, std::uint64_t> counts;
  for (const auto& [labels, value] : metrics.counters(name)) {
    counts[labels.empty() ? "" : labels.front().second] += value;
  }
  return counts;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "localhost";
}

std::string parameter(const Call& call, const char* name) {
  return std::string(call.request.parameter(name).value_or(""));
}

Registry::Worker worker_of(const Call& call) {
  return {parameter(call, "worker_id"),
          parameter(call, "device"),
          parameter(call, "node_id"),
          parameter(call, "hostname")};
}

std::map<std::string, GpuAnswer> gpu_answers(const std::vector<worker::DeviceView>& devices) {
  std::map<std::string, GpuAnswer> answers;
  for (const worker::DeviceView& view : devices) {
    GpuAnswer& answer = answers[view.device.uuid];
    answer.name = view.device.name;
    answer.uuid = view.device.uuid;
    answer.pci_bus_id = view.device.pci_bus_id;
    answer.memory_bytes = view.device.memory_bytes;
    if (!view.problem.empty()) answer.problem = view.problem;
    if (!view.sample) continue;
    answer.used_bytes = view.sample->used_bytes;
    answer.temperature_c = view.sample->temperature_c;
    answer.sm_clock_mhz = view.sample->sm_clock_mhz;
    answer.throttle_reasons = view.sample->throttle_reasons;
  }
  return answers;
}

}  // namespace

void Api::root(const CallPtr& call) {
  RootAnswer answer;
  answer.version = kVersion;
  answer.timestamp = utc_now_text();
  reply(call, 200, json::to_json(answer));
}

void Api::openapi(const CallPtr& call) {
  static const std::string kDocument = json::dump(openapi_document(routes()));
  http::Reply answer;
  answer.body = kDocument;
  reply(call, std::move(answer));
}

QueueAnswer Api::queue_answer() {
  const QueueCounts counts = queue_.counts();
  QueueAnswer answer;
  answer.pending = counts.pending();
  answer.processing = counts.processing;
  answer.queues = {counts.pending_high, counts.pending_normal, counts.pending_low};
  answer.dead_letter = counts.dead;
  answer.oldest_pending_s = static_cast<double>(counts.oldest_pending_ms) * 1e-3;
  answer.max_pending = options_.max_pending;
  return answer;
}

void Api::health(const CallPtr& call) {
  HealthAnswer answer;
  {
    const std::lock_guard lock(mutex_);
    answer.status = health_status_;
    if (!health_problem_.empty()) answer.problem = health_problem_;
  }
  const std::string problem = pipeline_ == nullptr ? "" : pipeline_->problem();
  if (!problem.empty() && !is_stopping_) {
    answer.status = "degraded";
    answer.problem = problem;
  }
  answer.timestamp = utc_now_text();
  answer.version = kVersion;
  answer.mode = options_.mode;
  if (pipeline_ != nullptr) answer.gpu_status = gpu_answers(pipeline_->devices());
  answer.queue_status = queue_answer();
  answer.memory_usage = memory();
  answer.active_tasks = answer.queue_status.processing;
  answer.total_processed = metrics_.total("drk_tasks_finished_total");
  answer.uptime = static_cast<double>(now_ns() - begin_ns_) * 1e-9;
  reply(call, 200, with_nulls(answer));
}

std::uint64_t Api::open_connections() const {
  const std::lock_guard lock(mutex_);
  return counts_ ? counts_().connections : 0;
}

void Api::metrics_json(const CallPtr& call) {
  const std::string_view accept = call->request.header("accept").value_or("");
  const auto accepts = [accept](std::string_view type) {
    return accept.find(type) != std::string_view::npos;
  };
  if ((accepts("text/plain") || accepts("openmetrics")) && !accepts("application/json")) {
    return metrics_text(call);
  }
  MetricsAnswer answer;
  answer.timestamp = utc_now_text();
  const Histogram evaluations = metrics_.histogram("drk_evaluation_seconds");
  const Histogram waits = metrics_.histogram("drk_queue_wait_seconds");
  PerformanceMetrics& performance = answer.performance_metrics;
  performance.evaluations = evaluations.count();
  performance.evaluation_mean_s = mean_s(evaluations);
  performance.evaluation_p50_s = evaluations.quantile_s(0.5);
  performance.evaluation_p95_s = evaluations.quantile_s(0.95);
  performance.queue_wait_mean_s = mean_s(waits);
  performance.queue_wait_p95_s = waits.quantile_s(0.95);
  for (const auto& [labels, histogram] : metrics_.histograms("drk_stage_seconds")) {
    performance.stage_mean_s[labels.front().second] = mean_s(histogram);
  }
  answer.resource_metrics.memory = memory();
  answer.resource_metrics.connections = open_connections();
  if (pipeline_ != nullptr) {
    for (const SlotView& slot : pipeline_->slots()) {
      ++answer.resource_metrics.slots;
      answer.resource_metrics.busy_slots += slot.task_id.empty() ? 0 : 1;
    }
  }
  answer.queue_metrics = queue_answer();
  answer.error_metrics.outcomes = by_label(metrics_, "drk_verdicts_total");
  answer.error_metrics.findings = by_label(metrics_, "drk_findings_total");
  answer.error_metrics.guest_deaths = by_label(metrics_, "drk_guest_deaths_total");
  answer.error_metrics.attempts_given_back = by_label(metrics_, "drk_attempts_given_back_total");
  reply(call, 200, json::to_json(answer));
}

std::vector<Metrics::Gauge> Api::gauges() {
  const QueueCounts counts = queue_.counts();
  const auto number = [](std::uint64_t value) { return static_cast<double>(value); };
  std::vector<Metrics::Gauge> gauges = {
      {"drk_queue_depth", {{"priority", "high"}}, number(counts.pending_high)},
      {"drk_queue_depth", {{"priority", "normal"}}, number(counts.pending_normal)},
      {"drk_queue_depth", {{"priority", "low"}}, number(counts.pending_low)},
      {"drk_processing", {}, number(counts.processing)},
      {"drk_dead_letters", {}, number(counts.dead)},
      {"drk_stored_tasks", {}, number(counts.stored)},
      {"drk_oldest_pending_seconds", {}, number(counts.oldest_pending_ms) * 1e-3},
      {"drk_http_connections", {}, number(open_connections())},
      {"drk_resident_bytes", {}, number(memory().resident_bytes)},
      {"drk_uptime_seconds", {}, static_cast<double>(now_ns() - begin_ns_) * 1e-9},
  };
  if (pipeline_ != nullptr) {
    gauges.push_back({"drk_slots", {}, number(pipeline_->slots().size())});
  }
  return gauges;
}

void Api::metrics_text(const CallPtr& call) {
  http::Reply answer;
  answer.content_type = Metrics::kContentType;
  answer.body = metrics_.prometheus(gauges());
  reply(call, std::move(answer));
}

void Api::queue_status(const CallPtr& call) {
  reply(call, 200, json::to_json(queue_answer()));
}

void Api::workers_status(const CallPtr& call) {
  std::map<std::string, WorkerView> workers = registry_.workers();
  if (pipeline_ != nullptr) {
    for (const SlotView& slot : pipeline_->slots()) {
      WorkerView view;
      view.device = slot.device;
      view.status = slot.task_id.empty() ? "idle" : "busy";
      view.last_heartbeat = utc_now_text();
      view.node_id = "local";
      view.hostname = host_name();
      view.task_id = slot.task_id;
      workers[slot.worker] = std::move(view);
    }
  }
  reply(call, 200, json::to_json(workers));
}

void Api::node_allocate(const CallPtr& call) {
  NodeAnswer answer;
  answer.hostname = parameter(*call, "hostname");
  answer.node_id = registry_.allocate_node(answer.hostname, parameter(*call, "node_name"));
  reply(call, 200, json::to_json(answer));
}

void Api::worker_register(const CallPtr& call) {
  const Registry::Worker worker = worker_of(*call);
  registry_.register_worker(worker);
  log_.info("worker registered", {{"worker", worker.id}, {"device", worker.device}});
  reply(call, 200, json::to_json(WorkerAnswer{"registered", worker.id}));
}

void Api::worker_unregister(const CallPtr& call) {
  const std::string id = parameter(*call, "worker_id");
  registry_.unregister_worker(id);
  reply(call, 200, json::to_json(WorkerAnswer{"unregistered", id}));
}

void Api::worker_heartbeat(const CallPtr& call) {
  const std::string id = parameter(*call, "worker_id");
  registry_.heartbeat(id);
  reply(call, 200, json::to_json(WorkerAnswer{"ok", id}));
}

void Api::worker_evict(const CallPtr& call) {
  const std::string id = parameter(*call, "worker_id");
  registry_.evict(id);
  reply(call, 200, json::to_json(WorkerAnswer{"evicted", id}));
}

void Api::problematic_codes(const CallPtr& call) {
  CodesAnswer answer;
  for (const CodeHistory& code : queue_.troubled_codes()) {
    answer.problematic_codes.push_back({code.code,
                                        code.crashes,
                                        code.timeouts,
                                        code.out_of_memory,
                                        code.lost_workers,
                                        code.infra,
                                        code.last_task_id,
                                        code.last_what,
                                        utc_text(code.last_ms),
                                        code.is_poisoned});
  }
  reply(call, 200, json::to_json(answer));
}

void Api::retry_queue(const CallPtr& call) {
  ListFilter pending;
  pending.state = State::pending;
  pending.retried_only = true;
  ListFilter dead;
  dead.dead_only = true;
  json::Object body;
  body["waiting"] = list(pending);
  body["dead_letter"] = list(dead);
  reply(call, 200, body);
}

void Api::worker_health(const CallPtr& call) {
  WorkerHealthAnswer answer;
  if (pipeline_ != nullptr) {
    for (const SlotView& slot : pipeline_->slots()) {
      SlotAnswer view;
      view.device = slot.device;
      view.status = slot.task_id.empty() ? "idle" : "busy";
      view.finished = slot.finished;
      if (!slot.task_id.empty()) view.task_id = slot.task_id;
      view.for_s = static_cast<double>(unix_now_ms() - slot.since_ms) * 1e-3;
      answer.workers[slot.worker] = std::move(view);
    }
  }
  answer.guest_deaths = by_label(metrics_, "drk_guest_deaths_total");
  reply(call, 200, json::to_json(answer));
}

void Api::clear_history(const CallPtr& call) {
  queue_.clear_code(call->argument, [this, call](std::variant<bool, Error> answer) {
    guard(call, [&] {
      if (const auto* error = std::get_if<Error>(&answer)) throw Error(*error);
      if (!std::get<bool>(answer)) {
        throw Error(ErrorCode::not_found, "no troubles of code " + call->argument);
      }
      reply(call, 200, json::to_json(ClearedAnswer{call->argument, true}));
    });
  });
}

}  // namespace drk::gym
