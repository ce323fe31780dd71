// SPDX-License-Identifier: Apache-2.0
// The tiny init above a guest: process 1 of its namespace.
//
// A guest that were process 1 itself would hide how it died (signals without a handler are
// ignored there) and its orphans would have nobody. The init reaps, answers refused system calls,
// and says how the guest ended. It shares the guest's user but is not dumpable and not reachable
// by its signals, so the candidate cannot forge the report; the worker kills it from outside.
#pragma once

#include "drk/base/fd.h"

#include <string>
#include <sys/types.h>

namespace drk::guest {

struct Supervised {
  pid_t guest = -1;
  Fd status;                       ///< Where Ended goes.
  Fd refusals;                     ///< seccomp listener, or invalid.
  bool is_namespace_init = false;  ///< /proc shows this cell alone.
  std::string scratch_to_remove;   ///< Empty where it goes with the mount view.
};

/// Waits for the guest's end, reports it, ends everything in the cell, exits. Uses no Python.
[[noreturn]] void supervise(Supervised supervised) noexcept;

}  // namespace drk::guest
