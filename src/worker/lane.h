// SPDX-License-Identifier: Apache-2.0
// Where evaluations run: one GPU, or the CPU, with its guests and references.
#pragma once

#include "worker/clerk.h"
#include "worker/gpu_slot.h"
#include "worker/pool.h"
#include "worker/references.h"

#include <atomic>
#include <memory>

namespace drk::worker {

struct Lane {
  Lane(Options lane_options, std::unique_ptr<GpuSlot> slot)
      : options(std::move(lane_options)),
        gpu(std::move(slot)),
        pool(options, gpu.get()),
        references(options, pool, gpu.get()),
        clerk([this] { return pool.take_without_device(); }) {}

  const Options options;               ///< The worker's, cut down to what this device can hold.
  const std::unique_ptr<GpuSlot> gpu;  ///< Null: no GPU.
  GuestPool pool;
  References references;
  Clerk clerk;
  std::atomic<std::uint32_t> evaluations =
      0;  ///< Under way; read when the next one looks for room.
};

}  // namespace drk::worker
