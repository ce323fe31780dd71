// SPDX-License-Identifier: Apache-2.0
// Who goes first.
#pragma once

#include <boost/describe.hpp>

#include <cstdint>

namespace drk::task {

enum class Priority : std::uint8_t { low, normal, high };
BOOST_DESCRIBE_ENUM(Priority, low, normal, high)

}  // namespace drk::task
