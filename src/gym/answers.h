// SPDX-License-Identifier: Apache-2.0
// What the server says: the bodies of its answers, from which their schemas are made too.
#pragma once

#include "drk/base/json.h"
#include "drk/gym/server.h"
#include "drk/task/result.h"

#include "gym/registry.h"

#include <boost/describe.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace drk::gym {

struct RootAnswer {
  std::string name = "drkernel";
  std::string version;
  std::string description = "Judges kernels written in Triton against a PyTorch reference.";
  std::string timestamp;
};
BOOST_DESCRIBE_STRUCT(RootAnswer, (), (name, version, description, timestamp))

struct DetailAnswer {
  std::string detail;
};
BOOST_DESCRIBE_STRUCT(DetailAnswer, (), (detail))

struct InvalidAnswer {
  std::string error = "validation failed";
  std::string message;
  std::string error_code = "VALIDATION_ERROR";
  std::string timestamp;
};
BOOST_DESCRIBE_STRUCT(InvalidAnswer, (), (error, message, error_code, timestamp))

struct StatusAnswer {
  std::string task_id;
  std::string status;
  std::optional<double> progress;  ///< 0 to 1
  std::optional<std::uint64_t> queue_position;
  std::optional<std::uint64_t> queue_ahead;
  std::optional<std::string> why_waiting;
  std::optional<std::string> assigned_device;
  std::optional<std::string> worker;
  std::optional<std::string> stage;
  std::optional<std::string> detail;
  std::uint32_t attempts = 0;
  std::string priority;
  std::string client;
  std::string workflow;
  std::string submitted_at;
  std::optional<std::string> started_at;
  std::optional<std::string> completed_at;
  std::optional<std::string> fault;
  std::optional<std::string> error_code;
  std::optional<std::string> error_message;
  bool cached = false;
  bool dead_letter = false;
};
BOOST_DESCRIBE_STRUCT(StatusAnswer,
                      (),
                      (task_id,
                       status,
                       progress,
                       queue_position,
                       queue_ahead,
                       why_waiting,
                       assigned_device,
                       worker,
                       stage,
                       detail,
                       attempts,
                       priority,
                       client,
                       workflow,
                       submitted_at,
                       started_at,
                       completed_at,
                       fault,
                       error_code,
                       error_message,
                       cached,
                       dead_letter))

/// The result of a task, as task::wire_result and render_result make it.
struct ResultAnswer {
  std::string task_id;
  std::string status;
  bool compiled = false;
  std::optional<bool> correctness;
  std::optional<bool> decoy_kernel;
  double reference_runtime = -1;  ///< ms
  double kernel_runtime = -1;     ///< ms
  double speedup = 0;
  std::map<std::string, json::Value> metadata;
  std::optional<std::string> error_message;
  std::optional<std::string> error_code;
  std::string submitted_at;
  std::optional<std::string> completed_at;
  double processing_time = 0;  ///< s
  std::optional<std::string> fault;
  std::vector<task::Span> timeline;
  bool cached = false;
};
BOOST_DESCRIBE_STRUCT(ResultAnswer,
                      (),
                      (task_id,
                       status,
                       compiled,
                       correctness,
                       decoy_kernel,
                       reference_runtime,
                       kernel_runtime,
                       speedup,
                       metadata,
                       error_message,
                       error_code,
                       submitted_at,
                       completed_at,
                       processing_time,
                       fault,
                       timeline,
                       cached))

struct BatchAnswer {
  std::string batch_id;
  std::uint64_t total_tasks = 0;
  std::uint64_t completed_tasks = 0;
  std::uint64_t failed_tasks = 0;
  std::string batch_status;
  std::string submitted_at;
  std::optional<std::string> completed_at;
  std::vector<json::Value> results;  ///< ResultAnswer, or StatusAnswer of one that is not final.
};
BOOST_DESCRIBE_STRUCT(BatchAnswer,
                      (),
                      (batch_id,
                       total_tasks,
                       completed_tasks,
                       failed_tasks,
                       batch_status,
                       submitted_at,
                       completed_at,
                       results))

