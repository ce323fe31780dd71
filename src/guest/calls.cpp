// SPDX-License-Identifier: Apache-2.0
#include "guest/calls.h"

#include "drk/base/clock.h"
#include "drk/base/statistics.h"

#include "guest/launches.h"

#include <algorithm>
#include <malloc.h>
#include <optional>
#include <span>
#include <utility>

namespace drk::guest {

namespace {

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

bool contains(const std::vector<std::uint32_t>& list, std::uint32_t item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool may_go_on(const Call& request, std::span<const double> us, double spent_s) {
  if (us.size() < request.min_calls) return true;
  if (request.budget_s > 0 && spent_s > request.budget_s) return false;
  return request.enough_s == 0 || spent_s <= request.enough_s || !is_median_known(us);
}

}  // namespace

Called Calls::make(const Call& request, int block_fd) {
  if (!models_.is_loaded()) fail(task::FailureKind::call_error, "no model is loaded");
  Gpu* gpu = core_.gpu();
  if (gpu != nullptr)
    gpu->reset_peak();  // what varied or exact values took is not what a call takes
  take_arguments(request, block_fd);
  watch_launches_of(request.launches);
  fill_fresh_memory(request);
  const FreshMemoryScope fresh_memory(request.fresh_memory);
  Called called;
  Export outputs(core_.torch(), core_.driver(), Strides::dense, request.max_output_bytes);
  programs_at_end_ = programs_behind_ = 0;
  Ref output = request.exact ? call_exactly(request, called) : call_model(request, called, outputs);
  note_launches(called);
  if (!models_.is_reference()) note_overrides(called);
  if (request.want_output) take_output(request, output.get(), outputs, called);
  note_programs_behind();
  called.outside_programs = programs_behind_;
  watch_launches_of(LaunchMode::run);
  inputs_.copy_to_host();
  if (gpu != nullptr) called.peak_bytes = gpu->peak_bytes();
  return called;
}

void Calls::drop_arguments() {
  arguments_ = {};
}

void Calls::take_arguments(const Call& request, int block_fd) {
  if (request.same_inputs) {
    inputs_.copy_to_device();
  } else {
    drop_arguments();
    arguments_ = Arguments::of(inputs_.take_in(request.inputs, block_fd));
  }
  if (!arguments_.positional) fail(task::FailureKind::call_error, "there was no call before");
}

void Calls::watch_launches_of(LaunchMode mode) const {
  if (KernelWatch* watch = core_.watch()) {
    watch->begin_calls(mode);
  } else {
    begin_launches(mode);
  }
}

void Calls::fill_fresh_memory(const Call& request) const {
  if (core_.gpu() == nullptr || request.fresh_memory == FreshMemory::as_is) return;
  // As much as a model may well ask for: its outputs and as many temporaries.
  const std::uint64_t bytes = 2 * (inputs_.bytes() + request.max_output_bytes);
  try {
    core_.gpu()->fill_free_memory(request.fresh_memory == FreshMemory::ones ? 0xFF : 0, bytes);
  } catch (const PythonRaised&) {
    PyErr_Clear();  // as much as there was: others may have taken the rest meanwhile
  }
}

Ref Calls::call_exactly(const Call& request, Called& called) {
  if (!models_.is_reference()) fail(task::FailureKind::call_error, "no problem is loaded");
  const char* what = "the model does not run in float64";
  return core_.attempt(task::FailureKind::call_error, what, [&] {
    PyObject* model = models_.exact_model();
    core_.seed(request.forward_seed);
    const auto& [positional, named] = arguments_;
    const Ref keywords = named ? Ref::share(named.get()) : Ref::own(PyDict_New());
    Ref output = call(core_.torch().call_exactly.get(), model, positional.get(), keywords.get());
    called.times.us.push_back(0);
    return output;
  });
}

Ref Calls::call_model(const Call& request, Called& called, Export& outputs) {
  PyObject* model = models_.model(request.compiled);
  Ref output;
  const Manner manner = {core_.gpu() != nullptr && request.purpose == CallPurpose::time,
                         request.protocol,
                         request.grad,
                         request.forward_seed};
  const bool rotates = manner.by_device && manner.protocol == task::Protocol::rotating;
  Rotation turns(core_, inputs_, arguments_, rotates ? request.calls : 1);
  warm_up(request, model, manner, turns, called);
  KernelWatch* recorder = request.purpose == CallPurpose::profile ? core_.watch() : nullptr;
  if (recorder != nullptr) recorder->begin_records();
  const std::int64_t begin_ns = now_ns();
  for (std::uint32_t i = 0; i < request.calls; ++i) {
    const double spent_s = static_cast<double>(now_ns() - begin_ns) * 1e-9;
    if (!may_go_on(request, called.times.us, spent_s)) break;
    const Arguments& arguments = turns.next();
    const std::uint64_t change_seed = i < request.change_seeds.size() ? request.change_seeds[i] : 0;
    const FewChanges changes(inputs_, change_seed);
    // Changed values may well need less work.
    OneCall one = change_seed != 0 ? call_once(model, manner, arguments)
                                   : call_counted(model, manner, arguments, called);
    add_time(one, manner, called.times);
    output = Ref();  // freed outside the clocked span
    output = std::move(one.output);
    if (contains(request.sampled_calls, i)) {
      // Now: a later call may well write to it.
      (void)core_.read_out("output", [&] {
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

void Calls::warm_up(
    const Call& request, PyObject* model, const Manner& manner, Rotation& turns, Called& called) {
  const Deadline warm(std::chrono::nanoseconds(static_cast<std::int64_t>(request.warmup_s * 1e9)));
  const Deadline settled(
      std::chrono::nanoseconds(static_cast<std::int64_t>(request.settle_s * 1e9)));
  std::vector<double> us;
  while (us.size() < request.warmup_calls || !warm.passed() ||
         !(settled.passed() || is_stable(us))) {
    us.push_back(call_counted(model, manner, turns.next(), called).device.us);
  }
}

/// And adds what it did to the work on these inputs.
Calls::OneCall Calls::call_counted(PyObject* model,
                                   const Manner& manner,
                                   const Arguments& arguments,
                                   Called& called) {
  const std::uint64_t before = own_programs_so_far();
  OneCall one = call_once(model, manner, arguments);
  const std::uint64_t programs = own_programs_so_far() - before;
  if (!called.work) called.work = task::RepeatedWork{0, programs, programs, 0};
  task::RepeatedWork& work = *called.work;
  ++work.calls;
  work.least_programs = std::min(work.least_programs, programs);
  if (programs < work.first_programs) ++work.calls_with_fewer;
  return one;
}

/// Returns when the device is done with it.
Calls::OneCall Calls::call_once(PyObject* model, const Manner& manner, const Arguments& arguments) {
  const TorchFunctions& torch = core_.torch();
  core_.seed(manner.forward_seed);  // each call draws as the first one does
  {
    const ContextScope plain(torch.no_function_modes);
    (void)call(torch.set_grad_enabled.get(),
               manner.grad == task::GradMode::on ? Py_True : Py_False);
  }
  note_programs_behind();
  std::optional<ContextScope> inference;
  if (manner.grad == task::GradMode::inference) {
    inference.emplace(torch.inference_mode, Py_True);
  }
  OneCall one;
  one.output = core_.attempt(task::FailureKind::call_error, "forward raised", [&] {
    if (manner.by_device) core_.gpu()->begin_timing(manner.protocol);
    const std::int64_t start_ns = now_ns();
    PyObject* result = PyObject_Call(model, arguments.positional.get(), arguments.keywords.get());
    const std::int64_t end_ns = now_ns();
    one.host_us = static_cast<double>(end_ns - start_ns) * 1e-3;
    if (result != nullptr && manner.by_device) one.device = core_.gpu()->end_timing();
    return Ref::own(result);
  });
  core_.check_device();
  programs_at_end_ = own_programs_so_far();
  return one;
}

void Calls::add_time(const OneCall& one, const Manner& manner, task::TimedCalls& times) {
  times.us.push_back(manner.by_device ? one.device.us : one.host_us);
  if (!manner.by_device) return;
  times.host_us.push_back(one.host_us);
  times.behind_us.push_back(one.device.behind_us);
  if (one.device.gated) ++times.gated;
}

void Calls::take_output(const Call& request,
                        PyObject* output,
                        Export& outputs,
                        Called& called) const {
  const bool as_list = !request.sampled_calls.empty();
  Exported exported = core_.read_out("output", [&] {
    if (!as_list) outputs.add(output, "output", Reading::at_the_end);
    return outputs.finish(as_list, core_.allocator());
  });
  called.output = std::move(exported.bundle);
  called.bad_leaf = std::move(exported.bad_leaf);
}

void Calls::note_launches(Called& called) const {
  const KernelWatch* watch = core_.watch();
  LaunchLog log = watch != nullptr ? watch->launches() : launches();
  if (watch != nullptr) {
    called.kept_launches = watch->kept_launches();
    called.streams = watch->streams();
    if (watch->has_replayed()) called.work.reset();  // unknown
  }
  called.kernels = std::move(log.kernels);
  called.dropped_launches = log.dropped;
}

void Calls::note_overrides(Called& called) const {
  called.overrides = find_overrides(core_.torch());
  if (pop_dispatch_modes(core_.torch()) == 0) return;
  called.overrides.emplace_back("a TorchDispatchMode was left on");
}

std::uint64_t Calls::own_programs_so_far() const {
  const KernelWatch* watch = core_.watch();
  return watch != nullptr ? watch->own_programs() : own_programs();
}

/// Of own kernels, launched since the last call was over: by a thread, or by what its end set off.
void Calls::note_programs_behind() {
  const std::uint64_t now = own_programs_so_far();
  programs_behind_ += now - std::exchange(programs_at_end_, now);
}

}  // namespace drk::guest
