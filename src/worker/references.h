// SPDX-License-Identifier: Apache-2.0
// References: each loaded once in a guest of its own, its inputs, outputs and times kept.
#pragma once

#include "drk/judge.h"

#include "worker/memory.h"
#include "worker/pool.h"

#include <atomic>
#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace drk::worker {

/// One trial's inputs and what the reference makes of them. Immutable, shared by the cache and by
/// the evaluations that are using it.
struct TrialData {
  std::uint64_t seed = 0;
  task::Distribution distribution = task::Distribution::given;
  std::uint64_t forward_seed = 0;
  Block inputs;
  Block expected;
  std::optional<Block> exact;  ///< The same by float64, where that could be had.
  judge::ErrorBudget budget;   ///< With `exact`.

  [[nodiscard]] std::uint64_t bytes() const noexcept;
};

/// Which values a seed stands for in place of those that get_inputs() draws from it: chosen by its
/// low bits, so that a replay needs nothing else. A candidate never sees a seed.
[[nodiscard]] task::Distribution distribution_of(std::uint64_t seed) noexcept;

/// How a model is timed, be it the candidate's or the reference's: `calls` times at most. A GPU
/// that has idled clocks low, and takes tens of milliseconds to come up: there, timed calls begin
/// behind as many others as were asked for, and behind enough of them.
void ask_for_times(guest::Call& call, const task::Task& task, std::uint32_t calls, bool on_gpu);

/// Whether a problem is run on other values than its own, and in float64: until its process has not
/// survived that. Shared by all references of one problem.
using Liberties = std::shared_ptr<std::atomic<bool>>;

/// A loaded reference. Thread-safe: its guest does one thing at a time.
class Reference {
 public:
  /// `gpu` is where the guest runs; null without one. Not owned.
  Reference(std::unique_ptr<GuestProcess> guest,
            GpuSlot* gpu,
            std::uint64_t init_seed,
            std::vector<std::uint64_t> seeds,
            Liberties liberties);

  /// Loads the problem. A failure is the problem's; the object is then of no use.
  [[nodiscard]] std::optional<task::Failure> load(const task::Task& task,
                                                  const std::stop_token& stop);

  [[nodiscard]] std::uint64_t init_seed() const noexcept { return init_seed_; }
  [[nodiscard]] const std::vector<std::string>& parameters() const noexcept { return parameters_; }
  [[nodiscard]] const Block& init_inputs() const noexcept { return init_inputs_; }
  struct Seeds {
    std::vector<std::uint64_t> trials;  ///< Of several distributions, unless all are to be `given`.
    std::uint64_t contribution = 0;     ///< These three are of inputs as given.
    std::uint64_t timing = 0;
    std::uint64_t last = 0;
  };
  /// Different seeds of the pool, at random; there are enough for 20 trials. The last one, or where
  /// that is not to be met one of the trials', is new: who knows all of the pool from others'
  /// evaluations does not know it. (Unless the problem is so slow that its trials must be shared.)
  [[nodiscard]] Seeds draw_seeds(std::size_t trials, bool all_given, bool has_last);
  void count_use() noexcept { ++uses_; }
  /// True once the pool has served so many candidates that it should be drawn anew.
  [[nodiscard]] bool is_worn_out(std::uint32_t uses) const noexcept { return uses_ >= uses; }

  using TrialOutcome = std::variant<std::shared_ptr<const TrialData>, task::Failure>;
  /// From the cache, or made now. Throws Error{unavailable} when the process does not survive
  /// values or a precision that are not the problem's: a new one is not asked for them again.
  [[nodiscard]] TrialOutcome trial(std::uint64_t seed,
                                   const task::Task& task,
                                   const std::stop_token& stop);
  /// The same inputs but for what value::few_changes makes of them; from the cache, or made now.
  /// Null where the problem cannot take that, or nothing changes. Throws as trial() does.
  [[nodiscard]] TrialOutcome changed_trial(const TrialData& of,
                                           std::uint64_t change_seed,
                                           const task::Task& task,
                                           const std::stop_token& stop);
  using TimesOutcome = std::variant<task::TimedCalls, task::Failure>;
  /// From the cache, or measured now.
  [[nodiscard]] TimesOutcome times(const task::Task& task,
                                   std::uint32_t calls,
                                   const std::stop_token& stop);
  /// The most device memory that its trials have held at once; 0 before the first, or without a
  /// GPU.
  [[nodiscard]] std::uint64_t peak_bytes() const noexcept { return peak_bytes_; }
  /// False when its guest has died.
  [[nodiscard]] bool is_usable() const noexcept { return usable_; }

