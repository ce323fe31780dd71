// SPDX-License-Identifier: Apache-2.0
// The text of the module, and reading the list that it makes.
#include "worker/simple_reference.h"

#include "drk/base/error.h"
#include "drk/base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace drk::worker {

namespace {

constexpr const char* kEntryPoint = "Cases";

/// The cases' own code gets a module and a file of its own: Triton reads kernels back from files,
/// and its names are not mixed with these here.
constexpr std::string_view kModule = R"py(
import json
import math
import os
import sys
import types

import torch

MAX_NAME = 60


def load(code):
    path = os.path.join(os.path.dirname(__file__), "cases.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(code)
    module = types.ModuleType("cases")
    module.__file__ = path
    sys.modules["cases"] = module
    exec(compile(code, path, "exec"), module.__dict__)
    return module


def is_number(value):
    return isinstance(value, (bool, int, float)) or value in ("nan", "inf", "-inf")


def shape_of(value):
    """The shape of nested lists of numbers; None when they are no tensor."""
    if not isinstance(value, list):
        return () if is_number(value) else None
    shapes = {shape_of(item) for item in value}
    if not shapes:
        return (0,)
    if len(shapes) > 1 or None in shapes:
        return None
    return (len(value), *shapes.pop())


def to_numbers(value):
    if isinstance(value, list):
        return [to_numbers(item) for item in value]
    return float(value) if isinstance(value, str) else value


def to_tensor(value, dtype=None):
    if shape_of(value) is None:
        raise ValueError("a tensor must be numbers in nested lists of equal lengths")
    if dtype is None:
        return torch.tensor(to_numbers(value))
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else None
    if not isinstance(found, torch.dtype):
        raise ValueError(f"{dtype!r} is no dtype of torch")
    return torch.tensor(to_numbers(value), dtype=found)


def is_tensor(value):
    return isinstance(value, dict) and "tensor" in value and set(value) <= {"tensor", "dtype"}


def from_json(value):
    if is_tensor(value):
        return to_tensor(value["tensor"], value.get("dtype"))
    if isinstance(value, dict):
        return {key: from_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [from_json(item) for item in value] if shape_of(value) is None else to_tensor(value)
    return value


def as_given(value):
    return value


def arguments_of(inputs, convert):
    if isinstance(inputs, dict) and not is_tensor(inputs):
        return {name: convert(value) for name, value in inputs.items()}
    if isinstance(inputs, (list, tuple)):
        return [convert(value) for value in inputs]
    return [convert(inputs)]


def tolerance_of(case, name, default):
    value = case.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{name} is no number: {value!r}")
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be finite and at least 0: {value!r}")
    return float(value)


def name_of(case, index):
    name = str(case.get("name") or f"case_{index}")[:MAX_NAME]
    return name.encode("utf-8", "replace").decode()


def read_case(case, index, convert):
    if not isinstance(case, dict) or is_tensor(case):
        case = {"inputs": case}
    if "inputs" not in case and "input" not in case:
        raise ValueError("it has no inputs")
    outputs = case.get("outputs", case.get("output"))
    return {
        "name": name_of(case, index),
        "inputs": arguments_of(case["inputs"] if "inputs" in case else case["input"], convert),
        "outputs": None if outputs is None else convert(outputs),
        "has_outputs": outputs is not None,
        "rtol": tolerance_of(case, "rtol", 1e-4),
        "atol": tolerance_of(case, "atol", 1e-5),
    }


def read_cases(given, convert):
    if isinstance(given, dict):
        given = [given]
    if not isinstance(given, (list, tuple)):
        raise ValueError(f"cases must be a list, got {type(given).__name__}")
    if not 1 <= len(given) <= MAX_CASES:
        raise ValueError(f"{len(given)} cases; 1 to {MAX_CASES} are allowed")
    cases = []
    for index, case in enumerate(given):
        try:
            cases.append(read_case(case, index, convert))
        except Exception as error:
            raise ValueError(f"case {index}: {error}") from error
    return cases


def make_cases():
    if module is None:
        return read_cases(json.loads(CASES), from_json)
    if callable(getattr(module, "get_cases", None)):
        return read_cases(module.get_cases(), as_given)
    if callable(getattr(module, "get_inputs", None)):
        return read_cases([{"inputs": module.get_inputs()}], as_given)
    raise ValueError("there are no cases: neither get_cases() nor get_inputs() is defined")


module = None if CODE is None else load(CODE)
cases = []
current = None


def get_init_inputs():
    # Here and not on import: random cases follow from the seed that was set just now.
    cases.extend(make_cases())
    make = getattr(module, "get_init_inputs", None) if HAS_INIT_INPUTS else None
    return make() if callable(make) else []


def get_inputs():
    global current
    seed = torch.initial_seed()
    current = None if seed == CASES_SEED else cases[seed]
    if current is not None:
        return current["inputs"]
    keys = ("name", "has_outputs", "rtol", "atol")
    text = json.dumps([{key: case[key] for key in keys} for case in cases])
    return [torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)]


class Cases:
    def __init__(self, *arguments):
        pass

    def __call__(self, *arguments, **named):
        return None if current is None else current["outputs"]
)py";

/// A Python literal: JSON's escapes mean the same there.
std::string literal(const std::string& text) {
  return json::dump(json::Value(text));
}

std::string module_text(const task::Task& task) {
  const task::CasesSource source = task.cases_source();
  const bool is_json = source == task::CasesSource::cases;
  const bool is_candidates = source == task::CasesSource::kernel_code;
  const std::string& code = is_candidates ? task.candidate_code : task.cases_code;
  return fmt::format(
      "CASES = {}\nCODE = {}\nHAS_INIT_INPUTS = {}\nMAX_CASES = {}\nCASES_SEED = {}\n{}",
      is_json ? literal(task.cases_json) : "None",
      is_json ? "None" : literal(code),
      source == task::CasesSource::cases_code ? "True" : "False",
      task::kMaxCases,
      kCasesSeed,
      kModule);
}

[[noreturn]] void fail_corrupt(const std::string& what) {
  throw Error(ErrorCode::corrupt, "the list of the cases cannot be read: " + what);
}

/// The bytes of the one tensor that the module makes.
std::string list_text(const value::View& inputs) {
  const value::Bundle& bundle = *inputs.bundle;
  if (bundle.tensors.size() != 1 || bundle.tensors[0].dtype != value::DType::uint8) {
    fail_corrupt("it is not a tensor of bytes");
  }
  const value::Tensor& tensor = bundle.tensors[0];
  if (tensor.shape.size() != 1 || tensor.strides != value::dense_strides(tensor.shape)) {
    fail_corrupt("its bytes are not in a row");
  }
  const auto bytes = inputs.block.subspan(tensor.offset_bytes, value::extent_bytes(tensor));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_sane(const SimpleCase& simple_case) {
  return std::isfinite(simple_case.rtol) && simple_case.rtol >= 0 &&
         std::isfinite(simple_case.atol) && simple_case.atol >= 0;
}

}  // namespace

task::Task simple_reference_task(const task::Task& task) {
  task::Task reference = task;
  reference.entry_point = kEntryPoint;
  reference.reference_code = module_text(task);
  return reference;
}

task::Task reference_task_of(const task::Task& task) {
  return task.workflow == task::Workflow::kernel_simple ? simple_reference_task(task) : task;
}

std::vector<SimpleCase> read_simple_cases(const value::View& inputs) {
  std::vector<SimpleCase> cases;
  try {
    cases = json::from_json<std::vector<SimpleCase>>(json::parse(list_text(inputs)), "cases");
  } catch (const Error& error) {
    if (error.code() == ErrorCode::corrupt) throw;
    fail_corrupt(error.what());
  }
  if (cases.empty() || cases.size() > task::kMaxCases) fail_corrupt("it has no cases, or too many");
  if (!std::all_of(cases.begin(), cases.end(), is_sane)) fail_corrupt("a tolerance is none");
  return cases;
}

}  // namespace drk::worker
