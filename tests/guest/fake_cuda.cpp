// SPDX-License-Identifier: Apache-2.0
// The state behind the C functions.
#include "guest/fake_cuda.h"

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace drk::guest::test {

namespace {

using namespace cupti;

struct FakeFunction {
  std::string name;
  void* owner = nullptr;  // module, or library of a kernel
  bool is_kernel = false;
};

struct FakeNode {
  std::uint64_t id = 0;
  FakeFunction* function = nullptr;
};

struct FakeGraph {
  std::vector<FakeNode*> nodes;
};

struct State {
  FakeCuda* faults = nullptr;
  Callback callback = nullptr;
  void* user = nullptr;
  std::set<std::pair<Domain, std::uint32_t>> enabled;
  BufferRequested requested = nullptr;
  BufferCompleted completed = nullptr;
  std::set<Activity> activities;
  std::vector<KernelActivity> records;
  std::size_t dropped = 0;
  std::uint32_t correlation = 100;
  std::uint64_t next_id = 1;
  std::deque<FakeFunction> functions;
  std::deque<FakeNode> nodes;
  std::deque<FakeGraph> graphs;
  std::deque<char> handles;
  std::map<void*, void*> modules_of_libraries;
  FakeGraph* capturing = nullptr;
  std::map<std::uint64_t, std::uint32_t> memory;
};

State* state =
    nullptr;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): see the class

void* new_handle() {
  return &state->handles.emplace_back();
}

template <class T>
FakeFunction& fake(T* function) {
  return *reinterpret_cast<FakeFunction*>(function);
}

bool is_enabled(Domain domain, std::uint32_t id) {
  return state->callback != nullptr && state->faults->callbacks_come &&
         state->enabled.contains({domain, id});
}

/// A call of the driver with its callbacks.
template <class Arguments, class Body>
int call(DriverCall id, Arguments& arguments, const Body& body) {
  CallbackData data = {};
  std::uint64_t shared = 0xDEAD;  // what the last call left there
  int result = 0;
  data.parameters = &arguments;
  data.shared = &shared;
  data.result = &result;
  data.correlation_id = ++state->correlation;
  const bool enabled = is_enabled(Domain::driver_api, static_cast<std::uint32_t>(id));
  data.site = Site::enter;
  if (enabled) {
    state->callback(state->user, Domain::driver_api, static_cast<std::uint32_t>(id), &data);
  }
  result = body(data.correlation_id);
  data.site = Site::exit;
  if (enabled) {
    state->callback(state->user, Domain::driver_api, static_cast<std::uint32_t>(id), &data);
  }
  return result;
}

void run(const FakeFunction& function,
         void** parameters,
         std::array<std::uint32_t, 3> grid,
         std::uint32_t correlation,
         std::uint64_t node_id) {
  if (function.name == "drk_write" && parameters != nullptr) {
    state->memory[*static_cast<std::uint64_t*>(parameters[0])] =
        *static_cast<std::uint32_t*>(parameters[1]);
  }
  if (!state->activities.contains(Activity::concurrent_kernel) || !state->faults->records_come) {
    return;
  }
  if (state->faults->drop_records != 0) {
    --state->faults->drop_records;
    ++state->dropped;
    return;
  }
  KernelActivity record = {};
  record.kind = Activity::concurrent_kernel;
  record.registers = 24;
  record.start_ns = state->faults->times_are_known ? 1000 : 0;
  record.end_ns = state->faults->times_are_known ? 3000 : 0;
  record.grid = {static_cast<std::int32_t>(grid[0]),
                 static_cast<std::int32_t>(grid[1]),
                 static_cast<std::int32_t>(grid[2])};
  record.block = {32, 1, 1};
  record.correlation_id = correlation;
  record.name = function.name.c_str();
  record.graph_node_id = node_id;
  state->records.push_back(record);
}

int launch_now(FakeFunction& function,
               void** parameters,
               std::array<std::uint32_t, 3> grid,
               std::uint32_t correlation) {
  if (state->faults->launch_result != 0) return state->faults->launch_result;
  if (state->capturing != nullptr) {
    FakeNode& node = state->nodes.emplace_back();
    node = {state->next_id++, &function};
    state->capturing->nodes.push_back(&node);
  } else {
    run(function, parameters, grid, correlation, 0);
  }
  return 0;
}

int launch_kernel(Function function,
                  unsigned x,
                  unsigned y,
                  unsigned z,
                  unsigned block_x,
                  unsigned block_y,
                  unsigned block_z,
                  unsigned shared_bytes,
                  Stream stream,
                  void** parameters,
                  void** extra) {
  LaunchArguments arguments = {
      function, {x, y, z}, {block_x, block_y, block_z}, shared_bytes, stream, parameters, extra};
  return call(DriverCall::launch_kernel, arguments, [&](std::uint32_t correlation) {
    Function chosen = state->faults->swaps_work ? arguments.function : function;
    return launch_now(fake(chosen), parameters, arguments.grid, correlation);
  });
}

int launch_kernel_ex(const LaunchConfig* config, Function function, void** parameters, void**) {
  LaunchExArguments arguments = {config, function};
  return call(DriverCall::launch_kernel_ex, arguments, [&](std::uint32_t correlation) {
    Function chosen = state->faults->swaps_work ? arguments.function : function;
    return launch_now(fake(chosen), parameters, config->grid, correlation);
  });
}

int load(DriverCall id, void** handle, const void* image) {
  struct {
    void** handle;
    const void* image;
  } arguments = {handle, image};
  return call(id, arguments, [&](std::uint32_t) {
    *handle = new_handle();
    return 0;
  });
}

Function make_function(void* owner, const char* name, bool is_kernel) {
  FakeFunction& made = state->functions.emplace_back();
  made = {name, owner, is_kernel};
  return reinterpret_cast<Function>(&made);
}

int flush(std::uint32_t) {
  std::uint8_t* buffer = nullptr;
  std::size_t bytes = 0, max_records = 0;
  std::vector<KernelActivity> records = std::exchange(state->records, {});
  while (!records.empty()) {
    state->requested(&buffer, &bytes, &max_records);
    const std::size_t count = std::min(records.size(), bytes / sizeof(KernelActivity));
    std::memcpy(buffer, records.data(), count * sizeof(KernelActivity));
    records.erase(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(count));
    state->completed(nullptr, 0, buffer, bytes, count * sizeof(KernelActivity));
  }
  return 0;
}

int next_record(std::uint8_t* buffer, std::size_t valid, ActivityHeader** record) {
  auto* next = *record == nullptr
                   ? buffer
                   : reinterpret_cast<std::uint8_t*>(*record) + sizeof(KernelActivity);
  if (next >= buffer + valid) return 12;
  *record = reinterpret_cast<ActivityHeader*>(next);
  return 0;
}

}  // namespace

