// SPDX-License-Identifier: Apache-2.0
// Loading a model and calling it, driven from here and not from Python.
#include "guest/session.h"

#include "drk/base/clock.h"
#include "drk/base/error.h"
#include "drk/base/json.h"
#include "drk/guest.h"

#include "guest/launches.h"
#include "guest/python_error.h"
#include "guest/tree.h"

#include <fmt/format.h>

#include <malloc.h>
#include <memory>
#include <optional>
#include <unistd.h>

namespace drk::guest {

namespace {

constexpr std::size_t kMaxParameters = 256;  // a reply must fit one message

/// A request that cannot be done, on its way to becoming a reply.
struct RequestFailed {
  Failed reply;
};

[[noreturn]] void fail(task::FailureKind kind, std::string what) {
  throw RequestFailed{{kind, std::move(what), std::nullopt}};
}

/// Sets what malloc hands out until the end of the scope. Large blocks come from the kernel,
/// zeroed.
class FreshMemoryScope {
 public:
  explicit FreshMemoryScope(FreshMemory fresh) {
    // glibc fills new memory with the complement of this byte; 0 means that it does not fill.
    if (fresh == FreshMemory::zeros) ::mallopt(M_PERTURB, 0xFF);
    if (fresh == FreshMemory::ones) ::mallopt(M_PERTURB, 0x100);
  }
  FreshMemoryScope(const FreshMemoryScope&) = delete;
  FreshMemoryScope& operator=(const FreshMemoryScope&) = delete;
  ~FreshMemoryScope() { ::mallopt(M_PERTURB, 0); }
};

class Session {
 public:
  Session(const TorchFunctions& torch, Fd control, const sandbox::Plan& plan, std::string scratch)
      : torch_(torch), control_(std::move(control)), plan_(plan), scratch_(std::move(scratch)) {}

  /// False when the worker is gone.
  bool serve_one() {
    const std::optional<Message> message = receive_message(control_.get());
    if (!message) return false;
    const auto request = json::from_json<Request>(json::parse(message->text), "request");
    reply_with(answer(request, message->fds));
    return true;
  }

 private:
  void reply_with(const Reply& reply) {
    flush_output();
    send_message(control_.get(), json::dump(json::to_json(reply)));
  }

  Reply answer(const Request& request, const std::vector<Fd>& fds) {
    try {
      return std::visit([&](const auto& alternative) -> Reply { return handle(alternative, fds); },
                        request);
    } catch (const RequestFailed& failed) {
      return failed.reply;
    }
  }

  // --- loading ---

  Reply handle(const LoadReference& request, const std::vector<Fd>& fds) {
    path_ = scratch_ + "/reference.py";
    const Ref module = run_module("reference", fds.at(0));
    const Ref model_class = find_class(module.get(), request.entry_point);
    get_inputs_ = find_function(module.get(), "get_inputs");
    const Ref get_init_inputs = find_function(module.get(), "get_init_inputs");
    seed(request.init_seed);
    const Ref made = attempt(task::FailureKind::inputs_error, "get_init_inputs() raised", [&] {
      return call(get_init_inputs.get());
    });
    if (PyList_Check(made.get()) == 0 && PyTuple_Check(made.get()) == 0) {
      fail(task::FailureKind::inputs_error,
           "get_init_inputs() must return a list, got " + type_name(made.get()));
    }
    Loaded loaded;
    loaded.init_inputs = send_out(made.get(), "init_inputs", Strides::keep);
    construct(model_class.get(), made.get(), request.init_seed);
    loaded.parameters = parameters();
    return loaded;
  }

  Reply handle(const LoadCandidate& request, const std::vector<Fd>& fds) {
    path_ = scratch_ + "/candidate.py";
    const Ref module = run_module("candidate", fds.at(0));
    const Ref model_class = find_class(module.get(), request.entry_point);
    const Ref arguments = request.own_init_inputs ? own_init_inputs(module.get(), request.init_seed)
                                                  : take_in(request.init_inputs, fds.at(1).get());
    construct(model_class.get(), arguments.get(), request.init_seed);
    Loaded loaded;
    loaded.parameters = parameters();
    return loaded;
  }

  /// Executes the source as a module of its own, from a file that Triton can read back.
  Ref run_module(const char* name, const Fd& source_fd) {
    const std::size_t size = file_size_bytes(source_fd.get());
    const Mapping mapping = Mapping::shared(source_fd.get(), size, false);
    const std::string source(reinterpret_cast<const char*>(mapping.data()), size);
    write_file(path_, source);
    const Ref code = attempt(task::FailureKind::syntax_error, "the code does not compile", [&] {
      return Ref::own(Py_CompileString(source.c_str(), path_.c_str(), Py_file_input));
    });
    return attempt(task::FailureKind::load_error, "the module raised while it was imported", [&] {
      // AddModule's reference is borrowed from sys.modules, where the module must be for classes
      // that look themselves up.
      Ref module = Ref::share(PyImport_AddModule(name));
      PyObject* names = PyModule_GetDict(module.get());
      if (PyDict_SetItemString(names, "__file__", make_text(path_).get()) != 0 ||
          PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins()) != 0) {
        throw PythonRaised{};
      }
      (void)Ref::own(PyEval_EvalCode(code.get(), names, names));
      return module;
    });
  }

