// SPDX-License-Identifier: Apache-2.0
// Calls of a model, and what is seen of them.
#pragma once

#include "drk/guest.h"

#include "guest/call_inputs.h"
#include "guest/core.h"
#include "guest/models.h"
#include "guest/rotation.h"
#include "guest/tree.h"

#include <cstdint>

namespace drk::guest {

/// Needs the GIL. Throws RequestFailed, CudaFailed, and PythonRaised where torch raised beside the
/// call.
class Calls {
 public:
  /// All three must outlast it.
  Calls(const Core& core, Models& models, CallInputs& inputs)
      : core_(core), models_(models), inputs_(inputs) {}

  /// `block_fd`: of the request's inputs; not looked at where it calls with those of the call
  /// before.
  [[nodiscard]] Called make(const Call& request, int block_fd);
  /// Forgets what the last call was made with.
  void drop_arguments();

 private:
  struct Manner {
    bool by_device = false;  ///< The clock.
    task::Protocol protocol = task::Protocol::cold;
    task::GradMode grad = task::GradMode::off;
    std::uint64_t forward_seed = 0;
  };
  struct OneCall {
    Ref output;
    double host_us = 0;
    DeviceTime device;  ///< Where it is by device.
  };

  void take_arguments(const Call& request, int block_fd);
  void watch_launches_of(LaunchMode mode) const;
  void fill_fresh_memory(const Call& request) const;
  [[nodiscard]] Ref call_exactly(const Call& request, Called& called);
  [[nodiscard]] Ref call_model(const Call& request, Called& called, Export& outputs);
  void warm_up(
      const Call& request, PyObject* model, const Manner& manner, Rotation& turns, Called& called);
  [[nodiscard]] OneCall call_counted(PyObject* model,
                                     const Manner& manner,
                                     const Arguments& arguments,
                                     Called& called);
  [[nodiscard]] OneCall call_once(PyObject* model,
                                  const Manner& manner,
                                  const Arguments& arguments);
  static void add_time(const OneCall& one, const Manner& manner, task::TimedCalls& times);
  void take_output(const Call& request, PyObject* output, Export& outputs, Called& called) const;
  void note_launches(Called& called) const;
  void note_overrides(Called& called) const;
  [[nodiscard]] std::uint64_t own_programs_so_far() const;
  void note_programs_behind();

  const Core& core_;
  Models& models_;
  CallInputs& inputs_;
  Arguments arguments_;                ///< Of the last call.
  std::uint64_t programs_at_end_ = 0;  ///< Of the last call of the request, counted in it so far.
  std::uint64_t programs_behind_ = 0;  ///< Behind calls of the request.
};

}  // namespace drk::guest
