// SPDX-License-Identifier: Apache-2.0
// Reference guests and what is kept of their work.
#include "worker/references.h"

#include "drk/base/error.h"
#include "drk/base/hash.h"
#include "drk/base/json.h"
#include "drk/base/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace drk::worker {

namespace {

constexpr std::uint64_t kMaxCachedBytes = std::uint64_t{512} << 20;  // of one reference

/// The seed for draws inside forward (dropout), from the seed of the inputs. A candidate can ask
/// torch for it, and must not get from there to the inputs' seed.
std::uint64_t forward_seed_of(std::uint64_t seed) {
  constexpr std::size_t kDigits = 16;
  constexpr int kHexadecimal = 16;
  const std::string digest = sha256_hex(fmt::format("forward {}", seed));
  return std::stoull(digest.substr(0, kDigits), nullptr, kHexadecimal) >> 1U;
}

/// Cases are run, not timed. (And they may be the candidate's, which must not have compilers.)
bool is_compiled(const task::Task& task) noexcept {
  return task.workflow == task::Workflow::kernelbench &&
         task.reference_backend == task::ReferenceBackend::torch_compile;
}

constexpr double kLibertyLimitS = 30;
constexpr double kAffordableS = 0.25;       // for a trial that serves one candidate alone
constexpr std::size_t kMaxProblems = 4096;  // whose liberties are remembered
constexpr std::uint64_t kDistributionMask = 7;

/// That nobody has met, and that stands for the same distribution as `like`.
std::uint64_t fresh_seed(std::uint64_t like) {
  const std::uint64_t secret = secure_random(std::uint64_t{1} << 63U);
  return (secret & ~kDistributionMask) | (like & kDistributionMask);
}

/// A seed for each distribution, over and over.
std::vector<std::uint64_t> secret_seeds(std::size_t count) {
  std::vector<std::uint64_t> seeds(count);
  for (std::size_t i = 0; i < count; ++i) seeds[i] = fresh_seed(i);
  return seeds;
}

template <class Item>
void shuffle(std::vector<Item>& items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::swap(items[i], items[i + secure_random(items.size() - i)]);
  }
}

/// Other values, or another precision, might have gone through; and the process goes on.
bool is_of_the_values(const task::Failure& failure) noexcept {
  return failure.kind == task::FailureKind::inputs_error ||
         failure.kind == task::FailureKind::call_error ||
         (failure.kind == task::FailureKind::out_of_memory && !failure.death);
}

}  // namespace

std::uint64_t TrialData::bytes() const noexcept {
  return inputs.bundle.block_bytes + expected.bundle.block_bytes +
         (exact ? exact->bundle.block_bytes : 0);
}

task::Distribution distribution_of(std::uint64_t seed) noexcept {
  switch (seed & kDistributionMask) {
    case 0:
      return task::Distribution::shifted;
    case 1:
      return task::Distribution::scaled;
    case 2:
      return task::Distribution::special;
    default:
      return task::Distribution::given;
  }
}

void ask_for_times(guest::Call& call, const task::Task& task, std::uint32_t calls, bool on_gpu) {
  constexpr std::uint32_t kLeastCalls = 3;
  constexpr double kWarmupS = 0.05;
  constexpr double kSettleS = 0.25;
  constexpr double kEnoughS = 0.25;
  call.purpose = guest::CallPurpose::time;
  call.protocol = task.policy.protocol;
  call.calls = calls;
  call.min_calls = std::min(calls, kLeastCalls);
  call.budget_s = task.limits.timing_budget_s;
  if (!on_gpu) return;
  call.warmup_calls = task.num_warmup;
  if (call.protocol == task::Protocol::kernelgym) return;
  call.warmup_s = kWarmupS;
  call.settle_s = kSettleS;
  call.enough_s = kEnoughS;
}

Reference::Reference(std::unique_ptr<GuestProcess> guest,
                     GpuSlot* gpu,
                     std::uint64_t init_seed,
                     std::vector<std::uint64_t> seeds,
                     Liberties liberties)
    : gpu_(gpu),
      init_seed_(init_seed),
      seeds_(std::move(seeds)),
      liberties_(std::move(liberties)),
      guest_(std::move(guest)) {}

