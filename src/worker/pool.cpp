// SPDX-License-Identifier: Apache-2.0
// Warm guests, host users, control groups.
#include "worker/pool.h"

#include "drk/base/clock.h"
#include "drk/base/error.h"

#include <algorithm>
#include <pthread.h>
#include <set>
#include <unistd.h>

namespace drk::worker {

namespace {

// Far above what systems give out; a range per process, so that two workers never share a user.
constexpr std::uint32_t kFirstUser = 1'000'000'000;
constexpr std::uint32_t kUsersPerProcess = 400;
// The driver makes five contexts a second when four are asked for at once, three one by one.
constexpr std::size_t kGpuRefillers = 4;
constexpr std::chrono::seconds kIdle(10);  // without a taker, no more than the least are kept warm

/// Host users in use, by all pools of this process: their range is the process's.
struct HostUsers {
  std::mutex mutex;
  std::set<std::uint32_t> taken;
};
HostUsers& host_users() {
  // Never freed: a pool may itself be a static that ends later than this one would.
  // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a range of the process
  static HostUsers& instance = *std::make_unique<HostUsers>().release();
  return instance;
}

std::uint32_t take_host_user() {
  const std::lock_guard lock(host_users().mutex);
  std::uint32_t user =
      kFirstUser + static_cast<std::uint32_t>(::getpid()) % 8'000'000 * kUsersPerProcess;
  while (host_users().taken.contains(user)) ++user;
  host_users().taken.insert(user);
  return user;
}

void give_host_user_back(std::uint32_t user) {
  const std::lock_guard lock(host_users().mutex);
  host_users().taken.erase(user);
}

bool operator==(const sandbox::Limits& a, const sandbox::Limits& b) {
  return a.memory_bytes == b.memory_bytes && a.tmp_bytes == b.tmp_bytes &&
         a.processes == b.processes && a.open_files == b.open_files;
}

BuilderOptions builder_options(const Options& options) {
  BuilderOptions builder;
  builder.store_dir = options.build_dir;
  // Each GPU has a pool of guests of its own; together they have the cores.
  const auto pools = static_cast<std::uint32_t>(std::max<std::size_t>(1, options.gpus.size()));
  builder.max_toolboxes = std::max(1U, std::thread::hardware_concurrency() / pools);
  builder.slim_dir = options.guest_dir + "/slim";
  return builder;
}

}  // namespace

GuestPool::GuestPool(const Options& options, GpuSlot* gpu)
    : options_(options),
      gpu_(gpu),
      builder_(builder_options(options), toolboxes()),
      target_(options.warm_guests),
      last_take_ns_(now_ns()) {
  const std::size_t count = gpu == nullptr ? 1 : kGpuRefillers;
  for (std::size_t i = 0; i < count; ++i) {
    refillers_.emplace_back([this](const std::stop_token& stop) { refill(stop); });
  }
}

GuestPool::~GuestPool() {
  for (std::jthread& refiller : refillers_) refiller.request_stop();
  refillers_.clear();
}

void GuestPool::forget_dead_zygote() {
  // Both end outside the locks: that takes a while.
  std::shared_ptr<Zygote> dead;
  std::vector<std::unique_ptr<GuestProcess>> orphans;
  {
    const std::lock_guard lock(zygote_mutex_);
    if (!zygote_ || zygote_->is_alive()) return;
    dead.swap(zygote_);
  }
  const std::lock_guard lock(warm_mutex_);
  orphans.swap(warm_);
}

std::shared_ptr<Zygote> GuestPool::zygote() {
  forget_dead_zygote();
  const std::lock_guard lock(zygote_mutex_);
  if (!zygote_) {
    const gpu::Device* device = gpu_ == nullptr ? nullptr : &gpu_->device();
    zygote_ =
        std::make_shared<Zygote>(options_.python, options_.guest_dir, device, options_.cuda_home);
  }
  return zygote_;
}

std::unique_ptr<GuestProcess> GuestPool::spawn(const sandbox::Limits& limits,
                                               Purpose purpose,
                                               Queues queues) {
  const bool is_judging = purpose != Purpose::compiling;
  const bool uses_gpu = gpu_ != nullptr && is_judging;
  sandbox::Cell cell;
  cell.limits = limits;
  cell.has_devices = uses_gpu;
  cell.may_execute = purpose != Purpose::judging;
  if (::geteuid() == 0) {
    cell.host_user = take_host_user();
  }
  const auto give_back = [this](const sandbox::Cell& used) {
    sandbox::CgroupRoot::remove(used.cgroup_dir);
    if (used.host_user) give_host_user_back(*used.host_user);
  };
  std::unique_ptr<GuestProcess> guest;
  try {
    cell.cgroup_dir = cgroups_.make(limits);
    const std::shared_ptr<Zygote> source = zygote();
    guest = std::make_unique<GuestProcess>(
        source->spawn(cell),
        cell,
        [this, give_back, cell, uses_gpu](bool is_broken) {
          give_back(cell);
          if (is_broken && uses_gpu) gpu_->suspect();
        },
        is_judging ? &builder_ : nullptr);
  } catch (const Error&) {
    give_back(cell);
    throw;
  }
  if (uses_gpu) guest->prepare(queues == Queues::few ? kFewQueues : 0);
  if (is_judging) guest->settle();
  return guest;
}

/// `take` ends with a guest whose fill and read-back have passed, or throws.
template <class Take>
void GuestPool::with_device_checked(const Take& take) {
  if (gpu_ == nullptr) return take();
  gpu_->check_health();
  const bool was_suspected = gpu_->is_suspected();
  const std::uint64_t suspicions = gpu_->suspicions();
  take();
  if (was_suspected) gpu_->clear_suspicions(suspicions);
}

std::unique_ptr<GuestProcess> GuestPool::take(const sandbox::Limits& limits, Queues queues) {
  forget_dead_zygote();
  const bool is_usual = limits == sandbox::Limits{} && queues == Queues::few;
  if (is_usual) {
    const std::lock_guard lock(warm_mutex_);
    active_ = true;
    last_take_ns_ = now_ns();
  }
  std::unique_ptr<GuestProcess> guest;
  with_device_checked([&] {
    if (is_usual) guest = take_warm();
    if (!guest) guest = spawn(limits, Purpose::judging, queues);
  });
  wanted_.notify_all();
  return guest;
}

/// The oldest that waits and, where the device is suspected, still answers. Null when there is
/// none.
std::unique_ptr<GuestProcess> GuestPool::take_warm() {
  for (;;) {
    std::unique_ptr<GuestProcess> guest;
    {
      const std::lock_guard lock(warm_mutex_);
      if (warm_.empty()) {
        target_ = std::min<std::size_t>(target_ + 1, options_.max_warm_guests);
        target_ = std::max<std::size_t>(target_, options_.warm_guests);
        return nullptr;
      }
      guest = std::move(warm_.front());
      warm_.erase(warm_.begin());
    }
    wanted_.notify_all();
    if (gpu_ == nullptr || !gpu_->is_suspected() || guest->probe()) return guest;
  }
}

std::unique_ptr<GuestProcess> GuestPool::take_with_compilers(const sandbox::Limits& limits) {
  forget_dead_zygote();
  std::unique_ptr<GuestProcess> guest;
  with_device_checked([&] { guest = spawn(limits, Purpose::judging_and_compiling); });
  return guest;
}

std::unique_ptr<GuestProcess> GuestPool::take_without_device() {
  return spawn(sandbox::Limits{}, Purpose::compiling);
}

Toolboxes GuestPool::toolboxes() {
  return {[this] { return zygote()->hello(); },
          [this] { return spawn(toolbox_limits(), Purpose::compiling); }};
}

void GuestPool::drop_warm() {
  std::vector<std::unique_ptr<GuestProcess>> dropped;  // ends outside the lock: that takes a while
  const std::lock_guard lock(warm_mutex_);
  dropped.swap(warm_);
  active_ = false;  // until the next is taken
}

std::vector<std::unique_ptr<GuestProcess>> GuestPool::shrink() {
  std::vector<std::unique_ptr<GuestProcess>> surplus;
  if (std::chrono::nanoseconds(now_ns() - last_take_ns_) < kIdle) return surplus;
  target_ = options_.warm_guests;
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
    const auto is_wanted = [&] { return active_ && warm_.size() + coming_ < target_; };
    const bool wanted = wanted_.wait_for(lock, stop, kIdle, is_wanted);
    if (stop.stop_requested()) return;
    if (!wanted) {
      std::vector<std::unique_ptr<GuestProcess>> surplus = shrink();
      lock.unlock();
      surplus.clear();  // ending a process takes a while
      lock.lock();
      continue;
    }
    ++coming_;
    lock.unlock();
    std::unique_ptr<GuestProcess> guest;
    try {
      guest = spawn(sandbox::Limits{}, Purpose::judging);
    } catch (const Error&) {  // the next take() meets the same trouble and reports it
    }
    lock.lock();
    --coming_;
    if (!guest) active_ = false;
    if (active_) {
      warm_.push_back(std::move(guest));
    } else {  // meanwhile all that wait were dropped
      lock.unlock();
      guest.reset();
      lock.lock();
    }
  }
}

}  // namespace drk::worker
