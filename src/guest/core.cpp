// SPDX-License-Identifier: Apache-2.0
#include "guest/core.h"

#include "drk/base/error.h"

#include "guest/build_client.h"
#include "guest/python_error.h"

#include <utility>

namespace drk::guest {

void fail(task::FailureKind kind, std::string what) {
  throw RequestFailed{{kind, std::move(what), std::nullopt, ""}};
}

Core::Core(const TorchFunctions& torch, Fd control, std::string scratch)
    : torch_(torch), control_(std::move(control)), scratch_(std::move(scratch)) {
  set_build_channel(control_.get());
}

void Core::open_gpu() {
  try {
    (void)attempt(task::FailureKind::cuda_error, "the device cannot be used", [&] {
      gpu_ = std::make_unique<Gpu>(torch_);
      return Ref::share(Py_None);
    });
  } catch (const Error& error) {
    fail(task::FailureKind::cuda_error, error.what());
  }
}

const CudaDriver* Core::driver() const noexcept {
  return gpu_ ? &gpu_->driver() : nullptr;
}

KernelWatch* Core::watch() const noexcept {
  return gpu_ ? gpu_->watch() : nullptr;
}

void Core::seed(std::uint64_t value) const {
  const Ref number = Ref::own(PyLong_FromUnsignedLongLong(value));
  const Ref small = Ref::own(PyLong_FromUnsignedLongLong(value & 0xFFFFFFFFU));
  (void)call(torch_.random_seed.get(), torch_.random_generator.get(), number.get());
  (void)call(torch_.numpy_seed.get(), small.get());
  (void)call(torch_.manual_seed.get(), number.get());
  if (gpu_) gpu_->seed(number.get());
}

Fd Core::allocate(std::uint64_t bytes) const {
  return request_memory(control_.get(), bytes);
}

Allocator Core::allocator() const {
  return [this](std::uint64_t bytes) { return allocate(bytes); };
}

void Core::check_device() const {
  if (!gpu_) return;
  if (const int status = gpu_->driver().synchronize(); status != 0) {
    throw RequestFailed{device_failure(status, "a kernel failed on the device")};
  }
}

Failed Core::device_failure(int status, std::string what) const {
  const bool is_memory = status == kCudaOutOfMemory;
  return {is_memory ? task::FailureKind::out_of_memory : task::FailureKind::cuda_error,
          std::move(what),
          std::nullopt,
          gpu_ ? gpu_->driver().name_of(status) : ""};
}

Failed Core::python_failure() const {
  RaisedError raised = take_error(path_);
  const bool is_memory = raised.is_out_of_memory;
  return {is_memory ? task::FailureKind::out_of_memory : task::FailureKind::call_error,
          "torch raised beside the call",
          std::move(raised.error),
          is_memory && gpu_ ? gpu_->driver().name_of(kCudaOutOfMemory) : ""};
}

void Core::fail_as_raised(task::FailureKind kind, const std::string& what) const {
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

}  // namespace drk::guest
