// SPDX-License-Identifier: Apache-2.0
// What is needed of CUPTI (12 and 13) and of the CUDA driver to watch kernels, declared by us and
// opened at run time, so that nothing of ours needs CUDA to build. Layouts and numbers are facts of
// cupti_callbacks.h, cupti_activity.h, cupti_driver_cbid.h, generated_cuda_meta.h and cuda.h; only
// fields that are read have names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace drk::guest::cupti {

// Handles of the driver. A Function is a CUfunction or a CUkernel: launches take either.
using Function = struct FunctionHandle*;
using Module = struct ModuleHandle*;
using Library = struct LibraryHandle*;
using Stream = struct StreamHandle*;
using Graph = struct GraphHandle*;
using GraphNode = struct GraphNodeHandle*;
using GraphExec = struct GraphExecHandle*;
using Subscriber = struct SubscriberHandle*;
using Event = void*;
using Address = std::uint64_t;

/// The default stream that all threads share, by name; null is it as well.
inline constexpr std::uintptr_t kLegacyStream = 1;
/// What a null stream means to the calls whose names end in _ptsz.
inline constexpr std::uintptr_t kPerThreadStream = 2;

// --- callbacks ---

enum class Domain : std::uint32_t { driver_api = 1, resource = 3 };
enum class Site : std::uint32_t { enter = 0, exit = 1 };

/// Of the driver domain. `parameters` points at the call's arguments, one behind the other.
struct CallbackData {
  Site site;
  const char* function_name;
  const void* parameters;
  const int* result;  ///< Only at exit.
  const char* symbol_name;
  void* context;
  std::uint32_t context_id;
  std::uint64_t* shared;  ///< Carries a value from a call's enter to its exit.
  std::uint32_t correlation_id;
};
static_assert(offsetof(CallbackData, parameters) == 16);
static_assert(offsetof(CallbackData, result) == 24);
static_assert(offsetof(CallbackData, symbol_name) == 32);
static_assert(offsetof(CallbackData, shared) == 56);
static_assert(offsetof(CallbackData, correlation_id) == 64);

using Callback = void (*)(void* user, Domain domain, std::uint32_t id, const void* data);

/// Numbers of driver functions (CUPTI_DRIVER_TRACE_CBID_...).
enum class DriverCall : std::uint32_t {
  module_load = 18,
  module_load_data = 19,
  module_load_data_ex = 20,
  module_load_fat_binary = 21,
  module_unload = 22,
  launch = 115,  // cuLaunch and the next two: deprecated, yet still exported
  launch_grid = 116,
  launch_grid_async = 117,
  launch_kernel = 307,
  launch_kernel_ptsz = 442,
  launch_cooperative = 477,
  launch_cooperative_ptsz = 478,
  graph_instantiate = 513,
  graph_launch = 514,
  graph_launch_ptsz = 515,
  graph_exec_destroy = 516,
  graph_exec_kernel_node_set_params = 538,
  graph_exec_update = 561,
  graph_instantiate_v2 = 578,
  graph_exec_child_node_set_params = 586,
  graph_instantiate_with_flags = 643,
  graph_node_set_enabled = 650,
  launch_kernel_ex = 652,
  launch_kernel_ex_ptsz = 653,
  graph_instantiate_with_params = 656,
  graph_instantiate_with_params_ptsz = 657,
  library_load_data = 678,
  library_load_from_file = 679,
  library_unload = 680,
  library_get_module = 682,
  kernel_get_function = 683,
  graph_exec_kernel_node_set_params_v2 = 692,
  graph_exec_update_v2 = 696,
  graph_exec_node_set_params = 714,
};

/// Numbers of the resource domain.
enum class Resource : std::uint32_t { context_destroy_starting = 2, graph_node_cloned = 20 };

struct ResourceData {
  void* context;
  void* handle;
  const void* description;  ///< Of graph events: a GraphData.
};
static_assert(offsetof(ResourceData, description) == 16);

struct GraphData {
  Graph graph;
  Graph original_graph;
  GraphNode node;
  GraphNode original_node;
  std::uint32_t node_type;
};
static_assert(offsetof(GraphData, node) == 16);
static_assert(offsetof(GraphData, original_node) == 24);

// --- arguments of the calls above ---

