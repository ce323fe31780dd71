// SPDX-License-Identifier: Apache-2.0
// What both sides ask of TLS.
#include "http/tls.h"

#include "drk/base/error.h"

#include <boost/system/system_error.hpp>
#include <fmt/format.h>
#include <openssl/ssl.h>

namespace drk::http {

namespace asio = boost::asio;

namespace {

[[noreturn]] void throw_bad_file(const char* what,
                                 const std::string& file,
                                 const boost::system::error_code& error) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("http: cannot use the {} '{}': {}", what, file, error.message()));
}

void require_tls_1_2(asio::ssl::context& context) {
  DRK_CHECK(::SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION) == 1);
  // A client that renegotiates over and over costs far more than it pays.
  context.set_options(SSL_OP_NO_RENEGOTIATION);
}

}  // namespace

asio::ssl::context make_server_context(const std::string& certificate_file,
                                       const std::string& key_file) {
  asio::ssl::context context(asio::ssl::context::tls_server);
  require_tls_1_2(context);
  boost::system::error_code error;
  context.use_certificate_chain_file(certificate_file, error);
  if (error) throw_bad_file("TLS certificate", certificate_file, error);
  context.use_private_key_file(key_file, asio::ssl::context::pem, error);
  if (error) throw_bad_file("TLS key", key_file, error);
  if (::SSL_CTX_check_private_key(context.native_handle()) != 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("http: the TLS key '{}' does not belong to the certificate '{}'",
                            key_file,
                            certificate_file));
  }
  return context;
}

asio::ssl::context make_client_context(const std::string& ca_file) {
  asio::ssl::context context(asio::ssl::context::tls_client);
  require_tls_1_2(context);
  context.set_verify_mode(asio::ssl::verify_peer);
  boost::system::error_code error;
  if (ca_file.empty()) {
    context.set_default_verify_paths(error);
  } else {
    context.load_verify_file(ca_file, error);
  }
  if (error) throw_bad_file("TLS authorities", ca_file, error);
  return context;
}

}  // namespace drk::http
