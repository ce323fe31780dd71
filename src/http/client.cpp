// SPDX-License-Identifier: Apache-2.0
// The blocking client: asynchronous inside, so that it can stop, driven by the caller's thread.
#include "drk/base/clock.h"
#include "drk/base/error.h"
#include "drk/http.h"

#include "http/fields.h"
#include "http/tls.h"
#include "http/url.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <exception>
#include <poll.h>
#include <type_traits>

namespace drk::http {

namespace asio = boost::asio;
namespace beast = boost::beast;

namespace {

using Tcp = asio::ip::tcp;
using TlsStream = asio::ssl::stream<Tcp::socket>;
using AnswerParser = beast::http::response_parser<beast::http::string_body>;

/// How long a call may go on.
struct Patience {
  Deadline deadline;
  const std::stop_token& stop;
};

/// One connection. When a call throws, something may be under way still: the link is to be
/// dropped, which ends it.
class Link {
 public:
  Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  virtual ~Link() = default;

  struct Call {
    std::string_view head;
    std::string_view body;
    bool is_head_request = false;
  };
  struct Outcome {
    std::optional<Answer> answer;  ///< None: closed before any byte of it came.
    bool is_reusable = false;
  };

  virtual void connect(const Patience& patience) = 0;
  [[nodiscard]] virtual Outcome exchange(const Call& call, const Patience& patience) = 0;
  /// False when the server is known to have closed it.
  [[nodiscard]] virtual bool is_open() = 0;
};

Answer to_answer(AnswerParser& parser) {
  Answer answer;
  auto& message = parser.get();
  answer.status = message.result_int();
  for (const auto& field : message) {
    const auto name = field.name_string();
    const auto value = field.value();
    answer.headers.emplace_back(to_lower({name.data(), name.size()}),
                                std::string(value.data(), value.size()));
  }
  answer.body = std::move(message.body());
  return answer;
}

template <class Stream>
class LinkOf final : public Link {
 public:
  template <class... Tls>
  explicit LinkOf(const Origin& origin, Tls&... tls) : origin_(origin), stream_(context_, tls...) {}

  void connect(const Patience& patience) override;
  [[nodiscard]] Outcome exchange(const Call& call, const Patience& patience) override;
  [[nodiscard]] bool is_open() override;

 private:
  /// What one operation came to.
  struct Progress {
    bool is_done = false;
    std::exception_ptr fault;
  };

  void start(asio::awaitable<void> work, Progress& progress);
  void wait_for(const Progress& progress, const Patience& patience, const char* what);
  asio::awaitable<void> open();
  asio::awaitable<void> handshake();
  void start_writing(const Call& call, Progress& progress);
  asio::awaitable<void> read(bool is_head_request);
  [[nodiscard]] Tcp::socket& socket() noexcept;