/// cuLaunchKernel; cuLaunchCooperativeKernel's begin likewise.
struct LaunchArguments {
  Function function;
  std::array<std::uint32_t, 3> grid;
  std::array<std::uint32_t, 3> block;
  std::uint32_t shared_bytes;
  Stream stream;
  void** kernel_parameters;
  void** extra;
};
static_assert(offsetof(LaunchArguments, grid) == 8);
static_assert(offsetof(LaunchArguments, stream) == 40);
static_assert(offsetof(LaunchArguments, kernel_parameters) == 48);
static_assert(sizeof(LaunchArguments) == 64);

struct LaunchConfig {
  std::array<std::uint32_t, 3> grid;
  std::array<std::uint32_t, 3> block;
  std::uint32_t shared_bytes;
  Stream stream;
  const void* attributes;
  std::uint32_t attribute_count;
};
static_assert(offsetof(LaunchConfig, stream) == 32);
static_assert(offsetof(LaunchConfig, attribute_count) == 48);
static_assert(sizeof(LaunchConfig) == 56);

struct LaunchExArguments {
  const LaunchConfig* config;
  Function function;
};
static_assert(offsetof(LaunchExArguments, function) == 8);

/// cuModuleLoad..., cuLibraryLoad...: where the handle goes, and an image or a file name.
struct LoadArguments {
  void** handle;
  const void* source;
};

/// cuKernelGetFunction, cuLibraryGetModule: where the handle goes, and whose it is.
struct DeriveArguments {
  void** handle;
  void* from;
};

struct GraphInstantiateArguments {
  GraphExec* exec;
  Graph graph;
};

struct GraphLaunchArguments {
  GraphExec exec;
  Stream stream;
};

/// CUDA_KERNEL_NODE_PARAMS, version 2.
struct KernelNodeParameters {
  Function function;  ///< Null where `kernel` is given.
  std::array<std::uint32_t, 7> geometry;
  void** kernel_parameters;
  void** extra;
  Function kernel;
  void* context;
};
static_assert(offsetof(KernelNodeParameters, kernel_parameters) == 40);
static_assert(offsetof(KernelNodeParameters, kernel) == 56);
static_assert(sizeof(KernelNodeParameters) == 72);

enum class NodeType : std::uint32_t { kernel = 0, graph = 4, conditional = 13 };

// --- activity records ---

enum class Activity : std::uint32_t { memcpy = 1, memset = 2, concurrent_kernel = 10 };

/// Begins every record. Copies and fills have their times at the same place as kernels.
struct ActivityHeader {
  Activity kind;
};

struct MemoryActivity {
  Activity kind;
  std::uint32_t other;
  std::uint64_t value;
  std::uint64_t start_ns;
  std::uint64_t end_ns;
};
static_assert(offsetof(MemoryActivity, start_ns) == 16);

/// The part that CUpti_ActivityKernel9 (CUDA 12) and 10 (CUDA 13) have in common.
struct KernelActivity {
  Activity kind;
  std::uint8_t cache_config;
  std::uint8_t shared_memory_config;
  std::uint16_t registers;
  std::uint32_t partitioned_caching[2];
  std::uint64_t start_ns;
  std::uint64_t end_ns;
  std::uint64_t completed_ns;
  std::uint32_t device_id;
  std::uint32_t context_id;
  std::uint32_t stream_id;
  std::array<std::int32_t, 3> grid;
  std::array<std::int32_t, 3> block;
  std::int32_t static_shared_bytes;
  std::int32_t dynamic_shared_bytes;
  std::uint32_t local_bytes;
  std::uint32_t local_total_bytes;
  std::uint32_t correlation_id;
  std::int64_t grid_id;
  const char* name;
  void* reserved;
  std::uint64_t queued_ns;
  std::uint64_t submitted_ns;
  std::uint8_t launch[4];
  std::uint32_t shared_executed_bytes;
  std::uint64_t graph_node_id;  ///< 0: not launched by a graph.
  std::uint32_t shared_limit;
  std::uint32_t graph_id;
};
static_assert(offsetof(KernelActivity, registers) == 6);
static_assert(offsetof(KernelActivity, start_ns) == 16);
static_assert(offsetof(KernelActivity, grid) == 52);
static_assert(offsetof(KernelActivity, block) == 64);
static_assert(offsetof(KernelActivity, static_shared_bytes) == 76);
static_assert(offsetof(KernelActivity, correlation_id) == 92);
static_assert(offsetof(KernelActivity, name) == 104);
static_assert(offsetof(KernelActivity, graph_node_id) == 144);
static_assert(offsetof(KernelActivity, graph_id) == 156);

