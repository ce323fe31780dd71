// SPDX-License-Identifier: Apache-2.0
// The steps of entering a cell, in the order in which enter.cpp takes them.
#pragma once

#include "drk/sandbox.h"

#include <cerrno>
#include <cstring>
#include <string>

namespace drk::sandbox {

inline void note_enforced(Report& report, Feature feature) {
  report.enforced.push_back(feature);
}
inline void note_missing(Report& report, Feature feature, std::string why) {
  report.missing.push_back({feature, std::move(why)});
}
/// "<what>: <text of errno>"
[[nodiscard]] inline std::string errno_text(const std::string& what) {
  return what + ": " + std::strerror(errno);  // NOLINT(concurrency-mt-unsafe): one thread here
}

/// A detached copy of a part of the file tree, to be put at the same path of the new root.
struct Tree {
  std::string path;
  std::string link_target;  ///< Set for a symbolic link, which is made anew.
  bool is_directory = false;
  Fd mount;
};
/// Taken while the process still has the rights to reach the paths; made read-only.
/// `devices` come on top of those that every cell has; they must exist.
[[nodiscard]] std::vector<Tree> take_trees(const std::vector<std::string>& readable,
                                           const std::vector<std::string>& devices);

/// Puts the trees, a /proc of its own, a minimal /dev and an empty /tmp under a new root and makes
/// it the only one. Throws Error; the caller notes the feature as missing.
void enter_mount_view(const std::vector<Tree>& trees, std::uint64_t tmp_bytes);

/// Becomes user and group `id`, without supplementary groups. Throws Error.
void become_user(uid_t id);
inline constexpr uid_t kInnerUser = 1000;

void apply_limits(const Cell& cell, Report& report);
/// Below `/` only reading and executing, and writing only below `scratch` and to /dev.
void apply_landlock(const std::vector<std::string>& readable,
                    const std::string& scratch,
                    const Cell& cell,
                    Report& report);
void drop_privileges(Report& report);
/// Installs the first filter and returns its listener when refusals are to be observed.
[[nodiscard]] Fd apply_filter(const Plan& plan, const Cell& cell, Report& report);

}  // namespace drk::sandbox
