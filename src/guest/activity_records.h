// SPDX-License-Identifier: Apache-2.0
// CUPTI's activity records: switched on for a while, then handed out together.
#pragma once

#include "guest/cupti_api.h"

#include <cstdint>
#include <functional>
#include <string>

namespace drk::guest {

/// Records reach the process only when a buffer is full or on a flush, on threads of CUPTI's too.
/// Their buffers are kept until end(): only then have all launch calls come back that records
/// belong to. Past 256 MiB (1.2 million kernels) buffers are refused, and records count as dropped.
/// Not thread-safe; once a process at a time, as CUPTI's buffer callbacks carry no user pointer.
class ActivityRecords {
 public:
  explicit ActivityRecords(const cupti::Api& api) : api_(api) {}

  /// Discards what is left of the last session and switches kernels, copies and fills on. Returns
  /// what failed, or "".
  [[nodiscard]] std::string begin();

  struct Visitor {
    std::function<void(const cupti::KernelActivity&)> kernel;
    std::function<void(const cupti::MemoryActivity&)> memory;
  };
  struct Ended {
    std::uint64_t dropped = 0;
    std::string problem;  ///< What failed, or "".
  };
  /// The device must be idle: the flush keeps a whole buffer back while one of its kernels runs.
  /// Visits all records, in no order, and switches them off.
  Ended end(const Visitor& visitor);

 private:
  void visit(std::uint8_t* buffer, std::size_t valid, const Visitor& visitor) const;

  const cupti::Api& api_;
  bool began_ = false;
};

}  // namespace drk::guest