  Ref find_class(PyObject* module, const std::string& name) {
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

  Ref find_function(PyObject* module, const char* name) {
    PyObject* found = PyDict_GetItemString(PyModule_GetDict(module), name);
    if (found == nullptr || PyCallable_Check(found) == 0) {
      fail(task::FailureKind::no_entry_point, std::string("the code defines no function ") + name);
    }
    return Ref::share(found);
  }

  /// What a submission is constructed with where no problem says it.
  Ref own_init_inputs(PyObject* module, std::uint64_t init_seed) {
    PyObject* found = PyDict_GetItemString(PyModule_GetDict(module), "get_init_inputs");
    if (found == nullptr) return Ref::own(PyTuple_New(0));
    seed(init_seed);
    return attempt(
        task::FailureKind::inputs_error, "get_init_inputs() raised", [&] { return call(found); });
  }

  void construct(PyObject* model_class, PyObject* arguments, std::uint64_t init_seed) {
    seed(init_seed);
    model_ = attempt(task::FailureKind::construct_error, "the model's constructor raised", [&] {
      const Ref tuple = Ref::own(PySequence_Tuple(arguments));
      return Ref::own(PyObject_Call(model_class, tuple.get(), nullptr));
    });
  }

  std::vector<std::string> parameters() {
    std::vector<std::string> names;
    if (PyType_IsSubtype(Py_TYPE(model_.get()),
                         reinterpret_cast<PyTypeObject*>(torch_.module_type.get())) == 0) {
      return names;
    }
    for (const Ref* list : {&torch_.named_parameters, &torch_.named_buffers}) {
      (void)attempt(
          task::FailureKind::construct_error, "the model's parameters cannot be listed", [&] {
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

  std::string describe_parameter(PyObject* pair) {
    const std::string name = printed(PyTuple_GetItem(pair, 0), 100);
    const TensorHold hold(torch_, PyTuple_GetItem(pair, 1));
    return name + ": " + (hold.dtype() ? value::describe(hold.layout()) : "unknown");
  }

  // --- inputs and calls ---

  Reply handle(const MakeInputs& request, const std::vector<Fd>& /*fds*/) {
    if (!get_inputs_) fail(task::FailureKind::inputs_error, "no problem is loaded");
    seed(request.seed);
    const Ref inputs = attempt(task::FailureKind::inputs_error, "get_inputs() raised", [&] {
      return call(get_inputs_.get());
    });
    if (PyList_Check(inputs.get()) == 0 && PyTuple_Check(inputs.get()) == 0 &&
        PyDict_Check(inputs.get()) == 0) {
      fail(task::FailureKind::inputs_error,
           "get_inputs() must return a list, got " + type_name(inputs.get()));
    }
    return InputsMade{send_out(inputs.get(), "inputs", Strides::keep)};
  }

  Reply handle(const Call& request, const std::vector<Fd>& fds) {
    if (!model_) fail(task::FailureKind::call_error, "no model is loaded");
    if (!request.same_inputs) set_arguments(take_in(request.inputs, fds.at(0).get()));
    if (!arguments_) fail(task::FailureKind::call_error, "there was no call before");
    seed(request.forward_seed);
    begin_launches(request.launches);
    const FreshMemoryScope fresh_memory(request.fresh_memory);
    Called called;
    Ref output = call_model(request, called.call_us);
    LaunchLog log = launches();
    begin_launches(LaunchMode::run);
    called.kernels = std::move(log.kernels);
    called.dropped_launches = log.dropped;
    if (request.want_output) {
      Exported exported =
          attempt_export(output.get(), "output", Strides::dense, request.max_output_bytes);
      called.output = std::move(exported.bundle);
      called.bad_leaf = std::move(exported.bad_leaf);
    }
    return called;
  }

  void set_arguments(const Ref& inputs) {
    const bool by_name = PyDict_Check(inputs.get()) != 0;
    arguments_ = Ref::own(by_name ? PyTuple_New(0) : PySequence_Tuple(inputs.get()));
    keywords_ = by_name ? Ref::share(inputs.get()) : Ref();
  }

  Ref call_model(const Call& request, std::vector<double>& call_us) {
    const std::int64_t begin_ns = now_ns();
    Ref output;
    for (std::uint32_t i = 0; i < request.calls; ++i) {
      const double spent_s = static_cast<double>(now_ns() - begin_ns) * 1e-9;
      if (i >= request.min_calls && request.budget_s > 0 && spent_s > request.budget_s) break;
      (void)call(torch_.set_grad_enabled.get(), Py_False);
      std::int64_t start_ns = 0, end_ns = 0;
      Ref made = attempt(task::FailureKind::call_error, "forward raised", [&] {
        start_ns = now_ns();
        PyObject* result = PyObject_Call(model_.get(), arguments_.get(), keywords_.get());
        end_ns = now_ns();
        return Ref::own(result);
      });
      call_us.push_back(static_cast<double>(end_ns - start_ns) * 1e-3);
      output = std::move(made);  // the last but one is freed outside the clocked span
    }
    return output;
  }

  Reply handle(const Restrict& /*request*/, const std::vector<Fd>& /*fds*/) {
    return Restricted{sandbox::add_filter(plan_.late_filter)};
  }

  // --- values ---

  Fd allocate(std::uint64_t bytes) {
    send_message(control_.get(), json::dump(json::to_json(Reply(Allocate{bytes}))));
    std::optional<Message> message = receive_message(control_.get());
    if (!message || message->fds.size() != 1) {
      throw Error(ErrorCode::unavailable, "guest: no memory came from the worker");
    }
    return std::move(message->fds[0]);
  }

  Exported attempt_export(PyObject* object,
                          const std::string& name,
                          Strides strides,
                          std::uint64_t max_bytes) {
    Exported exported;
    (void)attempt(task::FailureKind::call_error, "the " + name + " could not be read", [&] {
      exported =
          export_value(torch_, object, name, strides, max_bytes, [this](std::uint64_t bytes) {
            return allocate(bytes);
          });
      return Ref::share(Py_None);
    });
    return exported;
  }

  value::Bundle send_out(PyObject* object, const std::string& name, Strides strides) {
    constexpr std::uint64_t kNoLimit = UINT64_MAX;
    Exported exported = attempt_export(object, name, strides, kNoLimit);
    if (exported.bad_leaf) {
      fail(task::FailureKind::inputs_error,
           exported.bad_leaf->path + " cannot be passed to another process: it is " +
               exported.bad_leaf->what);
    }
    return std::move(exported.bundle);
  }

  Ref take_in(const value::Bundle& bundle, int fd) {
    value::check(bundle, file_size_bytes(fd));
    const auto memory = std::make_shared<Mapping>(Mapping::shared(fd, bundle.block_bytes, true));
    return import_value(torch_, bundle, memory);
  }

  void seed(std::uint64_t value) {
    const Ref number = Ref::own(PyLong_FromUnsignedLongLong(value));
    const Ref small = Ref::own(PyLong_FromUnsignedLongLong(value & 0xFFFFFFFFU));
    (void)call(torch_.random_seed.get(), number.get());
    (void)call(torch_.numpy_seed.get(), small.get());
    (void)call(torch_.manual_seed.get(), number.get());
  }

  /// Runs `work`; a Python exception becomes a failure, of a narrower kind where its type tells.
  template <class Work>
  Ref attempt(task::FailureKind kind, const std::string& what, const Work& work) {
    try {
      return work();
    } catch (const PythonRaised&) {
      RaisedError raised = take_error(path_);
      if (raised.needs_gpu) {
        kind = task::FailureKind::needs_gpu;
      } else if (raised.is_out_of_memory) {
        kind = task::FailureKind::out_of_memory;
      } else if (kind == task::FailureKind::load_error && raised.is_syntax) {
        kind = task::FailureKind::syntax_error;
      } else if (kind == task::FailureKind::load_error && raised.is_import) {
        kind = task::FailureKind::import_error;
      }
      throw RequestFailed{{kind, what, std::move(raised.error)}};
    }
  }

  /// So that what was printed is read before the reply is acted on.
  static void flush_output() {
    for (const char* name : {"stdout", "stderr"}) {
      PyObject* stream = PySys_GetObject(name);  // borrowed; the candidate may have replaced it
      if (stream == nullptr || stream == Py_None) continue;
      PyObject* done = PyObject_CallMethod(stream, "flush", nullptr);
      if (done == nullptr) PyErr_Clear();
      Py_DecRef(done);
    }
  }

  const TorchFunctions& torch_;
  Fd control_;
  const sandbox::Plan& plan_;
  std::string scratch_;
  std::string path_;
  Ref get_inputs_;
  Ref model_;
  Ref arguments_;  ///< Of the last call.
  Ref keywords_;   ///< The same; empty where there are none.
};

}  // namespace

void serve_guest(const TorchFunctions& torch,
                 Fd control,
                 const sandbox::Plan& plan,
                 const std::string& scratch) noexcept {
  // Outlives every way out of here: a model's destructors are the candidate's code, and the process
  // just ends.
  std::unique_ptr<Session> session;
  try {
    session = std::make_unique<Session>(torch, std::move(control), plan, scratch);
    while (session->serve_one()) {
    }
    (void)session.release();
  } catch (const PythonRaised&) {
    PyErr_Print();
    ::_exit(70);
  } catch (const std::exception& error) {
    fmt::print(stderr, "guest: {}\n", error.what());
    ::_exit(70);
  }
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): released on purpose, as said above

}  // namespace drk::guest