 private:
  [[nodiscard]] GuestProcess::Outcome ask(const guest::Request& request,
                                          std::span<const int> fds,
                                          task::Stage stage,
                                          double limit_s,
                                          const std::stop_token& stop);
  /// The same, for what the problem was not written for.
  [[nodiscard]] GuestProcess::Outcome ask_liberty(const guest::Request& request,
                                                  std::span<const int> fds,
                                                  double limit_s,
                                                  const std::stop_token& stop);

  using TimesKey = std::pair<std::uint32_t, task::Protocol>;  ///< Calls asked for, and how timed.
  [[nodiscard]] std::optional<task::TimedCalls> known_times(const TimesKey& key);
  using Made = std::variant<std::shared_ptr<TrialData>, task::Failure>;
  [[nodiscard]] Made make_trial(std::uint64_t seed,
                                task::Distribution distribution,
                                const task::Task& task,
                                const std::stop_token& stop);
  /// Adds the reference's answer to the inputs. The problem's own, or not: see Liberties.
  [[nodiscard]] std::optional<task::Failure> add_expected(TrialData& data,
                                                          bool is_liberty,
                                                          const task::Task& task,
                                                          const std::stop_token& stop);
  /// Adds float64's answer, if there is one.
  void add_exact(TrialData& data, const task::Task& task, const std::stop_token& stop);
  [[nodiscard]] bool takes_liberties(const task::Task& task) const;
  /// Whether it is to be kept; then it counts.
  [[nodiscard]] bool has_room_for(const TrialData& data);
  /// Lets torch.compile do its work, which takes seconds, outside any measurement.
  [[nodiscard]] std::optional<task::Failure> warm_up(const TrialData& data,
                                                     const task::Task& task,
                                                     const std::stop_token& stop);

  GpuSlot* const gpu_;
  const std::uint64_t init_seed_;
  const std::vector<std::uint64_t> seeds_;
  const Liberties liberties_;
  // Constant once load() has returned:
  std::vector<std::string> parameters_;
  Block init_inputs_;

  // Read by those that look for a reference, who must not wait for one that is at work.
  std::atomic<bool> usable_ = true;
  std::atomic<std::uint32_t> uses_ = 0;
  std::atomic<std::uint64_t> peak_bytes_ = 0;
  std::atomic<double> trial_s_ = 0;  ///< That the trial made last has taken.

  std::mutex mutex_;  ///< Guards all below.
  std::unique_ptr<GuestProcess> guest_;
  bool may_have_exact_ = true;  ///< Until it was asked for in vain.
  /// By seed, and whether it stands for a distribution and an answer in float64.
  std::map<std::pair<std::uint64_t, bool>, std::shared_ptr<const TrialData>> trials_;
  /// By seed, and the change's.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::shared_ptr<const TrialData>>
      changed_trials_;
  std::uint64_t cached_bytes_ = 0;
  std::map<TimesKey, task::TimedCalls> times_;
};

/// The references in use and the last few used, by content. Thread-safe.
class References {
 public:
  References(const Options& options, GuestPool& pool, GpuSlot* gpu)
      : options_(options), pool_(pool), gpu_(gpu) {}

  /// Of a task's reference: the same for all candidates that are held against it.
  [[nodiscard]] static std::string key_of(const task::Task& task);
  /// It would not have to be loaded.
  [[nodiscard]] bool is_kept(const std::string& key);
  /// Ends those that nobody uses, so that their memory is free.
  void drop_kept();

  using Outcome = std::variant<std::shared_ptr<Reference>, task::Failure>;
  /// The loaded reference of a task: a kept one, or loaded now. Of several callers with the same
  /// problem one loads it and the others wait for that.
  [[nodiscard]] Outcome acquire(const task::Task& task, const std::stop_token& stop);
  /// One of its own with given seeds, for a replay.
  [[nodiscard]] Outcome load_fresh(const task::Task& task,
                                   std::uint64_t init_seed,
                                   std::vector<std::uint64_t> seeds,
                                   const std::stop_token& stop);

 private:
  [[nodiscard]] Liberties liberties_of(const std::string& key);
  /// A kept one that is still good; moves it to the front. One that is not goes to `dropped`.
  [[nodiscard]] std::shared_ptr<Reference> find_kept(const std::string& key,
                                                     std::shared_ptr<Reference>& dropped);

  const Options& options_;
  GuestPool& pool_;
  GpuSlot* const gpu_;
  std::mutex mutex_;  ///< Guards all below.
  std::condition_variable_any loaded_;
  std::set<std::string> loading_;  ///< Keys that somebody is loading now.
  struct Kept {
    std::string key;
    std::shared_ptr<Reference> reference;
  };
  std::list<Kept> kept_;                        ///< Most recently used first.
  std::map<std::string, Liberties> liberties_;  ///< By key; of the problems seen lately.
};

}  // namespace drk::worker
