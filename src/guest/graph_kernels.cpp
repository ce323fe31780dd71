// SPDX-License-Identifier: Apache-2.0
// Nodes to kernels, clones to nodes.
#include "guest/graph_kernels.h"

#include <utility>

namespace drk::guest {

namespace {

using cupti::Graph;
using cupti::GraphExec;
using cupti::GraphNode;
using cupti::NodeType;

constexpr int kMaxDepth = 16;  // of graphs in graphs

}  // namespace

GraphKernels::Contents GraphKernels::read(Graph graph) {
  Contents contents;
  read_into(contents, graph, 0);
  return contents;
}

void GraphKernels::read_into(Contents& contents, Graph graph, int depth) {
  std::size_t count = 0;
  std::vector<GraphNode> nodes;
  if (depth < kMaxDepth && driver_.graph_get_nodes(graph, nullptr, &count) == 0) {
    nodes.resize(count);
  }
  if (count == 0 || nodes.empty() || driver_.graph_get_nodes(graph, nodes.data(), &count) != 0) {
    if (count != 0 || depth >= kMaxDepth) contents.complete = false;
    return;
  }
  for (GraphNode node : nodes) {
    NodeType type = NodeType::conditional;
    Graph child = nullptr;
    (void)driver_.graph_node_get_type(node, &type);
    if (type == NodeType::kernel) contents.kernels.push_back(read_kernel(node));
    if (type == NodeType::conditional) contents.complete = false;
    if (type != NodeType::graph) continue;
    if (driver_.graph_child_get_graph(node, &child) == 0) {
      read_into(contents, child, depth + 1);
    } else {
      contents.complete = false;
    }
  }
}

Kernel* GraphKernels::read_kernel(GraphNode node) {
  cupti::KernelNodeParameters parameters = {};
  Kernel* kernel = nullptr;
  if (driver_.graph_kernel_node_get_params(node, &parameters) == 0) {
    // Of a kernel in a library the function is one that the driver derived, which nobody loaded.
    kernel = origins_.find(parameters.kernel != nullptr ? parameters.kernel : parameters.function,
                           nullptr);
  }
  if (kernel == nullptr) kernel = origins_.intern(nullptr, task::KernelOrigin::unknown);
  std::uint64_t id = 0;
  if (api_.graph_node_id(node, &id) == 0) {
    const std::lock_guard lock(mutex_);
    nodes_[id] = kernel;
  }
  return kernel;
}

void GraphKernels::instantiated(GraphExec exec, Contents contents) {
  auto shared = std::make_shared<const Contents>(std::move(contents));
  const std::lock_guard lock(mutex_);
  execs_[exec] = std::move(shared);
}

void GraphKernels::cloned(GraphNode original, GraphNode clone) {
  std::uint64_t original_id = 0, clone_id = 0;
  if (api_.graph_node_id(original, &original_id) != 0) return;
  if (api_.graph_node_id(clone, &clone_id) != 0) return;
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(original_id);
  if (found == nodes_.end()) return;
  Kernel* kernel = found->second;
  nodes_[clone_id] = kernel;
}

void GraphKernels::altered(GraphExec exec) {
  Kernel* unknown = origins_.intern(nullptr, task::KernelOrigin::unknown);
  const std::lock_guard lock(mutex_);
  const auto found = execs_.find(exec);
  if (found == execs_.end()) return;
  Contents contents;
  contents.kernels.assign(found->second->kernels.size(), unknown);
  contents.complete = false;
  found->second = std::make_shared<const Contents>(std::move(contents));
}

void GraphKernels::destroyed(GraphExec exec) {
  const std::lock_guard lock(mutex_);
  execs_.erase(exec);
}

std::shared_ptr<const GraphKernels::Contents> GraphKernels::contents(GraphExec exec) const {
  const std::lock_guard lock(mutex_);
  const auto found = execs_.find(exec);
  return found == execs_.end() ? nullptr : found->second;
}

Kernel* GraphKernels::kernel_of_node(std::uint64_t node_id) const {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(node_id);
  return found == nodes_.end() ? nullptr : found->second;
}

}  // namespace drk::guest
