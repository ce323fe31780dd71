// SPDX-License-Identifier: Apache-2.0
// What all requests to a guest stand on: torch's functions, the device, the channel, and how
// something that was tried becomes a failure.
#pragma once

#include "drk/base/fd.h"
#include "drk/guest.h"

#include "guest/gpu.h"
#include "guest/python.h"
#include "guest/tensors.h"
#include "guest/tree.h"

#include <cstdint>
#include <memory>
#include <string>

namespace drk::guest {

/// A request that cannot be done, on its way to becoming a reply.
struct RequestFailed {
  Failed reply;
};

[[noreturn]] void fail(task::FailureKind kind, std::string what);

/// One a guest. Needs the GIL.
class Core {
 public:
  /// `scratch`: a folder of the guest's own. `torch` must last.
  Core(const TorchFunctions& torch, Fd control, std::string scratch);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core() = default;

  [[nodiscard]] const TorchFunctions& torch() const noexcept { return torch_; }
  [[nodiscard]] int control() const noexcept { return control_.get(); }
  [[nodiscard]] const std::string& scratch() const noexcept { return scratch_; }

  /// Makes the context. Throws RequestFailed.
  void open_gpu();
  /// Null without one.
  [[nodiscard]] Gpu* gpu() const noexcept { return gpu_.get(); }
  /// Null without a GPU.
  [[nodiscard]] const CudaDriver* driver() const noexcept;
  /// Null where no driver's callbacks tell of launches.
  [[nodiscard]] KernelWatch* watch() const noexcept;

  /// Where the judged code lies from now on: its lines are named in failures.
  void judge_file(std::string path) { path_ = std::move(path); }
  [[nodiscard]] const std::string& judged_file() const noexcept { return path_; }

  /// Seeds every generator that a model may draw from.
  void seed(std::uint64_t value) const;

  /// Shared memory of so many bytes, from the worker.
  [[nodiscard]] Fd allocate(std::uint64_t bytes) const;
  [[nodiscard]] Allocator allocator() const;

  /// Runs `work`; a Python exception becomes a failure, of a narrower kind where its type tells.
  template <class Work>
  [[nodiscard]] Ref attempt(task::FailureKind kind,
                            const std::string& what,
                            const Work& work) const {
    try {
      return work();
    } catch (const PythonRaised&) {
      fail_as_raised(kind, what);
    }
  }
  /// Runs `work`, which reads values out of torch.
  template <class Work>
  [[nodiscard]] Exported read_out(const std::string& name, const Work& work) const {
    Exported exported;
    (void)attempt(task::FailureKind::call_error, "the " + name + " could not be read", [&] {
      exported = work();
      return Ref::share(Py_None);
    });
    return exported;
  }
  /// Waits for the device; what a kernel did wrong shows here, and the context is then lost. Throws
  /// RequestFailed.
  void check_device() const;

  [[nodiscard]] Failed device_failure(int status, std::string what) const;
  /// Of what torch raised outside the code that is judged.
  [[nodiscard]] Failed python_failure() const;

 private:
  [[noreturn]] void fail_as_raised(task::FailureKind kind, const std::string& what) const;

  const TorchFunctions& torch_;
  Fd control_;
  std::string scratch_;
  std::string path_;
  std::unique_ptr<Gpu> gpu_;
};

}  // namespace drk::guest
