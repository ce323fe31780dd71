// SPDX-License-Identifier: Apache-2.0
// Admission, the list, and waiting for it to empty.
#include "http/connections.h"

namespace drk::http {

Connections::Seat Connections::admit() {
  const std::lock_guard lock(mutex_);
  if (draining_) return {nullptr, 0, Admission::closed};
  if (served_now_ < max_served_) {
    ++served_now_;
    ++served_ever_;
    return {this, next_id_++, Admission::served};
  }
  ++turned_away_ever_;
  if (turned_away_now_ == max_turned_away_) return {nullptr, 0, Admission::closed};
  ++turned_away_now_;
  return {this, next_id_++, Admission::turned_away};
}

void Connections::give_back(const Seat& seat) noexcept {
  const std::lock_guard lock(mutex_);
  entries_.erase(seat.id_);
  --(seat.kind_ == Admission::served ? served_now_ : turned_away_now_);
  if (served_now_ + turned_away_now_ == 0) none_left_.notify_all();
}

void Connections::add(const Seat& seat, const std::shared_ptr<Connection>& connection) {
  bool drain = false;
  bool abort = false;
  {
    const std::lock_guard lock(mutex_);
    entries_.emplace(seat.id_, connection);
    drain = draining_;
    abort = aborting_;
  }
  if (drain) connection->drain();
  if (abort) connection->abort();
}

std::vector<std::shared_ptr<Connection>> Connections::snapshot() const {
  // Used outside the lock: the last owner of a connection gives back its seat, which locks.
  std::vector<std::shared_ptr<Connection>> connections;
  const std::lock_guard lock(mutex_);
  connections.reserve(entries_.size());
  for (const auto& [id, entry] : entries_) {
    if (std::shared_ptr<Connection> connection = entry.lock()) {
      connections.push_back(std::move(connection));
    }
  }
  return connections;
}

void Connections::drain_all() {
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
  }
  for (const std::shared_ptr<Connection>& connection : snapshot()) connection->drain();
}

void Connections::abort_all() {
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
    aborting_ = true;
  }
  for (const std::shared_ptr<Connection>& connection : snapshot()) connection->abort();
}

void Connections::wait_until_none(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  none_left_.wait_for(lock, limit, [this] { return served_now_ + turned_away_now_ == 0; });
}

std::uint64_t Connections::open() const noexcept {
  const std::lock_guard lock(mutex_);
  return served_now_;
}

std::uint64_t Connections::admitted() const noexcept {
  const std::lock_guard lock(mutex_);
  return served_ever_;
}

std::uint64_t Connections::turned_away() const noexcept {
  const std::lock_guard lock(mutex_);
  return turned_away_ever_;
}

}  // namespace drk::http
