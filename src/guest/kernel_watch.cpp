// SPDX-License-Identifier: Apache-2.0
// Callbacks of the driver's calls, and what is told of them.
#include "guest/kernel_watch.h"

#include "drk/base/error.h"

#include "guest/kernel_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace drk::guest {

namespace {

using cupti::CallbackData;
using cupti::Domain;
using cupti::DriverCall;
using cupti::Function;
using cupti::Resource;
using cupti::Site;
using cupti::Stream;

constexpr std::size_t kMaxKernels = 128;  // a reply must fit one message

constexpr std::array kCalls = {DriverCall::module_load,
                               DriverCall::module_load_data,
                               DriverCall::module_load_data_ex,
                               DriverCall::module_load_fat_binary,
                               DriverCall::module_unload,
                               DriverCall::launch,
                               DriverCall::launch_grid,
                               DriverCall::launch_grid_async,
                               DriverCall::launch_kernel,
                               DriverCall::launch_kernel_ptsz,
                               DriverCall::launch_cooperative,
                               DriverCall::launch_cooperative_ptsz,
                               DriverCall::graph_instantiate,
                               DriverCall::graph_launch,
                               DriverCall::graph_launch_ptsz,
                               DriverCall::graph_exec_destroy,
                               DriverCall::graph_exec_kernel_node_set_params,
                               DriverCall::graph_exec_update,
                               DriverCall::graph_instantiate_v2,
                               DriverCall::graph_exec_child_node_set_params,
                               DriverCall::graph_instantiate_with_flags,
                               DriverCall::graph_node_set_enabled,
                               DriverCall::launch_kernel_ex,
                               DriverCall::launch_kernel_ex_ptsz,
                               DriverCall::graph_instantiate_with_params,
                               DriverCall::graph_instantiate_with_params_ptsz,
                               DriverCall::library_load_data,
                               DriverCall::library_load_from_file,
                               DriverCall::library_unload,
                               DriverCall::library_get_module,
                               DriverCall::kernel_get_function,
                               DriverCall::graph_exec_kernel_node_set_params_v2,
                               DriverCall::graph_exec_update_v2,
                               DriverCall::graph_exec_node_set_params};

/// What a launch carries from its enter to its exit beside the Kernel's address, in the bits that
/// an address has free.
constexpr std::uint64_t kCaptured = 1;
constexpr std::uint64_t kDropped = 2;
constexpr std::uint64_t kProof = 4;
constexpr std::uint64_t kFlags = 7;
static_assert(alignof(Kernel) > kFlags);

bool is_enter(const CallbackData& data) {
  return data.site == Site::enter;
}
/// At the exit of a call that did what it was asked for.
bool has_worked(const CallbackData& data) {
  return data.site == Site::exit && data.result != nullptr && *data.result == 0;
}

template <class T>
const T& arguments(const CallbackData& data) {
  return *static_cast<const T*>(data.parameters);
}

/// Where a launch call keeps what matters here, in its own arguments.
struct Launch {
  Function* function = nullptr;
  std::array<std::uint32_t, 3>* grid = nullptr;  ///< Null where it is not among the arguments.
  Stream stream = nullptr;
  bool per_thread = false;     ///< The null stream is the thread's.
  std::uint64_t programs = 1;  ///< Blocks of the grid; 1 where that is not among the arguments.
};

Stream named(std::uintptr_t name) noexcept {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's own names for streams
  return reinterpret_cast<Stream>(name);
}

Stream by_name(Stream stream, bool per_thread) noexcept {
  return stream == nullptr && per_thread ? named(cupti::kPerThreadStream) : stream;
}

std::uint64_t programs_of(const std::array<std::uint32_t, 3>& grid) noexcept {
  return std::uint64_t{grid[0]} * grid[1] * grid[2];
}

Launch launch_of(DriverCall call, const CallbackData& data) {
  // The driver goes on with these very bytes, whatever a callback has made of them.
  void* bytes = const_cast<void*>(data.parameters);
  switch (call) {
    case DriverCall::launch_kernel_ex:
    case DriverCall::launch_kernel_ex_ptsz: {
      auto* ex = static_cast<cupti::LaunchExArguments*>(bytes);
      const bool per_thread = call == DriverCall::launch_kernel_ex_ptsz;
      if (ex->config == nullptr) return {&ex->function, nullptr, nullptr, per_thread};
      const cupti::LaunchConfig& config = *ex->config;
      return {&ex->function, nullptr, config.stream, per_thread, programs_of(config.grid)};
    }
    case DriverCall::launch_kernel:
    case DriverCall::launch_kernel_ptsz:
    case DriverCall::launch_cooperative:
    case DriverCall::launch_cooperative_ptsz: {
      auto* plain = static_cast<cupti::LaunchArguments*>(bytes);
      const bool per_thread =
          call == DriverCall::launch_kernel_ptsz || call == DriverCall::launch_cooperative_ptsz;
      return {&plain->function, &plain->grid, plain->stream, per_thread, programs_of(plain->grid)};
    }
    default:  // cuLaunch and its like, which only know the null stream
      return {static_cast<Function*>(bytes), nullptr, nullptr, false};
  }
}

}  // namespace

