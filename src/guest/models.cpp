// SPDX-License-Identifier: Apache-2.0
#include "guest/models.h"

#include "drk/base/json.h"
#include "drk/value.h"

#include <utility>

namespace drk::guest {

namespace {

constexpr std::size_t kMaxParameters = 256;  // a reply must fit one message

bool is_listing(PyObject* value) {
  return PyList_Check(value) != 0 || PyTuple_Check(value) != 0;
}

}  // namespace

Ref Models::load_reference(const LoadReference& request, const std::string& source) {
  is_reference_ = true;
  const Ref module = run_module("reference", source);
  model_class_ = find_class(module.get(), request.entry_point);
  get_inputs_ = find_function(module.get(), "get_inputs");
  const Ref get_init_inputs = find_function(module.get(), "get_init_inputs");
  core_.seed(request.init_seed);
  arguments_ = core_.attempt(task::FailureKind::inputs_error, "get_init_inputs() raised", [&] {
    return call(get_init_inputs.get());
  });
  if (!is_listing(arguments_.get())) {
    fail(task::FailureKind::inputs_error,
         "get_init_inputs() must return a list, got " + type_name(arguments_.get()));
  }
  construct(model_class_.get(), arguments_.get(), request.init_seed);
  if (request.compile) {
    compiled_ = core_.attempt(task::FailureKind::construct_error, "torch.compile raised", [&] {
      return call(attribute(import_module("torch").get(), "compile").get(), model_.get());
    });
  }
  return Ref::share(arguments_.get());
}

Ref Models::compile(const std::string& source) const {
  return core_.attempt(task::FailureKind::syntax_error, "the code does not compile", [&] {
    return Ref::own(Py_CompileString(source.c_str(), core_.judged_file().c_str(), Py_file_input));
  });
}

/// Executes the source as a module of its own, from a file that Triton can read back.
Ref Models::run_module(const char* name, const std::string& source) const {
  const std::string& path = core_.judged_file();
  write_file(path, source);
  const Ref code = compile(source);
  const char* what = "the module raised while it was imported";
  return core_.attempt(task::FailureKind::load_error, what, [&] {
    // AddModule's reference is borrowed from sys.modules, where the module must be for classes that
    // look themselves up.
    Ref module = Ref::share(PyImport_AddModule(name));
    PyObject* names = PyModule_GetDict(module.get());
    if (PyDict_SetItemString(names, "__file__", make_text(path).get()) != 0 ||
        PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins()) != 0) {
      throw PythonRaised{};
    }
    (void)Ref::own(PyEval_EvalCode(code.get(), names, names));
    return module;
  });
}

Ref Models::find_class(PyObject* module, const std::string& name) {
  PyObject* found = PyDict_GetItemString(PyModule_GetDict(module), name.c_str());
  if (found == nullptr) {
    fail(task::FailureKind::no_entry_point, "the code defines no class " + name);
  }
  if (PyType_IsSubtype(Py_TYPE(found), &PyType_Type) == 0) {
    fail(task::FailureKind::no_entry_point,
         name + " is not a class but an object of type " + type_name(found));
  }
  return Ref::share(found);
}

Ref Models::find_function(PyObject* module, const char* name) {
  PyObject* found = PyDict_GetItemString(PyModule_GetDict(module), name);
  if (found == nullptr || PyCallable_Check(found) == 0) {
    fail(task::FailureKind::no_entry_point, std::string("the code defines no function ") + name);
  }
  return Ref::share(found);
}

/// What a submission is constructed with where no problem says it.
Ref Models::own_init_inputs(PyObject* module, std::uint64_t init_seed) const {
  PyObject* found = PyDict_GetItemString(PyModule_GetDict(module), "get_init_inputs");
  if (found == nullptr) return Ref::own(PyTuple_New(0));
  core_.seed(init_seed);
  return core_.attempt(
      task::FailureKind::inputs_error, "get_init_inputs() raised", [&] { return call(found); });
}