GuestProcess::Outcome Reference::ask(const guest::Request& request,
                                     std::span<const int> fds,
                                     task::Stage stage,
                                     double limit_s,
                                     const std::stop_token& stop) {
  AskOptions options;
  options.stage = stage;
  options.limit = std::chrono::duration<double>(limit_s);
  options.stop = stop;
  if (!usable_) throw Error(ErrorCode::unavailable, "worker: a reference's process is gone");
  try {
    GuestProcess::Outcome outcome = guest_->ask(request, fds, options);
    const auto* failure = std::get_if<task::Failure>(&outcome);
    if (failure != nullptr && !is_of_the_values(*failure)) usable_ = false;
    return outcome;
  } catch (...) {
    usable_ = false;
    throw;
  }
}

GuestProcess::Outcome Reference::ask_liberty(const guest::Request& request,
                                             std::span<const int> fds,
                                             double limit_s,
                                             const std::stop_token& stop) {
  GuestProcess::Outcome outcome =
      ask(request, fds, task::Stage::correctness, std::min(limit_s, kLibertyLimitS), stop);
  if (usable_) return outcome;
  *liberties_ = false;
  throw Error(
      ErrorCode::unavailable,
      "worker: a reference's process did not survive other values, or float64; a new one is "
      "spared them");
}

std::optional<task::Failure> Reference::load(const task::Task& task, const std::stop_token& stop) {
  const std::lock_guard lock(mutex_);
  const Fd source = make_sealed_memory("reference", std::as_bytes(std::span(task.reference_code)));
  const int fd = source.get();
  guest::LoadReference request;
  request.entry_point = task.entry_point;
  request.init_seed = init_seed_;
  request.compile = is_compiled(task) && gpu_ != nullptr;
  auto outcome = ask(request, {&fd, 1}, task::Stage::load, task.limits.load_s, stop);
  if (auto* failure = std::get_if<task::Failure>(&outcome)) return std::move(*failure);
  auto& answer = std::get<GuestProcess::Answer>(outcome);
  auto& loaded = std::get<guest::Loaded>(answer.reply);
  parameters_ = std::move(loaded.parameters);
  init_inputs_ = seal_block(std::move(loaded.init_inputs), std::move(answer.memory));
  return std::nullopt;
}

Reference::Seeds Reference::draw_seeds(std::size_t trials, bool all_given, bool has_last) {
  std::vector<std::uint64_t> pool = seeds_;
  shuffle(pool);
  std::vector<std::uint64_t> given, varied;
  for (const std::uint64_t seed : pool) {
    const bool is_given = all_given || distribution_of(seed) == task::Distribution::given;
    (is_given ? given : varied).push_back(seed);
  }
  // As equal shares of the distributions as there can be. Of few trials one is shifted: another
  // sign shows more than another scale does.
  std::map<task::Distribution, std::size_t> rank;
  std::vector<std::pair<std::size_t, std::uint64_t>> ranked;
  ranked.reserve(varied.size());
  for (const std::uint64_t seed : varied) ranked.emplace_back(rank[distribution_of(seed)]++, seed);
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first, distribution_of(a.second)) <
           std::pair(b.first, distribution_of(b.second));
  });
  const std::size_t varied_trials = std::min(trials * 3 / 5, ranked.size());
  DRK_CHECK(given.size() >= trials - varied_trials + 3);
  Seeds seeds;
  // One of few, so that what the timed calls find is mostly there already.
  constexpr std::size_t kTimingSeeds = 4;
  std::vector<std::uint64_t> timing = given;
  std::sort(timing.begin(), timing.end());
  timing.resize(std::min(timing.size(), kTimingSeeds));
  seeds.timing = timing[secure_random(timing.size())];
  std::erase(given, seeds.timing);
  for (std::size_t i = 0; i < varied_trials; ++i) seeds.trials.push_back(ranked[i].second);
  const auto take = [&] {
    const std::uint64_t seed = given.back();
    given.pop_back();
    return seed;
  };
  while (seeds.trials.size() < trials) seeds.trials.push_back(take());
  shuffle(seeds.trials);
  seeds.contribution = take();
  seeds.last = take();
  if (trial_s_ < kAffordableS) {
    std::uint64_t& fresh = has_last ? seeds.last : seeds.trials[secure_random(trials)];
    fresh = fresh_seed(fresh);
  }
  count_use();
  return seeds;
}

