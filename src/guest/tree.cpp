// SPDX-License-Identifier: Apache-2.0
// Walking Python containers.
#include "guest/tree.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>

namespace drk::guest {

namespace {

constexpr int kMaxDepth = 32;
// Of a strided tensor its whole extent is read, unless that is so much more than its elements.
constexpr std::uint64_t kMaxGapFactor = 4;
constexpr std::uint64_t kMaxGapBytes = std::uint64_t{1} << 20;
constexpr std::size_t kMaxNodes = 1000;
constexpr std::size_t kMaxTextBytes =
    std::size_t{8} * 1024;  // of all scalars and keys; JSON may escape each

/// Ends a walk: this leaf cannot be sent.
struct Unsendable {
  BadLeaf leaf;
};

bool is_exactly(PyObject* object, const Ref& type) {
  return reinterpret_cast<PyObject*>(Py_TYPE(object)) == type.get();
}

}  // namespace

class Export::Impl {
 public:
  Impl(const TorchFunctions& torch,
       const CudaDriver* driver,
       Strides strides,
       std::uint64_t max_bytes)
      : torch_(torch), driver_(driver), strides_(strides), max_bytes_(max_bytes) {}

  void add(PyObject* value, const std::string& name, Reading reading) {
    if (bad_leaf_) return;
    const ContextScope plain(torch_.no_function_modes);
    const std::size_t first = held_.size();
    name_ = name;
    nodes_ = text_bytes_ = 0;
    seen_.clear();  // of another value, whose objects may be gone
    try {
      roots_.push_back(walk(value, name, 0));
      check_size(first, name);
      if (reading == Reading::at_once) read(first);
    } catch (Unsendable& unsendable) {
      bad_leaf_ = std::move(unsendable.leaf);
    }
  }

  Exported finish(bool as_list, const Allocator& allocate) {
    Exported exported;
    if (bad_leaf_) {
      exported.bad_leaf = std::move(bad_leaf_);
      return exported;
    }
    value::Bundle& bundle = exported.bundle;
    if (as_list) {
      bundle.root.kind = value::NodeKind::list;
      bundle.root.items = std::move(roots_);
    } else {
      bundle.root = std::move(roots_.at(0));
    }
    for (const Held& held : held_) bundle.tensors.push_back(held.sent);
    value::lay_out(bundle);
    if (const std::size_t bytes = value::description_bytes(bundle); bytes > kMaxDescriptionBytes) {
      exported.bundle = {};
      exported.bad_leaf = too_long_to_describe(bytes);
      return exported;
    }
    const Fd memory = allocate(bundle.block_bytes);
    const Mapping block = Mapping::shared(memory.get(), bundle.block_bytes, true);
    for (std::size_t i = 0; i < held_.size(); ++i) {
      const value::Tensor& sent = bundle.tensors[i];
      if (value::element_count(sent) == 0) continue;
      std::byte* const to = block.data() + sent.offset_bytes;
      if (held_[i].hold) {
        copy(held_[i], to);
      } else {
        std::memcpy(to, held_[i].elements.get(), value::extent_bytes(sent));
      }
    }
    return exported;
  }

 private:
  struct Held {
    std::optional<TensorHold> hold;  ///< Until its elements have been read.
    value::Tensor sent;
    std::unique_ptr<std::byte[]> elements;
  };

  void check_size(std::size_t first, const std::string& name) const {
    std::uint64_t left_bytes = max_bytes_;
    for (std::size_t i = first; i < held_.size(); ++i) {
      const value::Tensor& sent = held_[i].sent;
      const std::uint64_t bytes = value::extent_bytes(sent);
      if (bytes > left_bytes) {
        fail(task::MismatchKind::oversize,
             name,
             fmt::format(
                 "{}, beyond the {} bytes that are taken", value::describe(sent), max_bytes_));
      }
      left_bytes -= bytes;
    }
  }

  [[nodiscard]] BadLeaf too_long_to_describe(std::size_t bytes) const {
    return {
        task::MismatchKind::unsupported,
        name_,
        fmt::format("a value of too many parts or dimensions: {} bytes of description, where {} "
                    "are taken",
                    bytes,
                    kMaxDescriptionBytes)};
  }

