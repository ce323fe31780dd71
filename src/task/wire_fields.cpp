// SPDX-License-Identifier: Apache-2.0
// The table, and the checks that walk it.
#include "wire_fields.h"

#include "drk/base/error.h"
#include "drk/task/priority.h"
#include "drk/task/task.h"

#include "code_check.h"
#include "ranges.h"

#include <boost/json/array.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

namespace drk::task {

namespace {

template <class Enumerators>
struct NamesOf;
template <template <class...> class List, class... Ds>
struct NamesOf<List<Ds...>> {
  static constexpr std::array<std::string_view, sizeof...(Ds)> kNames{Ds::name...};
};
/// The wire names of an enumeration.
template <class E>
constexpr std::span<const std::string_view> kNamesOf =
    NamesOf<boost::describe::describe_enumerators<E>>::kNames;

/// torch_compile and two more spellings of it.
constexpr std::array<std::string_view, 4> kReferenceBackends{
    "pytorch", "torch_compile", "torch-compile", "compile"};

constexpr Field kGpus{
    .name = "gpus", .type = FieldType::integer, .low = 1, .description = "GPUs of one task."};

constexpr std::array kFields{
    Field{.name = "task_id",
          .need = Need::required,
          .low = 1,
          .high = 100,
          .description = "Names the task; the same id with the same content is the same task."},
    Field{.name = "workflow",
          .default_json = R"("kernelbench")",
          .choices = kNamesOf<Workflow>,
          .description = "kernelbench compares with a reference, kernel_simple with given cases."},
    Field{.name = "reference_code",
          .type = FieldType::code,
          .need = Need::by_kernelbench,
          .low = kMinCodeChars,
          .high = kMaxCodeChars,
          .description = "Python that defines the class entry_point, get_inputs() and "
                         "get_init_inputs(); kernelbench requires it."},
    Field{.name = "kernel_code",
          .type = FieldType::code,
          .need = Need::required,
          .low = kMinCodeChars,
          .high = kMaxCodeChars,
          .description = "Python that defines the candidate's class."},
    Field{.name = "entry_point",
          .default_json = R"("Model")",
          .low = 1,
          .high = 200,
          .description = "The reference's class, the candidate's has New behind it; in "
                         "kernel_simple the candidate's class itself, ModelNew by default."},
    Field{.name = "toolkit",
          .default_json = R"("kernelbench")",
          .description = "Accepted and not looked at."},
    Field{.name = "backend_adapter",
          .default_json = R"("kernelbench")",
          .description = "Accepted and not looked at."},
    Field{.name = "backend",
          .default_json = R"("triton")",
          .choices = kNamesOf<Backend>,
          .description = "What the candidate's kernels are written in; cuda_nvrtc is NVRTC "
                         "through torch.cuda._compile_kernel."},
    Field{.name = "num_correct_trials",
          .type = FieldType::integer,
          .default_json = "5",
          .low = kCorrectTrials.low,
          .high = kCorrectTrials.high,
          .description = "Correctness trials, each on fresh random inputs."},
    Field{.name = "num_perf_trials",
          .type = FieldType::integer,
          .default_json = "100",
          .low = kPerfTrials.low,
          .high = kPerfTrials.high,
          .description = "Timed calls at most."},
    Field{.name = "protocol",
          .default_json = R"("cold")",
          .choices = kNamesOf<Protocol>,
          .description = "What a timed call on a GPU finds: cold an emptied L2 cache, warm what "
                         "the call before has left, rotating another copy of its inputs; "
                         "kernelgym is warm with the host's gaps, and its headline the mean."},
    Field{.name = "num_warmup",
          .type = FieldType::integer,
          .default_json = "3",
          .low = kWarmup.low,
          .high = kWarmup.high,
          .description = "Calls before the timed ones."},
    Field{.name = "timeout",
          .type = FieldType::number,
          .default_json = "300",
          .low = 10,
          .high = 3600,
          .description = "Seconds that the candidate itself may run."},
    Field{.name = "deadline_s",
          .type = FieldType::number,
          .nullable = true,
          .low = 0,
          .high = 86'400,
          .above_low = true,
          .description = "Seconds from now within which the task must end, time in the queue "
                         "included."},
    Field{.name = "priority",
          .default_json = R"("normal")",
          .choices = kNamesOf<Priority>,
          .description = "Higher ones leave the queue first."},
    Field{.name = "device_preference",
          .nullable = true,
          .description = "The device that it had best run on."},
    Field{.name = "device",
          .nullable = true,
          .description = "Another name of device_preference, which kernel_simple's clients use."},
    Field{.name = "force_refresh",
          .type = FieldType::boolean,
          .default_json = "false",
          .description = "Replaces a task of the same id, and takes no earlier result."},
    Field{.name = "reference_backend",
          .nullable = true,
          .default_json = R"("pytorch")",
          .choices = kReferenceBackends,
          .description = "torch_compile (also torch-compile, compile) times the reference under "
                         "torch.compile."},
    Field{.name = "uuid",
          .nullable = true,
          .description = "Names the problem, for use_reference_cache."},
    Field{.name = "use_reference_cache",
          .type = FieldType::boolean,
          .default_json = "false",
          .description = "Needs a uuid; references are always kept here, by content."},
    Field{.name = "is_valid",
          .type = FieldType::boolean,
          .default_json = "false",
          .description = "Accepted and not looked at."},
    Field{.name = "verbose_errors",
          .type = FieldType::boolean,
          .nullable = true,
          .description = "Accepted and not looked at: errors are always told in full."},
    Field{.name = "enable_profiling",
          .type = FieldType::boolean,
          .nullable = true,
          .description = "Whether to profile the candidate's kernels."},
    Field{.name = "run_correctness",
          .type = FieldType::boolean,
          .nullable = true,
          .description = "False: kernel_simple compares no outputs; kernelbench always does."},
    Field{.name = "run_performance",
          .type = FieldType::boolean,
          .nullable = true,
          .description = "Whether to time, true by default; wins over measure_performance."},
    Field{.name = "measure_performance",
          .type = FieldType::boolean,
          .nullable = true,
          .description = "The older name of run_performance."},
    Field{.name = "run_triton_detection",
          .type = FieldType::boolean,
          .nullable = true,
          .description = "Whether a kernel of the candidate's own must contribute, by default true "
                         "in kernelbench and false in kernel_simple; wins over "
                         "enable_triton_detection."},
    Field{.name = "enable_triton_detection",
          .type = FieldType::boolean,
          .nullable = true,
          .description = "The older name of run_triton_detection."},
    Field{.name = "detect_decoy_kernel",
          .type = FieldType::boolean,
          .nullable = true,
          .description = "Accepted and not looked at: see run_triton_detection."},
    Field{.name = "cases",
          .type = FieldType::list,
          .nullable = true,
          .low = 1,
          .high = kMaxCases,
          .description = "Cases of kernel_simple, each {name?, inputs, outputs?, rtol?, atol?}."},
    Field{.name = "cases_code",
          .type = FieldType::code,
          .nullable = true,
          .low = kMinCodeChars,
          .high = kMaxCodeChars,
          .description = "Python with get_cases() of kernel_simple, used when there are no cases."},
    Field{.name = "resources",
          .type = FieldType::object,
          .nullable = true,
          .member = &kGpus,
          .description = "What the task needs."},
};

const Field& field_of(std::string_view name) {
  const auto* const found =
      std::find_if(kFields.begin(), kFields.end(), [&](const Field& f) { return f.name == name; });
  DRK_CHECK(found != kFields.end());
  return *found;
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::invalid_argument, what);
}

// --- checks; `path` names the field in errors ---

void check_type(bool is_right,
                const std::string& path,
                const char* wanted,
                const json::Value& got) {
  if (!is_right) json::detail::fail(path, wanted, got);
}

void check_choice(const Field& field, const std::string& path, std::string_view chosen) {
  if (field.choices.empty()) return;
  if (std::find(field.choices.begin(), field.choices.end(), chosen) != field.choices.end()) return;
  refuse(fmt::format("{}: \"{}\" is not one of {}", path, chosen, fmt::join(field.choices, ", ")));
}

void check_text(const Field& field, const std::string& path, const json::Value& value) {
  check_type(value.is_string(), path, "a text", value);
  const std::string_view text(value.get_string().data(), value.get_string().size());
  check_choice(field, path, text);
  // No path of the HTTP interface can name it, nor is it the same text to a C interface.
  if (text.find('\0') != std::string_view::npos) refuse(path + ": holds a NUL");
  const auto chars = static_cast<double>(character_count(text));
  if (chars >= field.low && chars <= field.high) return;
  refuse(
      fmt::format("{}: {} characters; {} to {} are allowed", path, chars, field.low, field.high));
}

void check_code(const std::string& path, const json::Value& value) {
  check_type(value.is_string(), path, "a text", value);
  const std::string code(value.get_string().data(), value.get_string().size());
  if (const auto problem = code_problem(code, path)) refuse(*problem);
}

void check_number(const Field& field, const std::string& path, const json::Value& value) {
  const bool is_integer = field.type == FieldType::integer;
  check_type(value.is_number(), path, is_integer ? "an integer" : "a number", value);
  const auto number = value.to_number<double>();
  // Numbers beyond a double's range (1e400) are read as infinite.
  const bool is_whole = std::isfinite(number) && std::trunc(number) == number;
  check_type(!is_integer || is_whole || !std::isfinite(number), path, "an integer", value);
  const bool above = field.above_low ? number > field.low : number >= field.low;
  if (std::isfinite(number) && above && number <= field.high) return;
  // As it was written, where a double would round it.
  const std::string shown = value.is_double() ? fmt::format("{}", number) : json::dump(value);
  if (field.high == Field::kNoEnd) {
    refuse(fmt::format("{}: {} is not a number from {} on", path, shown, field.low));
  }
  refuse(fmt::format("{}: {} is not in {}{} to {}",
                     path,
                     shown,
                     field.above_low ? "more than " : "",
                     field.low,
                     field.high));
}

/// What 1e400 is read as, and JSON cannot say.
bool holds_infinity(const json::Value& value) {
  if (value.is_array()) {
    const auto& items = value.get_array();
    return std::any_of(items.begin(), items.end(), holds_infinity);
  }
  if (value.is_object()) {
    const auto& members = value.get_object();
    return std::any_of(
        members.begin(), members.end(), [](const auto& m) { return holds_infinity(m.value()); });
  }
  return value.is_double() && std::isinf(value.get_double());
}

void check_list(const Field& field, const std::string& path, const json::Value& value) {
  check_type(value.is_array(), path, "a list", value);
  if (holds_infinity(value)) refuse(path + ": holds a number beyond the range of a double");
  const auto count = static_cast<double>(value.get_array().size());
  if (count >= field.low && count <= field.high) return;
  refuse(fmt::format("{}: {} items; {} to {} are allowed", path, count, field.low, field.high));
}

void check(const Field& field, const std::string& path, const json::Value& value) {
  if (field.nullable && value.is_null()) return;
  switch (field.type) {
    case FieldType::text:
      return check_text(field, path, value);
    case FieldType::code:
      return check_code(path, value);
    case FieldType::integer:
    case FieldType::number:
      return check_number(field, path, value);
    case FieldType::boolean:
      return check_type(value.is_bool(), path, "true or false", value);
    case FieldType::list:
      return check_list(field, path, value);
    case FieldType::object:
      check_type(value.is_object(), path, "an object", value);
      if (field.member == nullptr) return;
      const json::Value* member = value.get_object().if_contains(field.member->name);
      if (member != nullptr) {
        check(*field.member, fmt::format("{}.{}", path, field.member->name), *member);
      }
      return;
  }
}

bool is_kernel_simple(const json::Object& body) {
  const json::Value* workflow = body.if_contains("workflow");
  return workflow != nullptr && *workflow == json::name_of(Workflow::kernel_simple);
}

}  // namespace

std::span<const Field> wire_fields() noexcept {
  return kFields;
}

WireBody::WireBody(const json::Object& body) : body_(body) {
  const bool is_simple = is_kernel_simple(body);
  for (const Field& field : kFields) {
    const bool by_kernelbench = field.need == Need::by_kernelbench;
    if (by_kernelbench && is_simple) continue;
    const std::string path(field.name);
    const json::Value* value = body.if_contains(field.name);
    if (value != nullptr) {
      check(field, path, *value);
    } else if (by_kernelbench || field.need == Need::required) {
      refuse(path + ": is required");
    }
  }
}

json::Value WireBody::value(std::string_view name) const {
  const Field& field = field_of(name);
  const json::Value* found = body_.if_contains(name);
  if (found != nullptr && !found->is_null()) return *found;
  return field.default_json.empty() ? json::Value(nullptr) : json::parse(field.default_json);
}

}  // namespace drk::task