Reference::TrialOutcome Reference::trial(std::uint64_t seed,
                                         const task::Task& task,
                                         const std::stop_token& stop) {
  const std::lock_guard lock(mutex_);
  using task::Distribution;
  const bool is_free = takes_liberties(task);
  Distribution distribution = is_free ? distribution_of(seed) : Distribution::given;
  const std::pair key = {seed, is_free};
  if (const auto known = trials_.find(key); known != trials_.end()) return known->second;
  const GpuSlot::Running running = gpu_ == nullptr ? GpuSlot::Running() : gpu_->run(stop);
  const std::int64_t begin_ns = now_ns();
  Made made = make_trial(seed, distribution, task, stop);
  // Values that the problem does not take: those that it gives itself, then.
  if (distribution != Distribution::given) {
    const auto* failure = std::get_if<task::Failure>(&made);
    const auto* data = std::get_if<std::shared_ptr<TrialData>>(&made);
    const bool is_in_domain = data != nullptr && judge::is_finite((*data)->expected.view());
    if (failure != nullptr ? is_of_the_values(*failure) : !is_in_domain) {
      distribution = Distribution::given;
      made = make_trial(seed, distribution, task, stop);
    }
  }
  if (auto* failure = std::get_if<task::Failure>(&made)) return std::move(*failure);
  const auto& data = std::get<std::shared_ptr<TrialData>>(made);
  if (is_free) add_exact(*data, task, stop);
  trial_s_ = static_cast<double>(now_ns() - begin_ns) * 1e-9;
  if (has_room_for(*data)) trials_[key] = data;
  return std::shared_ptr<const TrialData>(data);
}

bool Reference::takes_liberties(const task::Task& task) const {
  return task.workflow == task::Workflow::kernelbench &&
         task.policy.correctness == task::Correctness::strict && *liberties_;
}

Reference::TrialOutcome Reference::changed_trial(const TrialData& of,
                                                 std::uint64_t change_seed,
                                                 const task::Task& task,
                                                 const std::stop_token& stop) {
  const std::lock_guard lock(mutex_);
  const std::vector<value::Change> changes = value::few_changes(of.inputs.bundle, change_seed);
  if (!takes_liberties(task) || changes.empty()) return std::shared_ptr<const TrialData>();
  const std::pair key = {of.seed, change_seed};
  if (const auto known = changed_trials_.find(key); known != changed_trials_.end()) {
    return known->second;
  }
  auto data = std::make_shared<TrialData>();
  data->seed = of.seed;
  data->distribution = of.distribution;
  data->forward_seed = of.forward_seed;
  WritableCopy copy = copy_memory(of.inputs);
  value::apply(
      changes, of.inputs.mapping.bytes(), {copy.mapping.data(), copy.mapping.bytes().size()});
  copy.mapping = Mapping();
  data->inputs = seal_block(of.inputs.bundle, std::move(copy.memory));
  const GpuSlot::Running running = gpu_ == nullptr ? GpuSlot::Running() : gpu_->run(stop);
  if (auto failure = add_expected(*data, true, task, stop)) {
    if (is_of_the_values(*failure)) return std::shared_ptr<const TrialData>();
    return std::move(*failure);
  }
  if (!judge::is_finite(data->expected.view())) return std::shared_ptr<const TrialData>();
  add_exact(*data, task, stop);
  if (has_room_for(*data)) changed_trials_[key] = data;
  return std::shared_ptr<const TrialData>(std::move(data));
}

bool Reference::has_room_for(const TrialData& data) {
  // Others will not ask for what is not of the pool.
  const bool is_of_pool = std::find(seeds_.begin(), seeds_.end(), data.seed) != seeds_.end();
  if (!is_of_pool || cached_bytes_ + data.bytes() > kMaxCachedBytes) return false;
  cached_bytes_ += data.bytes();
  return true;
}

Reference::Made Reference::make_trial(std::uint64_t seed,
                                      task::Distribution distribution,
                                      const task::Task& task,
                                      const std::stop_token& stop) {
  auto data = std::make_shared<TrialData>();
  data->seed = seed;
  data->distribution = distribution;
  data->forward_seed = forward_seed_of(seed);
  const bool is_liberty = distribution != task::Distribution::given;
  const guest::MakeInputs wanted = {seed, distribution};
  const double limit_s = task.limits.correctness_s;
  auto made = is_liberty ? ask_liberty(wanted, {}, limit_s, stop)
                         : ask(wanted, {}, task::Stage::correctness, limit_s, stop);
  if (auto* failure = std::get_if<task::Failure>(&made)) return std::move(*failure);
  auto& inputs = std::get<GuestProcess::Answer>(made);
  data->inputs = seal_block(std::move(std::get<guest::InputsMade>(inputs.reply).inputs),
                            std::move(inputs.memory));
  if (auto failure = add_expected(*data, is_liberty, task, stop)) return std::move(*failure);
  return data;
}

