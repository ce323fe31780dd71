// SPDX-License-Identifier: Apache-2.0
// Compiles what guests, which may not execute programs, ask for: once for all of them.
//
//   guest --Build--> worker: kept already? -- yes --> the product, a sealed descriptor
//                                |  no
//                                v
//                     a toolbox: a new cell of the same zygote, without a device, in which exec is
//                     allowed; runs the compilers on the candidate's files, ends with the build
//
// A product is kept under the hash of all that went into it: files, commands, versions of the
// tools. Files and flags are the candidate's, and through them it may run what it likes in its
// toolbox. So it can forge a product, but only one that is given to those whose files and flags are
// the same.
#pragma once

#include "drk/base/clock.h"
#include "drk/base/fd.h"
#include "drk/guest.h"

#include "worker/build_recipe.h"
#include "worker/build_store.h"
#include "worker/guest_process.h"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

namespace drk::worker {

/// What a toolbox may use.
[[nodiscard]] sandbox::Limits toolbox_limits() noexcept;

/// Where a Builder's toolboxes come from.
struct Toolboxes {
  std::function<guest::Hello()> hello;  ///< Of the zygote that they are forked from.
  std::function<std::unique_ptr<GuestProcess>()> open;  ///< Throws Error{unavailable}.
};

struct BuilderOptions {
  std::string store_dir;  ///< Made when there is none; empty: nothing is kept.
  std::uint64_t max_store_bytes = std::uint64_t{4} << 30;
  std::uint32_t max_toolboxes = 0;  ///< At once; 0: one for each core.
  std::string slim_dir;             ///< Of short headers in place of torch's; may be missing.
};

/// Thread-safe.
class Builder {
 public:
  Builder(BuilderOptions options, Toolboxes toolboxes);
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;
  ~Builder() = default;

  /// From the store, or made now; of several callers who want the same, in this process or others,
  /// one makes it. `files` holds the files of `build`, one behind the other, and must be sealed
  /// against writes; invalid when there are none. Code that does not compile is an outcome, and so
  /// is a compiler that `deadline` stopped: exit code 124, not kept. The deadline moves on by the
  /// time for which all toolboxes were taken.
  /// Throws Error{corrupt} for what no guest core asks for, Error{timed_out} on `stop`,
  /// Error{unavailable} when no toolbox can be made.
  [[nodiscard]] Product build(const guest::Build& build,
                              const Fd& files,
                              const Deadline& deadline,
                              const std::stop_token& stop);

  /// Builds that ran in a toolbox, and that did not.
  struct Counts {
    std::uint64_t made = 0;
    std::uint64_t found = 0;
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct Made {
    Product product;
    bool is_final = false;  ///< It would come out the same another time.
  };
  [[nodiscard]] Made make(const Recipe& recipe,
                          const Fd& files,
                          const Deadline& deadline,
                          const std::stop_token& stop);
  /// The files of a recipe in memory of their own, where there are more than the guest's.
  [[nodiscard]] Fd with_slim_headers(const Fd& files) const;
  [[nodiscard]] static Made take_product(GuestProcess::Answer answer);
  void note(std::uint64_t Counts::*count);
  void take_slot(const std::stop_token& stop);

  const BuilderOptions options_;
  const Toolboxes toolboxes_;
  const SlimHeaders slim_;
  BuildStore store_;

  mutable std::mutex mutex_;  ///< Guards all below.
  std::condition_variable_any slot_freed_;
  std::uint32_t free_slots_;
  Counts counts_;
};

}  // namespace drk::worker
