// SPDX-License-Identifier: Apache-2.0
// Loading a model and calling it, driven from here and not from Python.
#include "guest/session.h"

#include "drk/base/clock.h"
#include "drk/base/error.h"
#include "drk/base/json.h"
#include "drk/guest.h"

#include "guest/build_client.h"
#include "guest/channel_guard.h"
#include "guest/gpu.h"
#include "guest/launches.h"
#include "guest/python_error.h"
#include "guest/tools.h"
#include "guest/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fcntl.h>
#include <malloc.h>
#include <memory>
#include <optional>
#include <sys/prctl.h>
#include <unistd.h>

namespace drk::guest {

namespace {

constexpr std::size_t kMaxParameters = 256;  // a reply must fit one message

/// A request that cannot be done, on its way to becoming a reply.
struct RequestFailed {
  Failed reply;
};

[[noreturn]] void fail(task::FailureKind kind, std::string what) {
  throw RequestFailed{{kind, std::move(what), std::nullopt, ""}};
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
      : torch_(torch), control_(std::move(control)), plan_(plan), scratch_(std::move(scratch)) {
    set_build_channel(control_.get());
  }

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
    std::vector<int> fds;
    for (const Fd& fd : reply_fds_) fds.push_back(fd.get());
    send_message(control_.get(), json::dump(json::to_json(reply)), fds);
    reply_fds_.clear();
  }

  Reply answer(const Request& request, const std::vector<Fd>& fds) {
    try {
      return std::visit([&](const auto& alternative) -> Reply { return handle(alternative, fds); },
                        request);
    } catch (const RequestFailed& failed) {
      return failed.reply;
    } catch (const CudaFailed& failed) {
      return device_failure(failed.status, failed.what());
    } catch (const PythonRaised&) {
      return python_failure();
    }
  }

  // --- the device ---

  Reply handle(const Prepare& request, const std::vector<Fd>& /*fds*/) {
    if (request.hardware_queues > 0) {  // read by the driver when it makes the context
      // NOLINTNEXTLINE(concurrency-mt-unsafe): the only thread so far
      ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", std::to_string(request.hardware_queues).c_str(), 1);
    }
    try {
      (void)attempt(task::FailureKind::cuda_error, "the device cannot be used", [&] {
        gpu_ = std::make_unique<Gpu>(torch_);
        return Ref::share(Py_None);
      });
    } catch (const Error& error) {
      fail(task::FailureKind::cuda_error, error.what());
    }
    return gpu_->prepared();
  }

  Reply handle(const Probe& /*request*/, const std::vector<Fd>& /*fds*/) {
    if (!gpu_) fail(task::FailureKind::cuda_error, "there is no device");
    gpu_->probe();
    return Probed{};
  }

  // --- what the worker holds against its own knowledge ---

  Reply handle(const Settle& /*request*/, const std::vector<Fd>& /*fds*/) {
    Settled settled;
    // Files of a process that nobody may look into belong to root. None of its own files does now,
    // and nothing else has run in it.
    (void)::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    try {
      for (const char* file : {"/proc/self/maps", "/proc/self/pagemap", "/proc/self/mem"}) {
        reply_fds_.emplace_back(::open(file, O_RDONLY | O_CLOEXEC));
        if (!reply_fds_.back()) throw_errno(std::string("open of ") + file);
      }
    } catch (const Error& error) {
      reply_fds_.clear();
      settled.memory_problem = error.what();
    }
    (void)::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    settled.channel_problem = guard_channel(control_.get());
    return settled;
  }

  Reply handle(const Wait& request, const std::vector<Fd>& /*fds*/) {
    const std::int64_t end_ns = now_ns() + static_cast<std::int64_t>(request.us * 1e3);
    while (now_ns() < end_ns) {
    }
    return Waited{};
  }