  const Origin& origin_;
  asio::io_context context_{1};
  Stream stream_;
  beast::flat_buffer input_;
  std::optional<AnswerParser> parser_;
};

template <class Stream>
void LinkOf<Stream>::start(asio::awaitable<void> work, Progress& progress) {
  asio::co_spawn(context_, std::move(work), [&progress](const std::exception_ptr& fault) {
    progress.is_done = true;
    progress.fault = fault;
  });
}

template <class Stream>
void LinkOf<Stream>::wait_for(const Progress& progress,
                              const Patience& patience,
                              const char* what) {
  constexpr std::chrono::milliseconds kLookForStop{50};
  while (!progress.is_done) {
    if (patience.stop.stop_requested()) {
      throw Error(ErrorCode::timed_out,
                  fmt::format("http: told to stop while {} {}", what, origin_.host_header));
    }
    if (patience.deadline.passed()) {
      throw Error(ErrorCode::timed_out,
                  fmt::format("http: took too long {} {}", what, origin_.host_header));
    }
    // Rounded up: with less than a millisecond left it would spin.
    const std::chrono::milliseconds left = patience.deadline.left() + std::chrono::milliseconds(1);
    context_.restart();
    context_.run_one_for(std::min(kLookForStop, left));
  }
}

template <class Stream>
asio::awaitable<void> LinkOf<Stream>::open() {
  Tcp::resolver resolver(context_);
  const auto found =
      co_await resolver.async_resolve(origin_.host, origin_.port, asio::use_awaitable);
  co_await asio::async_connect(socket(), found, asio::use_awaitable);
  socket().set_option(Tcp::no_delay(true));
  if constexpr (std::is_same_v<Stream, TlsStream>) co_await handshake();
}

template <class Stream>
asio::awaitable<void> LinkOf<Stream>::handshake() {
  const asio::ssl::host_name_verification verification(origin_.host);
  stream_.set_verify_callback(verification);
  boost::system::error_code not_an_address;
  asio::ip::make_address(origin_.host, not_an_address);
  if (not_an_address) {  // server name indication knows names only (RFC 6066, 3)
    ::SSL_set_tlsext_host_name(stream_.native_handle(), origin_.host.c_str());
  }
  co_await stream_.async_handshake(asio::ssl::stream_base::client, asio::use_awaitable);
}

template <class Stream>
void LinkOf<Stream>::connect(const Patience& patience) {
  Progress opened;
  start(open(), opened);
  wait_for(opened, patience, "connecting to");
  if (!opened.fault) return;
  try {
    std::rethrow_exception(opened.fault);
  } catch (const boost::system::system_error& error) {
    throw Error(
        ErrorCode::unavailable,
        fmt::format("http: cannot connect to {}: {}", origin_.host_header, error.code().message()));
  }
}

template <class Stream>
void LinkOf<Stream>::start_writing(const Call& call, Progress& progress) {
  const std::array buffers{asio::const_buffer(call.head.data(), call.head.size()),
                           asio::const_buffer(call.body.data(), call.body.size())};
  asio::async_write(
      stream_, buffers, [&progress](const boost::system::error_code& error, std::size_t /*bytes*/) {
        progress.is_done = true;
        if (error) progress.fault = std::make_exception_ptr(boost::system::system_error(error));
      });
}

template <class Stream>
asio::awaitable<void> LinkOf<Stream>::read(bool is_head_request) {
  constexpr std::uint64_t kMaxAnswerBytes = std::uint64_t{1} << 30;
  do {  // past answers that only announce one, such as 100 Continue
    parser_.emplace();
    parser_->body_limit(kMaxAnswerBytes);
    parser_->skip(is_head_request);
    co_await beast::http::async_read(stream_, input_, *parser_, asio::use_awaitable);
  } while (parser_->get().result_int() / 100 == 1);
}

template <class Stream>
auto LinkOf<Stream>::exchange(const Call& call, const Patience& patience) -> Outcome {
  // Both at once: a server that refuses a long body says so before it has read it.
  Progress written;
  Progress answered;
  start_writing(call, written);
  start(read(call.is_head_request), answered);
  wait_for(answered, patience, "waiting for an answer of");
  if (answered.fault) {
    if (!parser_ || !parser_->got_some()) return {};
    try {
      std::rethrow_exception(answered.fault);
    } catch (const boost::system::system_error& error) {
      throw Error(ErrorCode::unavailable,
                  fmt::format("http: the answer of {} cannot be read: {}",
                              origin_.host_header,
                              error.code().message()));
    }
  }
  const bool is_reusable =
      written.is_done && !written.fault && parser_->keep_alive() && input_.size() == 0;
  return {to_answer(*parser_), is_reusable};
}

template <class Stream>
bool LinkOf<Stream>::is_open() {
  pollfd look{socket().native_handle(), POLLRDHUP, 0};
  return ::poll(&look, 1, 0) == 0;
}

template <class Stream>
Tcp::socket& LinkOf<Stream>::socket() noexcept {
  if constexpr (std::is_same_v<Stream, TlsStream>) {
    return stream_.next_layer();
  } else {
    return stream_;
  }
}

/// What could end a line early would let a value write headers of its own.
void check_line(const char* what, std::string_view text, bool may_have_spaces) {
  const bool is_fine = std::all_of(text.begin(), text.end(), [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > ' ' ? byte != 127 : may_have_spaces && (c == ' ' || c == '\t');
  });
  if (!is_fine) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("http: the {} has a character that cannot be sent", what));
  }
}

}  // namespace