  void read(std::size_t first) {
    for (std::size_t i = first; i < held_.size(); ++i) {
      Held& held = held_[i];
      held.elements = std::make_unique_for_overwrite<std::byte[]>(value::extent_bytes(held.sent));
      if (value::element_count(held.sent) > 0) copy(held, held.elements.get());
      held.hold.reset();
    }
  }

  value::Node walk(PyObject* object, const std::string& path, int depth) {
    if (++nodes_ > kMaxNodes || depth > kMaxDepth) {
      fail(task::MismatchKind::unsupported, path, "more than 1000 values or nested deeper than 32");
    }
    if (object == Py_None) return {};
    if (PyBool_Check(object) != 0)
      return scalar(value::NodeKind::boolean, object == Py_True ? "true" : "false");
    if (PyLong_Check(object) != 0)
      return scalar(value::NodeKind::integer, integer_text(object, path));
    if (PyFloat_Check(object) != 0)
      return scalar(value::NodeKind::real, real_text(PyFloat_AsDouble(object)));
    if (PyComplex_Check(object) != 0) {
      return scalar(value::NodeKind::complex,
                    real_text(PyComplex_RealAsDouble(object)) + "," +
                        real_text(PyComplex_ImagAsDouble(object)));
    }
    if (PyUnicode_Check(object) != 0) return scalar(value::NodeKind::text, text_of(object));
    if (is_exactly(object, torch_.dtype_type))
      return scalar(value::NodeKind::dtype, printed(object));
    if (PyTuple_Check(object) != 0) return walk_tuple(object, path, depth);
    if (PyList_Check(object) != 0) return walk_list(object, path, depth);
    if (PyDict_Check(object) != 0) return walk_dict(object, path, depth);
    return walk_tensor(object, path);
  }

  [[noreturn]] static void fail(task::MismatchKind kind,
                                const std::string& path,
                                std::string what) {
    throw Unsendable{{kind, path, std::move(what)}};
  }

  void copy(const Held& held, std::byte* to) const {
    const value::Tensor layout = held.hold->layout();
    const std::uint64_t extent_bytes = value::extent_bytes(layout);
    const bool as_it_lies = layout.strides == held.sent.strides;
    if (layout.device == value::Device::cuda) {
      const auto from = reinterpret_cast<CudaDriver::Address>(held.hold->data());
      if (as_it_lies) return driver_->copy_to_host(to, from, extent_bytes);
      std::vector<std::byte> strided(extent_bytes);
      driver_->copy_to_host(strided.data(), from, extent_bytes);
      copy_dense(strided.data(), layout, to);
    } else if (as_it_lies) {
      std::memcpy(to, held.hold->data(), extent_bytes);
    } else {
      copy_dense(held.hold->data(), layout, to);
    }
  }

  void count_text(const std::string& text) {
    text_bytes_ += text.size();
    if (text_bytes_ <= kMaxTextBytes) return;
    fail(task::MismatchKind::unsupported, "output", "more than 8 KiB of text, numbers and keys");
  }

  value::Node scalar(value::NodeKind kind, std::string text) {
    count_text(text);
    value::Node node;
    node.kind = kind;
    node.text = std::move(text);
    return node;
  }

  static std::string real_text(double number) { return fmt::format("{}", number); }

  static std::string integer_text(PyObject* object, const std::string& path) {
    // By value: a subclass may print or convert itself as it likes, in code of its own.
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow == 0) return std::to_string(number);
    const bool is_exact = Py_TYPE(object) == &PyLong_Type;
    PyObject* text = is_exact ? PyObject_Str(object) : nullptr;
    if (text == nullptr) {
      PyErr_Clear();
      fail(task::MismatchKind::unsupported, path, "an integer of more than 4300 digits");
    }
    return text_of(Ref::own(text).get());
  }

