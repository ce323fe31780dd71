// SPDX-License-Identifier: Apache-2.0
// A driver and a CUPTI of a few lines: handles, callbacks, records, memory; no device.
//
// Launches run at once. A kernel whose name is drk_write writes its second parameter to its first;
// all others do nothing. The driver goes on with the arguments as the callback left them.
#pragma once

#include "guest/cupti_api.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace drk::guest::test {

/// One at a time: CUPTI and the driver are C interfaces, whose functions find it by a static.
class FakeCuda {
 public:
  FakeCuda();
  FakeCuda(const FakeCuda&) = delete;
  FakeCuda& operator=(const FakeCuda&) = delete;
  ~FakeCuda();

  [[nodiscard]] cupti::Api api() const;
  [[nodiscard]] cupti::Driver driver() const;

  // --- what a test does as the candidate ---
  cupti::Module load_module(const char* image);
  cupti::Library load_library(const char* image);
  void unload_module(cupti::Module module);
  cupti::Function function(cupti::Module module, const char* name);
  cupti::Function kernel(cupti::Library library, const char* name);
  cupti::Function function_of(cupti::Function kernel);  ///< cuKernelGetFunction
  /// The driver's answer. `bytes` is the grid's x.
  int launch(cupti::Function function,
             std::uint32_t grid = 1,
             cupti::DriverCall call = cupti::DriverCall::launch_kernel,
             cupti::Stream stream = nullptr);
  cupti::GraphExec capture(const std::function<void()>& launches);  ///< And instantiates.
  void replay(cupti::GraphExec exec);
  void alter(cupti::GraphExec exec);  ///< cuGraphExecUpdate

  /// cuStreamWaitEvent's arguments, of all calls.
  std::vector<std::pair<cupti::Stream, cupti::Event>> waits;

  // --- how it fails ---
  bool callbacks_come = true;
  bool records_come = true;
  bool swaps_work = true;  ///< False: the driver launches what the caller gave.
  bool times_are_known = true;
  int launch_result = 0;
  std::uint64_t drop_records = 0;  ///< So many of the next.
};

}  // namespace drk::guest::test
