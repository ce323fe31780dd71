// SPDX-License-Identifier: Apache-2.0
// One evaluation by an evaluator of its own.
#include "evaluate.h"

#include "drk/base/json.h"

#include "interrupts.h"

namespace drk::cli {

task::Result evaluate_once(const task::Task& task, const EvaluateOnce& how) {
  const Interrupts interrupts;  // before the evaluator's threads
  ProgressLine progress(how.progress);
  progress.show("starting Python");
  worker::Evaluator evaluator(how.worker);
  worker::EvaluateOptions options;
  options.stop = interrupts.token();
  options.replay = how.replay;
  options.on_progress = [&](const worker::Progress& step) {
    progress.show(describe_step(json::name_of(step.stage), step.detail));
  };
  return evaluator.evaluate(task, options);
}

}  // namespace drk::cli
