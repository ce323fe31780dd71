// SPDX-License-Identifier: Apache-2.0
// What a handler says to one client, from any thread, in order, until its connection has sent it.
#pragma once

#include "drk/http.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace drk::http {

/// What a connection does next for its client.
struct SendReply {
  Reply reply;
};
struct BeginStream {
  Reply head;
};
struct SendParts {
  std::vector<std::string> parts;  ///< None of them empty.
};
struct EndStream {};
/// The rest will never come: the handler dropped its exchange, or said more than the client reads.
struct GiveUp {};
using NextStep = std::variant<SendReply, BeginStream, SendParts, EndStream, GiveUp>;

/// Thread-safe. One side belongs to the handler's Exchange, the other to the connection, which
/// detaches before it ends; from then on what the handler says goes nowhere.
class AnswerQueue {
 public:
  /// A stream whose client does not read holds no more than this.
  static constexpr std::size_t kMaxUnsentBytes = std::size_t{64} << 20;

  class Listener {
   public:
    Listener() = default;
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    virtual ~Listener() = default;
    /// There is a next step after `take` found none, or `is_overflowing` became true. Called on
    /// any thread, under the queue's lock: it must not call back.
    virtual void wake() = 0;
  };

  /// `listener` must live until `detach`.
  explicit AnswerQueue(Listener& listener) noexcept : listener_(&listener) {}

  // The handler's side, as in Exchange.
  void reply(Reply reply);
  void start_stream(Reply head);
  void send(std::string part);
  void finish();
  void on_leave(std::function<void()> left);
  /// No more will be said; of no effect when the answer is complete.
  void abandon();

  // The connection's side.
  /// The next step, or none: then `wake` will be called once.
  [[nodiscard]] std::optional<NextStep> take();
  /// So many bytes of parts have been sent.
  void note_sent(std::size_t bytes) noexcept;
  [[nodiscard]] bool is_overflowing() const noexcept;
  /// The client was seen to leave: tells the handler, the first time.
  void note_left();
  void detach() noexcept;

 private:
  enum class Phase { empty, streaming, complete, abandoned };

  /// Under mutex_.
  void wake_if_waiting();

  mutable std::mutex mutex_;
  // All guarded by mutex_.
  Listener* listener_;
  bool is_waiting_ = false;  ///< The connection sleeps until `wake`.
  Phase phase_ = Phase::empty;
  std::optional<Reply> head_;  ///< Of a reply or a stream, until it is taken.
  bool is_stream_ = false;
  std::vector<std::string> parts_;
  std::size_t unsent_bytes_ = 0;  ///< In parts_ or being sent.
  bool is_overflowing_ = false;
  bool has_left_ = false;
  std::function<void()> left_;
};

/// The handler's end of `queue`, which the connection owns too.
[[nodiscard]] std::shared_ptr<Exchange> make_exchange(std::shared_ptr<AnswerQueue> queue);

}  // namespace drk::http
