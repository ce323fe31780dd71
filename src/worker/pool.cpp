// SPDX-License-Identifier: Apache-2.0
// Warm guests, host users, control groups.
#include "worker/pool.h"

#include "drk/base/clock.h"
#include "drk/base/error.h"

#include <algorithm>
#include <pthread.h>
#include <unistd.h>

namespace drk::worker {

namespace {

// Far above what systems give out; a range per process, so that two workers never share a user.
constexpr std::uint32_t kFirstUser = 1'000'000'000;
constexpr std::uint32_t kUsersPerProcess = 256;
constexpr std::chrono::seconds kIdle(10);  // without a taker, one guest less is kept warm

bool operator==(const sandbox::Limits& a, const sandbox::Limits& b) {
  return a.memory_bytes == b.memory_bytes && a.tmp_bytes == b.tmp_bytes &&
         a.processes == b.processes && a.open_files == b.open_files;
}

}  // namespace

GuestPool::GuestPool(const Options& options)
    : options_(options),
      target_(options.warm_guests),
      last_take_ns_(now_ns()),
      refiller_([this](const std::stop_token& stop) { refill(stop); }) {}

GuestPool::~GuestPool() {
  refiller_.request_stop();
  refiller_.join();
}

void GuestPool::forget_dead_zygote() {
  // Both end outside the locks: that takes a while.
  std::shared_ptr<Zygote> dead;
  std::vector<std::unique_ptr<GuestProcess>> orphans;
  {
    const std::lock_guard lock(zygote_mutex_);
    if (!zygote_ || zygote_->is_alive()) return;
    dead = std::move(zygote_);
  }
  const std::lock_guard lock(warm_mutex_);
  orphans.swap(warm_);
}

std::shared_ptr<Zygote> GuestPool::zygote() {
  forget_dead_zygote();
  const std::lock_guard lock(zygote_mutex_);
  if (!zygote_) zygote_ = std::make_shared<Zygote>(options_.python, options_.guest_dir);
  return zygote_;
}

std::unique_ptr<GuestProcess> GuestPool::spawn(const sandbox::Limits& limits) {
  sandbox::Cell cell;
  cell.limits = limits;
  if (::geteuid() == 0) {
    const std::lock_guard lock(users_mutex_);
    std::uint32_t user =
        kFirstUser + static_cast<std::uint32_t>(::getpid()) % 8'000'000 * kUsersPerProcess;
    while (users_.contains(user)) ++user;
    users_.insert(user);
    cell.host_user = user;
  }
  const auto give_back = [this](const sandbox::Cell& used) {
    sandbox::CgroupRoot::remove(used.cgroup_dir);
    if (!used.host_user) return;
    const std::lock_guard lock(users_mutex_);
    users_.erase(*used.host_user);
  };
  try {
    cell.cgroup_dir = cgroups_.make(limits);
    const std::shared_ptr<Zygote> source = zygote();
    return std::make_unique<GuestProcess>(
        source->spawn(cell), cell, [give_back, cell] { give_back(cell); });
  } catch (const Error&) {
    give_back(cell);
    throw;
  }
}

std::unique_ptr<GuestProcess> GuestPool::take(const sandbox::Limits& limits) {
  forget_dead_zygote();
  if (limits == sandbox::Limits{}) {
    const std::lock_guard lock(warm_mutex_);
    active_ = true;
    last_take_ns_ = now_ns();
    if (warm_.empty()) {
      target_ = std::min<std::size_t>(target_ + 1, options_.max_warm_guests);
      target_ = std::max<std::size_t>(target_, options_.warm_guests);
    } else {
      std::unique_ptr<GuestProcess> guest = std::move(warm_.back());
      warm_.pop_back();
      wanted_.notify_one();
      return guest;
    }
  }
  std::unique_ptr<GuestProcess> guest = spawn(limits);
  wanted_.notify_one();
  return guest;
}

std::vector<std::unique_ptr<GuestProcess>> GuestPool::shrink() {
  std::vector<std::unique_ptr<GuestProcess>> surplus;
  if (std::chrono::nanoseconds(now_ns() - last_take_ns_) < kIdle) return surplus;
  if (target_ > options_.warm_guests) --target_;
  while (warm_.size() > target_) {
    surplus.push_back(std::move(warm_.back()));
    warm_.pop_back();
  }
  return surplus;
}

void GuestPool::refill(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "drk-warm");
  std::unique_lock lock(warm_mutex_);
  for (;;) {
    const auto is_wanted = [&] { return active_ && warm_.size() < target_; };
    const bool wanted = wanted_.wait_for(lock, stop, kIdle, is_wanted);
    if (stop.stop_requested()) return;
    if (!wanted) {
      std::vector<std::unique_ptr<GuestProcess>> surplus = shrink();
      lock.unlock();
      surplus.clear();  // ending a process takes a while
      lock.lock();
      continue;
    }
    lock.unlock();
    std::unique_ptr<GuestProcess> guest;
    try {
      guest = spawn(sandbox::Limits{});
    } catch (const Error&) {  // the next take() meets the same trouble and reports it
    }
    lock.lock();
    if (guest) {
      warm_.push_back(std::move(guest));
    } else {
      active_ = false;
    }
  }
}

}  // namespace drk::worker
