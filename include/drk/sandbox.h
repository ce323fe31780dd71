// SPDX-License-Identifier: Apache-2.0
// Walls around a guest: namespaces, a mount view, seccomp, Landlock, limits.
//
// The host plans (make_plan: needs libseccomp); the zygote clones into namespaces; the new process,
// which becomes the guest's init, enters (enter: system calls only, no library but libc). Every
// step that the kernel refuses is listed in the Report with its reason, and the rest still holds.
#pragma once

#include "drk/base/fd.h"

#include <boost/describe.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace drk::sandbox {

enum class Feature : std::uint8_t {
  user_namespace,
  mount_view,
  pid_namespace,
  network_namespace,
  ipc_namespace,
  uts_namespace,
  own_host_user,  ///< A user id of its own outside, so that limits by user count it alone.
  no_new_privileges,
  no_capabilities,
  landlock,
  seccomp,
  memory_limit,
  process_limit,
};
BOOST_DESCRIBE_ENUM(Feature,
                    user_namespace,
                    mount_view,
                    pid_namespace,
                    network_namespace,
                    ipc_namespace,
                    uts_namespace,
                    own_host_user,
                    no_new_privileges,
                    no_capabilities,
                    landlock,
                    seccomp,
                    memory_limit,
                    process_limit)

struct Missing {
  Feature feature = Feature::user_namespace;
  std::string why;
};
BOOST_DESCRIBE_STRUCT(Missing, (), (feature, why))

struct Report {
  std::vector<Feature> enforced;
  std::vector<Missing> missing;
};
BOOST_DESCRIBE_STRUCT(Report, (), (enforced, missing))

struct Limits {
  std::uint64_t memory_bytes = std::uint64_t{8}
                               << 30;  ///< Private memory beyond what it starts with.
  std::uint64_t tmp_bytes = std::uint64_t{256} << 20;  ///< Its /tmp; also the largest file.
  std::uint32_t processes = 64;                        ///< Threads count too.
  std::uint32_t open_files = 512;
};
BOOST_DESCRIBE_STRUCT(Limits, (), (memory_bytes, tmp_bytes, processes, open_files))

/// A seccomp program, one instruction a word (struct sock_filter, as it lies in memory).
using FilterProgram = std::vector<std::uint64_t>;

/// What is the same for every guest of a worker.
struct Plan {
  std::vector<std::string> readable;  ///< Absolute paths that a guest sees, read-only.
  std::vector<std::string> devices;   ///< Device files that a cell with `has_devices` may open.
  FilterProgram filter;               ///< From before the candidate's first line on.
  FilterProgram tool_filter;          ///< In its place in a cell that may execute programs.
  FilterProgram device_filter;        ///< In its place in a cell that has devices.
  FilterProgram late_filter;          ///< Added after warm-up: no exec, no fork, no new code.
  bool notify = false;                ///< Refusals of the first filter are reported to the init.
};
BOOST_DESCRIBE_STRUCT(Plan,
                      (),
                      (readable, devices, filter, tool_filter, device_filter, late_filter, notify))

/// Builds the plan; the filters are compiled for this machine. Throws Error{unavailable}.
[[nodiscard]] Plan make_plan(std::vector<std::string> readable,
                             std::vector<std::string> devices = {});

/// What differs from guest to guest.
struct Cell {
  Limits limits;
  std::optional<std::uint32_t> host_user;  ///< Given by a root worker.
  std::string cgroup_dir;                  ///< Empty: limits by rlimits.
  bool has_devices = false;                ///< The plan's devices are part of its view.
  bool may_execute = false;                ///< It runs compilers; never a candidate's.
};
BOOST_DESCRIBE_STRUCT(Cell, (), (limits, host_user, cgroup_dir, has_devices, may_execute))

/// Namespaces that a new process was cloned into; the others were refused.
struct Clone {
  pid_t pid = -1;  ///< 0 in the new process.
  Fd pidfd;        ///< In the parent only.
  Report report;   ///< The namespaces' part; in both.
};
/// Clones the calling process, which must have one thread, into as many of the six namespaces as
/// the kernel grants, moves it into `cell.cgroup_dir` and maps its user; the new process returns
/// only when that is done. Throws Error{exhausted} when no process can be made.
[[nodiscard]] Clone clone_into_namespaces(const Cell& cell);

/// Called by the new process: builds its mount view, drops everything it does not need, sets
/// limits, installs the filter. On return the process is the init of a closed cell.
struct Entered {
  Report report;              ///< All features.
  std::string scratch;        ///< The only folder it can write to.
  bool owns_scratch = false;  ///< It lies among everybody's files: remove it at the end.
  Fd refusals;                ///< seccomp listener; invalid when refusals cannot be observed.
};
[[nodiscard]] Entered enter(const Plan& plan, const Cell& cell, Report report);

/// Adds a filter to the calling thread's; false when the kernel refuses.
[[nodiscard]] bool add_filter(const FilterProgram& program) noexcept;

/// Answers one pending refusal with EPERM and returns its name ("socket(AF_INET)").
[[nodiscard]] std::optional<std::string> answer_refusal(int listener);

/// Control group of the worker, where version 2 carries memory and pids; guests get one each.
class CgroupRoot {
 public:
  /// Empty `path()` when there is none that we may use; rlimits serve instead.
  CgroupRoot();
  CgroupRoot(const CgroupRoot&) = delete;
  CgroupRoot& operator=(const CgroupRoot&) = delete;
  ~CgroupRoot();
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Makes the group of one guest and sets its limits; returns its folder.
  [[nodiscard]] std::string make(const Limits& limits) const;
  /// True when the kernel killed a process of the group for want of memory.
  [[nodiscard]] static bool ran_out_of_memory(const std::string& dir);
  static void remove(const std::string& dir) noexcept;

 private:
  std::string path_;
};

}  // namespace drk::sandbox