  [[nodiscard]] Failed device_failure(int status, std::string what) const {
    const bool is_memory = status == kCudaOutOfMemory;
    return {is_memory ? task::FailureKind::out_of_memory : task::FailureKind::cuda_error,
            std::move(what),
            std::nullopt,
            gpu_ ? gpu_->driver().name_of(status) : ""};
  }

  /// Waits for the device; what a kernel did wrong shows here, and the context is then lost.
  void check_device() const {
    if (!gpu_) return;
    if (const int status = gpu_->driver().synchronize(); status != 0) {
      throw RequestFailed{device_failure(status, "a kernel failed on the device")};
    }
  }

  /// What torch raised outside the code that is judged.
  [[nodiscard]] Failed python_failure() const {
    RaisedError raised = take_error(path_);
    const bool is_memory = raised.is_out_of_memory;
    return {is_memory ? task::FailureKind::out_of_memory : task::FailureKind::call_error,
            "torch raised beside the call",
            std::move(raised.error),
            is_memory && gpu_ ? gpu_->driver().name_of(kCudaOutOfMemory) : ""};
  }

  [[nodiscard]] const CudaDriver* driver() const { return gpu_ ? &gpu_->driver() : nullptr; }

  // --- loading ---

  Reply handle(const CheckSyntax& /*request*/, const std::vector<Fd>& fds) {
    path_ = scratch_ + "/candidate.py";
    (void)compile(source_of(fds.at(0)));
    return SyntaxChecked{};
  }

  static std::string source_of(const Fd& source_fd) {
    const std::size_t size = file_size_bytes(source_fd.get());
    const Mapping mapping = Mapping::shared(source_fd.get(), size, false);
    return {reinterpret_cast<const char*>(mapping.data()), size};
  }

  Ref compile(const std::string& source) {
    return attempt(task::FailureKind::syntax_error, "the code does not compile", [&] {
      return Ref::own(Py_CompileString(source.c_str(), path_.c_str(), Py_file_input));
    });
  }