FakeCuda::FakeCuda() {
  state = new State;  // NOLINT(cppcoreguidelines-owning-memory): freed below
  state->faults = this;
}

FakeCuda::~FakeCuda() {
  delete std::exchange(state, nullptr);  // NOLINT(cppcoreguidelines-owning-memory)
}

Api FakeCuda::api() const {
  Api api;
  api.subscribe = [](Subscriber* subscriber, Callback callback, void* user) {
    if (state->callback != nullptr) return 39;
    *subscriber = static_cast<Subscriber>(new_handle());
    state->callback = callback;
    state->user = user;
    return 0;
  };
  api.unsubscribe = [](Subscriber) {
    state->callback = nullptr;
    return 0;
  };
  api.enable_callback = [](std::uint32_t, Subscriber, Domain domain, std::uint32_t id) {
    state->enabled.insert({domain, id});
    return 0;
  };
  api.register_callbacks = [](BufferRequested requested, BufferCompleted completed) {
    state->requested = requested;
    state->completed = completed;
    return 0;
  };
  api.enable = [](Activity kind) {
    state->activities.insert(kind);
    return 0;
  };
  api.disable = [](Activity kind) {
    state->activities.erase(kind);
    return 0;
  };
  api.flush_all = flush;
  api.next_record = next_record;
  api.dropped_records = [](void*, std::uint32_t, std::size_t* dropped) {
    *dropped = std::exchange(state->dropped, 0);
    return 0;
  };
  api.graph_node_id = [](GraphNode node, std::uint64_t* id) {
    *id = reinterpret_cast<FakeNode*>(node)->id;
    return 0;
  };
  api.result_string = [](int, const char** text) {
    *text = "CUPTI_ERROR_FAKE";
    return 0;
  };
  return api;
}

