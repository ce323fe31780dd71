// SPDX-License-Identifier: Apache-2.0
// Listening, accepting, stopping.
#include "drk/base/error.h"
#include "drk/http.h"

#include "http/connections.h"
#include "http/session_impl.h"
#include "http/tls.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <fmt/format.h>

#include <pthread.h>
#include <thread>

namespace drk::http {

namespace {

using Tcp = asio::ip::tcp;
using Acceptor = asio::basic_socket_acceptor<Tcp, Strand>;

/// "[::1]" and "::1" alike.
std::string without_brackets(const std::string& host) {
  const bool has_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return has_brackets ? host.substr(1, host.size() - 2) : host;
}

/// An acceptor on the first address of `options.host` that can be had.
Acceptor listen(asio::io_context& context, const ServerOptions& options) {
  boost::system::error_code error;
  Tcp::resolver resolver(context);
  const auto found = resolver.resolve(without_brackets(options.host),
                                      std::to_string(options.port),
                                      Tcp::resolver::passive | Tcp::resolver::numeric_service,
                                      error);
  for (const auto& entry : found) {
    Acceptor acceptor(asio::make_strand(context));
    acceptor.open(entry.endpoint().protocol(), error);
    if (error) continue;
    acceptor.set_option(asio::socket_base::reuse_address(true), error);
    acceptor.bind(entry.endpoint(), error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (!error) return acceptor;
  }
  throw Error(
      ErrorCode::unavailable,
      fmt::format(
          "http: cannot listen on {} port {}: {}", options.host, options.port, error.message()));
}

std::string address_text(const Socket& socket) {
  boost::system::error_code error;
  asio::ip::address address = socket.remote_endpoint(error).address();
  if (error) return "unknown";  // already gone
  // A listener on "::" sees clients of the old protocol so.
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  }
  return address.to_string();
}

}  // namespace

class Server::Impl {
 public:
  Impl(ServerOptions options, Handler& handler);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] const Connections& connections() const noexcept { return service_.connections; }
  void drain(std::chrono::milliseconds limit);

 private:
  /// Longer would keep clients waiting, shorter would burn time while descriptors are out.
  static constexpr std::chrono::milliseconds kRetryAccept{50};

  Awaitable<void> accept();
  void begin(Socket socket);
  template <class Stream>
  void begin_session(Connections::Seat seat, Stream stream, std::string peer);
  void stop_accepting();
  void run() noexcept;

  Service service_;
  std::optional<asio::ssl::context> tls_;
  asio::io_context context_;
  Acceptor acceptor_;  // used on its strand only, once accepting
  Timer retry_;        // likewise
  const std::uint16_t port_;
  std::vector<std::jthread> threads_;
};

Server::Impl::Impl(ServerOptions options, Handler& handler)
    : service_(std::move(options), handler),
      context_(static_cast<int>(std::max(1U, service_.options.threads))),
      acceptor_(listen(context_, service_.options)),
      retry_(acceptor_.get_executor()),
      port_(acceptor_.local_endpoint().port()) {
  const ServerOptions& own = service_.options;
  if (!own.tls_certificate_file.empty() || !own.tls_key_file.empty()) {
    tls_.emplace(make_server_context(own.tls_certificate_file, own.tls_key_file));
  }
  asio::co_spawn(acceptor_.get_executor(), accept(), asio::detached);
  try {
    for (std::uint32_t i = 0; i < std::max(1U, own.threads); ++i) {
      threads_.emplace_back([this] { run(); });
      ::pthread_setname_np(threads_.back().native_handle(), "drk-http");
    }
  } catch (...) {
    context_.stop();  // or the threads that did start would never join
    throw;
  }
}

Server::Impl::~Impl() {
  try {
    stop_accepting();
    service_.connections.abort_all();
  } catch (const std::exception&) {
    context_.stop();  // no memory to ask them: the connections end with the context
  }
  // Each connection closes, its coroutine ends, and with the last of them the threads do.
  threads_.clear();
}

void Server::Impl::run() noexcept {
  for (;;) {
    try {
      context_.run();
      return;
    } catch (const std::exception&) {
      // Out of memory between two steps of a connection: it is lost, the others go on.
    }
  }
}

Awaitable<void> Server::Impl::accept() {
  boost::system::error_code error;
  auto token = asio::redirect_error(kAwait, error);
  while (acceptor_.is_open()) {
    const auto strand = asio::make_strand(context_);
    Socket socket = co_await acceptor_.async_accept(strand, token);
    if (!error) {
      begin(std::move(socket));
    } else if (acceptor_.is_open()) {
      // Descriptors or memory are short: the clients wait in the backlog until some are free.
      retry_.expires_after(kRetryAccept);
      co_await retry_.async_wait(token);
    }
  }
}

void Server::Impl::begin(Socket socket) {
  Connections::Seat seat = service_.connections.admit();
  if (seat.kind() == Connections::Admission::closed) return;
  std::string peer = address_text(socket);
  if (tls_) {
    begin_session(std::move(seat), TlsStream(std::move(socket), *tls_), std::move(peer));
  } else {
    begin_session(std::move(seat), std::move(socket), std::move(peer));
  }
}

template <class Stream>
void Server::Impl::begin_session(Connections::Seat seat, Stream stream, std::string peer) {
  const auto session = std::make_shared<Session<Stream>>(
      service_, std::move(seat), std::move(stream), std::move(peer));
  asio::co_spawn(session->strand(), Session<Stream>::run(session), asio::detached);
  service_.connections.add(session->seat(), session);
}

void Server::Impl::stop_accepting() {
  asio::post(acceptor_.get_executor(), [this] {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    retry_.cancel();
  });
}

void Server::Impl::drain(std::chrono::milliseconds limit) {
  stop_accepting();
  service_.connections.drain_all();
  service_.connections.wait_until_none(limit);
}

Server::Server(ServerOptions options, Handler& handler)
    : impl_(std::make_unique<Impl>(std::move(options), handler)) {}

Server::~Server() = default;

std::uint16_t Server::port() const noexcept {
  return impl_->port();
}

ServerCounts Server::counts() const noexcept {
  const Connections& connections = impl_->connections();
  return {.connections = connections.open(),
          .accepted = connections.admitted(),
          .refused = connections.turned_away()};
}

void Server::drain(std::chrono::milliseconds limit) {
  impl_->drain(limit);
}

}  // namespace drk::http
