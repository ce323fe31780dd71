// SPDX-License-Identifier: Apache-2.0
// Where a client connects to.
#pragma once

#include <string>
#include <string_view>

namespace drk::http {

struct Origin {
  bool is_tls = false;
  std::string host;  ///< Without the brackets of a v6 address.
  std::string port;
  std::string host_header;  ///< As the Host header wants it: "[::1]:10907".
};

/// "http://host:port", the port defaulting to the scheme's. Throws Error{invalid_argument}.
[[nodiscard]] Origin parse_origin(std::string_view url);

}  // namespace drk::http
