// SPDX-License-Identifier: Apache-2.0
// TLS contexts: 1.2 or newer, certificates from files.
#pragma once

#include <boost/asio/ssl/context.hpp>

#include <string>

namespace drk::http {

/// Throws Error{invalid_argument} for files that do not load or do not belong together.
[[nodiscard]] boost::asio::ssl::context make_server_context(const std::string& certificate_file,
                                                            const std::string& key_file);
/// Verifies the server by the authorities of `ca_file`, or the system's when it is empty. Throws
/// Error{invalid_argument} for a file that does not load.
[[nodiscard]] boost::asio::ssl::context make_client_context(const std::string& ca_file);

}  // namespace drk::http