// --- beginning ---

bool StreamCount::saw(Stream stream, bool per_thread) noexcept {
  static thread_local char own_stream = 0;
  const void* handle = stream;
  if (per_thread && stream == nullptr) handle = &own_stream;
  const std::uintptr_t key = reinterpret_cast<std::uintptr_t>(handle) + 1;  // null is one as well
  for (auto& place : seen_) {
    std::uintptr_t found = place;
    if (found == 0 && place.compare_exchange_strong(found, key)) return true;
    if (found == key) return false;
  }
  return true;  // one more than are told apart
}

std::uint32_t StreamCount::count() const noexcept {
  if (many_) return kManyStreams;
  return static_cast<std::uint32_t>(
      std::count_if(seen_.begin(), seen_.end(), [](const auto& key) { return key != 0; }));
}

void StreamCount::reset() noexcept {
  for (auto& place : seen_) place = 0;
  many_ = false;
}

KernelWatch::KernelWatch(const std::string& cupti_file, std::vector<std::string> system_paths)
    : KernelWatch(cupti::open_cupti(cupti_file), cupti::open_driver(), std::move(system_paths)) {}

KernelWatch::KernelWatch(const cupti::Api& api,
                         const cupti::Driver& driver,
                         std::vector<std::string> system_paths)
    : api_(api),
      driver_(driver),
      origins_(driver_, std::move(system_paths)),
      graphs_(api_, driver_, origins_),
      records_(api_) {
  subscribe();
  load_probes();
  if (probes_) try_dropping();
  begin_calls(LaunchMode::run);
}

void KernelWatch::subscribe() {
  cupti::Subscriber subscriber = nullptr;
  const int status = api_.subscribe(&subscriber, on_event, this);
  if (status != 0) {
    throw Error(ErrorCode::unavailable,
                "guest: " + cupti::failure_text(api_, "cuptiSubscribe", status));
  }
  subscription_ = Subscription(subscriber, Unsubscribe{api_.unsubscribe});
  for (const DriverCall call : kCalls) enable(Domain::driver_api, static_cast<std::uint32_t>(call));
  for (const Resource resource :
       {Resource::context_destroy_starting, Resource::graph_node_cloned}) {
    enable(Domain::resource, static_cast<std::uint32_t>(resource));
  }
}

void KernelWatch::enable(Domain domain, std::uint32_t id) {
  const int status = api_.enable_callback(1, subscription_.get(), domain, id);
  // An event that this CUPTI does not know is none that it could report.
  if (status == 0 || status == cupti::kInvalidParameter) return;
  throw Error(ErrorCode::unavailable,
              fmt::format("guest: {} for event {} of domain {}",
                          cupti::failure_text(api_, "cuptiEnableCallback", status),
                          id,
                          static_cast<std::uint32_t>(domain)));
}

void KernelWatch::load_probes() {
  try {
    probes_.emplace(driver_);
  } catch (const Error& error) {  // launches can be watched without them
    drop_problem_ = error.what();
    return;
  }
  if (origins_.knows(probes_->module())) return;
  throw Error(ErrorCode::unavailable, "guest: CUPTI did not report a module that was loaded");
}

/// Leaves drop_problem_ behind when the empty kernel does not stand in.
void KernelWatch::try_dropping() {
  origins_.set_origin(probes_->module(), task::KernelOrigin::candidate_cuda);
  can_drop_ = true;
  try {
    try_dropping(ProbeKernels::By::launch_kernel);
    try_dropping(ProbeKernels::By::launch_kernel_ex);
  } catch (const Error& error) {
    can_drop_ = false;
    drop_problem_ = error.what();
  }
  // From here on they are nobody's: in graphs the empty kernel is seen where it stands in.
  origins_.set_origin(probes_->module(), task::KernelOrigin::unknown);
}

