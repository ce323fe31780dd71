// SPDX-License-Identifier: Apache-2.0
// The launch point of Triton's interpreter, GridExecutor.__call__.
#include "guest/launches.h"

#include "guest/python.h"

#include <algorithm>
#include <tuple>

namespace drk::guest {

namespace {

constexpr std::size_t kMaxKernels = 128;  // a reply must fit one message

using Key = std::tuple<std::string, std::uint32_t, std::string>;  // file, line, name

// A method descriptor carries no user pointer, hence the one static of this file.
struct Watch {
  std::vector<std::string> system_paths;
  // Never freed: the process ends by _exit.
  PyObject* original = nullptr;
  PyObject* builder = nullptr;  // knows the grid of the launch that it serves
  LaunchMode mode = LaunchMode::run;
  std::map<Key, std::uint64_t> counts;
  std::uint64_t own = 0;
  std::uint64_t dropped = 0;
};
Watch& watch() {
  static Watch instance;
  return instance;
}

Key key_of(PyObject* executor) {
  const Ref kernel = attribute(executor, "fn");
  const Ref code = attribute(kernel.get(), "__code__");
  return {printed(attribute(code.get(), "co_filename").get(), 512),
          static_cast<std::uint32_t>(
              PyLong_AsUnsignedLongMask(attribute(code.get(), "co_firstlineno").get())),
          printed(attribute(code.get(), "co_name").get(), 256)};
}

std::uint64_t programs_of_last_launch() {
  const Ref grid = attribute(watch().builder, "grid_dim");
  std::uint64_t programs = 1;
  for (Py_ssize_t i = 0; i < PyTuple_Size(grid.get()); ++i) {
    programs *= PyLong_AsUnsignedLongLong(PyTuple_GetItem(grid.get(), i));
  }
  return programs;
}

PyObject* launch(PyObject* executor, PyObject* arguments, PyObject* keywords) {
  try {
    const Key key = key_of(executor);
    if (watch().mode == LaunchMode::drop && is_own_file(std::get<0>(key))) {
      ++watch().dropped;
      return Ref::share(Py_None).release();
    }
    const Py_ssize_t count = PyTuple_Size(arguments);
    const Ref with_self = Ref::own(PyTuple_New(count + 1));
    PyTuple_SetItem(with_self.get(), 0, Ref::share(executor).release());
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyTuple_SetItem(with_self.get(), i + 1, Ref::share(PyTuple_GetItem(arguments, i)).release());
    }
    Ref result = Ref::own(PyObject_Call(watch().original, with_self.get(), keywords));
    ++watch().counts[key];
    if (is_own_file(std::get<0>(key))) watch().own += programs_of_last_launch();
    return result.release();
  } catch (const PythonRaised&) {
    return nullptr;
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

// Python keeps a pointer to it.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
PyMethodDef launch_definition = {
    "__call__",
    reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(launch)),
    METH_VARARGS | METH_KEYWORDS,
    nullptr};

}  // namespace

const std::vector<std::string>& system_paths() {
  return watch().system_paths;
}

bool is_own_file(const std::string& file) {
  const std::vector<std::string>& paths = watch().system_paths;
  return std::none_of(paths.begin(), paths.end(), [&](const std::string& path) {
    return file.starts_with(path + "/");
  });
}

void watch_launches(std::vector<std::string> system_paths) {
  const Ref interpreter = import_module("triton.runtime.interpreter");
  const Ref executor = attribute(interpreter.get(), "GridExecutor");
  watch().system_paths = std::move(system_paths);
  watch().builder = attribute(interpreter.get(), "interpreter_builder").release();
  watch().original = attribute(executor.get(), "__call__").release();
  const Ref descriptor = Ref::own(
      PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(executor.get()), &launch_definition));
  if (PyObject_SetAttrString(executor.get(), "__call__", descriptor.get()) != 0)
    throw PythonRaised{};
}

void begin_launches(LaunchMode mode) {
  watch().mode = mode;
  watch().counts.clear();
  watch().own = 0;
  watch().dropped = 0;
}

LaunchLog launches() {
  LaunchLog log;
  log.dropped = watch().dropped;
  for (const auto& [key, count] : watch().counts) {
    if (log.kernels.size() == kMaxKernels) break;
    const auto& [file, line, name] = key;
    log.kernels.push_back({name, file, line, is_own_file(file), count});
  }
  return log;
}

std::uint64_t own_programs() {
  return watch().own;
}

}  // namespace drk::guest
