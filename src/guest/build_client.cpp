// SPDX-License-Identifier: Apache-2.0
// Files into shared memory, a request, a product out of shared memory.
#include "guest/build_client.h"

#include "drk/base/error.h"
#include "drk/base/json.h"
#include "drk/guest.h"

#include "guest/python.h"

#include <cstring>
#include <span>

namespace drk::guest {

namespace {

// Python calls `build` without a pointer of ours.
int& build_channel() noexcept {
  static int control = -1;
  return control;
}

[[noreturn]] void refuse(const std::string& what) {
  PyErr_SetString(PyExc_ValueError, what.c_str());
  throw PythonRaised{};
}

struct FileContents {
  std::vector<BuildFile> files;
  std::vector<std::span<const std::byte>> contents;  ///< Owned by the dict.
  std::uint64_t bytes = 0;
};

FileContents contents_of(PyObject* dict) {
  FileContents found;
  PyObject *name = nullptr, *content = nullptr;  // borrowed
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &name, &content) != 0;) {
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (PyUnicode_Check(name) == 0) refuse("the name of a file is a str");
    if (PyBytes_AsStringAndSize(content, &data, &size) != 0) throw PythonRaised{};
    BuildFile file = {text_of(name), static_cast<std::uint64_t>(size)};
    if (!is_plain_name(file.name)) refuse("not a name below the build's folder: " + file.name);
    found.bytes += file.bytes;
    found.files.push_back(std::move(file));
    found.contents.push_back(std::as_bytes(std::span(data, static_cast<std::size_t>(size))));
    if (found.files.size() > kMaxBuildFiles || found.bytes > kMaxBuildBytes) {
      refuse("a build takes at most 2000 files of together 256 MiB");
    }
  }
  return found;
}

Tool tool_of(const char* name) {
  try {
    return json::from_json<Tool>(json::Value(name), "tool");
  } catch (const Error& error) {
    refuse(error.what());
  }
}

std::vector<std::string> texts_of(PyObject* list) {
  std::vector<std::string> texts;
  for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
    PyObject* text = PyList_GetItem(list, i);  // borrowed
    if (PyUnicode_Check(text) == 0) refuse("an argument is a str");
    texts.push_back(text_of(text));
  }
  return texts;
}

/// Unmapped again on return: the worker seals it before it reads.
void share(int control, const FileContents& found) {
  if (found.bytes == 0) return;
  const Fd memory = request_memory(control, found.bytes);
  const Mapping mapping = Mapping::shared(memory.get(), found.bytes, true);
  std::byte* to = mapping.data();
  for (const std::span<const std::byte> content : found.contents) {
    if (!content.empty()) std::memcpy(to, content.data(), content.size());
    to += content.size();
  }
}

Ref product_of(const Built& built, const std::vector<Fd>& fds) {
  if (built.exit_code != 0) return Ref::share(Py_None);
  const Mapping product = Mapping::shared(fds.at(0).get(), built.product_bytes, false);
  return Ref::own(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(product.data()),
                                            static_cast<Py_ssize_t>(built.product_bytes)));
}

Ref ask(const char* tool, PyObject* arguments, PyObject* files) {
  const int control = build_channel();
  if (control < 0) throw Error(ErrorCode::unavailable, "nothing is compiled before a guest begins");
  const FileContents found = contents_of(files);
  const Build request = {tool_of(tool), texts_of(arguments), found.files};
  const std::string text = json::dump(json::to_json(Reply(request)));
  if (text.size() > kMaxMessageBytes) refuse("too many names and arguments for one build");
  share(control, found);
  send_message(control, text);
  const std::optional<Message> message = receive_message(control);
  if (!message) throw Error(ErrorCode::unavailable, "the worker is gone");
  const auto built = json::from_json<Built>(json::parse(message->text), "built");
  const Ref code = Ref::own(PyLong_FromLong(built.exit_code));
  const Ref log = make_text(built.log);
  const Ref product = product_of(built, message->fds);
  return Ref::own(PyTuple_Pack(3, code.get(), log.get(), product.get()));
}

}  // namespace

Fd request_memory(int control, std::uint64_t bytes) {
  send_message(control, json::dump(json::to_json(Reply(Allocate{bytes}))));
  std::optional<Message> message = receive_message(control);
  if (!message || message->fds.size() != 1) {
    throw Error(ErrorCode::unavailable, "guest: no memory came from the worker");
  }
  return std::move(message->fds[0]);
}

void set_build_channel(int control) noexcept {
  build_channel() = control;
}

PyObject* build(PyObject* /*self*/, PyObject* arguments) noexcept {
  try {
    const char* tool = nullptr;
    PyObject *list = nullptr, *files = nullptr;
    if (PyArg_ParseTuple(arguments, "sOO:build", &tool, &list, &files) == 0) return nullptr;
    if (PyList_Check(list) == 0 || PyDict_Check(files) == 0) {
      PyErr_SetString(PyExc_TypeError, "build(tool, list of arguments, dict of files)");
      return nullptr;
    }
    return ask(tool, list, files).release();
  } catch (const PythonRaised&) {
    return nullptr;
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

}  // namespace drk::guest