Driver FakeCuda::driver() const {
  Driver driver;
  driver.func_get_module = [](Module* module, Function function) {
    if (fake(function).is_kernel) return 400;
    *module = static_cast<Module>(fake(function).owner);
    return 0;
  };
  driver.kernel_get_library = [](Library* library, Function function) {
    if (!fake(function).is_kernel) return 400;
    *library = static_cast<Library>(fake(function).owner);
    return 0;
  };
  driver.func_get_name = [](const char** name, Function function) {
    *name = fake(function).name.c_str();
    return fake(function).is_kernel ? 400 : 0;
  };
  driver.kernel_get_name = [](const char** name, Function function) {
    *name = fake(function).name.c_str();
    return fake(function).is_kernel ? 0 : 400;
  };
  driver.func_set_attribute = [](Function, int, int) { return 0; };
  driver.module_load_data = [](Module* module, const void* image) {
    return load(DriverCall::module_load_data, reinterpret_cast<void**>(module), image);
  };
  driver.module_get_function = [](Function* function, Module module, const char* name) {
    *function = make_function(module, name, false);
    return 0;
  };
  driver.launch_kernel = launch_kernel;
  driver.launch_kernel_ex = launch_kernel_ex;
  driver.stream_is_capturing = [](Stream, int* status) {
    *status = state->capturing != nullptr ? 1 : 0;
    return 0;
  };
  driver.stream_wait_event = [](Stream stream, Event event, unsigned) {
    state->faults->waits.emplace_back(stream, event);
    return 0;
  };
  driver.ctx_synchronize = [] { return 0; };
  driver.mem_alloc = [](Address* address, std::size_t) {
    *address = reinterpret_cast<std::uintptr_t>(new_handle());
    return 0;
  };
  driver.mem_free = [](Address) { return 0; };
  driver.memset_d32 = [](Address address, std::uint32_t value, std::size_t) {
    state->memory[address] = value;
    return 0;
  };
  driver.memcpy_to_host = [](void* to, Address from, std::size_t bytes) {
    std::memcpy(to, &state->memory[from], bytes);
    return 0;
  };
  driver.graph_get_nodes = [](Graph graph, GraphNode* nodes, std::size_t* count) {
    const auto& all = reinterpret_cast<FakeGraph*>(graph)->nodes;
    if (nodes != nullptr) std::memcpy(nodes, all.data(), all.size() * sizeof(GraphNode));
    *count = all.size();
    return 0;
  };
  driver.graph_node_get_type = [](GraphNode, NodeType* type) {
    *type = NodeType::kernel;
    return 0;
  };
  driver.graph_kernel_node_get_params = [](GraphNode node, KernelNodeParameters* parameters) {
    auto* function = reinterpret_cast<FakeNode*>(node)->function;
    (function->is_kernel ? parameters->kernel : parameters->function) =
        reinterpret_cast<Function>(function);
    return 0;
  };
  driver.graph_child_get_graph = [](GraphNode, Graph*) { return 1; };
  return driver;
}

Module FakeCuda::load_module(const char* image) {
  void* handle = nullptr;
  (void)load(DriverCall::module_load_data, &handle, image);
  return static_cast<Module>(handle);
}

Library FakeCuda::load_library(const char* image) {
  void* handle = nullptr;
  (void)load(DriverCall::library_load_data, &handle, image);
  return static_cast<Library>(handle);
}

void FakeCuda::unload_module(Module module) {
  (void)call(DriverCall::module_unload, module, [](std::uint32_t) { return 0; });
}

Function FakeCuda::function(Module module, const char* name) {
  return make_function(module, name, false);
}

Function FakeCuda::kernel(Library library, const char* name) {
  return make_function(library, name, true);
}

Function FakeCuda::function_of(Function kernel) {
  Function made = nullptr;
  struct {
    Function* function;
    Function kernel;
  } arguments = {&made, kernel};
  (void)call(DriverCall::kernel_get_function, arguments, [&](std::uint32_t) {
    made = make_function(new_handle(), fake(kernel).name.c_str(), false);
    return 0;
  });
  return made;
}

int FakeCuda::launch(Function function, std::uint32_t grid, DriverCall id, Stream stream) {
  LaunchArguments arguments = {function, {grid, 1, 1}, {32, 1, 1}, 0, stream, nullptr, nullptr};
  return call(id, arguments, [&](std::uint32_t correlation) {
    return launch_now(fake(arguments.function), nullptr, arguments.grid, correlation);
  });
}

GraphExec FakeCuda::capture(const std::function<void()>& launches) {
  FakeGraph& graph = state->graphs.emplace_back();
  state->capturing = &graph;
  launches();
  state->capturing = nullptr;
  FakeGraph& executable = state->graphs.emplace_back();
  GraphExec exec = nullptr;
  struct {
    GraphExec* exec;
    FakeGraph* graph;
  } arguments = {&exec, &graph};
  (void)call(DriverCall::graph_instantiate_with_flags, arguments, [&](std::uint32_t) {
    exec = reinterpret_cast<GraphExec>(&executable);
    for (FakeNode* node : graph.nodes) {
      FakeNode& clone = state->nodes.emplace_back();
      clone = {state->next_id++, node->function};
      executable.nodes.push_back(&clone);
      GraphData cloned = {};
      cloned.node = reinterpret_cast<GraphNode>(&clone);
      cloned.original_node = reinterpret_cast<GraphNode>(node);
      const ResourceData data = {nullptr, nullptr, &cloned};
      constexpr auto kCloned = static_cast<std::uint32_t>(Resource::graph_node_cloned);
      if (is_enabled(Domain::resource, kCloned)) {
        state->callback(state->user, Domain::resource, kCloned, &data);
      }
    }
    return 0;
  });
  return exec;
}

void FakeCuda::replay(GraphExec exec) {
  GraphLaunchArguments arguments = {exec, nullptr};
  (void)call(DriverCall::graph_launch, arguments, [&](std::uint32_t correlation) {
    for (FakeNode* node : reinterpret_cast<FakeGraph*>(exec)->nodes) {
      run(*node->function, nullptr, {1, 1, 1}, correlation, node->id);
    }
    return 0;
  });
}

void FakeCuda::alter(GraphExec exec) {
  (void)call(DriverCall::graph_exec_update_v2, exec, [](std::uint32_t) { return 0; });
}

}  // namespace drk::guest::test
