// SPDX-License-Identifier: Apache-2.0
// Opening libcuda and calling it.
#include "guest/cuda_driver.h"

#include "drk/base/error.h"

#include <fmt/format.h>

#include <dlfcn.h>

namespace drk::guest {

namespace {

constexpr int kAttributeL2Bytes = 38;  // CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
constexpr int kDevice = 0;             // the only one that a guest sees

template <class Function>
void resolve(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  if (function != nullptr) return;
  throw Error(ErrorCode::unavailable, std::string("guest: the CUDA driver has no ") + name);
}

}  // namespace

CudaFailed::CudaFailed(const char* function, int status_code, std::string status_name)
    : std::runtime_error(fmt::format("{}: {}", function, status_name)),
      status(status_code),
      name(std::move(status_name)) {}

CudaDriver::CudaDriver() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // never closed: torch uses it
  if (library == nullptr) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc keeps one text for each thread
    throw Error(ErrorCode::unavailable, std::string("guest: no CUDA driver: ") + ::dlerror());
  }
  resolve(library, "cuCtxSynchronize", synchronize_);
  resolve(library, "cuMemcpyHtoD_v2", memcpy_to_device_);
  resolve(library, "cuMemcpyDtoH_v2", memcpy_to_host_);
  resolve(library, "cuMemcpyDtoD_v2", memcpy_on_device_);
  resolve(library, "cuMemsetD8_v2", memset_);
  resolve(library, "cuMemsetD8Async", memset_async_);
  resolve(library, "cuMemGetInfo_v2", memory_info_);
  resolve(library, "cuDeviceGetAttribute", device_attribute_);
  resolve(library, "cuGetErrorName", error_name_);
  resolve(library, "cuEventCreate", event_create_);
  resolve(library, "cuEventRecord", event_record_);
  resolve(library, "cuEventElapsedTime", event_elapsed_);
  resolve(library, "cuCtxGetCurrent", current_context_);
  resolve(library, "cuCtxResetPersistingL2Cache", reset_persisting_l2_);
  resolve(library, "cuModuleLoadData", module_load_);
  resolve(library, "cuModuleGetFunction", module_function_);
  resolve(library, "cuLaunchKernel", launch_);
  resolve(library, "cuMemHostAlloc", host_allocate_);
  resolve(library, "cuMemHostGetDevicePointer_v2", host_address_);
  context_record_ = reinterpret_cast<int (*)(void*, Event)>(::dlsym(library, "cuCtxRecordEvent"));
}

template <class... Parameters, class... Arguments>
void CudaDriver::call(const char* name,
                      int (*function)(Parameters...),
                      Arguments... arguments) const {
  if (const int status = function(arguments...); status != 0) {
    throw CudaFailed(name, status, name_of(status));
  }
}

std::string CudaDriver::name_of(int status) const {
  const char* name = nullptr;
  if (error_name_(status, &name) != 0 || name == nullptr) return fmt::format("error {}", status);
  return name;
}

int CudaDriver::synchronize() const noexcept {
  return synchronize_();
}

void CudaDriver::check_synchronize() const {
  call("cuCtxSynchronize", synchronize_);
}

void CudaDriver::copy_to_device(Address to, const std::byte* from, std::size_t bytes) const {
  if (bytes > 0) call("cuMemcpyHtoD", memcpy_to_device_, to, from, bytes);
}

void CudaDriver::copy_to_host(std::byte* to, Address from, std::size_t bytes) const {
  if (bytes > 0) call("cuMemcpyDtoH", memcpy_to_host_, to, from, bytes);
}

void CudaDriver::copy_on_device(Address to, Address from, std::size_t bytes) const {
  if (bytes > 0) call("cuMemcpyDtoD", memcpy_on_device_, to, from, bytes);
}

void CudaDriver::fill(Address at, unsigned char byte, std::size_t bytes) const {
  if (bytes > 0) call("cuMemsetD8", memset_, at, byte, bytes);
}

void CudaDriver::fill_later(Address at, unsigned char byte, std::size_t bytes) const {
  if (bytes > 0) call("cuMemsetD8Async", memset_async_, at, byte, bytes, nullptr);
}

std::size_t CudaDriver::free_bytes() const {
  std::size_t free_bytes = 0, total_bytes = 0;
  call("cuMemGetInfo", memory_info_, &free_bytes, &total_bytes);
  return free_bytes;
}

std::uint64_t CudaDriver::l2_bytes() const {
  int bytes = 0;
  call("cuDeviceGetAttribute", device_attribute_, &bytes, kAttributeL2Bytes, kDevice);
  return static_cast<std::uint64_t>(bytes);
}

CudaDriver::Event CudaDriver::make_event() const {
  Event event = nullptr;
  call("cuEventCreate", event_create_, &event, 0U);
  return event;
}

void CudaDriver::record(Event event) const {
  call("cuEventRecord", event_record_, event, nullptr);
}

bool CudaDriver::record_all(Event event) const {
  void* context = nullptr;
  return context_record_ != nullptr && current_context_(&context) == 0 &&
         context_record_(context, event) == 0;
}

double CudaDriver::elapsed_us(Event from, Event to) const {
  float milliseconds = 0;
  call("cuEventElapsedTime", event_elapsed_, &milliseconds, from, to);
  return static_cast<double>(milliseconds) * 1e3;
}

void CudaDriver::reset_persisting_l2() const {
  call("cuCtxResetPersistingL2Cache", reset_persisting_l2_);
}

CudaDriver::Function CudaDriver::load_function(const char* ptx, const char* name) const {
  void* module = nullptr;
  Function function = nullptr;
  int status = module_load_(&module, ptx);
  if (status == 0) status = module_function_(&function, module, name);
  if (status == 0) return function;
  throw Error(ErrorCode::unavailable,
              fmt::format("guest: the driver does not load {}: {}", name, name_of(status)));
}

void CudaDriver::launch_one_thread(Function function, void** parameters) const {
  call("cuLaunchKernel",
       launch_,
       function,
       1U,
       1U,
       1U,
       1U,
       1U,
       1U,
       0U,
       nullptr,
       parameters,
       nullptr);
}

CudaDriver::HostMemory CudaDriver::allocate_host(std::size_t bytes) const {
  constexpr unsigned kMapped = 2;  // CU_MEMHOSTALLOC_DEVICEMAP
  HostMemory memory;
  call("cuMemHostAlloc", host_allocate_, &memory.data, bytes, kMapped);
  call("cuMemHostGetDevicePointer", host_address_, &memory.address, memory.data, 0U);
  return memory;
}

}  // namespace drk::guest
