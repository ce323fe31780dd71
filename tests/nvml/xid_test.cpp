// SPDX-License-Identifier: Apache-2.0
// Whose doing an Xid is.
#include "drk/gpu.h"

#include <gtest/gtest.h>

#include <utility>

namespace drk::gpu {
namespace {

TEST(XidKind, TellsTheCandidatesDoingFromTheDevices) {
  const std::vector<std::pair<XidKind, std::vector<std::uint32_t>>> cases = {
      {XidKind::candidate, {13, 31, 32, 43, 45, 68, 69, 109}},
      {XidKind::device, {48, 62, 63, 64, 74, 79, 94, 95, 119, 120, 140, 154}},
      {XidKind::harmless, {92, 93}}};
  for (const auto& [kind, xids] : cases) {
    for (const std::uint32_t xid : xids) EXPECT_EQ(xid_kind(xid), kind) << xid;
  }
}

TEST(XidKind, AnUnknownXidIsTheDevices) {
  EXPECT_EQ(xid_kind(0), XidKind::device);
  EXPECT_EQ(xid_kind(4711), XidKind::device);
}

TEST(DescribeXid, NamesNumberAndMeaning) {
  EXPECT_EQ(describe_xid(31), "Xid 31: GPU memory page fault");
  EXPECT_EQ(describe_xid(79), "Xid 79: GPU has fallen off the bus");
  EXPECT_EQ(describe_xid(4711), "Xid 4711: not known here");
}

}  // namespace
}  // namespace drk::gpu
