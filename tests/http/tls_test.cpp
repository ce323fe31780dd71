// SPDX-License-Identifier: Apache-2.0
// TLS, with certificates made here and now.
#include "drk/base/error.h"
#include "drk/base/fd.h"
#include "drk/http.h"

#include "base/error_matchers.h"
#include "http/raw_client.h"
#include "http/serving.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

namespace drk::http::test {
namespace {

template <auto Function>
struct Deleter {
  template <class T>
  void operator()(T* object) const noexcept {
    Function(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Bio = std::unique_ptr<BIO, Deleter<BIO_free_all>>;

void add_extension(X509* certificate, int kind, const char* value) {
  const std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>> extension(
      ::X509V3_EXT_conf_nid(nullptr, nullptr, kind, value));
  ASSERT_NE(extension, nullptr);
  ASSERT_EQ(::X509_add_ext(certificate, extension.get(), -1), 1);
}

/// Self-signed, for an hour, for the names in `names` ("IP:127.0.0.1,DNS:localhost").
Certificate make_certificate(EVP_PKEY* key, const char* names) {
  Certificate certificate(::X509_new());
  X509* x509 = certificate.get();
  ::X509_set_version(x509, X509_VERSION_3);
  ::ASN1_INTEGER_set(::X509_get_serialNumber(x509), 1);
  ::X509_gmtime_adj(::X509_getm_notBefore(x509), -60);
  ::X509_gmtime_adj(::X509_getm_notAfter(x509), 3600);
  ::X509_set_pubkey(x509, key);
  const auto* name = reinterpret_cast<const unsigned char*>("drk test");
  ::X509_NAME_add_entry_by_txt(::X509_get_subject_name(x509), "CN", MBSTRING_ASC, name, -1, -1, 0);
  ::X509_set_issuer_name(x509, ::X509_get_subject_name(x509));
  add_extension(x509, NID_subject_alt_name, names);
  add_extension(x509, NID_basic_constraints, "critical,CA:TRUE");
  EXPECT_GT(::X509_sign(x509, key, ::EVP_sha256()), 0);
  return certificate;
}

class TlsTest : public ServingTest {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "drk-tls-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    options_.tls_certificate_file = folder_ / "certificate.pem";
    options_.tls_key_file = folder_ / "key.pem";
    write_pair("IP:127.0.0.1");
  }
  void TearDown() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  void write_pair(const char* names) const {
    const Key key(::EVP_EC_gen("P-256"));
    const Certificate certificate = make_certificate(key.get(), names);
    const Bio key_file(::BIO_new_file(options_.tls_key_file.c_str(), "w"));
    ::PEM_write_bio_PrivateKey(key_file.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    const Bio certificate_file(::BIO_new_file(options_.tls_certificate_file.c_str(), "w"));
    ::PEM_write_bio_X509(certificate_file.get(), certificate.get());
  }

  [[nodiscard]] ClientOptions client_options(const std::string& host = "127.0.0.1") const {
    return {.url = "https://" + host + ":" + std::to_string(server_->port()),
            .ca_file = options_.tls_certificate_file};
  }

  std::filesystem::path folder_;
};

TEST_F(TlsTest, ServesOverTls) {
  serve();
  Client client(client_options());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.send("POST", "/", "body").body, "POST /; body");
  EXPECT_EQ(server_->counts().accepted, 1U);
}

TEST_F(TlsTest, CarriesLongBodiesAndStreams) {
  const std::string long_text(std::size_t{20} << 20, 'x');
  handler_.handling = [](const Request& request, const std::shared_ptr<Exchange>& exchange) {
    exchange->start_stream({});
    exchange->send("first ");
    exchange->send(request.body);
    exchange->finish();
  };
  serve();
  Client client(client_options());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(client.send("POST", "/", long_text).body == "first " + long_text);
  }
}

TEST_F(TlsTest, RefusesLongBodiesInSight) {
  options_.max_body_bytes = 1000;
  serve();
  Client client(client_options());
  EXPECT_EQ(client.send("POST", "/", std::string(std::size_t{8} << 20, 'x')).status, 413U);
  EXPECT_EQ(client.send("GET", "/").status, 200U);
}

TEST_F(TlsTest, AnswersLateAndNoticesWhoLeft) {
  auto exchange = keep_exchange();
  serve();
  std::stop_source stop;
  std::jthread leaving([&] {
    Client client(client_options());
    EXPECT_TRUE(throws_error(ErrorCode::timed_out, "told to stop", [&] {
      (void)client.send("GET", "/", {}, {}, stop.get_token());
    }));
  });
  const Signal left;
  const std::shared_ptr<Exchange> kept = exchange.get();
  kept->on_leave(left.function());
  stop.request_stop();
  EXPECT_TRUE(left.comes_within(5s));
}

TEST_F(TlsTest, ClosesIdleConnectionsAndThoseThatNeverShakeHands) {
  options_.idle_timeout = 100ms;
  options_.header_timeout = 100ms;
  serve();
  Client client(client_options());
  EXPECT_EQ(client.send("GET", "/").status, 200U);
  RawClient silent(server_->port());
  EXPECT_TRUE(silent.is_at_end());
  RawClient plain(server_->port());
  plain.send(get("/"));
  EXPECT_THROW(plain.read_answer(), BadAnswer);
  while (server_->counts().connections > 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(client.send("GET", "/").status, 200U) << "over a new connection";
}

TEST_F(TlsTest, Drains) {
  serve();
  Client client(client_options());
  EXPECT_EQ(client.send("GET", "/").status, 200U);
  RawClient silent(server_->port());
  server_->drain(10s);
  EXPECT_EQ(server_->counts().connections, 0U);
}

TEST_F(TlsTest, ClientTrustsOnlyTheRightName) {
  serve();
  Client other_name(client_options("localhost"));
  EXPECT_TRUE(throws_error(ErrorCode::unavailable, "certificate verify failed", [&] {
    (void)other_name.send("GET", "/");
  }));
  server_.reset();
  write_pair("DNS:localhost");
  serve();
  Client right_name(client_options("localhost"));
  EXPECT_EQ(right_name.send("GET", "/").status, 200U);
}

TEST_F(TlsTest, ClientTrustsOnlyItsAuthorities) {
  serve();
  ClientOptions system = client_options();
  system.ca_file.clear();
  Client client(system);
  EXPECT_TRUE(throws_error(
      ErrorCode::unavailable, "certificate verify failed", [&] { (void)client.send("GET", "/"); }));
}

TEST_F(TlsTest, TakesNothingOlderThanTls12) {
  serve();
  const std::unique_ptr<SSL_CTX, Deleter<SSL_CTX_free>> context(
      ::SSL_CTX_new(::TLS_client_method()));
  ::SSL_CTX_set_security_level(context.get(), 0);
  for (const auto& [version, works] : {std::pair{TLS1_1_VERSION, false}, {TLS1_2_VERSION, true}}) {
    const Bio connection(::BIO_new_ssl_connect(context.get()));
    SSL* ssl = nullptr;
    ::BIO_get_ssl(connection.get(), &ssl);
    ::SSL_set_min_proto_version(ssl, version);
    ::SSL_set_max_proto_version(ssl, version);
    const std::string address = "127.0.0.1:" + std::to_string(server_->port());
    ::BIO_set_conn_hostname(connection.get(), address.c_str());
    EXPECT_EQ(::BIO_do_handshake(connection.get()) == 1, works) << version;
  }
}

TEST_F(TlsTest, ChecksItsFiles) {
  const auto refuses = [&](const std::string& text) {
    return throws_error(
        ErrorCode::invalid_argument, text, [&] { const Server bad(options_, handler_); });
  };
  const std::string certificate_file =
      std::exchange(options_.tls_certificate_file, "/no/such/file");
  EXPECT_TRUE(refuses("/no/such/file"));
  options_.tls_certificate_file = "";
  EXPECT_TRUE(refuses("TLS certificate")) << "a key alone is a mistake";
  options_.tls_certificate_file = options_.tls_key_file;
  EXPECT_TRUE(refuses("TLS certificate"));
  options_.tls_certificate_file = certificate_file;
  const std::string key_file = std::exchange(options_.tls_key_file, certificate_file);
  EXPECT_TRUE(refuses("TLS key"));
  options_.tls_key_file = folder_ / "other-key.pem";
  options_.tls_certificate_file = folder_ / "other.pem";
  write_pair("IP:127.0.0.1");
  options_.tls_key_file = key_file;
  EXPECT_TRUE(refuses("TLS key")) << "of another certificate";
}

}  // namespace
}  // namespace drk::http::test
