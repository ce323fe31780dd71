// SPDX-License-Identifier: Apache-2.0
// One evaluation by an evaluator of its own, with progress and Ctrl-C: what eval and replay share.
#pragma once

#include "drk/worker.h"

#include "terminal.h"

namespace drk::cli {

struct EvaluateOnce {
  worker::Options worker;
  const task::Manifest* replay = nullptr;  ///< Not owned.
  ProgressLine::Manner progress = ProgressLine::Manner::silent;
};

/// Throws Error{timed_out} when it was interrupted.
[[nodiscard]] task::Result evaluate_once(const task::Task& task, const EvaluateOnce& how);

}  // namespace drk::cli
