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

}  // namespace

Entered enter(const Plan& plan, const Cell& cell, Report report) {
  Entered entered;
  std::vector<Tree> trees;
  const bool has_mount_namespace = !was_refused(report, Feature::mount_view);
  std::string trouble;
  if (has_mount_namespace) {
    try {
      trees = take_trees(plan.readable);
    } catch (const Error& error) {
      trouble = error.what();
    }
  }
  take_user(cell, report);
  if (has_mount_namespace && trouble.empty()) {
    try {
      enter_mount_view(std::move(trees), cell.limits.tmp_bytes);
      entered.scratch = "/tmp";
      note_enforced(report, Feature::mount_view);
    } catch (const Error& error) {
      trouble = error.what();
    }
  }
  if (!trouble.empty()) note_missing(report, Feature::mount_view, trouble);
  if (entered.scratch.empty()) entered.scratch = make_scratch();
  if (has(report, Feature::uts_namespace)) (void)::sethostname("guest", 5);
  ::umask(022);
  apply_limits(cell, report);
  drop_privileges(report);
  apply_landlock(plan.readable, entered.scratch, report);
  entered.refusals = apply_filter(plan, report);
  entered.report = std::move(report);
  return entered;
}

}  // namespace drk::sandbox