struct WorkflowAnswer {
  std::string task_id;
  std::string status;
  std::optional<json::Value> result;
  std::optional<std::string> error_message;
  std::optional<std::string> error_code;
  std::string submitted_at;
  std::optional<std::string> completed_at;
};
BOOST_DESCRIBE_STRUCT(
    WorkflowAnswer,
    (),
    (task_id, status, result, error_message, error_code, submitted_at, completed_at))

struct CancelAnswer {
  std::string task_id;
  std::string status = "cancelled";
  std::string message;
};
BOOST_DESCRIBE_STRUCT(CancelAnswer, (), (task_id, status, message))

struct TasksAnswer {
  std::vector<StatusAnswer> tasks;
};
BOOST_DESCRIBE_STRUCT(TasksAnswer, (), (tasks))

struct CodeAnswer {
  std::uint64_t bytes = 0;
  std::string sha256;
  std::optional<std::string> entry_point;
};
BOOST_DESCRIBE_STRUCT(CodeAnswer, (), (bytes, sha256, entry_point))

struct CacheAnswer {
  std::optional<std::string> content;
  bool has_result = false;
};
BOOST_DESCRIBE_STRUCT(CacheAnswer, (), (content, has_result))

struct ValidateAnswer {
  bool valid = false;
  std::vector<std::string> errors;
  CodeAnswer reference;
  CodeAnswer kernel;
  CacheAnswer cache;
};
BOOST_DESCRIBE_STRUCT(ValidateAnswer, (), (valid, errors, reference, kernel, cache))

struct QueueLengths {
  std::uint64_t high = 0;
  std::uint64_t normal = 0;
  std::uint64_t low = 0;
};
BOOST_DESCRIBE_STRUCT(QueueLengths, (), (high, normal, low))

struct QueueAnswer {
  std::uint64_t pending = 0;
  std::uint64_t processing = 0;
  QueueLengths queues;
  std::uint64_t dead_letter = 0;
  double oldest_pending_s = 0;
  std::uint64_t max_pending = 0;
};
BOOST_DESCRIBE_STRUCT(QueueAnswer,
                      (),
                      (pending, processing, queues, dead_letter, oldest_pending_s, max_pending))

struct MemoryAnswer {
  std::uint64_t resident_bytes = 0;
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;
};
BOOST_DESCRIBE_STRUCT(MemoryAnswer, (), (resident_bytes, total_bytes, available_bytes))

struct GpuAnswer {
  std::string name;
  std::string uuid;
  std::string pci_bus_id;
  std::uint64_t memory_bytes = 0;
  std::uint64_t used_bytes = 0;
  std::uint32_t temperature_c = 0;
  std::uint32_t sm_clock_mhz = 0;
  std::vector<std::string> throttle_reasons;
  std::optional<std::string> problem;  ///< Why nothing is run on it.
};
BOOST_DESCRIBE_STRUCT(GpuAnswer,
                      (),
                      (name,
                       uuid,
                       pci_bus_id,
                       memory_bytes,
                       used_bytes,
                       temperature_c,
                       sm_clock_mhz,
                       throttle_reasons,
                       problem))

struct HealthAnswer {
  std::string status;  ///< "healthy", "starting", "degraded", "stopping"
  std::optional<std::string> problem;
  std::string timestamp;
  std::string version;
  std::string mode;  ///< What verdicts are made in: "interpreter", "gpu".
  std::map<std::string, GpuAnswer> gpu_status;  ///< By UUID.
  QueueAnswer queue_status;
  MemoryAnswer memory_usage;
  std::uint64_t active_tasks = 0;
  std::uint64_t total_processed = 0;
  double uptime = 0;  ///< s
};
BOOST_DESCRIBE_STRUCT(HealthAnswer,
                      (),
                      (status,
                       problem,
                       timestamp,
                       version,
                       mode,
                       gpu_status,
                       queue_status,
                       memory_usage,
                       active_tasks,
                       total_processed,
                       uptime))