  value::Node walk_tuple(PyObject* tuple, const std::string& path, int depth) {
    value::Node node;
    node.kind = value::NodeKind::tuple;
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); ++i) {
      node.items.push_back(
          walk(PyTuple_GetItem(tuple, i), fmt::format("{}[{}]", path, i), depth + 1));
    }
    return node;
  }

  value::Node walk_list(PyObject* list, const std::string& path, int depth) {
    value::Node node;
    node.kind = value::NodeKind::list;
    for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
      node.items.push_back(
          walk(PyList_GetItem(list, i), fmt::format("{}[{}]", path, i), depth + 1));
    }
    return node;
  }

  value::Node walk_dict(PyObject* dict, const std::string& path, int depth) {
    value::Node node;
    node.kind = value::NodeKind::dict;
    Py_ssize_t position = 0;
    PyObject *key = nullptr, *item = nullptr;
    while (PyDict_Next(dict, &position, &key, &item) != 0) {
      const std::string name = key_text(key, path);
      count_text(name);
      node.keys.push_back(name);
      node.items.push_back(walk(item, fmt::format("{}['{}']", path, name), depth + 1));
    }
    return node;
  }

  /// Of what prints itself by code of Python's own, and nobody else's.
  static std::string key_text(PyObject* key, const std::string& path) {
    if (PyUnicode_Check(key) != 0) return text_of(key);
    const bool is_plain = key == Py_None || Py_TYPE(key) == &PyLong_Type ||
                          Py_TYPE(key) == &PyBool_Type || Py_TYPE(key) == &PyFloat_Type;
    if (!is_plain) {
      fail(task::MismatchKind::unsupported, path, "a dict with a key of type " + type_name(key));
    }
    return printed(key, 200);
  }

  value::Node walk_tensor(PyObject* object, const std::string& path) {
    const bool is_plain =
        is_exactly(object, torch_.tensor_type) || is_exactly(object, torch_.parameter_type);
    if (!is_plain) {
      // By the type's bases, not by __instancecheck__, which a candidate may define.
      const bool is_subclass =
          PyType_IsSubtype(Py_TYPE(object),
                           reinterpret_cast<PyTypeObject*>(torch_.tensor_type.get())) != 0;
      fail(is_subclass ? task::MismatchKind::subclass : task::MismatchKind::unsupported,
           path,
           (is_subclass ? "a Tensor subclass, " : "an object of type ") + type_name(object));
    }
    value::Node node;
    node.kind = value::NodeKind::tensor;
    const auto [known, is_new] = seen_.emplace(object, held_.size());
    if (is_new) held_.push_back(hold(object, path));
    node.tensor = static_cast<std::uint32_t>(known->second);
    return node;
  }

  Held hold(PyObject* object, const std::string& path) const {
    try {
      Held held;
      const TensorHold& found = held.hold.emplace(torch_, object);
      if (!found.dtype())
        fail(task::MismatchKind::unsupported,
             path,
             "a tensor of an element type that has no name here");
      const std::optional<value::Device> device = found.device();
      if (!device || (*device == value::Device::cuda && driver_ == nullptr))
        fail(task::MismatchKind::unsupported, path, "a tensor on another device");
      held.sent = found.layout();
      if (held.sent.shape.size() > value::kMaxDimensions)
        fail(task::MismatchKind::unsupported,
             path,
             fmt::format("a tensor of more than {} dimensions", value::kMaxDimensions));
      if (value::element_count(held.sent) > 0 && found.data() == nullptr)
        fail(task::MismatchKind::unsupported, path, "a tensor whose memory was taken away");
      if (strides_ == Strides::keep) return held;
      held.sent.strides = value::dense_strides(held.sent.shape);
      // Few elements far apart are gathered where they lie.
      const std::uint64_t extent_bytes = value::extent_bytes(found.layout());
      const bool is_sparse =
          extent_bytes > kMaxGapBytes &&
          (extent_bytes - kMaxGapBytes) / kMaxGapFactor > value::extent_bytes(held.sent);
      if (is_sparse) held.hold.emplace(torch_, call(torch_.contiguous.get(), object).get());
      return held;
    } catch (const PythonRaised&) {
      PyObject *type = nullptr, *reason = nullptr, *traceback = nullptr;
      PyErr_Fetch(&type, &reason, &traceback);
      std::string text = reason == nullptr ? "" : printed(reason, 300);
      Py_DecRef(type);
      Py_DecRef(reason);
      Py_DecRef(traceback);
      fail(task::MismatchKind::unsupported, path, "a tensor that cannot be read: " + text);
    }
  }

  const TorchFunctions& torch_;
  const CudaDriver* driver_;
  Strides strides_;
  std::uint64_t max_bytes_;
  std::string name_;       // of the last value
  std::size_t nodes_ = 0;  // of the value that is being read
  std::size_t text_bytes_ = 0;
  std::map<PyObject*, std::size_t> seen_;  // which that value keeps alive
  std::vector<value::Node> roots_;
  std::vector<Held> held_;
  std::optional<BadLeaf> bad_leaf_;
};

