// SPDX-License-Identifier: Apache-2.0
// Kernels on the GPU, seen by CUPTI: whose were launched, how long they took, and what becomes of
// the output without the candidate's own.
//
// Callbacks at the driver's load, launch and graph calls say whose each launch is, and can put an
// empty kernel in its place. Activity records add times; they cost the device time, so they are
// switched on last.
//
// The candidate shares the process, and can call CUPTI as well: it can switch all of this off,
// which end_records() notices, or write to our memory, which nothing here would. What is counted
// here is evidence, not proof.
#pragma once

#include "guest/activity_records.h"
#include "guest/graph_kernels.h"
#include "guest/kernel_origins.h"
#include "guest/launches.h"
#include "guest/probe_kernels.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace drk::guest {

struct Unsubscribe {
  int (*unsubscribe)(cupti::Subscriber) = nullptr;
  void operator()(cupti::Subscriber subscriber) const noexcept { (void)unsubscribe(subscriber); }
};
using Subscription = std::unique_ptr<cupti::SubscriberHandle, Unsubscribe>;

/// Counts different streams, up to kManyStreams. Thread-safe.
class StreamCount {
 public:
  /// `per_thread`: the null stream is the calling thread's. False where it may have been seen.
  bool saw(cupti::Stream stream, bool per_thread) noexcept;
  /// Of a graph, that spreads its kernels as the driver likes.
  void saw_many() noexcept { many_ = true; }
  [[nodiscard]] std::uint32_t count() const noexcept;
  void reset() noexcept;

 private:
  std::array<std::atomic<std::uintptr_t>, kManyStreams> seen_ = {};  ///< In order; 0: none yet.
  std::atomic<bool> many_ = false;
};

/// One a process, made after its fork (CUPTI hangs when it was subscribed to before), with the
/// context that is watched current. Code that was loaded earlier is of unknown origin. The public
/// functions are for one thread; launches are counted on any.
class KernelWatch {
 public:
  /// `system_paths`: folders of the read-only installation, beside /usr, /lib and /lib64. Throws
  /// Error{unavailable} with the reason, also when CUPTI has another subscriber.
  KernelWatch(const std::string& cupti_file, std::vector<std::string> system_paths);
  KernelWatch(const cupti::Api& api,
              const cupti::Driver& driver,
              std::vector<std::string> system_paths);
  KernelWatch(const KernelWatch&) = delete;  // CUPTI holds its address
  KernelWatch& operator=(const KernelWatch&) = delete;
  /// No launch may be in progress.
  ~KernelWatch() = default;

  /// Not empty: LaunchMode::drop leaves nothing out, and why. It was tried out, as no manual says
  /// that the driver launches the function that a callback has written over the caller's.
  [[nodiscard]] const std::string& drop_problem() const noexcept { return drop_problem_; }

  /// Forgets what was counted and sets what launches of own kernels do from now on. Launches that a
  /// stream captures count when their graph runs; in LaunchMode::drop it is the empty kernel that
  /// is captured. Graphs instantiated before run in full: see kept_launches().
  void begin_calls(LaunchMode mode);
  /// Launches that the driver accepted, own kernels first, then the most frequent; at most 128.
  [[nodiscard]] LaunchLog launches() const;
  /// Programs (blocks) of own kernels so far; a kernel that a graph launched counts as one.
  [[nodiscard]] std::uint64_t own_programs() const noexcept { return own_; }
  /// A graph was launched: how much its kernels do is not among its arguments.
  [[nodiscard]] bool has_replayed() const noexcept { return replayed_; }
  /// Streams that kernels were launched on, not counted beyond kManyStreams.
  [[nodiscard]] std::uint32_t streams() const noexcept { return streams_.count(); }
  /// Launches of own kernels by graphs, in LaunchMode::drop, that could not be left out.
  [[nodiscard]] std::uint64_t kept_launches() const noexcept { return kept_; }

  /// Launches of this kernel are nobody's. Before any other code is loaded.
  void leave_out(cupti::Function kernel) noexcept { left_out_ = kernel; }
  /// From here on a stream that kernels are launched on, other than the default one, first waits
  /// for `event`, which was recorded on that: what is clocked from the event on cannot run before.
  void hold_streams_behind(cupti::Event event) noexcept;
  /// No longer. Whether there was such a stream.
  bool let_streams_go() noexcept;

  /// Switches records on. What fails here, end_records() tells.
  void begin_records();
  /// The device must be idle; this thread's context is the one that is watched. Launches an empty
  /// kernel, whose callback and record prove that both still come, and switches records off.
  /// `calls` is passed on.
  [[nodiscard]] task::Profile end_records(std::uint32_t calls);

 private:
  void subscribe();
  void enable(cupti::Domain domain, std::uint32_t id);
  void load_probes();
  void try_dropping();
  void try_dropping(ProbeKernels::By by);

  static void on_event(void* user,
                       cupti::Domain domain,
                       std::uint32_t id,
                       const void* data) noexcept;
  void on_resource(cupti::Resource resource, const cupti::ResourceData& data);
  void on_call(cupti::DriverCall call, const cupti::CallbackData& data);
  void on_load(cupti::DriverCall call, const cupti::CallbackData& data);
  void on_instantiate(const cupti::CallbackData& data);
  void on_graph_launch(bool per_thread, const cupti::CallbackData& data);
  void on_launch(cupti::DriverCall call, const cupti::CallbackData& data);
  void hold(cupti::Stream stream, bool per_thread);
  void launch_begins(cupti::DriverCall call, const cupti::CallbackData& data);
  void launch_returned(cupti::DriverCall call, const cupti::CallbackData& data);
  [[nodiscard]] bool is_capturing(cupti::Stream stream, bool per_thread) const;
  [[nodiscard]] std::string prove_alive();

  // Constant after construction.
  const cupti::Api api_;
  const cupti::Driver driver_;
  std::optional<ProbeKernels> probes_;
  std::string drop_problem_;
  cupti::Function left_out_ = nullptr;
  // Each with a lock of its own.
  KernelOrigins origins_;
  GraphKernels graphs_;
  // Used by the owner's thread only.
  ActivityRecords records_;
  std::string begin_problem_;
  // Atomic: set by the owner's thread, read and counted on whatever thread launches.
  std::atomic<bool> can_drop_ = false;
  std::atomic<LaunchMode> mode_ = LaunchMode::run;
  std::atomic<bool> recording_ = false;
  std::atomic<bool> proving_ = false;
  StreamCount streams_;
  std::atomic<cupti::Event> opening_ = nullptr;  ///< What streams are held behind.
  StreamCount held_streams_;
  std::atomic<std::uint64_t> own_ = 0;
  std::atomic<bool> replayed_ = false;
  std::atomic<std::uint64_t> dropped_ = 0;
  std::atomic<std::uint64_t> kept_ = 0;
  std::atomic<std::uint64_t> recorded_launches_ = 0;  ///< That must have a record.
  std::atomic<std::uint64_t> unclear_graphs_ = 0;     ///< Launched while recording.
  std::atomic<std::uint64_t> faults_ = 0;             ///< Of callbacks, out of memory.
  // Guarded by mutex_.
  std::mutex mutex_;
  std::unordered_map<std::uint32_t, Kernel*> correlations_;  ///< Launches since begin_records().
  std::optional<std::uint32_t> proof_;  ///< The correlation of prove_alive()'s launch.
  // Last, so that no callback comes once the first of the above is gone.
  Subscription subscription_;
};

}  // namespace drk::guest