class Client::Impl {
 public:
  explicit Impl(ClientOptions options)
      : options_(std::move(options)), origin_(parse_origin(options_.url)) {
    if (origin_.is_tls) tls_.emplace(make_client_context(options_.ca_file));
  }

  [[nodiscard]] Answer send(std::string_view method,
                            std::string_view target,
                            std::string_view body,
                            const Fields& headers,
                            const std::stop_token& stop);

 private:
  [[nodiscard]] std::string head(std::string_view method,
                                 std::string_view target,
                                 std::size_t body_bytes,
                                 const Fields& headers) const;
  [[nodiscard]] std::unique_ptr<Link> connect(const std::stop_token& stop);

  const ClientOptions options_;
  const Origin origin_;
  std::optional<asio::ssl::context> tls_;
  std::unique_ptr<Link> link_;  ///< Idle, kept for the next request.
};

std::string Client::Impl::head(std::string_view method,
                               std::string_view target,
                               std::size_t body_bytes,
                               const Fields& headers) const {
  check_line("method", method, false);
  check_line("target", target, false);
  std::string text =
      fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", method, target, origin_.host_header);
  if (!options_.token.empty()) {
    check_line("token", options_.token, false);
    text += fmt::format("Authorization: Bearer {}\r\n", options_.token);
  }
  for (const auto& [name, value] : headers) {
    check_line("name of a header", name, false);
    check_line("value of a header", value, true);
    text += fmt::format("{}: {}\r\n", name, value);
  }
  if (body_bytes > 0 && !has_header(headers, "content-type")) {
    text += "Content-Type: application/json\r\n";
  }
  if (body_bytes > 0 || method == "POST" || method == "PUT" || method == "PATCH") {
    text += fmt::format("Content-Length: {}\r\n", body_bytes);
  }
  return text + "\r\n";
}

std::unique_ptr<Link> Client::Impl::connect(const std::stop_token& stop) {
  std::unique_ptr<Link> link;
  if (tls_) {
    link = std::make_unique<LinkOf<TlsStream>>(origin_, *tls_);
  } else {
    link = std::make_unique<LinkOf<Tcp::socket>>(origin_);
  }
  link->connect(Patience{Deadline(options_.connect_timeout), stop});
  return link;
}

Answer Client::Impl::send(std::string_view method,
                          std::string_view target,
                          std::string_view body,
                          const Fields& headers,
                          const std::stop_token& stop) {
  const std::string text = head(method, target, body.size(), headers);
  const Link::Call call{text, body, method == "HEAD"};
  const Patience patience{Deadline(options_.timeout), stop};
  // Out of link_ while in use: a call that throws takes its connection along.
  std::unique_ptr<Link> link = std::exchange(link_, nullptr);
  bool is_fresh = false;
  for (;;) {
    if (!link || !link->is_open()) {
      link = connect(stop);
      is_fresh = true;
    }
    Link::Outcome outcome = link->exchange(call, patience);
    if (outcome.answer) {
      if (outcome.is_reusable) link_ = std::move(link);
      return *std::move(outcome.answer);
    }
    // A server may close an idle connection just when the next request is on its way.
    link.reset();
    if (is_fresh) break;
  }
  throw Error(ErrorCode::unavailable,
              fmt::format("http: {} closed the connection without an answer", origin_.host_header));
}

Client::Client(ClientOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}

Client::~Client() = default;

Answer Client::send(std::string_view method,
                    std::string_view target,
                    std::string_view body,
                    const Fields& headers,
                    const std::stop_token& stop) {
  return impl_->send(method, target, body, headers, stop);
}

}  // namespace drk::http
