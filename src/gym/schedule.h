// SPDX-License-Identifier: Apache-2.0
// In which order pending tasks are leased. Memory and arithmetic only: time is passed in.
//
// Three lanes, one a priority; the highest that is not empty goes first. Within a lane each client
// has a line of its tasks, in the order of their submission, and the next task is the first of the
// client that holds the fewest leases of the lane; among equals, of the one that waited longest for
// a turn. With age a task moves up to the next lane.
#pragma once

#include "drk/gym/queue.h"

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace drk::gym {

/// Number of a task in the order of submission.
using Seq = std::int64_t;

/// Time after which a task counts as one priority higher.
inline constexpr std::int64_t kAgeingStepMs = std::int64_t{10} * 60 * 1000;

/// Pending and leased tasks. A copy is independent and goes on in the same order. Not thread-safe.
class Schedule {
 public:
  /// A pending task that is not known yet.
  void add(Seq seq, const std::string& client, Priority priority, std::int64_t submitted_ms);
  /// The pending task whose turn it is.
  [[nodiscard]] std::optional<Seq> next() const;
  void lease(Seq seq);      ///< Of a pending task, whether or not it is its turn.
  void give_back(Seq seq);  ///< Of a leased task: to its old place in the line of its client.
  void remove(Seq seq);     ///< Pending or leased.

  /// Moves up what is old enough.
  void age(std::int64_t now_ms);
  /// When there is something to move up; empty: never.
  [[nodiscard]] std::optional<std::int64_t> next_ageing_ms() const;

  /// How many leases there will be before that of a pending task, exactly, as things stand. Takes
  /// time by the clients of its lane, not by its tasks.
  [[nodiscard]] std::optional<Place> place(Seq seq) const;
  [[nodiscard]] std::uint64_t pending() const noexcept { return pending_.size(); }
  [[nodiscard]] std::uint64_t pending(Priority own) const noexcept;
  [[nodiscard]] std::uint64_t leased() const noexcept { return leased_.size(); }
  [[nodiscard]] std::optional<std::int64_t> oldest_submitted_ms() const;

 private:
  using ClientId = std::uint64_t;
  static constexpr std::size_t kLanes = 3;

  struct Client {
    std::string name;
    std::uint64_t tasks = 0;  ///< Pending and leased; without any it is forgotten.
  };
  struct Entry {
    ClientId client = 0;
    std::int64_t submitted_ms = 0;
    std::uint8_t own = 0;   ///< Lane of its own priority.
    std::uint8_t lane = 0;  ///< Where it is now, or was when it was leased.
  };
  /// One client in one lane.
  struct Share {
    std::deque<Seq> line;  ///< Ascending.
    std::uint64_t held = 0;
    std::uint64_t waits_since = 0;  ///< Turn in which it got a lease or began to wait.
  };
  struct Lane {
    std::map<ClientId, Share> shares;
    /// Those with a line, the next one first: held, waits_since, client.
    std::set<std::tuple<std::uint64_t, std::uint64_t, ClientId>> order;
    std::uint64_t pending = 0;
  };
  using Tasks = std::map<Seq, Entry>;

  ClientId client_id(const std::string& name);
  void leave_client(ClientId id);
  void enter_line(Seq seq, const Entry& entry);
  void leave_line(Seq seq, const Entry& entry);
  void release(const Entry& entry);
  /// Changes a share and keeps the order of its lane right.
  template <class Edit>
  void edit_share(const Entry& entry, Edit edit);

  Tasks pending_;
  Tasks leased_;
  std::array<Lane, kLanes> lanes_;
  std::array<std::uint64_t, kLanes> pending_by_own_{};
  std::set<std::pair<std::int64_t, Seq>> ageing_;  ///< When each moves up next.
  std::unordered_map<std::string, ClientId> client_ids_;
  std::unordered_map<ClientId, Client> clients_;
  ClientId last_client_ = 0;
  std::uint64_t turn_ = 0;
};

}  // namespace drk::gym
