// SPDX-License-Identifier: Apache-2.0
// Requests that the server answers itself.
#pragma once

#include "drk/http.h"

#include <cstdint>
#include <string>

namespace drk::http {

/// Why a request is not served.
struct Failure {
  std::uint32_t status = 400;
  std::string what;
};

/// The handler's words for it; plain ones when the handler throws. A 503 asks to come back.
[[nodiscard]] Reply describe(Handler& handler, const Failure& failure);

}  // namespace drk::http
