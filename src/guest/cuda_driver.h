// SPDX-License-Identifier: Apache-2.0
// The CUDA driver, opened at run time: the parts of cuda.h that are called here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace drk::guest {

/// A call that the driver did not do. `name` is the driver's own: "CUDA_ERROR_ILLEGAL_ADDRESS".
struct CudaFailed : std::runtime_error {
  CudaFailed(const char* function, int status, std::string status_name);
  int status;
  std::string name;
};

inline constexpr int kCudaOutOfMemory = 2;

/// Entry points, resolved once, before any line of a candidate runs. All calls are made on the
/// thread that made the context. Throws CudaFailed where nothing else is said.
class CudaDriver {
 public:
  using Address = std::uint64_t;
  using Event = void*;
  using Function = void*;

  /// Throws Error{unavailable} when there is no driver, or an older one.
  CudaDriver();
  CudaDriver(const CudaDriver&) = delete;
  CudaDriver& operator=(const CudaDriver&) = delete;
  ~CudaDriver() = default;  // the driver stays loaded

  /// Waits for all streams of the device. The status that it returned: 0, or what a kernel did.
  [[nodiscard]] int synchronize() const noexcept;
  void check_synchronize() const;
  void copy_to_device(Address to, const std::byte* from, std::size_t bytes) const;
  void copy_to_host(std::byte* to, Address from, std::size_t bytes) const;
  void copy_on_device(Address to, Address from, std::size_t bytes) const;
  void fill(Address at, unsigned char byte, std::size_t bytes) const;
  /// On the stream that torch's default stream is; does not wait.
  void fill_later(Address at, unsigned char byte, std::size_t bytes) const;
  [[nodiscard]] std::size_t free_bytes() const;
  [[nodiscard]] std::uint64_t l2_bytes() const;
  [[nodiscard]] std::string name_of(int status) const;

  [[nodiscard]] Event make_event() const;
  /// On the stream that torch's default stream is.
  void record(Event event) const;
  /// Behind all that was queued on any stream; false where the driver cannot say (before CUDA 12.5,
  /// or while a stream captures).
  [[nodiscard]] bool record_all(Event event) const;
  /// Both must have been reached.
  [[nodiscard]] double elapsed_us(Event from, Event to) const;
  /// Lines of the L2 cache that were to persist no longer do.
  void reset_persisting_l2() const;

  /// A kernel of a text in PTX. Throws Error{unavailable} when the driver does not take it.
  [[nodiscard]] Function load_function(const char* ptx, const char* name) const;
  /// On the stream that torch's default stream is.
  void launch_one_thread(Function function, void** parameters) const;
  struct HostMemory {
    void* data = nullptr;
    Address address = 0;  ///< The device's.
  };
  /// That the device reads and writes as well. Lasts as long as the context.
  [[nodiscard]] HostMemory allocate_host(std::size_t bytes) const;

 private:
  template <class... Parameters, class... Arguments>
  void call(const char* name, int (*function)(Parameters...), Arguments... arguments) const;

  int (*synchronize_)() = nullptr;
  int (*memcpy_to_device_)(Address, const void*, std::size_t) = nullptr;
  int (*memcpy_to_host_)(void*, Address, std::size_t) = nullptr;
  int (*memcpy_on_device_)(Address, Address, std::size_t) = nullptr;
  int (*memset_)(Address, unsigned char, std::size_t) = nullptr;
  int (*memset_async_)(Address, unsigned char, std::size_t, void*) = nullptr;
  int (*memory_info_)(std::size_t*, std::size_t*) = nullptr;
  int (*device_attribute_)(int*, int, int) = nullptr;
  int (*error_name_)(int, const char**) = nullptr;
  int (*event_create_)(Event*, unsigned) = nullptr;
  int (*event_record_)(Event, void*) = nullptr;
  int (*event_elapsed_)(float*, Event, Event) = nullptr;
  int (*current_context_)(void**) = nullptr;
  int (*context_record_)(void* context, Event) = nullptr;  ///< Null before CUDA 12.5.
  int (*reset_persisting_l2_)() = nullptr;
  int (*module_load_)(void**, const void*) = nullptr;
  int (*module_function_)(Function*, void*, const char*) = nullptr;
  int (*launch_)(Function,
                 unsigned,
                 unsigned,
                 unsigned,
                 unsigned,
                 unsigned,
                 unsigned,
                 unsigned,
                 void*,
                 void**,
                 void**) = nullptr;
  int (*host_allocate_)(void**, std::size_t, unsigned) = nullptr;
  int (*host_address_)(Address*, void*, unsigned) = nullptr;
};

}  // namespace drk::guest
