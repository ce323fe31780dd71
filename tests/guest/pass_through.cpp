// SPDX-License-Identifier: Apache-2.0
// A library that stands in a call's stack, built under several names.
#include "guest/pass_through.h"

extern "C" __attribute__((visibility("default"))) int drk_pass_through(void* step,
                                                                       const void* /*unused*/) {
  const auto& next = *static_cast<const drk::guest::test::Step*>(step);
  const int result = next.call(next.first, next.second);
  asm volatile("" ::: "memory");  // so that the call above is none to leave this frame by
  return result;
}
