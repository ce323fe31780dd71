// SPDX-License-Identifier: Apache-2.0
// The extension module: functions for host.py and toolchain.py, none for a candidate.
#include "drk/base/fd.h"

#include "guest/build_client.h"
#include "guest/launches.h"
#include "guest/python.h"
#include "guest/tensors.h"
#include "guest/zygote.h"

#include <Python.h>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace drk::guest {

namespace {

// `serve` is called by the interpreter as an exception hook, with arguments of its own, so what it
// needs is left here by `prepare`.
struct Prepared {
  TorchFunctions torch;
  Fd socket;
  std::string hello;
};
std::optional<Prepared>& prepared() {
  static std::optional<Prepared> instance;
  return instance;
}

std::vector<std::string> texts_of(PyObject* list) {
  std::vector<std::string> texts;
  for (Py_ssize_t i = 0; i < PyList_Size(list); ++i)
    texts.push_back(text_of(PyList_GetItem(list, i)));
  return texts;
}

/// prepare(socket_fd: int, hello: str, system_paths: list[str], inputs: module inputs.py) -> None
PyObject* prepare(PyObject* /*self*/, PyObject* arguments) {
  try {
    int socket = -1;
    const char* hello = nullptr;
    PyObject* paths = nullptr;
    PyObject* inputs = nullptr;
    if (PyArg_ParseTuple(arguments, "isOO:prepare", &socket, &hello, &paths, &inputs) == 0) {
      return nullptr;
    }
    if (prepared()) {
      PyErr_SetString(PyExc_RuntimeError, "already prepared");
      return nullptr;
    }
    watch_launches(texts_of(paths));
    prepared().emplace(Prepared{TorchFunctions(inputs), Fd(socket), hello});
    return Ref::share(Py_None).release();
  } catch (const PythonRaised&) {
    return nullptr;
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

/// serve(*ignored): never returns.
PyObject* serve(PyObject* /*self*/, PyObject* /*arguments*/) {
  if (!prepared()) {
    PyErr_SetString(PyExc_RuntimeError, "not prepared");
    return nullptr;
  }
  // Out of reach from here on: a second call, by a candidate that found this module, does nothing.
  Prepared state = std::move(*prepared());
  prepared().reset();
  PySys_SetObject("excepthook", PySys_GetObject("__excepthook__"));
  serve_zygote(state.torch, std::move(state.socket), state.hello);
}

// Python writes to its tables.
// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables)
PyMethodDef methods[] = {{"prepare", prepare, METH_VARARGS, nullptr},
                         {"serve", serve, METH_VARARGS, nullptr},
                         {"build", build, METH_VARARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_drk_guest", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

}  // namespace
}  // namespace drk::guest

// The name that Python looks for.
// NOLINTNEXTLINE(bugprone-reserved-identifier, readability-identifier-naming)
PyMODINIT_FUNC PyInit__drk_guest() {
  return PyModule_Create(&drk::guest::definition);
}
