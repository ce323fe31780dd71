// SPDX-License-Identifier: Apache-2.0
// Small conversions between Python and C++.
#include "guest/python.h"

namespace drk::guest {

Ref attribute(PyObject* object, const char* name) {
  return Ref::own(PyObject_GetAttrString(object, name));
}

Ref import_module(const char* name) {
  return Ref::own(PyImport_ImportModule(name));
}

Ref make_text(const std::string& text) {
  return Ref::own(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

std::string text_of(PyObject* str) {
  const Ref bytes = Ref::own(PyUnicode_AsEncodedString(str, "utf-8", "replace"));
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(bytes.get(), &data, &size) != 0) throw PythonRaised{};
  return {data, static_cast<std::size_t>(size)};
}

std::string printed(PyObject* object, std::size_t limit) {
  try {
    std::string text = text_of(Ref::own(PyObject_Str(object)).get());
    if (text.size() <= limit) return text;
    // Cut between characters, never inside one.
    while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0U) == 0x80U) --limit;
    return text.substr(0, limit) + " ...";
  } catch (const PythonRaised&) {
    PyErr_Clear();
    return "<unprintable>";
  }
}

std::string type_name(PyObject* object) {
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  try {
    std::string name = printed(attribute(type, "__qualname__").get(), 200);
    const std::string module = printed(attribute(type, "__module__").get(), 200);
    return module == "builtins" ? name : module + "." + name;
  } catch (const PythonRaised&) {
    PyErr_Clear();
    return "<unnamed type>";
  }
}

}  // namespace drk::guest
