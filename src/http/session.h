// SPDX-License-Identifier: Apache-2.0
// One connection of the server: its requests, one after the other, until it closes.
//
// The life of a request: read_head, the handler's `refuse`, admit_body, read_body, the handler's
// `handle`, write_answer. Everything here runs on the strand of the connection.
#pragma once

#include "drk/http.h"

#include "http/answer_queue.h"
#include "http/connections.h"
#include "http/failure.h"
#include "http/large_bodies.h"
#include "http/reply_head.h"
#include "http/request_parser.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace drk::http {

namespace asio = boost::asio;

// Types that name their executor: any_io_executor would cost an indirection an operation.
using Strand = asio::strand<asio::io_context::executor_type>;
using Socket = asio::basic_stream_socket<asio::ip::tcp, Strand>;
using TlsStream = asio::ssl::stream<Socket>;
using Clock = std::chrono::steady_clock;
using Timer = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Strand>;
template <class T>
using Awaitable = asio::awaitable<T, Strand>;
inline constexpr asio::use_awaitable_t<Strand> kAwait;

/// What the connections of one server share.
struct Service {
  Service(ServerOptions server_options, Handler& its_handler)
      : options(std::move(server_options)),
        handler(its_handler),
        large_bodies(std::make_shared<LargeBodies>(options.max_large_bodies_bytes)),
        connections(options.max_connections, kMaxTurnedAway) {}

  static constexpr std::uint32_t kMaxTurnedAway = 256;

  const ServerOptions options;
  Handler& handler;
  const std::shared_ptr<LargeBodies> large_bodies;  ///< With requests that outlive the server.
  Connections connections;
};

template <class Stream>
class Session final : public Connection,
                      public AnswerQueue::Listener,
                      public std::enable_shared_from_this<Session<Stream>> {
 public:
  Session(Service& service, Connections::Seat seat, Stream stream, std::string peer)
      : seat_(std::move(seat)),
        service_(service),
        options_(service.options),
        peer_(std::move(peer)),
        stream_(std::move(stream)),
        watchdog_(stream_.get_executor()),
        signal_(stream_.get_executor()) {}

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() override {
    if (answer_) answer_->detach();
  }

  /// Serves until the connection closes. The coroutine owns the session.
  [[nodiscard]] static Awaitable<void> run(std::shared_ptr<Session> self);

  void drain() override;
  void abort() override;
  /// As AnswerQueue::Listener, on any thread.
  void wake() override;

  [[nodiscard]] const Connections::Seat& seat() const noexcept { return seat_; }
  [[nodiscard]] Strand strand() { return stream_.get_executor(); }

 private:
  static constexpr bool kIsTls = std::is_same_v<Stream, TlsStream>;
  static constexpr std::size_t kReadBytes = std::size_t{4} << 10;
  static constexpr std::size_t kReadBodyBytes = std::size_t{64} << 10;
  /// Bodies up to this size are copied behind their head, to leave in one packet.
  static constexpr std::size_t kSmallBodyBytes = std::size_t{16} << 10;
  static constexpr std::chrono::seconds kLookAfterClient{1};
  // For a client that still sends what was refused, to see why.
  static constexpr std::chrono::seconds kMaxLinger{2};
  static constexpr std::size_t kMaxLingerBytes = std::size_t{16} << 20;
  /// For a TLS client to answer our farewell.
  static constexpr std::chrono::milliseconds kMaxFarewell{500};
  static constexpr std::chrono::milliseconds kCancelAgain{100};

  enum class After { keep_open, close, linger };
  struct Complete {};
  struct Gone {};
  using Reading = std::variant<Complete, Gone, Failure>;

  // The steps.
  Awaitable<After> serve_connection();
  Awaitable<After> serve_request();
  Awaitable<Reading> read_head(RequestParser& parser);
  [[nodiscard]] std::optional<Reply> refuse(const Request& head);
  [[nodiscard]] std::optional<Failure> admit_body(const RequestParser& parser,
                                                  LargeBodies::Lease& lease) const;
  Awaitable<Reading> read_body(RequestParser& parser, LargeBodies::Lease& lease);
  [[nodiscard]] std::optional<Failure> admit_chunks(RequestParser& parser,
                                                    LargeBodies::Lease& lease) const;
  void hand_over(Request request);
  Awaitable<After> write_answer(AnswerForm form);
  Awaitable<After> write_stream(const Reply& head, AnswerForm form);
  Awaitable<After> write_reply(const Reply& reply, AnswerForm form);
  Awaitable<After> write_refusal(const Reply& reply, AnswerForm form);
  Awaitable<NextStep> next_step();
  Awaitable<void> close(After after);
  Awaitable<void> discard_input();

  // Reading and writing. Both are false when the client is gone or too slow (`has_expired_`).
  Awaitable<bool> read_some(std::size_t at_most);
  Awaitable<bool> write(std::span<asio::const_buffer> buffers);
  [[nodiscard]] Reading why_cut_off(const char* part) const;

  // The deadline of what is under way.
  void limit(std::chrono::milliseconds from_now);
  void lift_limit() noexcept;
  void watch(Clock::time_point until);
  void on_watchdog();
  void abort_here();

  [[nodiscard]] Socket& socket() noexcept;
  [[nodiscard]] bool has_unread_input();
  void note_client_left() noexcept;

  const Connections::Seat seat_;  // first, so given back last: after the socket is closed
  Service& service_;
  const ServerOptions& options_;
  const std::string peer_;
  Stream stream_;
  boost::beast::flat_buffer input_;

  std::shared_ptr<AnswerQueue> answer_;  ///< Of the request under way; its handler owns it too.
  Timer watchdog_;
  Timer signal_;  ///< Cancelled to wake the coroutine.
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point watched_until_ = Clock::time_point::max();  ///< Never after deadline_.
  bool has_expired_ = false;
  bool is_idle_ = false;          ///< No byte of the next request has come.
  bool has_client_left_ = false;  ///< At least its sending half is closed.
  bool is_draining_ = false;
  bool is_aborted_ = false;
};

}  // namespace drk::http