struct PerformanceMetrics {
  std::uint64_t evaluations = 0;
  double evaluation_mean_s = 0;
  double evaluation_p50_s = 0;  ///< As all quantiles here: the upper bound of its bucket.
  double evaluation_p95_s = 0;
  double queue_wait_mean_s = 0;
  double queue_wait_p95_s = 0;
  std::map<std::string, double> stage_mean_s;
};
BOOST_DESCRIBE_STRUCT(PerformanceMetrics,
                      (),
                      (evaluations,
                       evaluation_mean_s,
                       evaluation_p50_s,
                       evaluation_p95_s,
                       queue_wait_mean_s,
                       queue_wait_p95_s,
                       stage_mean_s))

struct ResourceMetrics {
  MemoryAnswer memory;
  std::uint64_t connections = 0;
  std::uint64_t slots = 0;
  std::uint64_t busy_slots = 0;
};
BOOST_DESCRIBE_STRUCT(ResourceMetrics, (), (memory, connections, slots, busy_slots))

struct ErrorMetrics {
  std::map<std::string, std::uint64_t> outcomes;
  std::map<std::string, std::uint64_t> findings;
  std::map<std::string, std::uint64_t> guest_deaths;
  std::map<std::string, std::uint64_t> attempts_given_back;
};
BOOST_DESCRIBE_STRUCT(ErrorMetrics, (), (outcomes, findings, guest_deaths, attempts_given_back))

struct MetricsAnswer {
  std::string timestamp;
  PerformanceMetrics performance_metrics;
  ResourceMetrics resource_metrics;
  QueueAnswer queue_metrics;
  ErrorMetrics error_metrics;
};
BOOST_DESCRIBE_STRUCT(
    MetricsAnswer,
    (),
    (timestamp, performance_metrics, resource_metrics, queue_metrics, error_metrics))

struct NodeAnswer {
  std::string node_id;
  std::string hostname;
};
BOOST_DESCRIBE_STRUCT(NodeAnswer, (), (node_id, hostname))

struct WorkerAnswer {
  std::string status;
  std::string worker_id;
};
BOOST_DESCRIBE_STRUCT(WorkerAnswer, (), (status, worker_id))

struct CodeTroubles {
  std::string code_hash;
  std::uint64_t crashes = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t out_of_memory = 0;
  std::uint64_t lost_workers = 0;
  std::uint64_t infra = 0;
  std::string last_task_id;
  std::string last_error;
  std::string last_at;
  bool poisoned = false;
};
BOOST_DESCRIBE_STRUCT(CodeTroubles,
                      (),
                      (code_hash,
                       crashes,
                       timeouts,
                       out_of_memory,
                       lost_workers,
                       infra,
                       last_task_id,
                       last_error,
                       last_at,
                       poisoned))

struct CodesAnswer {
  std::vector<CodeTroubles> problematic_codes;
};
BOOST_DESCRIBE_STRUCT(CodesAnswer, (), (problematic_codes))

struct RetryAnswer {
  std::vector<StatusAnswer> waiting;
  std::vector<StatusAnswer> dead_letter;
};
BOOST_DESCRIBE_STRUCT(RetryAnswer, (), (waiting, dead_letter))

struct SlotAnswer {
  std::string device;
  std::string status;
  std::uint64_t finished = 0;
  std::optional<std::string> task_id;
  double for_s = 0;  ///< In this status.
};
BOOST_DESCRIBE_STRUCT(SlotAnswer, (), (device, status, finished, task_id, for_s))

struct WorkerHealthAnswer {
  std::map<std::string, SlotAnswer> workers;
  std::map<std::string, std::uint64_t> guest_deaths;
};
BOOST_DESCRIBE_STRUCT(WorkerHealthAnswer, (), (workers, guest_deaths))

struct ClearedAnswer {
  std::string code_hash;
  bool cleared = false;
};
BOOST_DESCRIBE_STRUCT(ClearedAnswer, (), (code_hash, cleared))

/// What the old interface's clients read without asking whether it is there: members that are not
/// set are null instead of missing.
template <class T>
[[nodiscard]] json::Object with_nulls(const T& answer) {
  json::Object object;
  boost::mp11::mp_for_each<json::detail::Members<T>>(
      [&](auto member) { object[member.name] = json::to_json(answer.*member.pointer); });
  return object;
}

}  // namespace drk::gym
