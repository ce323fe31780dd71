// SPDX-License-Identifier: Apache-2.0
// Lanes, lines and turns.
#include "gym/schedule.h"

#include "drk/base/error.h"

#include <algorithm>

namespace drk::gym {

namespace {

std::int64_t ageing_ms(std::int64_t submitted_ms, std::uint8_t own, std::uint8_t lane) {
  return submitted_ms + kAgeingStepMs * (lane - own + 1);
}

}  // namespace

Schedule::ClientId Schedule::client_id(const std::string& name) {
  const auto [found, is_new] = client_ids_.try_emplace(name, last_client_ + 1);
  if (is_new) clients_[++last_client_].name = name;
  return found->second;
}

void Schedule::leave_client(ClientId id) {
  Client& client = clients_.at(id);
  if (--client.tasks > 0) return;
  client_ids_.erase(client.name);
  clients_.erase(id);
}

template <class Edit>
void Schedule::edit_share(const Entry& entry, Edit edit) {
  Lane& lane = lanes_[entry.lane];
  Share& share = lane.shares[entry.client];
  lane.order.erase({share.held, share.waits_since, entry.client});
  edit(share);
  if (!share.line.empty()) {
    lane.order.emplace(share.held, share.waits_since, entry.client);
  } else if (share.held == 0) {
    lane.shares.erase(entry.client);
  }
}

void Schedule::enter_line(Seq seq, const Entry& entry) {
  edit_share(entry, [&](Share& share) {
    if (share.line.empty()) share.waits_since = ++turn_;
    share.line.insert(std::lower_bound(share.line.begin(), share.line.end(), seq), seq);
  });
  ++lanes_[entry.lane].pending;
  if (entry.lane + 1U < kLanes) {
    ageing_.emplace(ageing_ms(entry.submitted_ms, entry.own, entry.lane), seq);
  }
}

void Schedule::leave_line(Seq seq, const Entry& entry) {
  edit_share(entry, [&](Share& share) {
    share.line.erase(std::lower_bound(share.line.begin(), share.line.end(), seq));
  });
  --lanes_[entry.lane].pending;
  ageing_.erase({ageing_ms(entry.submitted_ms, entry.own, entry.lane), seq});
}

void Schedule::release(const Entry& entry) {
  edit_share(entry, [](Share& share) { --share.held; });
}

void Schedule::add(Seq seq,
                   const std::string& client,
                   Priority priority,
                   std::int64_t submitted_ms) {
  const auto own = static_cast<std::uint8_t>(priority);
  const Entry entry{client_id(client), submitted_ms, own, own};
  DRK_CHECK(!leased_.contains(seq) && pending_.emplace(seq, entry).second);
  ++clients_.at(entry.client).tasks;
  ++pending_by_own_[own];
  enter_line(seq, entry);
}

std::optional<Seq> Schedule::next() const {
  for (std::size_t lane = kLanes; lane-- > 0;) {
    const Lane& candidate = lanes_[lane];
    if (candidate.order.empty()) continue;
    return candidate.shares.at(std::get<2>(*candidate.order.begin())).line.front();
  }
  return std::nullopt;
}

void Schedule::lease(Seq seq) {
  auto node = pending_.extract(seq);
  DRK_CHECK(!node.empty());
  const Entry& entry = node.mapped();
  --pending_by_own_[entry.own];
  // In this order, so that the share is never empty in between and forgets nothing.
  edit_share(entry, [&](Share& share) {
    ++share.held;
    share.waits_since = ++turn_;
  });
  leave_line(seq, entry);
  leased_.insert(std::move(node));
}

void Schedule::give_back(Seq seq) {
  auto node = leased_.extract(seq);
  DRK_CHECK(!node.empty());
  Entry& entry = node.mapped();
  release(entry);
  entry.lane = entry.own;
  ++pending_by_own_[entry.own];
  enter_line(seq, entry);
  pending_.insert(std::move(node));
}

void Schedule::remove(Seq seq) {
  if (const auto node = pending_.extract(seq)) {
    --pending_by_own_[node.mapped().own];
    leave_line(seq, node.mapped());
    leave_client(node.mapped().client);
    return;
  }
  const auto node = leased_.extract(seq);
  DRK_CHECK(!node.empty());
  release(node.mapped());
  leave_client(node.mapped().client);
}

void Schedule::age(std::int64_t now_ms) {
  while (!ageing_.empty() && ageing_.begin()->first <= now_ms) {
    const Seq seq = ageing_.begin()->second;
    Entry& entry = pending_.at(seq);
    leave_line(seq, entry);
    ++entry.lane;
    enter_line(seq, entry);
  }
}

std::optional<std::int64_t> Schedule::next_ageing_ms() const {
  if (ageing_.empty()) return std::nullopt;
  return ageing_.begin()->first;
}

// With every lease the client that gets it holds one more, so a lane fills up level by level: the
// k-th task (from 0) of a client's line is leased when the client holds held + k leases, its level.
// Ahead of it are all tasks of lower levels, and those of the same level whose clients come first:
// the ones that held more to begin with (they were not served yet when the level was reached, and
// keep their lead), and among equals those that wait longer.
std::optional<Place> Schedule::place(Seq seq) const {
  const auto found = pending_.find(seq);
  if (found == pending_.end()) return std::nullopt;
  const Entry& entry = found->second;
  const Lane& lane = lanes_[entry.lane];
  const Share& mine = lane.shares.at(entry.client);
  const auto index = static_cast<std::uint64_t>(
      std::lower_bound(mine.line.begin(), mine.line.end(), seq) - mine.line.begin());
  const std::uint64_t level = mine.held + index;

  Place place;
  place.ahead_same = index;
  for (const auto& [held, waits_since, client] : lane.order) {
    if (held > level) break;  // the order is by `held`
    if (client == entry.client) continue;
    const std::uint64_t waiting = lane.shares.at(client).line.size();
    const bool leads = held > mine.held || (held == mine.held && waits_since < mine.waits_since);
    place.ahead_same += std::min<std::uint64_t>(waiting, level - held + (leads ? 1 : 0));
  }
  for (std::size_t higher = entry.lane + 1U; higher < kLanes; ++higher) {
    place.ahead_higher += lanes_[higher].pending;
  }
  place.position = 1 + place.ahead_higher + place.ahead_same;
  return place;
}

std::uint64_t Schedule::pending(Priority own) const noexcept {
  return pending_by_own_[static_cast<std::size_t>(own)];
}

std::optional<std::int64_t> Schedule::oldest_submitted_ms() const {
  if (pending_.empty()) return std::nullopt;
  return pending_.begin()->second.submitted_ms;
}

}  // namespace drk::gym
