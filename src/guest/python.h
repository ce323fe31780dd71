// SPDX-License-Identifier: Apache-2.0
// Owning references to Python objects, for the limited API.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <utility>

namespace drk::guest {

/// A Python exception is set; it travels through C++ as this.
struct PythonRaised {};

/// Owns one reference. All functions here need the GIL.
class Ref {
 public:
  Ref() = default;
  /// Takes over a new reference; throws PythonRaised for null.
  [[nodiscard]] static Ref own(PyObject* object) {
    if (object == nullptr) throw PythonRaised{};
    return Ref(object);
  }
  [[nodiscard]] static Ref share(PyObject* object) {
    if (object == nullptr) throw PythonRaised{};
    Py_IncRef(object);
    return Ref(object);
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    if (this != &other) {
      PyObject* old = std::exchange(object_, std::exchange(other.object_, nullptr));
      Py_DecRef(old);  // last: it may run any code
    }
    return *this;
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  ~Ref() { Py_DecRef(object_); }

  [[nodiscard]] PyObject* get() const noexcept { return object_; }
  [[nodiscard]] PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  explicit Ref(PyObject* object) noexcept : object_(object) {}
  PyObject* object_ = nullptr;
};

[[nodiscard]] Ref attribute(PyObject* object, const char* name);
[[nodiscard]] Ref import_module(const char* name);
[[nodiscard]] Ref make_text(const std::string& text);
/// UTF-8 of a str object; surrogates that stand for bad bytes become U+FFFD.
[[nodiscard]] std::string text_of(PyObject* str);
/// str(object), or "<unprintable>" when that raises. At most `limit` bytes.
[[nodiscard]] std::string printed(PyObject* object, std::size_t limit = 4096);
/// Name of an object's type: "builtins.int" is "int", others carry their module.
[[nodiscard]] std::string type_name(PyObject* object);
template <class... Arguments>
[[nodiscard]] Ref call(PyObject* callable, Arguments*... arguments) {
  return Ref::own(PyObject_CallFunctionObjArgs(callable, arguments..., nullptr));
}

}  // namespace drk::guest