std::optional<task::Failure> Reference::add_expected(TrialData& data,
                                                     bool is_liberty,
                                                     const task::Task& task,
                                                     const std::stop_token& stop) {
  guest::Call call;
  call.inputs = data.inputs.bundle;
  call.forward_seed = data.forward_seed;
  call.max_output_bytes = AskOptions{}.max_block_bytes;
  const WritableCopy copy = copy_memory(data.inputs);
  const std::array fds = {copy.memory.get()};
  const double limit_s = task.limits.correctness_s;
  auto called = is_liberty ? ask_liberty(call, fds, limit_s, stop)
                           : ask(call, fds, task::Stage::correctness, limit_s, stop);
  if (auto* failure = std::get_if<task::Failure>(&called)) return std::move(*failure);
  auto& answer = std::get<GuestProcess::Answer>(called);
  auto& output = std::get<guest::Called>(answer.reply);
  if (output.bad_leaf) {
    task::Failure failure;
    failure.stage = task::Stage::correctness;
    failure.kind = task::FailureKind::call_error;
    failure.what = "the reference's " + output.bad_leaf->path + " is " + output.bad_leaf->what;
    return failure;
  }
  peak_bytes_ = std::max(peak_bytes_.load(), output.peak_bytes);
  data.expected = seal_block(std::move(output.output), std::move(answer.memory));
  return std::nullopt;
}

void Reference::add_exact(TrialData& data, const task::Task& task, const std::stop_token& stop) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;  // of what float64 doubles
  if (!may_have_exact_ || data.bytes() > kMostBytes) return;
  guest::Call call;
  call.inputs = data.inputs.bundle;
  call.forward_seed = data.forward_seed;
  call.exact = true;
  call.max_output_bytes = AskOptions{}.max_block_bytes;
  const WritableCopy copy = copy_memory(data.inputs);
  const int fd = copy.memory.get();
  auto called = ask_liberty(call, {&fd, 1}, task.limits.correctness_s, stop);
  auto* answer = std::get_if<GuestProcess::Answer>(&called);
  auto* output = answer == nullptr ? nullptr : &std::get<guest::Called>(answer->reply);
  if (output == nullptr || output->bad_leaf) {
    may_have_exact_ = false;  // its code is of one precision
    return;
  }
  Block exact = seal_block(std::move(output->output), std::move(answer->memory));
  const double length = judge::reduction_length(data.inputs.bundle, data.expected.bundle);
  auto budget = judge::error_budget(data.expected.view(), exact.view(), length);
  if (!budget) return;
  data.budget = std::move(*budget);
  data.exact = std::move(exact);
}

std::optional<task::TimedCalls> Reference::known_times(const TimesKey& key) {
  const std::lock_guard lock(mutex_);
  const auto known = times_.find(key);
  return known == times_.end() ? std::nullopt : std::optional(known->second);
}

Reference::TimesOutcome Reference::times(const task::Task& task,
                                         std::uint32_t calls,
                                         const std::stop_token& stop) {
  const TimesKey key = {calls, task.policy.protocol};
  if (auto known = known_times(key)) return *std::move(known);
  const auto given = std::find_if(seeds_.begin(), seeds_.end(), [](std::uint64_t seed) {
    return distribution_of(seed) == task::Distribution::given;
  });
  auto data = trial(given == seeds_.end() ? seeds_.front() : *given, task, stop);
  if (auto* failure = std::get_if<task::Failure>(&data)) return std::move(*failure);
  const TrialData& trial_data = *std::get<std::shared_ptr<const TrialData>>(data);
  const std::lock_guard lock(mutex_);
  if (const auto known = times_.find(key); known != times_.end()) return known->second;
  const bool is_compiled_model = is_compiled(task) && gpu_ != nullptr;
  if (is_compiled_model) {
    if (auto failure = warm_up(trial_data, task, stop)) return std::move(*failure);
  }
  guest::Call call;
  call.inputs = trial_data.inputs.bundle;
  call.forward_seed = trial_data.forward_seed;
  call.compiled = is_compiled_model;
  ask_for_times(call, task, calls, gpu_ != nullptr);
  call.want_output = false;
  const GpuSlot::Measuring measuring = gpu_ == nullptr ? GpuSlot::Measuring() : gpu_->measure(stop);
  const WritableCopy copy = copy_memory(trial_data.inputs);
  const int fd = copy.memory.get();
  auto called = ask(call, {&fd, 1}, task::Stage::time, task.limits.time_s, stop);
  if (auto* failure = std::get_if<task::Failure>(&called)) return std::move(*failure);
  auto& answer = std::get<GuestProcess::Answer>(called);
  return times_[key] = std::move(std::get<guest::Called>(answer.reply).times);
}

