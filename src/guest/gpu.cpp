// SPDX-License-Identifier: Apache-2.0
// Context, memory, clocks.
#include "guest/gpu.h"

#include "drk/base/error.h"

#include "guest/launches.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <vector>

namespace drk::guest {

namespace {

constexpr std::uint64_t kProbeBytes = 4096;
constexpr unsigned char kProbeByte = 0xA5;
// torch serves requests up to 1 MiB from small segments of 2 MiB, and larger ones apart.
constexpr std::uint64_t kSmallBytes = std::uint64_t{1} << 20;
constexpr int kSmallBlocks = 16;

/// The file of a library that torch brought along.
std::string loaded_library(const char* part_of_name) {
  std::istringstream maps(read_file("/proc/self/maps"));
  for (std::string line; std::getline(maps, line);) {
    if (line.find(part_of_name) != std::string::npos) return line.substr(line.find('/'));
  }
  throw Error(ErrorCode::unavailable, std::string("guest: torch has loaded no ") + part_of_name);
}

/// Keeps a torch tensor until the last tensor over its memory is gone, on whatever thread that is.
std::shared_ptr<const void> kept(Ref tensor) {
  const auto drop = [](PyObject* object) {
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DecRef(object);
    PyGILState_Release(state);
  };
  return std::shared_ptr<PyObject>(tensor.release(), drop);
}

}  // namespace

Gpu::Gpu(const TorchFunctions& torch) : torch_(torch) {
  if (!torch.empty_cuda_cache) {
    throw Error(ErrorCode::unavailable, "guest: this torch was built without CUDA");
  }
  (void)call(torch.cuda_init.get());
  probe_ = allocate(kProbeBytes);  // makes the context
  const Ref generators = attribute(import_module("torch.cuda").get(), "default_generators");
  generator_ = attribute(Ref::share(PyTuple_GetItem(generators.get(), 0)).get(), "manual_seed");
  // float32 is float32: by default cuDNN would round its operands to TF32.
  (void)call(torch.allow_cudnn_tf32.get(), Py_False);
  const Ref triton_driver = attribute(import_module("triton.runtime").get(), "driver");
  const Ref active = attribute(triton_driver.get(), "active");
  (void)call(attribute(active.get(), "get_current_target").get());
  clock_.emplace(driver_);
  probe();
  start_watch();
}

void Gpu::start_watch() {
  try {
    watch_ = std::make_unique<KernelWatch>(loaded_library("/libcupti.so"), system_paths());
    watch_->leave_out(static_cast<cupti::Function>(clock_->gate_kernel()));
    prepared_.drop_problem = watch_->drop_problem();
  } catch (const Error& error) {
    prepared_.launch_problem = prepared_.drop_problem = error.what();
  }
}

void Gpu::probe() {
  const auto at = reinterpret_cast<CudaDriver::Address>(probe_.data);
  driver_.fill(at, kProbeByte, kProbeBytes);
  std::array<std::byte, kProbeBytes> read = {};
  driver_.copy_to_host(read.data(), at, read.size());
  if (std::any_of(
          read.begin(), read.end(), [](std::byte b) { return b != std::byte{kProbeByte}; })) {
    throw Error(ErrorCode::unavailable,
                "guest: the device gave back other bytes than were written");
  }
}

Memory Gpu::allocate(std::uint64_t bytes) const {
  const Ref arguments = Ref::own(Py_BuildValue("(K)", static_cast<unsigned long long>(bytes)));
  const Ref keywords = Ref::own(Py_BuildValue(
      "{s:O,s:O}", "dtype", torch_.byte_type.get(), "device", torch_.cuda_device.get()));
  Ref tensor = Ref::own(PyObject_Call(torch_.empty.get(), arguments.get(), keywords.get()));
  Memory memory;
  memory.device = value::Device::cuda;
  // The address is written to: the tensor is ours, `data()` is const for what a model made.
  memory.data = const_cast<std::byte*>(TensorHold(torch_, tensor.get()).data());
  memory.owner = kept(std::move(tensor));
  return memory;
}

Ref Gpu::move_model(PyObject* model) const {
  return call(torch_.module_to.get(), model, torch_.cuda_device.get());
}

void Gpu::seed(PyObject* number) const {
  (void)call(generator_.get(), number);
}

void Gpu::fill_free_memory(unsigned char byte, std::uint64_t bytes) const {
  release_cached();
  const std::uint64_t large_bytes = std::min<std::uint64_t>(bytes, driver_.free_bytes() / 4);
  std::vector<Memory> filled;
  const auto fill = [&](std::uint64_t size) {
    filled.push_back(allocate(size));
    driver_.fill(reinterpret_cast<CudaDriver::Address>(filled.back().data), byte, size);
  };
  for (int i = 0; i < kSmallBlocks; ++i) fill(kSmallBytes);
  if (large_bytes > kSmallBytes) fill(large_bytes);
}

void Gpu::release_cached() const {
  (void)call(torch_.empty_cuda_cache.get());
}

void Gpu::reset_peak() const {
  const Ref device = Ref::own(PyLong_FromLong(0));
  (void)call(torch_.reset_cuda_peaks.get(), device.get());
}

std::uint64_t Gpu::peak_bytes() const {
  const Ref device = Ref::own(PyLong_FromLong(0));
  Ref found = call(torch_.cuda_memory_stats.get(), device.get());
  for (const char* key : {"reserved_bytes", "all", "peak"}) {
    found = Ref::own(PyObject_GetItem(found.get(), make_text(key).get()));
  }
  return PyLong_AsUnsignedLongLong(found.get());
}

void Gpu::empty_l2() {
  if (flush_.data == nullptr) flush_ = allocate(clock_->flush_bytes());
  clock_->empty_l2(reinterpret_cast<CudaDriver::Address>(flush_.data));
}

void Gpu::begin_timing(task::Protocol protocol) {
  if (protocol == task::Protocol::cold) empty_l2();
  clock_->start(protocol != task::Protocol::kernelgym);
  if (watch_) watch_->hold_streams_behind(static_cast<cupti::Event>(clock_->opening()));
}

DeviceTime Gpu::end_timing() {
  return clock_->stop(watch_ && watch_->let_streams_go());
}

}  // namespace drk::guest
