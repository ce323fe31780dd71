// SPDX-License-Identifier: Apache-2.0
// How a Session does what it does; a header, since a session is made for plain sockets and for TLS.
//
// GCC 12 destroys temporaries with members of their own twice when they stand in the operand of a
// co_await: whatever is passed into an awaited call has a name first.
#pragma once

#include "http/session.h"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <poll.h>
#include <string_view>

namespace drk::http {

/// Whether the other side has closed at least its sending half.
[[nodiscard]] inline bool has_peer_closed(int socket) noexcept {
  pollfd look{socket, POLLRDHUP, 0};
  return ::poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

// --- The steps ---------------------------------------------------------------------------------

template <class Stream>
Awaitable<void> Session<Stream>::run(std::shared_ptr<Session> self) {
  const After after = co_await self->serve_connection();
  if (!self->is_aborted_) co_await self->close(after);
}

template <class Stream>
auto Session<Stream>::serve_connection() -> Awaitable<After> {
  boost::system::error_code ignored;
  socket().set_option(asio::ip::tcp::no_delay(true), ignored);
  socket().non_blocking(true, ignored);
  if (seat_.kind() == Connections::Admission::turned_away) {
    // Before its request is read, and without a handshake: neither is worth it.
    if constexpr (kIsTls) co_return After::close;
    const Failure full{503, "too many connections"};
    const Reply reply = describe(service_.handler, full);
    co_return co_await write_refusal(reply, AnswerForm{});
  }
  if constexpr (kIsTls) {
    boost::system::error_code error;
    auto token = asio::redirect_error(kAwait, error);
    is_idle_ = true;
    limit(options_.header_timeout);
    co_await stream_.async_handshake(asio::ssl::stream_base::server, token);
    is_idle_ = false;
    if (error || is_draining_) co_return After::close;
  }
  After after = After::keep_open;
  while (after == After::keep_open && !is_draining_ && !is_aborted_) {
    after = co_await serve_request();
  }
  co_return after;
}

template <class Stream>
auto Session<Stream>::serve_request() -> Awaitable<After> {
  RequestParser parser(options_, peer_);
  auto lease = std::make_shared<LargeBodies::Lease>(service_.large_bodies);
  AnswerForm form;
  Reading reading = co_await read_head(parser);
  std::optional<Reply> refusal;
  if (std::holds_alternative<Complete>(reading)) {
    form = parser.answer_form();
    refusal = refuse(parser.request());
    if (!refusal) {
      if (const auto failure = admit_body(parser, *lease)) {
        refusal = describe(service_.handler, *failure);
      }
    }
    if (!refusal && parser.has_unread_body()) reading = co_await read_body(parser, *lease);
  }
  if (std::holds_alternative<Gone>(reading)) co_return After::close;
  if (const auto* failure = std::get_if<Failure>(&reading)) {
    refusal = describe(service_.handler, *failure);
    form.keep_alive = false;
  }
  if (refusal) {
    const Reply& reply = *refusal;
    if (parser.has_unread_body()) co_return co_await write_refusal(reply, form);
    co_return co_await write_reply(reply, form);
  }
  lift_limit();
  if (lease->held_bytes() > 0) parser.request().body_share = lease;
  lease.reset();  // the handler's from now on
  hand_over(std::move(parser.request()));
  const After after = co_await write_answer(form);
  answer_->detach();
  answer_.reset();
  co_return after;
}

template <class Stream>
auto Session<Stream>::read_head(RequestParser& parser) -> Awaitable<Reading> {
  Reading result = Gone{};
  if (input_.size() == 0) {
    is_idle_ = true;
    limit(options_.idle_timeout);
    const bool has_begun = co_await read_some(kReadBytes);
    is_idle_ = false;
    if (!has_begun) co_return result;
  }
  for (bool is_limited = false;;) {
    const RequestParser::Progress progress = parser.parse_head(input_);
    if (progress == RequestParser::Progress::complete) {
      result = Complete{};
      co_return result;
    }
    if (progress == RequestParser::Progress::failed) {
      result = parser.failure();
      co_return result;
    }
    // Once: a head that trickles in must not put off its own end.
    if (!std::exchange(is_limited, true)) limit(options_.header_timeout);
    const bool has_more = co_await read_some(kReadBytes);
    if (!has_more) {
      result = why_cut_off("header");
      co_return result;
    }
  }
}

template <class Stream>
std::optional<Reply> Session<Stream>::refuse(const Request& head) {
  try {
    return service_.handler.refuse(head);
  } catch (...) {  // the border to the handler
    return describe(service_.handler, Failure{500, "internal error"});
  }
}

template <class Stream>
std::optional<Failure> Session<Stream>::admit_body(const RequestParser& parser,
                                                   LargeBodies::Lease& lease) const {
  const std::uint64_t bytes = parser.claimed_body_bytes();
  if (bytes > options_.max_body_bytes) {
    return Failure{
        413,
        fmt::format(
            "body too long: {} bytes, at most {} are taken", bytes, options_.max_body_bytes)};
  }
  if (bytes > LargeBodies::kUncountedBytes && !lease.grow_to(static_cast<std::size_t>(bytes))) {
    return Failure{503, "too many large bodies at once"};
  }
  return std::nullopt;
}

template <class Stream>
auto Session<Stream>::read_body(RequestParser& parser, LargeBodies::Lease& lease)
    -> Awaitable<Reading> {
  Reading result = Complete{};
  if (parser.expects_continue() && input_.size() == 0) {
    constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    std::array buffers{asio::const_buffer(kContinue.data(), kContinue.size())};
    const bool is_written = co_await write(buffers);
    if (!is_written) {
      result = Gone{};
      co_return result;
    }
  }
  limit(options_.body_timeout);
  for (;;) {
    if (auto failure = admit_chunks(parser, lease)) {
      result = *std::move(failure);
      co_return result;
    }
    const RequestParser::Progress progress = parser.parse_body(input_);
    if (progress == RequestParser::Progress::failed) result = parser.failure();
    if (progress != RequestParser::Progress::needs_more) break;
    const bool has_more = co_await read_some(kReadBodyBytes);
    if (!has_more) {
      result = why_cut_off("body");
      break;
    }
  }
  if (input_.size() == 0) input_.shrink_to_fit();
  co_return result;
}

template <class Stream>
std::optional<Failure> Session<Stream>::admit_chunks(RequestParser& parser,
                                                     LargeBodies::Lease& lease) const {
  if (!parser.is_chunked()) return std::nullopt;
  std::string& body = parser.request().body;
  const std::size_t needed = std::min(body.size() + input_.size(), options_.max_body_bytes);
  if (needed <= std::max(LargeBodies::kUncountedBytes, lease.held_bytes())) return std::nullopt;
  // Twice as much as there is, so that the copies made in growing stay a share of the whole.
  const std::size_t wanted = std::min(2 * needed, options_.max_body_bytes);
  if (!lease.grow_to(wanted)) return Failure{503, "too many large bodies at once"};
  body.reserve(wanted);
  return std::nullopt;
}

template <class Stream>
void Session<Stream>::hand_over(Request request) {
  answer_ = std::make_shared<AnswerQueue>(*this);
  try {
    service_.handler.handle(std::move(request), make_exchange(answer_));
  } catch (...) {  // the border to the handler; an answer that it had given already stands
    answer_->abandon();
  }
}

template <class Stream>
auto Session<Stream>::write_answer(AnswerForm form) -> Awaitable<After> {
  const NextStep step = co_await next_step();
  if (is_aborted_) co_return After::close;
  if (const auto* stream = std::get_if<BeginStream>(&step)) {
    const Reply& head = stream->head;
    co_return co_await write_stream(head, form);
  }
  if (const auto* whole = std::get_if<SendReply>(&step)) {
    const Reply& reply = whole->reply;
    co_return co_await write_reply(reply, form);
  }
  // Its handler was told, and gave up as it may.
  if (has_client_left_) co_return After::close;
  const Failure failure{500, "internal error"};
  const Reply reply = describe(service_.handler, failure);
  co_return co_await write_reply(reply, form);
}

template <class Stream>
auto Session<Stream>::write_stream(const Reply& head, AnswerForm form) -> Awaitable<After> {
  form.keep_alive = form.keep_alive && !form.http_1_0 && !is_draining_;
  const After after = form.keep_alive ? After::keep_open : After::close;
  const std::string text =
      write_head(head, form, form.http_1_0 ? Delimiter::close : Delimiter::chunks);
  std::vector<asio::const_buffer> buffers{asio::buffer(text)};
  bool is_written = co_await write(buffers);
  if (!is_written) co_return After::close;
  if (form.head_only || !may_have_body(head.status)) co_return after;

  NextStep step = co_await next_step();
  while (const auto* more = std::get_if<SendParts>(&step)) {
    // What is ready goes out as one chunk.
    std::size_t bytes = 0;
    for (const std::string& part : more->parts) bytes += part.size();
    const std::string begin = form.http_1_0 ? "" : fmt::format("{:x}\r\n", bytes);
    const std::string end = form.http_1_0 ? "" : "\r\n";
    buffers.assign(1, asio::buffer(begin));
    for (const std::string& part : more->parts) buffers.push_back(asio::buffer(part));
    buffers.push_back(asio::buffer(end));
    is_written = co_await write(buffers);
    if (!is_written) co_return After::close;
    answer_->note_sent(bytes);
    step = co_await next_step();
  }
  if (std::holds_alternative<GiveUp>(step)) {
    // Without the last chunk: the client must see that something is missing.
    if (answer_->is_overflowing()) note_client_left();
    co_return After::close;
  }
  const std::string last_chunk = form.http_1_0 ? "" : "0\r\n\r\n";
  buffers.assign(1, asio::buffer(last_chunk));
  is_written = co_await write(buffers);
  co_return is_written ? after : After::close;
}

template <class Stream>
auto Session<Stream>::write_reply(const Reply& reply, AnswerForm form) -> Awaitable<After> {
  form.keep_alive = form.keep_alive && !is_draining_;
  std::string head = write_head(reply, form, Delimiter::length);
  std::array<asio::const_buffer, 2> buffers;
  if (!form.head_only && may_have_body(reply.status)) {
    if (reply.body.size() <= kSmallBodyBytes) {
      head += reply.body;
    } else {
      buffers[1] = asio::buffer(reply.body);
    }
  }
  buffers[0] = asio::buffer(head);
  const bool is_written = co_await write(buffers);
  co_return is_written&& form.keep_alive ? After::keep_open : After::close;
}

template <class Stream>
auto Session<Stream>::write_refusal(const Reply& reply, AnswerForm form) -> Awaitable<After> {
  form.keep_alive = false;
  co_await write_reply(reply, form);
  co_return After::linger;
}

template <class Stream>
auto Session<Stream>::next_step() -> Awaitable<NextStep> {
  std::optional<NextStep> step = answer_->take();
  while (!step) {
    boost::system::error_code woken;
    auto token = asio::redirect_error(kAwait, woken);
    signal_.expires_after(kLookAfterClient);
    co_await signal_.async_wait(token);
    if (is_aborted_) {
      step = GiveUp{};
      break;
    }
    if (!woken && has_peer_closed(socket().native_handle())) note_client_left();
    step = answer_->take();
  }
  co_return *std::move(step);
}

template <class Stream>
auto Session<Stream>::close(After after) -> Awaitable<void> {
  boost::system::error_code ignored;
  if constexpr (kIsTls) {
    auto token = asio::redirect_error(kAwait, ignored);
    limit(kMaxFarewell);
    co_await stream_.async_shutdown(token);
  }
  socket().shutdown(asio::socket_base::shutdown_send, ignored);
  // Closing on unread input resets the connection, and a reset can overtake our last answer.
  if (after == After::linger || has_unread_input()) co_await discard_input();
  socket().close(ignored);
}

template <class Stream>
auto Session<Stream>::discard_input() -> Awaitable<void> {
  limit(kMaxLinger);
  std::vector<char> discarded(kReadBodyBytes);
  const asio::mutable_buffer buffer = asio::buffer(discarded);
  boost::system::error_code error;
  auto token = asio::redirect_error(kAwait, error);
  for (std::size_t total = 0; total < kMaxLingerBytes;) {
    total += co_await socket().async_read_some(buffer, token);
    if (error || has_expired_) break;
  }
}

// --- Reading and writing -----------------------------------------------------------------------

template <class Stream>
auto Session<Stream>::read_some(std::size_t at_most) -> Awaitable<bool> {
  boost::system::error_code error;
  auto token = asio::redirect_error(kAwait, error);
  const asio::mutable_buffer space = input_.prepare(at_most);
  const std::size_t bytes = co_await stream_.async_read_some(space, token);
  input_.commit(bytes);
  co_return !error && !has_expired_ && !is_aborted_;
}

template <class Stream>
auto Session<Stream>::write(std::span<asio::const_buffer> buffers) -> Awaitable<bool> {
  for (;;) {
    while (!buffers.empty() && buffers.front().size() == 0) buffers = buffers.subspan(1);
    if (buffers.empty()) co_return true;

    boost::system::error_code error;
    std::size_t bytes = 0;
    // Nearly every answer fits into the socket's buffer: then no waiting, nor a deadline.
    if constexpr (!kIsTls) bytes = stream_.write_some(buffers, error);
    if (kIsTls || error == asio::error::would_block) {
      auto token = asio::redirect_error(kAwait, error);
      limit(options_.write_timeout);
      bytes = co_await stream_.async_write_some(buffers, token);
      if (has_expired_) error = asio::error::timed_out;
    }
    if (error || is_aborted_) {
      if (!is_aborted_) note_client_left();
      co_return false;
    }
    for (asio::const_buffer& buffer : buffers) {
      const std::size_t sent = std::min(bytes, buffer.size());
      buffer += sent;
      bytes -= sent;
    }
  }
}

template <class Stream>
auto Session<Stream>::why_cut_off(const char* part) const -> Reading {
  if (is_aborted_) return Gone{};
  if (has_expired_) return Failure{408, fmt::format("{} not complete in time", part)};
  return Failure{400, fmt::format("malformed request: ends within its {}", part)};
}

// --- Deadlines ---------------------------------------------------------------------------------
// One timer serves all of a connection's deadlines. It is set again only when a deadline comes
// before the one it waits for, so a busy connection hardly ever touches it.

template <class Stream>
void Session<Stream>::limit(std::chrono::milliseconds from_now) {
  has_expired_ = false;
  deadline_ = Clock::now() + from_now;
  if (deadline_ < watched_until_) watch(deadline_);
}

template <class Stream>
void Session<Stream>::lift_limit() noexcept {
  has_expired_ = false;
  deadline_ = Clock::time_point::max();
}

template <class Stream>
void Session<Stream>::watch(Clock::time_point until) {
  watched_until_ = until;
  watchdog_.expires_at(until);
  watchdog_.async_wait([weak = this->weak_from_this()](const boost::system::error_code& cancelled) {
    if (cancelled) return;
    if (const std::shared_ptr<Session> self = weak.lock()) self->on_watchdog();
  });
}

template <class Stream>
void Session<Stream>::on_watchdog() {
  const Clock::time_point now = Clock::now();
  watched_until_ = Clock::time_point::max();
  if (now < deadline_) {
    if (deadline_ != Clock::time_point::max()) watch(deadline_);
    return;
  }
  has_expired_ = true;
  boost::system::error_code ignored;
  socket().cancel(ignored);
  // A TLS operation is a row of operations of the socket, and may just have been between two.
  watch(now + kCancelAgain);
}

// --- What others ask ---------------------------------------------------------------------------

template <class Stream>
void Session<Stream>::drain() {
  asio::post(stream_.get_executor(), [self = this->shared_from_this()] {
    self->is_draining_ = true;
    if (self->is_idle_) self->limit(std::chrono::milliseconds(0));
  });
}

template <class Stream>
void Session<Stream>::abort() {
  asio::post(stream_.get_executor(), [self = this->shared_from_this()] { self->abort_here(); });
}

template <class Stream>
void Session<Stream>::abort_here() {
  is_aborted_ = true;
  boost::system::error_code ignored;
  socket().close(ignored);
  signal_.cancel();
}

template <class Stream>
void Session<Stream>::wake() {
  // Expired when this connection is ending on another thread, about to detach.
  std::shared_ptr<Session> self = this->weak_from_this().lock();
  if (!self) return;
  asio::post(stream_.get_executor(), [self = std::move(self)] {
    self->signal_.cancel();
    if (!self->answer_ || !self->answer_->is_overflowing()) return;
    self->note_client_left();
    self->abort_here();
  });
}

// --- Small things ------------------------------------------------------------------------------

template <class Stream>
Socket& Session<Stream>::socket() noexcept {
  if constexpr (kIsTls) {
    return stream_.next_layer();
  } else {
    return stream_;
  }
}

template <class Stream>
bool Session<Stream>::has_unread_input() {
  boost::system::error_code error;
  return input_.size() > 0 || socket().available(error) > 0;
}

template <class Stream>
void Session<Stream>::note_client_left() noexcept {
  if (!answer_) return;
  has_client_left_ = true;
  try {
    answer_->note_left();
  } catch (...) {  // the border to the handler; nobody is left to tell
  }
}

}  // namespace drk::http