using BufferRequested = void (*)(std::uint8_t** buffer,
                                 std::size_t* bytes,
                                 std::size_t* max_records);
using BufferCompleted = void (*)(void* context,
                                 std::uint32_t stream,
                                 std::uint8_t* buffer,
                                 std::size_t bytes,
                                 std::size_t valid);

inline constexpr std::uint32_t kFlushForced = 1;
inline constexpr int kInvalidParameter = 1;  // CUPTI_ERROR_...

// --- entry points ---

/// Members are named as the functions, less their prefix. All return 0 when they did it.
struct Api {
  int (*get_version)(std::uint32_t*) = nullptr;
  int (*subscribe)(Subscriber*, Callback, void* user) = nullptr;
  int (*unsubscribe)(Subscriber) = nullptr;
  int (*enable_callback)(std::uint32_t enable, Subscriber, Domain, std::uint32_t id) = nullptr;
  int (*register_callbacks)(BufferRequested, BufferCompleted) = nullptr;
  int (*enable)(Activity) = nullptr;
  int (*disable)(Activity) = nullptr;
  int (*flush_all)(std::uint32_t flags) = nullptr;
  int (*next_record)(std::uint8_t* buffer, std::size_t valid, ActivityHeader** record) = nullptr;
  int (*dropped_records)(void* context, std::uint32_t stream, std::size_t* dropped) = nullptr;
  int (*graph_node_id)(GraphNode, std::uint64_t*) = nullptr;
  int (*result_string)(int status, const char**) = nullptr;
};

struct Driver {
  int (*func_get_module)(Module*, Function) = nullptr;
  int (*func_set_attribute)(Function, int attribute, int value) = nullptr;
  int (*module_load_data)(Module*, const void* image) = nullptr;
  int (*module_get_function)(Function*, Module, const char* name) = nullptr;
  int (*launch_kernel)(Function,
                       unsigned grid_x,
                       unsigned grid_y,
                       unsigned grid_z,
                       unsigned block_x,
                       unsigned block_y,
                       unsigned block_z,
                       unsigned shared_bytes,
                       Stream,
                       void** parameters,
                       void** extra) = nullptr;
  int (*launch_kernel_ex)(const LaunchConfig*, Function, void** parameters, void** extra) = nullptr;
  int (*stream_is_capturing)(Stream, int* status) = nullptr;
  int (*stream_wait_event)(Stream, Event, unsigned flags) = nullptr;
  int (*ctx_synchronize)() = nullptr;
  int (*mem_alloc)(Address*, std::size_t bytes) = nullptr;
  int (*mem_free)(Address) = nullptr;
  int (*memset_d32)(Address, std::uint32_t value, std::size_t count) = nullptr;
  int (*memcpy_to_host)(void* to, Address from, std::size_t bytes) = nullptr;
  int (*graph_get_nodes)(Graph, GraphNode*, std::size_t* count) = nullptr;
  int (*graph_node_get_type)(GraphNode, NodeType*) = nullptr;
  int (*graph_kernel_node_get_params)(GraphNode, KernelNodeParameters*) = nullptr;
  int (*graph_child_get_graph)(GraphNode, Graph*) = nullptr;
  // Null in drivers before CUDA 12.5, where a CUkernel's library cannot be asked for.
  int (*kernel_get_library)(Library*, Function) = nullptr;
  int (*func_get_name)(const char**, Function) = nullptr;    // null before CUDA 12.3
  int (*kernel_get_name)(const char**, Function) = nullptr;  // null before CUDA 12.3
};

/// Both stay loaded. Throw Error{unavailable} with the loader's reason, or for a version before 12.
[[nodiscard]] Api open_cupti(const std::string& file);
[[nodiscard]] Driver open_driver();

/// "cuptiSubscribe: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED (39)"
[[nodiscard]] std::string failure_text(const Api& api, const char* function, int status);

}  // namespace drk::guest::cupti