void KernelWatch::try_dropping(ProbeKernels::By by) {
  constexpr std::uint32_t kWritten = 0x5EED;
  begin_calls(LaunchMode::run);
  const std::uint32_t kept = probes_->write(by, kWritten);
  const LaunchLog log = launches();
  begin_calls(LaunchMode::drop);
  const std::uint32_t left_out = probes_->write(by, kWritten);
  if (kept == kWritten && log.kernels.size() == 1 && left_out == 0 && dropped_ == 1) return;
  throw Error(
      ErrorCode::unavailable,
      fmt::format("guest: a kernel (call {}) wrote {:#x} and was seen {} times; left out, it "
                  "wrote {:#x} and was seen {} times",
                  static_cast<int>(by),
                  kept,
                  log.kernels.size(),
                  left_out,
                  dropped_.load()));
}

// --- callbacks ---

void KernelWatch::on_event(void* user, Domain domain, std::uint32_t id, const void* data) noexcept {
  auto& watch = *static_cast<KernelWatch*>(user);
  try {
    if (data == nullptr) return;
    if (domain == Domain::resource) {
      watch.on_resource(Resource{id}, *static_cast<const cupti::ResourceData*>(data));
    } else if (domain == Domain::driver_api) {
      watch.on_call(DriverCall{id}, *static_cast<const CallbackData*>(data));
    }
  } catch (...) {  // the driver's frames are above
    ++watch.faults_;
  }
}

void KernelWatch::on_resource(Resource resource, const cupti::ResourceData& data) {
  if (resource == Resource::context_destroy_starting) {
    origins_.forget_functions();
  } else if (resource == Resource::graph_node_cloned && data.description != nullptr) {
    const auto& graph = *static_cast<const cupti::GraphData*>(data.description);
    graphs_.cloned(graph.original_node, graph.node);
  }
}

void KernelWatch::on_call(DriverCall call, const CallbackData& data) {
  if (data.parameters == nullptr) return;
  switch (call) {
    case DriverCall::launch:
    case DriverCall::launch_grid:
    case DriverCall::launch_grid_async:
    case DriverCall::launch_kernel:
    case DriverCall::launch_kernel_ptsz:
    case DriverCall::launch_cooperative:
    case DriverCall::launch_cooperative_ptsz:
    case DriverCall::launch_kernel_ex:
    case DriverCall::launch_kernel_ex_ptsz:
      return on_launch(call, data);
    case DriverCall::graph_launch:
    case DriverCall::graph_launch_ptsz:
      return on_graph_launch(call == DriverCall::graph_launch_ptsz, data);
    case DriverCall::graph_instantiate:
    case DriverCall::graph_instantiate_v2:
    case DriverCall::graph_instantiate_with_flags:
    case DriverCall::graph_instantiate_with_params:
    case DriverCall::graph_instantiate_with_params_ptsz:
      return on_instantiate(data);
    case DriverCall::graph_exec_destroy:
      if (is_enter(data)) graphs_.destroyed(arguments<cupti::GraphExec>(data));
      return;
    case DriverCall::graph_exec_kernel_node_set_params:
    case DriverCall::graph_exec_kernel_node_set_params_v2:
    case DriverCall::graph_exec_child_node_set_params:
    case DriverCall::graph_exec_node_set_params:
    case DriverCall::graph_exec_update:
    case DriverCall::graph_exec_update_v2:
    case DriverCall::graph_node_set_enabled:
      if (is_enter(data)) graphs_.altered(arguments<cupti::GraphExec>(data));
      return;
    case DriverCall::module_unload:
    case DriverCall::library_unload:
      if (is_enter(data)) origins_.unloaded(arguments<const void*>(data));
      return;
    default:
      if (has_worked(data)) on_load(call, data);
  }
}

void KernelWatch::on_load(DriverCall call, const CallbackData& data) {
  // All of them begin with where the handle goes.
  void** const handle = arguments<cupti::LoadArguments>(data).handle;
  if (handle == nullptr) return;
  const void* source = arguments<cupti::LoadArguments>(data).source;
  switch (call) {
    case DriverCall::library_get_module:
      return origins_.derived_module(static_cast<cupti::Module>(*handle),
                                     static_cast<cupti::Library>(const_cast<void*>(source)));
    case DriverCall::kernel_get_function:
      return origins_.derived_function(static_cast<Function>(*handle),
                                       static_cast<Function>(const_cast<void*>(source)));
    case DriverCall::module_load:
    case DriverCall::library_load_from_file:
      return origins_.loaded_file(*handle, static_cast<const char*>(source));
    default:
      return origins_.loaded_image(*handle, source);
  }
}

