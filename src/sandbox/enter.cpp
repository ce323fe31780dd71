// SPDX-License-Identifier: Apache-2.0
// Entering a cell, step by step.
#include "drk/base/error.h"

#include "sandbox/steps.h"

#include <algorithm>
#include <array>
#include <sys/stat.h>
#include <unistd.h>

namespace drk::sandbox {

namespace {

bool has(const Report& report, Feature feature) {
  return std::find(report.enforced.begin(), report.enforced.end(), feature) !=
         report.enforced.end();
}

bool was_refused(const Report& report, Feature feature) {
  return std::any_of(report.missing.begin(), report.missing.end(), [&](const Missing& missing) {
    return missing.feature == feature;
  });
}

/// Where there is no mount view: a folder of its own among everybody's files.
std::string make_scratch() {
  std::string path = "/tmp/drk-guest-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) throw_errno("mkdtemp");
  return path;
}

void take_user(const Cell& cell, Report& report) {
  if (has(report, Feature::user_namespace)) {
    become_user(kInnerUser);
  } else if (cell.host_user) {
    become_user(*cell.host_user);
  }
  if (cell.host_user) {
    note_enforced(report, Feature::own_host_user);
  } else {
    note_missing(report, Feature::own_host_user, "only a worker that runs as root can give one");
  }
}

/// True when the view is in force; else notes why not.
bool take_view(const std::vector<Tree>& trees, std::uint64_t tmp_bytes, Report& report) {
  try {
    enter_mount_view(trees, tmp_bytes);
    note_enforced(report, Feature::mount_view);
    return true;
  } catch (const Error& error) {
    note_missing(report, Feature::mount_view, error.what());
    return false;
  }
}

}  // namespace

Entered enter(const Plan& plan, const Cell& cell, Report report) {
  Entered entered;
  std::vector<Tree> trees;
  bool can_have_view = !was_refused(report, Feature::mount_view);
  if (can_have_view) {
    try {
      trees =
          take_trees(plan.readable, cell.has_devices ? plan.devices : std::vector<std::string>{});
    } catch (const Error& error) {
      note_missing(report, Feature::mount_view, error.what());
      can_have_view = false;
    }
  }
  // Files can only be made as a user that the namespace maps; without a user namespace, giving up
  // root comes last, for with it goes the right to mount.
  const bool is_user_first = has(report, Feature::user_namespace);
  if (is_user_first) take_user(cell, report);
  const bool has_view = can_have_view && take_view(trees, cell.limits.tmp_bytes, report);
  if (!is_user_first) take_user(cell, report);
  entered.owns_scratch = !has_view;
  entered.scratch = has_view ? "/tmp" : make_scratch();
  if (has(report, Feature::uts_namespace)) (void)::sethostname("guest", 5);
  ::umask(022);
  apply_limits(cell, report);
  drop_privileges(report);
  apply_landlock(plan.readable, entered.scratch, cell, report);
  entered.refusals = apply_filter(plan, cell, report);
  entered.report = std::move(report);
  return entered;
}

}  // namespace drk::sandbox
