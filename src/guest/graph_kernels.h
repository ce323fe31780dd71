// SPDX-License-Identifier: Apache-2.0
// The kernels that CUDA graphs hold: what a replay launches, and whose.
//
// A replayed kernel has no launch call of its own. Its record names a node of the executable graph;
// that is a clone of a node of the graph it was made from, whose parameters name the function.
#pragma once

#include "guest/cupti_api.h"
#include "guest/kernel_origins.h"

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace drk::guest {

/// Thread-safe; its lock is never held while the driver is called (see KernelOrigins).
class GraphKernels {
 public:
  GraphKernels(const cupti::Api& api, const cupti::Driver& driver, KernelOrigins& origins)
      : api_(api), driver_(driver), origins_(origins) {}

  struct Contents {
    std::vector<Kernel*> kernels;  ///< One for each kernel node, those of child graphs too.
    bool complete =
        true;  ///< False: it launches others as well (conditional nodes), or was altered.
  };

  /// Before a graph is instantiated.
  [[nodiscard]] Contents read(cupti::Graph graph);
  void instantiated(cupti::GraphExec exec, Contents contents);
  void cloned(cupti::GraphNode original, cupti::GraphNode clone);
  /// By a call that can exchange its kernels.
  void altered(cupti::GraphExec exec);
  void destroyed(cupti::GraphExec exec);

  /// Nullptr for a graph whose instantiation was not seen. Shared with launches in progress.
  [[nodiscard]] std::shared_ptr<const Contents> contents(cupti::GraphExec exec) const;
  /// Nullptr for a node that no graph read here had.
  [[nodiscard]] Kernel* kernel_of_node(std::uint64_t node_id) const;

 private:
  void read_into(Contents& contents, cupti::Graph graph, int depth);
  [[nodiscard]] Kernel* read_kernel(cupti::GraphNode node);

  // Constant after construction.
  const cupti::Api& api_;
  const cupti::Driver& driver_;
  KernelOrigins& origins_;
  // Guarded by mutex_.
  mutable std::mutex mutex_;
  std::unordered_map<cupti::GraphExec, std::shared_ptr<const Contents>> execs_;
  std::unordered_map<std::uint64_t, Kernel*> nodes_;  ///< By CUPTI's id; ids do not come back.
};

}  // namespace drk::guest