void KernelWatch::on_instantiate(const CallbackData& data) {
  if (data.shared == nullptr) return;
  const auto& call = arguments<cupti::GraphInstantiateArguments>(data);
  if (is_enter(data)) {
    *data.shared = 0;
    auto contents = std::make_unique<GraphKernels::Contents>(graphs_.read(call.graph));
    *data.shared = reinterpret_cast<std::uintptr_t>(contents.release());
    return;
  }
  const std::unique_ptr<GraphKernels::Contents> contents(
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the word that lies between is CUPTI's
      reinterpret_cast<GraphKernels::Contents*>(std::exchange(*data.shared, 0)));
  if (contents && call.exec != nullptr && has_worked(data)) {
    graphs_.instantiated(*call.exec, std::move(*contents));
  }
}

void KernelWatch::on_graph_launch(bool per_thread, const CallbackData& data) {
  if (data.shared == nullptr) return;
  const auto& call = arguments<cupti::GraphLaunchArguments>(data);
  if (is_enter(data)) {
    const bool is_captured = is_capturing(call.stream, per_thread);
    if (!is_captured) hold(call.stream, per_thread);
    *data.shared = is_captured ? kCaptured : 0;
    return;
  }
  if (!has_worked(data) || *data.shared == kCaptured) return;
  replayed_ = true;
  const auto contents = graphs_.contents(call.exec);
  if (recording_ && (!contents || !contents->complete)) ++unclear_graphs_;
  if (!contents) return;
  const bool dropping = mode_ == LaunchMode::drop;
  if (contents->kernels.size() > 1) streams_.saw_many();
  for (Kernel* kernel : contents->kernels) {
    ++kernel->launches;
    if (!is_own(kernel->origin)) continue;
    ++own_;
    if (dropping) ++kept_;
  }
  if (recording_) recorded_launches_ += contents->kernels.size();
}

void KernelWatch::on_launch(DriverCall call, const CallbackData& data) {
  if (data.shared == nullptr) return;
  if (is_enter(data)) {
    *data.shared = 0;
    launch_begins(call, data);
  } else if (has_worked(data) && *data.shared != 0) {
    launch_returned(call, data);
  }
}

void KernelWatch::launch_begins(DriverCall call, const CallbackData& data) {
  const Launch launch = launch_of(call, data);
  if (*launch.function == left_out_ && left_out_ != nullptr) return;
  Kernel* kernel = origins_.find(*launch.function, data.symbol_name);
  if (kernel == nullptr) return;
  std::uint64_t note = reinterpret_cast<std::uintptr_t>(kernel);
  if (is_capturing(launch.stream, launch.per_thread)) {
    note |= kCaptured;
  } else {
    (void)streams_.saw(launch.stream, launch.per_thread);
    hold(launch.stream, launch.per_thread);
  }
  if (proving_ && *launch.function == probes_->empty()) note |= kProof;
  if (can_drop_ && mode_ == LaunchMode::drop && is_own(kernel->origin)) {
    note |= kDropped;
    *launch.function = probes_->empty();
    // One block is enough. A LaunchConfig is the caller's memory, and stays as it is.
    if (launch.grid != nullptr) launch.grid->fill(1);
  }
  *data.shared = note;
}

void KernelWatch::launch_returned(DriverCall call, const CallbackData& data) {
  const std::uint64_t note = *data.shared;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the word that lies between is CUPTI's
  auto* kernel = reinterpret_cast<Kernel*>(note & ~kFlags);
  if ((note & kProof) != 0) {
    const std::lock_guard lock(mutex_);
    proof_ = data.correlation_id;
    return;
  }
  if ((note & kDropped) != 0) ++dropped_;
  if ((note & kCaptured) != 0) return;
  if ((note & kDropped) == 0) {
    ++kernel->launches;
    if (is_own(kernel->origin)) own_ += launch_of(call, data).programs;
  }
  if (!recording_) return;
  ++recorded_launches_;
  const std::lock_guard lock(mutex_);
  correlations_[data.correlation_id] = kernel;
}

bool KernelWatch::is_capturing(Stream stream, bool per_thread) const {
  int status = 0;
  return driver_.stream_is_capturing(by_name(stream, per_thread), &status) == 0 && status != 0;
}

