// SPDX-License-Identifier: Apache-2.0
// The register of hosts and workers.
#include "gym/registry.h"

#include "base/error_matchers.h"

#include <gtest/gtest.h>

namespace drk::gym {
namespace {

TEST(Registry, AHostAlwaysGetsTheSameNode) {
  Registry registry;
  const std::string id = registry.allocate_node("gpu-1", "");
  EXPECT_EQ(registry.allocate_node("gpu-1", ""), id);
  EXPECT_NE(registry.allocate_node("gpu-2", ""), id);
  EXPECT_EQ(registry.allocate_node("gpu-3", "rack-a"), "rack-a");
  EXPECT_EQ(registry.allocate_node("gpu-3", ""), "rack-a");
}

TEST(Registry, ANameBelongsToOneHost) {
  Registry registry;
  (void)registry.allocate_node("gpu-1", "rack-a");
  EXPECT_TRUE(throws_error(
      ErrorCode::conflict, "gpu-1", [&] { (void)registry.allocate_node("gpu-2", "rack-a"); }));
  EXPECT_TRUE(throws_error(
      ErrorCode::invalid_argument, "hostname", [&] { (void)registry.allocate_node("", "x"); }));
}

TEST(Registry, ADeviceOfANodeBelongsToOneWorker) {
  Registry registry;
  registry.register_worker({"w1", "cuda:0", "n1", "h1"});
  registry.register_worker({"w1", "cuda:0", "n1", "h1"});  // again: the same worker
  registry.register_worker({"w2", "cuda:0", "n2", "h2"});  // of another node
  EXPECT_TRUE(throws_error(ErrorCode::conflict, "w1", [&] {
    (void)registry.register_worker({"w3", "cuda:0", "n1", "h1"});
  }));
  registry.unregister_worker("w1");
  registry.register_worker({"w3", "cuda:0", "n1", "h1"});
  EXPECT_EQ(registry.workers().at("w3").status, "online");
}

TEST(Registry, KnowsWhatADeviceIs) {
  Registry registry;
  for (const char* device : {"cpu", "cuda:0", "cuda:15", "cuda:GPU-0a1b"}) {
    registry.register_worker({std::string("w-") + device, device, "n", "h"});
  }
  for (const char* device : {"", "gpu", "cuda", "cuda:", "cuda:x", "cuda:1234", "tpu:0"}) {
    EXPECT_TRUE(throws_error(ErrorCode::conflict, "device", [&] {
      (void)registry.register_worker({"w", device, "n", "h"});
    })) << device;
  }
}

TEST(Registry, UnknownWorkersAreNotFound) {
  Registry registry;
  EXPECT_TRUE(throws_error(ErrorCode::not_found, "w", [&] { (void)registry.heartbeat("w"); }));
  EXPECT_TRUE(throws_error(ErrorCode::not_found, "w", [&] { (void)registry.evict("w"); }));
  EXPECT_TRUE(
      throws_error(ErrorCode::not_found, "w", [&] { (void)registry.unregister_worker("w"); }));
  registry.register_worker({"w", "cpu", "n", "h"});
  registry.heartbeat("w");
  registry.evict("w");
  EXPECT_EQ(registry.workers().at("w").status, "evicted");
}

}  // namespace
}  // namespace drk::gym
