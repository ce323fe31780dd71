// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server and a client that know nothing of what is served. Beast stays behind them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace drk::http {

using Fields = std::vector<std::pair<std::string, std::string>>;

/// A request as it arrived. Names of headers are in lower case.
struct Request {
  std::string method;  ///< "GET"; HEAD arrives as GET, and is answered without the body.
  std::string path;    ///< Percent-decoded, without the query: "/status/t1".
  Fields query;        ///< Percent-decoded, in order.
  Fields headers;
  std::string body;
  /// The body's share of max_large_bodies_bytes, while this is held: let go of it with the body.
  std::shared_ptr<void> body_share;
  std::string peer;  ///< Address of the other side: "127.0.0.1".

  /// The first header of that (lower-case) name.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept;
  /// The first query parameter of that name.
  [[nodiscard]] std::optional<std::string_view> parameter(std::string_view name) const noexcept;
};

struct Reply {
  std::uint32_t status = 200;
  std::string body = {};
  std::string content_type = "application/json";
  Fields headers = {};  ///< Beyond content-type, content-length, connection and date.
};

/// The way back to the client of one request. Thread-safe, and may outlive the connection: what is
/// said after the client has left goes nowhere. Either `reply` once, or `start_stream`, then
/// `send`s, then `finish`; any other order throws Error{internal}. One that is destroyed unanswered
/// answers 500, or nothing once the client was seen to leave; in the middle of a stream it closes
/// the connection, so that the client sees that something is missing.
class Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  virtual void reply(Reply reply) = 0;
  /// Begins an answer of unknown length (chunked). `head.body` is ignored.
  virtual void start_stream(Reply head) = 0;
  /// More than 64 MiB that the client has not taken yet close the connection, as if it had left.
  virtual void send(std::string part) = 0;
  virtual void finish() = 0;
  /// `left` is called once, on a thread of the server, when the client is seen to have closed its
  /// side (within about a second) before the answer was complete; at once, by the caller's thread,
  /// if it already has. Not called when it is the server that closes. What it throws is lost.
  /// A client that only closed its sending half is indistinguishable: it still gets an answer, if
  /// one is given.
  /// A second function takes the place of the first.
  virtual void on_leave(std::function<void()> left) = 0;
};

/// What answers. Its functions are called on the server's threads, several at a time, and must not
/// block for long; what they throw becomes a 500 with the text "internal error".
class Handler {
 public:
  Handler() = default;
  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;
  virtual ~Handler() = default;

  /// Asked when the head of a request has arrived, before its body is read: a reply refuses it.
  [[nodiscard]] virtual std::optional<Reply> refuse(const Request& head) = 0;
  /// Answers now or later, from any thread.
  virtual void handle(Request request, std::shared_ptr<Exchange> exchange) = 0;
  /// The body of an answer that the server itself gives (400, 408, 413, 431, 500, 503): one that
  /// looks like the handler's own.
  [[nodiscard]] virtual Reply describe_failure(std::uint32_t status, std::string_view what) = 0;
};

struct ServerOptions {
  std::string host = "127.0.0.1";  ///< An address, v4 or v6, or a name.
  std::uint16_t port = 0;          ///< 0: any free one.
  std::uint32_t threads = 2;
  std::uint32_t max_connections = 4096;  ///< The next one is answered 503 and closed.
  std::size_t max_header_bytes = std::size_t{16} << 10;
  std::size_t max_body_bytes = std::size_t{64} << 20;  ///< Longer: 413, without reading it.
  /// Bodies over 1 MiB that are being read, or that the handler holds on to, may take so much in
  /// all; the next one is answered 503 with Retry-After.
  std::size_t max_large_bodies_bytes = std::size_t{256} << 20;
  std::chrono::milliseconds header_timeout{10'000};  ///< From its first byte to its last.
  std::chrono::milliseconds body_timeout{60'000};
  std::chrono::milliseconds idle_timeout{75'000};   ///< Between requests of one connection.
  std::chrono::milliseconds write_timeout{60'000};  ///< A client that does not read its answer.
  std::string tls_certificate_file = {};            ///< PEM; with the key, turns TLS on.
  std::string tls_key_file = {};
};

struct ServerCounts {
  std::uint64_t connections = 0;  ///< Open now.
  std::uint64_t accepted = 0;     ///< Since the start, without those refused.
  std::uint64_t refused = 0;      ///< By max_connections.
};

/// Serves until destroyed. Thread-safe.
class Server {
 public:
  /// Listens and starts its threads. `handler` is not owned and must outlive the server. Throws
  /// Error{unavailable} when the address cannot be had, Error{invalid_argument} for TLS files that
  /// do not load.
  Server(ServerOptions options, Handler& handler);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();  ///< Closes every connection.

  [[nodiscard]] std::uint16_t port() const noexcept;
  [[nodiscard]] ServerCounts counts() const noexcept;
  /// Takes no new connection, and closes each one once its answer under way is complete; returns
  /// when none is left or `limit` has passed.
  void drain(std::chrono::milliseconds limit);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

struct ClientOptions {
  std::string url = "http://127.0.0.1:10907";  ///< http or https, host, port.
  std::string token = {};                      ///< Sent as a bearer token when not empty.
  std::string ca_file = {};                    ///< PEM; empty: the system's authorities.
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds timeout{600'000};  ///< Of one answer.
};

struct Answer {
  std::uint32_t status = 0;
  Fields headers;  ///< Names in lower case.
  std::string body;
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept;
};

/// Blocking; keeps its connection between requests, and opens a new one when that is gone. Not
/// thread-safe.
class Client {
 public:
  /// Throws Error{invalid_argument} for a URL it cannot read.
  explicit Client(ClientOptions options);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  /// `target` is sent as it is: see percent_encode. A body without a content-type among `headers`
  /// goes as JSON. A request whose reused connection closes before any byte of the answer is sent
  /// once more, over a fresh one.
  /// Throws Error{unavailable} when nobody answers, Error{timed_out} when the answer takes too long
  /// or `stop` was requested (seen within 100 ms), Error{invalid_argument} for a target or header
  /// with characters that would end a line.
  [[nodiscard]] Answer send(std::string_view method,
                            std::string_view target,
                            std::string_view body = {},
                            const Fields& headers = {},
                            const std::stop_token& stop = {});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// "a b/c" -> "a%20b%2Fc", for a path segment or a query value.
[[nodiscard]] std::string percent_encode(std::string_view text);

}  // namespace drk::http
