// SPDX-License-Identifier: Apache-2.0
// The child process of a Watch: it alone calls NVML, and tells what it sees.
#pragma once

#include "drk/gpu.h"

#include <boost/describe.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace drk::gpu {

/// To the watcher: take a sample now.
struct Request {
  std::uint64_t number = 0;  ///< From 1; they are answered in order.
  std::string uuid;
};
BOOST_DESCRIBE_STRUCT(Request, (), (number, uuid))

/// From the watcher: of one device, or of all when it names none.
struct Report {
  std::uint64_t answers = 0;  ///< The number of a request, or 0.
  std::string uuid;
  std::optional<Sample> sample;
  std::string problem;  ///< Why there is no sample.
  bool lost = false;    ///< There will be none any more.
  std::string unseen;   ///< What cannot be watched, and why.
  std::vector<Event> events;
};
BOOST_DESCRIBE_STRUCT(Report, (), (answers, uuid, sample, problem, lost, unseen, events))

/// The body of the child: returns when the other side of `socket` is gone. That there is no NVML is
/// a report.
void watch_devices(int socket, const std::vector<std::string>& uuids, const WatchOptions& options);

}  // namespace drk::gpu