std::optional<task::Failure> Reference::warm_up(const TrialData& data,
                                                const task::Task& task,
                                                const std::stop_token& stop) {
  guest::Call call;
  call.inputs = data.inputs.bundle;
  call.forward_seed = data.forward_seed;
  call.compiled = true;
  call.want_output = false;
  const WritableCopy copy = copy_memory(data.inputs);
  const int fd = copy.memory.get();
  auto called = ask(call, {&fd, 1}, task::Stage::time, task.limits.time_s, stop);
  if (auto* failure = std::get_if<task::Failure>(&called)) return std::move(*failure);
  return std::nullopt;
}

std::string References::key_of(const task::Task& task) {
  return sha256_hex(fmt::format(
      "{}\n{}\n{}", task.entry_point, json::name_of(task.reference_backend), task.reference_code));
}

bool References::is_kept(const std::string& key) {
  const std::lock_guard lock(mutex_);
  return std::any_of(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.key == key; });
}

void References::drop_kept() {
  std::list<Kept> dropped;  // ends outside the lock: that takes a while
  const std::lock_guard lock(mutex_);
  dropped.swap(kept_);
}

References::Outcome References::load_fresh(const task::Task& task,
                                           std::uint64_t init_seed,
                                           std::vector<std::uint64_t> seeds,
                                           const std::stop_token& stop) {
  sandbox::Limits limits;
  limits.memory_bytes = task.limits.memory_bytes;
  limits.tmp_bytes = task.limits.tmp_bytes;
  auto reference = std::make_shared<Reference>(
      gpu_ != nullptr && is_compiled(task) ? pool_.take_with_compilers(limits) : pool_.take(limits),
      gpu_,
      init_seed,
      std::move(seeds),
      liberties_of(key_of(task)));
  if (auto failure = reference->load(task, stop)) return std::move(*failure);
  return reference;
}

Liberties References::liberties_of(const std::string& key) {
  const std::lock_guard lock(mutex_);
  if (liberties_.size() >= kMaxProblems) liberties_.clear();
  Liberties& found = liberties_[key];
  if (!found) found = std::make_shared<std::atomic<bool>>(true);
  return found;
}

std::shared_ptr<Reference> References::find_kept(const std::string& key,
                                                 std::shared_ptr<Reference>& dropped) {
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.key == key; });
  if (found == kept_.end()) return nullptr;
  if (!found->reference->is_usable() || found->reference->is_worn_out(options_.seed_pool_uses)) {
    dropped = std::move(found->reference);
    kept_.erase(found);
    return nullptr;
  }
  kept_.splice(kept_.begin(), kept_, found);
  return kept_.front().reference;
}

References::Outcome References::acquire(const task::Task& task, const std::stop_token& stop) {
  const std::string key = key_of(task);
  std::shared_ptr<Reference> dropped;  // ends outside the lock: that takes a while
  {
    std::unique_lock lock(mutex_);
    const bool is_free = loaded_.wait(lock, stop, [&] { return !loading_.contains(key); });
    if (!is_free)
      throw Error(ErrorCode::timed_out, "worker: told to stop while a reference loaded");
    if (std::shared_ptr<Reference> kept = find_kept(key, dropped)) return kept;
    loading_.insert(key);
  }
  // Whatever comes of it, those that wait look again: what failed for one (its limits, its being
  // told to stop) need not fail for the next.
  const auto announce = [&](std::shared_ptr<Reference> reference) {
    const std::lock_guard lock(mutex_);
    loading_.erase(key);
    if (reference) {
      kept_.push_front({key, std::move(reference)});
      if (kept_.size() > options_.kept_references) {
        dropped = std::move(kept_.back().reference);
        kept_.pop_back();
      }
    }
    loaded_.notify_all();
  };
  try {
    Outcome loaded = load_fresh(
        task, secure_random(std::uint64_t{1} << 63U), secret_seeds(options_.seed_pool), stop);
    const auto* reference = std::get_if<std::shared_ptr<Reference>>(&loaded);
    announce(reference == nullptr ? nullptr : *reference);
    return loaded;
  } catch (...) {
    announce(nullptr);
    throw;
  }
}

}  // namespace drk::worker
