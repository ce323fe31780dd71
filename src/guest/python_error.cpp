// SPDX-License-Identifier: Apache-2.0
// Reading exceptions, their causes and their tracebacks.
#include "guest/python_error.h"

#include "guest/launches.h"
#include "guest/python.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string_view>
#include <vector>

namespace drk::guest {

namespace {

constexpr std::size_t kMaxFrames = 32;
constexpr int kMaxCauses = 8;

std::optional<Ref> attribute_or_none(PyObject* object, const char* name) {
  PyObject* found = PyObject_GetAttrString(object, name);
  if (found == nullptr) {
    PyErr_Clear();
    return std::nullopt;
  }
  Ref ref = Ref::own(found);
  if (ref.get() == Py_None) return std::nullopt;
  return ref;
}

std::uint32_t integer_attribute(PyObject* object, const char* name) {
  const auto value = attribute_or_none(object, name);
  if (!value || PyLong_Check(value->get()) == 0) return 0;
  const long number = PyLong_AsLong(value->get());
  if (PyErr_Occurred() != nullptr) PyErr_Clear();
  return number > 0 ? static_cast<std::uint32_t>(number) : 0;
}

std::string text_attribute(PyObject* object, const char* name) {
  const auto value = attribute_or_none(object, name);
  return value ? printed(value->get(), 300) : "";
}

task::Frame frame_of(PyObject* traceback) {
  task::Frame frame;
  frame.line = integer_attribute(traceback, "tb_lineno");
  if (const auto python_frame = attribute_or_none(traceback, "tb_frame")) {
    if (const auto code = attribute_or_none(python_frame->get(), "f_code")) {
      frame.file = text_attribute(code->get(), "co_filename");
      frame.function = text_attribute(code->get(), "co_name");
    }
  }
  return frame;
}

/// Outermost first. Of a very deep one (endless recursion) the two ends are kept.
std::vector<task::Frame> frames_of(PyObject* exception) {
  std::vector<task::Frame> frames;
  auto traceback = attribute_or_none(exception, "__traceback__");
  while (traceback) {
    frames.push_back(frame_of(traceback->get()));
    if (frames.size() > kMaxFrames) frames.erase(frames.begin() + kMaxFrames / 2);
    traceback = attribute_or_none(traceback->get(), "tb_next");
  }
  return frames;
}

/// A file of the installation, not one that calls itself so. `path` ends in "/" for all files below
/// a folder.
bool is_library(std::string_view file, std::string_view path) {
  const std::vector<std::string>& folders = system_paths();
  return std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) {
    if (!file.starts_with(folder)) return false;
    const std::string_view rest = file.substr(folder.size());
    return path.ends_with('/') ? rest.starts_with(path) : rest == path;
  });
}

/// From NumPy 2.5 on Triton's interpreter fails on range() over a run-time value, among others.
bool is_numpy_too_new() {
  const std::string version = text_attribute(import_module("numpy").get(), "__version__");
  int major = 0, minor = 0;
  if (std::sscanf(version.c_str(), "%d.%d", &major, &minor) != 2) return false;
  return major > 2 || (major == 2 && minor >= 5);
}

bool is_missing_interpreter_operation(PyObject* exception, const task::Frame& innermost) {
  if (PyErr_GivenExceptionMatches(exception, PyExc_TypeError) != 0) {
    return is_library(innermost.file, "/triton/runtime/interpreter.py") && is_numpy_too_new();
  }
  if (PyErr_GivenExceptionMatches(exception, PyExc_NotImplementedError) != 0) {
    return is_library(innermost.file, "/triton/runtime/interpreter.py");
  }
  if (PyErr_GivenExceptionMatches(exception, PyExc_AttributeError) != 0) {
    const auto object = attribute_or_none(exception, "obj");
    return object && type_name(object->get()) == "triton.runtime.interpreter.InterpreterBuilder";
  }
  return false;
}

bool wants_gpu(PyObject* exception) {
  const std::vector<task::Frame> frames = frames_of(exception);
  if (frames.empty()) return false;
  const task::Frame& innermost = frames.back();
  return is_library(innermost.file, "/triton/runtime/driver.py") ||
         is_library(innermost.file, "/torch/cuda/") ||
         // CUDA code in a text: neither nvcc nor a device is there.
         is_library(innermost.file, "/torch/utils/cpp_extension.py") ||
         is_missing_interpreter_operation(exception, innermost);
}

/// The exception and what it came from, by `raise ... from` or while handling another.
std::vector<Ref> with_causes(PyObject* exception) {
  std::vector<Ref> chain;
  chain.push_back(Ref::share(exception));
  for (int i = 0; i < kMaxCauses; ++i) {
    auto cause = attribute_or_none(chain.back().get(), "__cause__");
    if (!cause) cause = attribute_or_none(chain.back().get(), "__context__");
    if (!cause) break;
    chain.push_back(std::move(*cause));
  }
  return chain;
}

void point_into_source(task::PythonError& error, const std::string& source_file) {
  const auto inner =
      std::find_if(error.traceback.rbegin(), error.traceback.rend(), [&](const task::Frame& frame) {
        return frame.file == source_file;
      });
  if (inner != error.traceback.rend()) error.line = inner->line;
}

bool matches(PyObject* exception, PyObject* type) {
  return PyErr_GivenExceptionMatches(exception, type) != 0;
}

}  // namespace

RaisedError take_error(const std::string& source_file) {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != nullptr && value != nullptr) PyException_SetTraceback(value, traceback);
  Py_DecRef(type);
  Py_DecRef(traceback);
  RaisedError raised;
  if (value == nullptr) {
    raised.error.type = "unknown";
    return raised;
  }
  const Ref exception = Ref::own(value);
  raised.error.type = type_name(exception.get());
  raised.error.message = printed(exception.get());
  raised.error.traceback = frames_of(exception.get());
  point_into_source(raised.error, source_file);
  const std::vector<Ref> chain = with_causes(exception.get());
  raised.needs_gpu = std::any_of(
      chain.begin(), chain.end(), [](const Ref& cause) { return wants_gpu(cause.get()); });
  // Triton wraps what a kernel raised: the cause knows the line of the kernel.
  for (const Ref& cause : chain) {
    if (raised.error.line) break;
    task::PythonError inner;
    inner.traceback = frames_of(cause.get());
    point_into_source(inner, source_file);
    raised.error.line = inner.line;
  }
  if (matches(exception.get(), PyExc_SyntaxError) &&
      text_attribute(exception.get(), "filename") == source_file) {
    raised.is_syntax = true;
    raised.error.line = integer_attribute(exception.get(), "lineno");
    raised.error.message = text_attribute(exception.get(), "msg");
  }
  raised.is_compile = std::any_of(chain.begin(), chain.end(), [](const Ref& cause) {
    const std::string name = type_name(cause.get());
    return name.starts_with("triton.compiler.errors.") ||
           name == "triton.runtime.errors.OutOfResources" ||
           name == "triton.runtime.errors.PTXASError";
  });
  raised.needs_tool = std::any_of(chain.begin(), chain.end(), [](const Ref& cause) {
    return type_name(cause.get()) == "toolchain.ToolMissing";
  });
  raised.is_import = matches(exception.get(), PyExc_ImportError);
  raised.is_out_of_memory =
      matches(exception.get(), PyExc_MemoryError) || raised.error.type == "torch.OutOfMemoryError";
  return raised;
}

}  // namespace drk::guest