Export::Export(const TorchFunctions& torch,
               const CudaDriver* driver,
               Strides strides,
               std::uint64_t max_bytes)
    : impl_(std::make_unique<Impl>(torch, driver, strides, max_bytes)) {}
Export::~Export() = default;

void Export::add(PyObject* value, const std::string& name, Reading reading) {
  impl_->add(value, name, reading);
}

Exported Export::finish(bool as_list, const Allocator& allocate) {
  return impl_->finish(as_list, allocate);
}

namespace {

class Importer {
 public:
  Importer(const TorchFunctions& torch, const value::Bundle& bundle, const Placed& memory)
      : torch_(torch) {
    for (const value::Tensor& tensor : bundle.tensors) {
      const bool on_device = tensor.device == value::Device::cuda;
      tensors_.push_back(make_tensor(torch, tensor, on_device ? memory.device : memory.host));
    }
  }

  Ref build(const value::Node& node) {
    switch (node.kind) {
      case value::NodeKind::none:
        return Ref::share(Py_None);
      case value::NodeKind::boolean:
        return Ref::own(PyBool_FromLong(node.text == "true" ? 1 : 0));
      case value::NodeKind::integer:
        return Ref::own(PyLong_FromString(node.text.c_str(), nullptr, 10));
      case value::NodeKind::real:
        return Ref::own(PyFloat_FromDouble(std::strtod(node.text.c_str(), nullptr)));
      case value::NodeKind::complex:
        return build_complex(node.text);
      case value::NodeKind::text:
        return make_text(node.text);
      case value::NodeKind::dtype:
        return attribute(import_module("torch").get(),
                         node.text.substr(node.text.find('.') + 1).c_str());
      case value::NodeKind::tensor:
        return Ref::share(tensors_[node.tensor.value()].get());
      case value::NodeKind::list:
        return build_list(node);
      case value::NodeKind::tuple:
        return Ref::own(PyList_AsTuple(build_list(node).get()));
      case value::NodeKind::dict:
        return build_dict(node);
    }
    throw PythonRaised{};
  }

 private:
  static Ref build_complex(const std::string& text) {
    const std::size_t comma = text.find(',');
    return Ref::own(PyComplex_FromDoubles(std::strtod(text.c_str(), nullptr),
                                          std::strtod(text.c_str() + comma + 1, nullptr)));
  }

  Ref build_list(const value::Node& node) {
    Ref list = Ref::own(PyList_New(0));
    for (const value::Node& item : node.items) {
      if (PyList_Append(list.get(), build(item).get()) != 0) throw PythonRaised{};
    }
    return list;
  }

  Ref build_dict(const value::Node& node) {
    Ref dict = Ref::own(PyDict_New());
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const Ref key = make_text(node.keys[i]);
      if (PyDict_SetItem(dict.get(), key.get(), build(node.items[i]).get()) != 0)
        throw PythonRaised{};
    }
    return dict;
  }

  const TorchFunctions& torch_;
  std::vector<Ref> tensors_;
};

}  // namespace

Ref import_value(const TorchFunctions& torch, const value::Bundle& bundle, const Placed& memory) {
  const ContextScope plain(torch.no_function_modes);
  return Importer(torch, bundle, memory).build(bundle.root);
}

}  // namespace drk::guest