void KernelWatch::hold(Stream stream, bool per_thread) {
  const cupti::Event opening = opening_;
  const Stream name = by_name(stream, per_thread);
  if (opening == nullptr || name == nullptr || name == named(cupti::kLegacyStream)) return;
  if (held_streams_.saw(stream, per_thread) && driver_.stream_wait_event(name, opening, 0) != 0) {
    ++faults_;
  }
}

// --- calls ---

void KernelWatch::begin_calls(LaunchMode mode) {
  mode_ = mode;
  origins_.reset_counts();
  streams_.reset();
  own_ = 0;
  replayed_ = false;
  dropped_ = 0;
  kept_ = 0;
}

LaunchLog KernelWatch::launches() const {
  LaunchLog log;
  log.dropped = dropped_;
  origins_.for_each([&](const Kernel& kernel) {
    const std::uint64_t count = kernel.launches;
    if (count != 0) log.kernels.push_back({kernel.name, "", 0, is_own(kernel.origin), count});
  });
  std::stable_sort(log.kernels.begin(),
                   log.kernels.end(),
                   [](const task::KernelLaunches& a, const task::KernelLaunches& b) {
                     return std::pair(a.own, a.count) > std::pair(b.own, b.count);
                   });
  if (log.kernels.size() > kMaxKernels) log.kernels.resize(kMaxKernels);
  return log;
}

void KernelWatch::hold_streams_behind(cupti::Event event) noexcept {
  held_streams_.reset();
  opening_ = event;
}

bool KernelWatch::let_streams_go() noexcept {
  opening_ = nullptr;
  return held_streams_.count() > 0;
}

// --- records ---

void KernelWatch::begin_records() {
  recording_ = false;
  {
    const std::lock_guard lock(mutex_);
    correlations_.clear();
    proof_.reset();
  }
  recorded_launches_ = 0;
  unclear_graphs_ = 0;
  begin_problem_ = records_.begin();
  recording_ = true;
}

/// What is amiss, or "".
std::string KernelWatch::prove_alive() {
  if (!probes_) return "no kernel of ours could be loaded: " + drop_problem_;
  proving_ = true;
  std::string problem;
  try {
    probes_->launch_empty();
  } catch (const Error& error) {
    problem = error.what();
  }
  proving_ = false;
  const std::lock_guard lock(mutex_);
  if (problem.empty() && !proof_) problem = "CUPTI's callbacks stopped while the candidate ran";
  return problem;
}

task::Profile KernelWatch::end_records(std::uint32_t calls) {
  std::string problem = std::exchange(begin_problem_, {});
  std::string proof_problem = prove_alive();
  if (problem.empty()) problem = std::move(proof_problem);
  recording_ = false;
  KernelProfile profile;
  // Taken out, so that no lock is held while CUPTI is called: a launch on another thread may hold
  // CUPTI's and wait for ours.
  std::unordered_map<std::uint32_t, Kernel*> correlations;
  std::optional<std::uint32_t> proof;
  {
    const std::lock_guard lock(mutex_);
    correlations.swap(correlations_);
    proof.swap(proof_);
  }
  const bool graphs_are_clear = unclear_graphs_ == 0;
  const ActivityRecords::Ended ended = records_.end({
      .kernel =
          [&](const cupti::KernelActivity& record) {
            if (record.graph_node_id == 0 && record.correlation_id == proof) {
              return profile.saw_proof();
            }
            Kernel* kernel = nullptr;
            if (record.graph_node_id != 0) {
              if (graphs_are_clear) kernel = graphs_.kernel_of_node(record.graph_node_id);
            } else if (const auto found = correlations.find(record.correlation_id);
                       found != correlations.end()) {
              kernel = found->second;
            }
            if (kernel == nullptr) {
              profile.saw_stranger(record.graph_node_id != 0);
              kernel = origins_.intern(record.name, task::KernelOrigin::unknown);
            }
            profile.add(*kernel, record);
          },
      .memory = [&](const cupti::MemoryActivity& record) { profile.add(record); },
  });
  if (problem.empty()) problem = ended.problem;
  if (problem.empty() && faults_ != 0) problem = fmt::format("{} callbacks failed", faults_.load());
  if (problem.empty() && !graphs_are_clear) {
    problem = fmt::format("{} graphs ran whose kernels are not known", unclear_graphs_.load());
  }
  return profile.finish({.calls = calls,
                         .launches = recorded_launches_,
                         .dropped_records = ended.dropped,
                         .problem = std::move(problem)},
                        kMaxKernels);
}

}  // namespace drk::guest
