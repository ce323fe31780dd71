// SPDX-License-Identifier: Apache-2.0
// Requests come in, replies go out.
#include "guest/session.h"

#include "drk/base/clock.h"
#include "drk/base/error.h"
#include "drk/base/json.h"
#include "drk/guest.h"

#include "guest/call_inputs.h"
#include "guest/calls.h"
#include "guest/channel_guard.h"
#include "guest/core.h"
#include "guest/models.h"
#include "guest/tools.h"

#include <fmt/format.h>

#include <cstring>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <sys/prctl.h>
#include <unistd.h>

namespace drk::guest {

namespace {

using Fds = std::vector<Fd>;

std::string source_of(const Fd& source_fd) {
  const std::size_t size = file_size_bytes(source_fd.get());
  const Mapping mapping = Mapping::shared(source_fd.get(), size, false);
  return {reinterpret_cast<const char*>(mapping.data()), size};
}

/// So that what was printed is read before the reply is acted on.
void flush_output() {
  for (const char* name : {"stdout", "stderr"}) {
    PyObject* stream = PySys_GetObject(name);  // borrowed; the candidate may have replaced it
    if (stream == nullptr || stream == Py_None) continue;
    PyObject* done = PyObject_CallMethod(stream, "flush", nullptr);
    if (done == nullptr) PyErr_Clear();
    Py_DecRef(done);
  }
}

class Session {
 public:
  Session(const TorchFunctions& torch, Fd control, const sandbox::Plan& plan, std::string scratch)
      : plan_(plan), core_(torch, std::move(control), std::move(scratch)) {}

  /// False when the worker is gone.
  bool serve_one() {
    const std::optional<Message> message = receive_message(core_.control());
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
    send_message(core_.control(), json::dump(json::to_json(reply)), fds);
    reply_fds_.clear();
  }

  Reply answer(const Request& request, const Fds& fds) {
    try {
      return std::visit([&](const auto& alternative) -> Reply { return handle(alternative, fds); },
                        request);
    } catch (const RequestFailed& failed) {
      return failed.reply;
    } catch (const CudaFailed& failed) {
      return core_.device_failure(failed.status, failed.what());
    } catch (const PythonRaised&) {
      return core_.python_failure();
    }
  }

  // --- the device ---

  Reply handle(const Prepare& request, const Fds& /*fds*/) {
    if (request.hardware_queues > 0) {  // read by the driver when it makes the context
      // NOLINTNEXTLINE(concurrency-mt-unsafe): the only thread so far
      ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", std::to_string(request.hardware_queues).c_str(), 1);
    }
    core_.open_gpu();
    return core_.gpu()->prepared();
  }

  Reply handle(const Probe& /*request*/, const Fds& /*fds*/) {
    if (core_.gpu() == nullptr) fail(task::FailureKind::cuda_error, "there is no device");
    core_.gpu()->probe();
    return Probed{};
  }

  // --- what the worker holds against its own knowledge ---

  Reply handle(const Settle& /*request*/, const Fds& /*fds*/) {
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
    settled.channel_problem = guard_channel(core_.control());
    return settled;
  }

  Reply handle(const Wait& request, const Fds& /*fds*/) {
    const std::int64_t end_ns = now_ns() + static_cast<std::int64_t>(request.us * 1e3);
    while (now_ns() < end_ns) {
    }
    return Waited{};
  }

  Reply handle(const Restrict& /*request*/, const Fds& /*fds*/) {
    return Restricted{sandbox::add_filter(plan_.late_filter)};
  }

  // --- models ---

  Reply handle(const CheckSyntax& /*request*/, const Fds& fds) {
    core_.judge_file(core_.scratch() + "/candidate.py");
    models_.check_syntax(source_of(fds.at(0)));
    return SyntaxChecked{};
  }

  Reply handle(const LoadReference& request, const Fds& fds) {
    core_.judge_file(core_.scratch() + "/reference.py");
    Loaded loaded;
    {
      const Ref arguments = models_.load_reference(request, source_of(fds.at(0)));
      loaded.init_inputs = send_out(arguments.get(), "init_inputs");
    }
    loaded.parameters = models_.parameters();
    release_memory();
    return loaded;
  }

  Reply handle(const LoadCandidate& request, const Fds& fds) {
    core_.judge_file(core_.scratch() + "/candidate.py");
    models_.load_candidate(request, source_of(fds.at(0)), [&] {
      return inputs_.take_in(request.init_inputs, fds.at(1).get());
    });
    Loaded loaded;
    loaded.parameters = models_.parameters();
    return loaded;
  }

  Reply handle(const MakeInputs& request, const Fds& /*fds*/) {
    InputsMade made;
    {
      const Ref inputs = models_.make_inputs(request);
      made.inputs = send_out(inputs.get(), "inputs");
    }
    if (core_.gpu() != nullptr) {
      for (value::Tensor& tensor : made.inputs.tensors) tensor.device = value::Device::cuda;
    }
    release_memory();
    return made;
  }

  Reply handle(const Call& request, const Fds& fds) {
    Called called = calls_.make(request, fds.empty() ? -1 : fds[0].get());
    release_memory();
    return called;
  }

  /// A reference's guest stays; what it keeps for later would be missing elsewhere.
  void release_memory() {
    if (!models_.is_reference() || core_.gpu() == nullptr) return;
    calls_.drop_arguments();
    inputs_.drop();
    core_.gpu()->release_cached();
  }

  /// As the problem made it, views and all.
  value::Bundle send_out(PyObject* object, const std::string& name) {
    constexpr std::uint64_t kNoLimit = INT64_MAX;  // no file is larger
    Exported exported = core_.read_out(name, [&] {
      Export values(core_.torch(), core_.driver(), Strides::keep, kNoLimit);
      values.add(object, name, Reading::at_the_end);
      return values.finish(false, core_.allocator());
    });
    if (exported.bad_leaf) {
      fail(task::FailureKind::inputs_error,
           exported.bad_leaf->path + " cannot be passed to another process: it is " +
               exported.bad_leaf->what);
    }
    return std::move(exported.bundle);
  }

  // --- tools ---

  Reply handle(const RunTools& request, const Fds& fds) {
    const std::size_t size = file_size_bytes(fds.at(0).get());
    const Mapping files = Mapping::shared(fds.at(0).get(), size, false);
    ToolsRan ran = run_tools(request, files.bytes(), core_.scratch());
    if (ran.exit_code != 0) return ran;
    const std::string product = read_file(core_.scratch() + "/" + request.product);
    ran.product_bytes = product.size();
    const Fd memory = core_.allocate(product.size());
    const Mapping mapping = Mapping::shared(memory.get(), product.size(), true);
    if (!product.empty()) std::memcpy(mapping.data(), product.data(), product.size());
    return ran;
  }

  const sandbox::Plan& plan_;
  Core core_;  // before what lies on its device
  Models models_{core_};
  CallInputs inputs_{core_};
  Calls calls_{core_, models_, inputs_};
  Fds reply_fds_;  ///< Go with the next reply, and are closed then.
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