void Models::construct(PyObject* model_class, PyObject* arguments, std::uint64_t init_seed) {
  init_seed_ = init_seed;
  const char* what = "the model's constructor raised";
  model_ = core_.attempt(task::FailureKind::construct_error, what, [&] {
    return build_model(model_class, arguments);
  });
  core_.check_device();
}

Ref Models::build_model(PyObject* model_class, PyObject* arguments) const {
  core_.seed(init_seed_);
  const Ref tuple = Ref::own(PySequence_Tuple(arguments));
  Ref model = Ref::own(PyObject_Call(model_class, tuple.get(), nullptr));
  Gpu* gpu = core_.gpu();
  return gpu != nullptr && is_module(model.get()) ? gpu->move_model(model.get()) : std::move(model);
}

bool Models::is_module(PyObject* model) const {
  return PyType_IsSubtype(Py_TYPE(model),
                          reinterpret_cast<PyTypeObject*>(core_.torch().module_type.get())) != 0;
}

std::vector<std::string> Models::parameters() const {
  std::vector<std::string> names;
  if (!is_module(model_.get())) return names;
  const TorchFunctions& torch = core_.torch();
  const char* what = "the model's parameters cannot be listed";
  for (const Ref* list : {&torch.named_parameters, &torch.named_buffers}) {
    (void)core_.attempt(task::FailureKind::construct_error, what, [&] {
      const Ref iterator = Ref::own(PyObject_GetIter(call(list->get(), model_.get()).get()));
      while (PyObject* item = PyIter_Next(iterator.get())) {
        const Ref pair = Ref::own(item);
        if (names.size() < kMaxParameters) names.push_back(describe_parameter(pair.get()));
      }
      if (PyErr_Occurred() != nullptr) throw PythonRaised{};
      return Ref::share(Py_None);
    });
  }
  return names;
}

std::string Models::describe_parameter(PyObject* pair) const {
  const std::string name = printed(PyTuple_GetItem(pair, 0), 100);
  const TensorHold hold(core_.torch(), PyTuple_GetItem(pair, 1));
  return name + ": " + (hold.dtype() ? value::describe(hold.layout()) : "unknown");
}

Ref Models::make_inputs(const MakeInputs& request) const {
  if (!get_inputs_) fail(task::FailureKind::inputs_error, "no problem is loaded");
  Ref inputs = call_get_inputs(request.seed);
  if (request.distribution != task::Distribution::given) {
    const Ref name = make_text(json::name_of(request.distribution));
    inputs = core_.attempt(task::FailureKind::inputs_error, "its inputs cannot be varied", [&] {
      return call(core_.torch().vary.get(), inputs.get(), name.get());
    });
  }
  if (!is_listing(inputs.get()) && PyDict_Check(inputs.get()) == 0) {
    fail(task::FailureKind::inputs_error,
         "get_inputs() must return a list, got " + type_name(inputs.get()));
  }
  return inputs;
}

/// On the device where the problem's code lets torch choose: a few GB of random numbers take the
/// host minutes. Code that wants the host's memory or generator gets them.
Ref Models::call_get_inputs(std::uint64_t input_seed) const {
  if (core_.gpu() != nullptr) {
    const Ref& device_context = core_.torch().device_context;
    core_.seed(input_seed);
    (void)call(attribute(device_context.get(), "__enter__").get());
    PyObject* made = PyObject_CallObject(get_inputs_.get(), nullptr);
    if (made == nullptr) PyErr_Clear();
    (void)call(attribute(device_context.get(), "__exit__").get(), Py_None, Py_None, Py_None);
    if (made != nullptr) return Ref::own(made);
    core_.check_device();
  }
  core_.seed(input_seed);
  return core_.attempt(task::FailureKind::inputs_error, "get_inputs() raised", [&] {
    return call(get_inputs_.get());
  });
}

PyObject* Models::exact_model() {
  if (!exact_model_) {
    const Ref plain = build_model(model_class_.get(), arguments_.get());
    exact_model_ = call(core_.torch().widen_model.get(), plain.get());
  }
  return exact_model_.get();
}

}  // namespace drk::guest
