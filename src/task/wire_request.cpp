// SPDX-License-Identifier: Apache-2.0
// POST /evaluate body to Task.
#include "drk/base/error.h"
#include "drk/task/wire.h"

#include "code_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace drk::task {

namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::invalid_argument, what);
}

/// A body's fields by name. A field that is absent takes the default; null is no value but for
/// fields that may be absent on purpose ("maybe").
class Fields {
 public:
  explicit Fields(const json::Object& body) : body_(body) {}

  template <class T>
  [[nodiscard]] std::optional<T> maybe(const char* name) const {
    const json::Value* value = body_.if_contains(name);
    if (value == nullptr || value->is_null()) return std::nullopt;
    return json::from_json<T>(*value, name);
  }

  template <class T>
  [[nodiscard]] T value(const char* name, T fallback) const {
    const json::Value* value = body_.if_contains(name);
    return value == nullptr ? fallback : json::from_json<T>(*value, name);
  }

  [[nodiscard]] std::string required_text(const char* name) const {
    if (body_.if_contains(name) == nullptr) refuse(fmt::format("{}: is required", name));
    return value<std::string>(name, "");
  }

  template <class T>
  [[nodiscard]] T in_range(const char* name, T fallback, T low, T high) const {
    const T number = value<T>(name, fallback);
    // Written so that NaN is refused.
    if (number >= low && number <= high) return number;
    refuse(fmt::format("{}: {} is not in {} to {}", name, number, low, high));
  }

  [[nodiscard]] std::string code(const char* name) const {
    std::string text = required_text(name);
    if (const auto problem = code_problem(text, name)) refuse(*problem);
    return text;
  }

  void check_choice(const char* name,
                    std::string_view chosen,
                    std::initializer_list<std::string_view> choices) const {
    if (std::find(choices.begin(), choices.end(), chosen) != choices.end()) return;
    refuse(fmt::format("{}: \"{}\" is not one of {}", name, chosen, fmt::join(choices, ", ")));
  }

 private:
  const json::Object& body_;
};

std::string task_id_of(const Fields& fields) {
  constexpr std::size_t kMaxChars = 100;
  std::string id = fields.required_text("task_id");
  const std::size_t chars = character_count(id);
  if (chars >= 1 && chars <= kMaxChars) return id;
  refuse(fmt::format("task_id: {} characters; 1 to {} are allowed", chars, kMaxChars));
}

void check_workflow(const Fields& fields) {
  const auto workflow = fields.value<std::string>("workflow", "kernelbench");
  fields.check_choice("workflow", workflow, {"kernelbench", "kernel_simple"});
  if (workflow != "kernelbench") {
    refuse(fmt::format("workflow: \"{}\" is not offered here; use kernelbench", workflow));
  }
}

void check_reference_backend(const Fields& fields) {
  const auto backend = fields.maybe<std::string>("reference_backend").value_or("pytorch");
  fields.check_choice(
      "reference_backend", backend, {"pytorch", "torch_compile", "torch-compile", "compile"});
  if (backend != "pytorch") {
    refuse("reference_backend: torch.compile is not offered yet; leave it out or use pytorch");
  }
}

void check_reference_cache(const Fields& fields) {
  const auto uuid = fields.maybe<std::string>("uuid");
  if (fields.value("use_reference_cache", false) && uuid.value_or("").empty()) {
    refuse("use_reference_cache: true needs a uuid");
  }
}

void check_resources(const Fields& fields) {
  const auto resources = fields.maybe<json::Value>("resources");
  if (!resources) return;
  if (!resources->is_object()) json::detail::fail("resources", "an object", *resources);
  const json::Value* gpus = resources->get_object().if_contains("gpus");
  if (gpus == nullptr) return;
  if (json::from_json<std::int64_t>(*gpus, "resources.gpus") < 1) {
    refuse("resources.gpus: at least 1 is needed");
  }
}

/// Fields that a Task does not carry still have to be well-formed: a client's mistake in them is a
/// mistake that it wants to hear of.
void check_other_fields(const Fields& fields) {
  for (const char* name : {"toolkit", "backend_adapter"}) {
    static_cast<void>(fields.value<std::string>(name, "kernelbench"));
  }
  fields.check_choice(
      "priority", fields.value<std::string>("priority", "normal"), {"low", "normal", "high"});
  for (const char* name : {"force_refresh", "is_valid"}) {
    static_cast<void>(fields.value(name, false));
  }
  for (const char* name :
       {"verbose_errors", "enable_profiling", "run_correctness", "detect_decoy_kernel"}) {
    static_cast<void>(fields.maybe<bool>(name));
  }
  static_cast<void>(fields.maybe<std::string>("device_preference"));
  check_reference_cache(fields);
  check_resources(fields);
}

/// The newer flag, else the older one, else the default.
bool flag_of(const Fields& fields, const char* newer, const char* older, bool fallback) {
  const auto old_value = fields.maybe<bool>(older);  // checked even where it does not count
  return fields.maybe<bool>(newer).value_or(old_value.value_or(fallback));
}

}  // namespace

Task task_from_wire(const json::Object& body) {
  const Fields fields(body);
  Task task;
  task.task_id = task_id_of(fields);
  check_workflow(fields);
  task.reference_code = fields.code("reference_code");
  task.candidate_code = fields.code("kernel_code");
  task.backend = fields.value("backend", Backend::triton);
  task.entry_point = fields.value("entry_point", task.entry_point);
  if (task.entry_point.empty()) refuse("entry_point: is empty");
  task.num_correct_trials = fields.in_range<std::uint32_t>("num_correct_trials", 5, 1, 20);
  task.num_perf_trials = fields.in_range<std::uint32_t>("num_perf_trials", 100, 1, 1000);
  task.num_warmup = fields.in_range<std::uint32_t>("num_warmup", 3, 0, 100);
  task.limits.total_s = fields.in_range<double>("timeout", 300, 10, 3600);
  task.measure_performance = flag_of(fields, "run_performance", "measure_performance", true);
  if (!flag_of(fields, "run_triton_detection", "enable_triton_detection", true)) {
    task.policy.ownership = Ownership::free;
  }
  check_reference_backend(fields);
  check_other_fields(fields);
  return task;
}

}  // namespace drk::task