  Reply handle(const LoadReference& request, const std::vector<Fd>& fds) {
    is_reference_ = true;
    path_ = scratch_ + "/reference.py";
    const Ref module = run_module("reference", fds.at(0));
    Ref model_class = find_class(module.get(), request.entry_point);
    get_inputs_ = find_function(module.get(), "get_inputs");
    const Ref get_init_inputs = find_function(module.get(), "get_init_inputs");
    seed(request.init_seed);
    Ref made = attempt(task::FailureKind::inputs_error, "get_init_inputs() raised", [&] {
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
    if (request.compile) {
      compiled_ = attempt(task::FailureKind::construct_error, "torch.compile raised", [&] {
        return call(attribute(import_module("torch").get(), "compile").get(), model_.get());
      });
    }
    reference_ = {std::move(model_class), std::move(made)};
    release_memory();
    return loaded;
  }

  /// A reference's guest stays; what it keeps for later would be missing elsewhere.
  void release_memory() {
    if (!is_reference_ || !gpu_) return;
    arguments_ = Ref();
    keywords_ = Ref();
    inputs_ = {};
    gpu_->release_cached();
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
    const std::string source = source_of(source_fd);
    write_file(path_, source);
    const Ref code = compile(source);
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
    init_seed_ = init_seed;
    model_ = attempt(task::FailureKind::construct_error, "the model's constructor raised", [&] {
      return build_model(model_class, arguments);
    });
    check_device();
  }

  Ref build_model(PyObject* model_class, PyObject* arguments) {
    seed(init_seed_);
    const Ref tuple = Ref::own(PySequence_Tuple(arguments));
    Ref model = Ref::own(PyObject_Call(model_class, tuple.get(), nullptr));
    return gpu_ && is_module(model.get()) ? gpu_->move_model(model.get()) : std::move(model);
  }

  [[nodiscard]] bool is_module(PyObject* model) const {
    return PyType_IsSubtype(Py_TYPE(model),
                            reinterpret_cast<PyTypeObject*>(torch_.module_type.get())) != 0;
  }

  std::vector<std::string> parameters() {
    std::vector<std::string> names;
    if (!is_module(model_.get())) return names;
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
    Ref inputs = make_inputs(request.seed);
    if (request.distribution != task::Distribution::given) {
      const Ref name = make_text(json::name_of(request.distribution));
      inputs = attempt(task::FailureKind::inputs_error, "its inputs cannot be varied", [&] {
        return call(torch_.vary.get(), inputs.get(), name.get());
      });
    }
    if (PyList_Check(inputs.get()) == 0 && PyTuple_Check(inputs.get()) == 0 &&
        PyDict_Check(inputs.get()) == 0) {
      fail(task::FailureKind::inputs_error,
           "get_inputs() must return a list, got " + type_name(inputs.get()));
    }
    InputsMade made = {send_out(inputs.get(), "inputs", Strides::keep)};
    if (gpu_) {
      for (value::Tensor& tensor : made.inputs.tensors) tensor.device = value::Device::cuda;
    }
    release_memory();
    return made;
  }

  /// On the device where the problem's code lets torch choose: a few GB of random numbers take the
  /// host minutes. Code that wants the host's memory or generator gets them.
  Ref make_inputs(std::uint64_t input_seed) {
    if (gpu_) {
      seed(input_seed);
      (void)call(attribute(torch_.device_context.get(), "__enter__").get());
      PyObject* made = PyObject_CallObject(get_inputs_.get(), nullptr);
      if (made == nullptr) PyErr_Clear();
      (void)call(
          attribute(torch_.device_context.get(), "__exit__").get(), Py_None, Py_None, Py_None);
      if (made != nullptr) return Ref::own(made);
      check_device();
    }
    seed(input_seed);
    return attempt(task::FailureKind::inputs_error, "get_inputs() raised", [&] {
      return call(get_inputs_.get());
    });
  }

  Reply handle(const Call& request, const std::vector<Fd>& fds) {
    if (!model_) fail(task::FailureKind::call_error, "no model is loaded");
    if (gpu_) gpu_->reset_peak();  // what varied or exact values took is not what a call takes
    if (request.same_inputs) {
      inputs_.copy_to_device(driver());
    } else {
      arguments_ = Ref();
      keywords_ = Ref();
      set_arguments(take_in(request.inputs, fds.at(0).get()));
    }
    if (!arguments_) fail(task::FailureKind::call_error, "there was no call before");
    watch_launches_of(request.launches);
    fill_fresh_memory(request);
    const FreshMemoryScope fresh_memory(request.fresh_memory);
    Called called;
    Export outputs(torch_, driver(), Strides::dense, request.max_output_bytes);
    programs_at_end_ = programs_behind_ = 0;
    Ref output =
        request.exact ? call_exactly(request, called) : call_model(request, called, outputs);
    LaunchLog log = gpu_ && gpu_->watch() ? gpu_->watch()->launches() : launches();
    if (gpu_ && gpu_->watch()) {
      called.kept_launches = gpu_->watch()->kept_launches();
      called.streams = gpu_->watch()->streams();
      if (gpu_->watch()->has_replayed()) called.work.reset();  // unknown
    }
    called.kernels = std::move(log.kernels);
    called.dropped_launches = log.dropped;
    if (!is_reference_) note_overrides(called);
    if (request.want_output) {
      const bool as_list = !request.sampled_calls.empty();
      Exported exported = read_out("output", [&] {
        if (!as_list) outputs.add(output.get(), "output", Reading::at_the_end);
        return outputs.finish(as_list, allocator());
      });
      called.output = std::move(exported.bundle);
      called.bad_leaf = std::move(exported.bad_leaf);
    }
    note_programs_behind();
    called.outside_programs = programs_behind_;
    watch_launches_of(LaunchMode::run);
    inputs_.copy_to_host(driver());  // what the call wrote to them shows in the worker's block
    if (gpu_) called.peak_bytes = gpu_->peak_bytes();
    output = Ref();
    release_memory();
    return called;
  }

  void note_overrides(Called& called) const {
    called.overrides = find_overrides(torch_);
    if (pop_dispatch_modes(torch_) == 0) return;
    called.overrides.emplace_back("a TorchDispatchMode was left on");
  }

  /// The reference in float64, as far as its code lets it: by a model of its own, of equal weights.
  Ref call_exactly(const Call& request, Called& called) {
    if (!is_reference_) fail(task::FailureKind::call_error, "no problem is loaded");
    return attempt(task::FailureKind::call_error, "the model does not run in float64", [&] {
      if (!exact_model_) {
        const Ref plain = build_model(reference_.model_class.get(), reference_.arguments.get());
        exact_model_ = call(torch_.widen_model.get(), plain.get());
      }
      seed(request.forward_seed);
      Ref keywords = keywords_ ? Ref::share(keywords_.get()) : Ref::own(PyDict_New());
      Ref output =
          call(torch_.call_exactly.get(), exact_model_.get(), arguments_.get(), keywords.get());
      called.times.us.push_back(0);
      return output;
    });
  }

  void watch_launches_of(LaunchMode mode) {
    if (gpu_ && gpu_->watch()) {
      gpu_->watch()->begin_calls(mode);
    } else {
      begin_launches(mode);
    }
  }

  void fill_fresh_memory(const Call& request) const {
    if (!gpu_ || request.fresh_memory == FreshMemory::as_is) return;
    // As much as a model may well ask for: its outputs and as many temporaries.
    const std::uint64_t bytes = 2 * (inputs_.bytes + request.max_output_bytes);
    try {
      gpu_->fill_free_memory(request.fresh_memory == FreshMemory::ones ? 0xFF : 0, bytes);
    } catch (const PythonRaised&) {
      PyErr_Clear();  // as much as there was: others may have taken the rest meanwhile
    }
  }

  void set_arguments(const Ref& inputs) {
    const bool by_name = PyDict_Check(inputs.get()) != 0;
    arguments_ = Ref::own(by_name ? PyTuple_New(0) : PySequence_Tuple(inputs.get()));
    keywords_ = by_name ? Ref::share(inputs.get()) : Ref();
  }

  Ref call_model(const Call& request, Called& called, Export& outputs) {
    PyObject* model = request.compiled && compiled_ ? compiled_.get() : model_.get();
    Ref output;
    const Manner manner = {
        gpu_ && request.purpose == CallPurpose::time, request.grad, request.forward_seed};
    const std::int64_t warm_ns = now_ns() + static_cast<std::int64_t>(request.warmup_s * 1e9);
    for (std::uint32_t i = 0; i < request.warmup_calls || now_ns() < warm_ns; ++i) {
      output = call_counted(model, manner, called).output;
    }
    KernelWatch* recorder =
        gpu_ && request.purpose == CallPurpose::profile ? gpu_->watch() : nullptr;
    if (recorder != nullptr) recorder->begin_records();
    const std::int64_t begin_ns = now_ns();
    for (std::uint32_t i = 0; i < request.calls; ++i) {
      const double spent_s = static_cast<double>(now_ns() - begin_ns) * 1e-9;
      if (i >= request.min_calls && request.budget_s > 0 && spent_s > request.budget_s) break;
      const std::uint64_t change_seed =
          i < request.change_seeds.size() ? request.change_seeds[i] : 0;
      const FewChanges changes(*this, change_seed);
      // Changed values may well need less work.
      OneCall one =
          change_seed != 0 ? call_once(model, manner) : call_counted(model, manner, called);
      add_time(one, manner, called.times);
      output = Ref();  // freed outside the clocked span
      output = std::move(one.output);
      if (contains(request.sampled_calls, i)) {
        // Now: a later call may well write to it.
        (void)read_out("output", [&] {
          outputs.add(output.get(), "output", Reading::at_once);
          return Exported{};
        });
      }
    }
    if (recorder != nullptr) {
      called.profile = recorder->end_records(static_cast<std::uint32_t>(called.times.us.size()));
    }
    return output;
  }

  static bool contains(const std::vector<std::uint32_t>& list, std::uint32_t item) {
    return std::find(list.begin(), list.end(), item) != list.end();
  }

  /// Changes a few elements of the inputs, in place, and puts them back.
  class FewChanges {
   public:
    /// 0: none.
    FewChanges(const Session& session, std::uint64_t change_seed) : session_(session) {
      if (change_seed == 0) return;
      changes_ = value::few_changes(session_.inputs_.bundle, change_seed);
      const std::byte* host = session_.inputs_.placed.host.data;
      std::vector<Element> values;
      for (const value::Change& change : changes_) {
        saved_.push_back(element_at(host + change.to_bytes, change));
        values.push_back(element_at(host + change.from_bytes, change));
      }
      put(values);
    }
    FewChanges(const FewChanges&) = delete;
    FewChanges& operator=(const FewChanges&) = delete;
    ~FewChanges() {
      try {
        put(saved_);
      } catch (const CudaFailed&) {
        // A kernel has broken the context: there are no inputs any more, and whoever asks the
        // device next is told.
      }
    }

   private:
    using Element = std::array<std::byte, 8>;  // or a part of it
    static Element element_at(const std::byte* from, const value::Change& change) {
      Element element = {};
      std::memcpy(element.data(), from, change.size_bytes);
      return element;
    }
    void put(const std::vector<Element>& elements) const {
      const Inputs& inputs = session_.inputs_;
      for (std::size_t i = 0; i < elements.size(); ++i) {
        const value::Change& change = changes_[i];
        std::memcpy(
            inputs.placed.host.data + change.to_bytes, elements[i].data(), change.size_bytes);
        if (inputs.placed.device.data == nullptr) continue;
        session_.driver()->copy_to_device(
            inputs.address() + change.to_bytes, elements[i].data(), change.size_bytes);
      }
    }
    const Session& session_;
    std::vector<value::Change> changes_;
    std::vector<Element> saved_;
  };

  struct Manner {
    bool by_device = false;
    task::GradMode grad = task::GradMode::off;
    std::uint64_t forward_seed = 0;
  };
  struct OneCall {
    Ref output;
    double host_us = 0;
    DeviceTime device;  ///< Where it is by device.
  };
  static void add_time(const OneCall& one, const Manner& manner, task::TimedCalls& times) {
    times.us.push_back(manner.by_device ? one.device.us : one.host_us);
    if (!manner.by_device) return;
    times.host_us.push_back(one.host_us);
    times.behind_us.push_back(one.device.behind_us);
    if (one.device.gated) ++times.gated;
  }
  /// The same, and adds what it did to the work on these inputs.
  OneCall call_counted(PyObject* model, Manner manner, Called& called) {
    const std::uint64_t before = own_programs_so_far();
    OneCall one = call_once(model, manner);
    const std::uint64_t programs = own_programs_so_far() - before;
    if (!called.work) called.work = task::RepeatedWork{0, programs, programs, 0};
    task::RepeatedWork& work = *called.work;
    ++work.calls;
    work.least_programs = std::min(work.least_programs, programs);
    if (programs < work.first_programs) ++work.calls_with_fewer;
    return one;
  }

  [[nodiscard]] std::uint64_t own_programs_so_far() const {
    return gpu_ && gpu_->watch() ? gpu_->watch()->own_programs() : own_programs();
  }

  /// Returns when the device is done with it.
  OneCall call_once(PyObject* model, Manner manner) {
    seed(manner.forward_seed);  // each call draws as the first one does
    {
      const ContextScope plain(torch_.no_function_modes);
      (void)call(torch_.set_grad_enabled.get(),
                 manner.grad == task::GradMode::on ? Py_True : Py_False);
    }
    note_programs_behind();
    std::optional<ContextScope> inference;
    if (manner.grad == task::GradMode::inference) {
      inference.emplace(torch_.inference_mode, Py_True);
    }
    OneCall one;
    one.output = attempt(task::FailureKind::call_error, "forward raised", [&] {
      if (manner.by_device) gpu_->begin_timing();
      const std::int64_t start_ns = now_ns();
      PyObject* result = PyObject_Call(model, arguments_.get(), keywords_.get());
      const std::int64_t end_ns = now_ns();
      one.host_us = static_cast<double>(end_ns - start_ns) * 1e-3;
      if (result != nullptr && manner.by_device) one.device = gpu_->end_timing();
      return Ref::own(result);
    });
    check_device();
    programs_at_end_ = own_programs_so_far();
    return one;
  }

  /// Of own kernels, launched since the last call was over: by a thread, or by what its end set
  /// off.
  void note_programs_behind() {
    const std::uint64_t now = own_programs_so_far();
    programs_behind_ += now - std::exchange(programs_at_end_, now);
  }

  Reply handle(const Restrict& /*request*/, const std::vector<Fd>& /*fds*/) {
    return Restricted{sandbox::add_filter(plan_.late_filter)};
  }

  // --- tools ---

  Reply handle(const RunTools& request, const std::vector<Fd>& fds) {
    const std::size_t size = file_size_bytes(fds.at(0).get());
    const Mapping files = Mapping::shared(fds.at(0).get(), size, false);
    ToolsRan ran = run_tools(request, files.bytes(), scratch_);
    if (ran.exit_code != 0) return ran;
    const std::string product = read_file(scratch_ + "/" + request.product);
    ran.product_bytes = product.size();
    const Fd memory = allocate(product.size());
    const Mapping mapping = Mapping::shared(memory.get(), product.size(), true);
    if (!product.empty()) std::memcpy(mapping.data(), product.data(), product.size());
    return ran;
  }

  // --- values ---

  Fd allocate(std::uint64_t bytes) { return request_memory(control_.get(), bytes); }

  Allocator allocator() {
    return [this](std::uint64_t bytes) { return allocate(bytes); };
  }

  /// Runs `work`, which reads values out of torch.
  template <class Work>
  Exported read_out(const std::string& name, const Work& work) {
    Exported exported;
    (void)attempt(task::FailureKind::call_error, "the " + name + " could not be read", [&] {
      exported = work();
      return Ref::share(Py_None);
    });
    return exported;
  }

  value::Bundle send_out(PyObject* object, const std::string& name, Strides strides) {
    constexpr std::uint64_t kNoLimit = INT64_MAX;  // no file is larger
    Exported exported = read_out(name, [&] {
      Export values(torch_, driver(), strides, kNoLimit);
      values.add(object, name, Reading::at_the_end);
      return values.finish(false, allocator());
    });
    if (exported.bad_leaf) {
      fail(task::FailureKind::inputs_error,
           exported.bad_leaf->path + " cannot be passed to another process: it is " +
               exported.bad_leaf->what);
    }
    return std::move(exported.bundle);
  }

  Ref take_in(const value::Bundle& bundle, int fd) {
    value::check(bundle, file_size_bytes(fd));
    const auto mapping = std::make_shared<Mapping>(Mapping::shared(fd, bundle.block_bytes, true));
    inputs_ = {};  // so that the new ones may lie where the old ones lay
    inputs_.bundle = bundle;
    inputs_.bytes = bundle.block_bytes;
    inputs_.placed.host = {mapping->data(), value::Device::cpu, mapping};
    const bool on_device =
        std::any_of(bundle.tensors.begin(), bundle.tensors.end(), [](const value::Tensor& tensor) {
          return tensor.device == value::Device::cuda;
        });
    return attempt(task::FailureKind::call_error, "the inputs could not be placed", [&] {
      if (on_device && gpu_) inputs_.placed.device = gpu_->allocate(bundle.block_bytes);
      inputs_.copy_to_device(driver());
      return import_value(torch_, bundle, inputs_.placed);
    });
  }

  void seed(std::uint64_t value) {
    const Ref number = Ref::own(PyLong_FromUnsignedLongLong(value));
    const Ref small = Ref::own(PyLong_FromUnsignedLongLong(value & 0xFFFFFFFFU));
    (void)call(torch_.random_seed.get(), torch_.random_generator.get(), number.get());
    (void)call(torch_.numpy_seed.get(), small.get());
    (void)call(torch_.manual_seed.get(), number.get());
    if (gpu_) gpu_->seed(number.get());
  }

  /// Runs `work`; a Python exception becomes a failure, of a narrower kind where its type tells.
  template <class Work>
  Ref attempt(task::FailureKind kind, const std::string& what, const Work& work) {
    try {
      return work();
    } catch (const PythonRaised&) {
      RaisedError raised = take_error(path_);
      // What the driver says comes before what the exception says.
      const int status = gpu_ ? gpu_->driver().synchronize() : 0;
      std::string cuda = status == 0 ? "" : gpu_->driver().name_of(status);
      if (status != 0 && status != kCudaOutOfMemory) {
        kind = task::FailureKind::cuda_error;
      } else if (raised.is_out_of_memory || status == kCudaOutOfMemory) {
        kind = task::FailureKind::out_of_memory;
        if (raised.error.type == "torch.OutOfMemoryError" && gpu_) {
          cuda = gpu_->driver().name_of(kCudaOutOfMemory);
        }
      } else if (raised.needs_tool || (raised.needs_gpu && !gpu_)) {
        kind = task::FailureKind::needs_gpu;
      } else if (raised.is_compile && gpu_) {
        kind = task::FailureKind::compile_error;
      } else if (kind == task::FailureKind::load_error && raised.is_syntax) {
        kind = task::FailureKind::syntax_error;
      } else if (kind == task::FailureKind::load_error && raised.is_import) {
        kind = task::FailureKind::import_error;
      }
      throw RequestFailed{{kind, what, std::move(raised.error), std::move(cuda)}};
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

  /// The block of the last inputs that came, on both sides.
  struct Inputs {
    value::Bundle bundle;
    std::uint64_t bytes = 0;
    Placed placed;

    void copy_to_device(const CudaDriver* driver) const {
      if (placed.device.data == nullptr || driver == nullptr) return;
      driver->copy_to_device(address(), placed.host.data, bytes);
    }
    void copy_to_host(const CudaDriver* driver) const {
      if (placed.device.data == nullptr || driver == nullptr) return;
      driver->copy_to_host(placed.host.data, address(), bytes);
    }
    [[nodiscard]] CudaDriver::Address address() const {
      return reinterpret_cast<CudaDriver::Address>(placed.device.data);
    }
  };

  const TorchFunctions& torch_;
  Fd control_;
  const sandbox::Plan& plan_;
  std::vector<Fd> reply_fds_;  ///< Go with the next reply, and are closed then.
  std::string scratch_;
  std::string path_;
  std::unique_ptr<Gpu> gpu_;  ///< Empty without a GPU. Declared before what lies on it.
  bool is_reference_ = false;
  Inputs inputs_;
  Ref get_inputs_;
  std::uint64_t init_seed_ = 0;
  Ref model_;
  Ref exact_model_;  ///< A reference's in float64, once it was asked for.
  struct {
    Ref model_class;
    Ref arguments;
  } reference_;                        ///< What its models are made of.
  Ref compiled_;                       ///< A reference's, where it was asked for.
  std::uint64_t programs_at_end_ = 0;  ///< Of the last call of the request, counted in it so far.
  std::uint64_t programs_behind_ = 0;  ///< Behind calls of the request.
  Ref arguments_;                      ///< Of the last call.
  Ref keywords_;                       ///< The same; empty where there are none.
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
