// SPDX-License-Identifier: Apache-2.0
// The queue and the Exchange that fills it.
#include "http/answer_queue.h"

#include "drk/base/error.h"

#include <utility>

namespace drk::http {

namespace {

/// What the handler holds. Its end without an answer is told to the connection.
class QueueExchange final : public Exchange {
 public:
  explicit QueueExchange(std::shared_ptr<AnswerQueue> queue) noexcept : queue_(std::move(queue)) {}
  QueueExchange(const QueueExchange&) = delete;
  QueueExchange& operator=(const QueueExchange&) = delete;
  ~QueueExchange() override { queue_->abandon(); }

  void reply(Reply reply) override { queue_->reply(std::move(reply)); }
  void start_stream(Reply head) override { queue_->start_stream(std::move(head)); }
  void send(std::string part) override { queue_->send(std::move(part)); }
  void finish() override { queue_->finish(); }
  void on_leave(std::function<void()> left) override { queue_->on_leave(std::move(left)); }

 private:
  const std::shared_ptr<AnswerQueue> queue_;
};

}  // namespace

std::shared_ptr<Exchange> make_exchange(std::shared_ptr<AnswerQueue> queue) {
  return std::make_shared<QueueExchange>(std::move(queue));
}

void AnswerQueue::wake_if_waiting() {
  if (std::exchange(is_waiting_, false)) listener_->wake();
}

void AnswerQueue::reply(Reply reply) {
  const std::lock_guard lock(mutex_);
  if (listener_ == nullptr || phase_ == Phase::abandoned) return;
  DRK_CHECK(phase_ == Phase::empty);
  phase_ = Phase::complete;
  head_ = std::move(reply);
  wake_if_waiting();
}

void AnswerQueue::start_stream(Reply head) {
  const std::lock_guard lock(mutex_);
  if (listener_ == nullptr || phase_ == Phase::abandoned) return;
  DRK_CHECK(phase_ == Phase::empty);
  phase_ = Phase::streaming;
  is_stream_ = true;
  head_ = std::move(head);
  wake_if_waiting();
}

void AnswerQueue::send(std::string part) {
  const std::lock_guard lock(mutex_);
  if (listener_ == nullptr || phase_ == Phase::abandoned || is_overflowing_) return;
  DRK_CHECK(phase_ == Phase::streaming);
  if (part.empty()) return;
  if (part.size() > kMaxUnsentBytes - unsent_bytes_) {
    // The connection is most likely stuck in a write, so it is woken even when it does not wait.
    is_overflowing_ = true;
    is_waiting_ = false;
    parts_.clear();
    listener_->wake();
    return;
  }
  unsent_bytes_ += part.size();
  parts_.push_back(std::move(part));
  wake_if_waiting();
}

void AnswerQueue::finish() {
  const std::lock_guard lock(mutex_);
  if (listener_ == nullptr || phase_ == Phase::abandoned) return;
  DRK_CHECK(phase_ == Phase::streaming);
  phase_ = Phase::complete;
  wake_if_waiting();
}

void AnswerQueue::abandon() {
  const std::lock_guard lock(mutex_);
  if (listener_ == nullptr || phase_ == Phase::complete) return;
  phase_ = Phase::abandoned;
  wake_if_waiting();
}

void AnswerQueue::on_leave(std::function<void()> left) {
  {
    const std::lock_guard lock(mutex_);
    if (!has_left_) {
      // A detached queue whose client has not left was answered in full. Swapped, so that an older
      // function dies outside the lock: it may be the last owner of this queue's exchange.
      if (listener_ != nullptr) left_.swap(left);
      return;
    }
  }
  left();
}

std::optional<NextStep> AnswerQueue::take() {
  const std::lock_guard lock(mutex_);
  if (is_overflowing_) return GiveUp{};
  if (head_) {
    Reply head = *std::exchange(head_, std::nullopt);
    if (is_stream_) return BeginStream{std::move(head)};
    return SendReply{std::move(head)};
  }
  if (!parts_.empty()) return SendParts{std::exchange(parts_, {})};
  if (phase_ == Phase::complete) return EndStream{};
  if (phase_ == Phase::abandoned) return GiveUp{};
  is_waiting_ = true;
  return std::nullopt;
}

void AnswerQueue::note_sent(std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  unsent_bytes_ -= bytes;
}

bool AnswerQueue::is_overflowing() const noexcept {
  const std::lock_guard lock(mutex_);
  return is_overflowing_;
}

void AnswerQueue::note_left() {
  std::function<void()> left;
  {
    const std::lock_guard lock(mutex_);
    has_left_ = true;
    left = std::exchange(left_, nullptr);
  }
  if (left) left();
}

void AnswerQueue::detach() noexcept {
  // Dies outside the lock, for the reason given in on_leave.
  std::function<void()> left;
  const std::lock_guard lock(mutex_);
  listener_ = nullptr;
  is_waiting_ = false;
  left.swap(left_);
  head_.reset();
  parts_.clear();
}

}  // namespace drk::http
