// SPDX-License-Identifier: Apache-2.0
// Every connection of a server that is open now.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace drk::http {

/// One of them. Both functions are thread-safe and only ask.
class Connection {
 public:
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() = default;

  /// Close when no request is under way.
  virtual void drain() = 0;
  /// Close now.
  virtual void abort() = 0;
};

/// Thread-safe.
class Connections {
 public:
  enum class Admission {
    served,
    turned_away,  ///< Is told to come back later.
    closed,       ///< Without a word: while draining, or when even those turned away are too many.
  };

  /// A place among the connections; gives it back at its end. `closed` ones hold none.
  class Seat {
   public:
    Seat(Seat&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), id_(other.id_), kind_(other.kind_) {}
    Seat& operator=(Seat&&) = delete;
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;
    ~Seat() {
      if (owner_ != nullptr) owner_->give_back(*this);
    }
    [[nodiscard]] Admission kind() const noexcept { return kind_; }

   private:
    friend class Connections;
    Seat(Connections* owner, std::uint64_t id, Admission kind) noexcept
        : owner_(owner), id_(id), kind_(kind) {}

    Connections* owner_;
    std::uint64_t id_;
    Admission kind_;
  };

  Connections(std::uint32_t max_served, std::uint32_t max_turned_away)
      : max_served_(max_served), max_turned_away_(max_turned_away) {}

  [[nodiscard]] Seat admit();
  /// Makes the connection on that seat known to `drain_all` and `abort_all`; what they ask is
  /// asked at once when they have been called already.
  void add(const Seat& seat, const std::shared_ptr<Connection>& connection);

  void drain_all();
  void abort_all();
  /// Returns when none is left or `limit` has passed.
  void wait_until_none(std::chrono::milliseconds limit);

  [[nodiscard]] std::uint64_t open() const noexcept;
  [[nodiscard]] std::uint64_t admitted() const noexcept;
  [[nodiscard]] std::uint64_t turned_away() const noexcept;

 private:
  void give_back(const Seat& seat) noexcept;
  [[nodiscard]] std::vector<std::shared_ptr<Connection>> snapshot() const;

  const std::uint32_t max_served_;
  const std::uint32_t max_turned_away_;

  mutable std::mutex mutex_;
  std::condition_variable none_left_;
  // Guarded by mutex_. The connections own themselves; an entry lasts as long as its seat.
  std::unordered_map<std::uint64_t, std::weak_ptr<Connection>> entries_;
  std::uint64_t next_id_ = 0;
  std::uint64_t served_now_ = 0;
  std::uint64_t turned_away_now_ = 0;
  std::uint64_t served_ever_ = 0;
  std::uint64_t turned_away_ever_ = 0;
  bool draining_ = false;
  bool aborting_ = false;
};

}  // namespace drk::http
