// SPDX-License-Identifier: Apache-2.0
// Entry points by name.
#include "guest/cupti_api.h"

#include "drk/base/error.h"

#include <fmt/format.h>

#include <dlfcn.h>

namespace drk::guest::cupti {

namespace {

constexpr std::uint32_t kOldestCupti = 18;  // of CUDA 12.0; CUDA 13.0 counts 130000

void* open_library(const std::string& file) {
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw Error(ErrorCode::unavailable, fmt::format("guest: {}", ::dlerror()));
  return library;
}

template <class F>
void find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(::dlsym(library, name));
}

template <class F>
void require(void* library, const char* name, F& function) {
  find(library, name, function);
  if (function != nullptr) return;
  throw Error(ErrorCode::unavailable, fmt::format("guest: kernels need {}: {}", name, ::dlerror()));
}

}  // namespace

Api open_cupti(const std::string& file) {
  void* library = open_library(file);
  Api api;
  require(library, "cuptiGetVersion", api.get_version);
  require(library, "cuptiSubscribe", api.subscribe);
  require(library, "cuptiUnsubscribe", api.unsubscribe);
  require(library, "cuptiEnableCallback", api.enable_callback);
  require(library, "cuptiActivityRegisterCallbacks", api.register_callbacks);
  require(library, "cuptiActivityEnable", api.enable);
  require(library, "cuptiActivityDisable", api.disable);
  require(library, "cuptiActivityFlushAll", api.flush_all);
  require(library, "cuptiActivityGetNextRecord", api.next_record);
  require(library, "cuptiActivityGetNumDroppedRecords", api.dropped_records);
  require(library, "cuptiGetGraphNodeId", api.graph_node_id);
  require(library, "cuptiGetResultString", api.result_string);
  std::uint32_t version = 0;
  if (api.get_version(&version) != 0 || version < kOldestCupti) {
    throw Error(
        ErrorCode::unavailable,
        fmt::format(
            "guest: {} has version {}, wanted {} (CUDA 12) or newer", file, version, kOldestCupti));
  }
  return api;
}

Driver open_driver() {
  void* library = open_library("libcuda.so.1");
  Driver driver;
  require(library, "cuFuncGetModule", driver.func_get_module);
  require(library, "cuFuncSetAttribute", driver.func_set_attribute);
  require(library, "cuModuleLoadData", driver.module_load_data);
  require(library, "cuModuleGetFunction", driver.module_get_function);
  require(library, "cuLaunchKernel", driver.launch_kernel);
  require(library, "cuLaunchKernelEx", driver.launch_kernel_ex);
  require(library, "cuStreamIsCapturing", driver.stream_is_capturing);
  require(library, "cuStreamWaitEvent", driver.stream_wait_event);
  require(library, "cuCtxSynchronize", driver.ctx_synchronize);
  require(library, "cuMemAlloc_v2", driver.mem_alloc);
  require(library, "cuMemFree_v2", driver.mem_free);
  require(library, "cuMemsetD32_v2", driver.memset_d32);
  require(library, "cuMemcpyDtoH_v2", driver.memcpy_to_host);
  require(library, "cuGraphGetNodes", driver.graph_get_nodes);
  require(library, "cuGraphNodeGetType", driver.graph_node_get_type);
  require(library, "cuGraphKernelNodeGetParams_v2", driver.graph_kernel_node_get_params);
  require(library, "cuGraphChildGraphNodeGetGraph", driver.graph_child_get_graph);
  find(library, "cuKernelGetLibrary", driver.kernel_get_library);
  find(library, "cuFuncGetName", driver.func_get_name);
  find(library, "cuKernelGetName", driver.kernel_get_name);
  return driver;
}

std::string failure_text(const Api& api, const char* function, int status) {
  const char* name = nullptr;
  if (api.result_string(status, &name) != 0 || name == nullptr) name = "?";
  return fmt::format("{}: {} ({})", function, name, status);
}

}  // namespace drk::guest::cupti
