// SPDX-License-Identifier: Apache-2.0
// Products of compilers on the disk, by the hash of everything that went into them.
//
// A folder that any number of workers share. An entry is one file, written under a private name and
// renamed, so it is there as a whole or not at all; a lock is a file that the kernel lets go of
// when its holder dies. Nothing is synced: an entry that a power failure cut short fails its
// checksum.
#pragma once

#include "drk/base/clock.h"
#include "drk/base/fd.h"
#include "drk/guest.h"

#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

namespace drk::worker {

struct Product {
  guest::Built built;
  Fd memory;            ///< Sealed; when `built.exit_code` is 0.
  double queued_s = 0;  ///< Waited for a toolbox to be free: the worker's time, nobody's limit.
};

/// Thread-safe. A store that cannot be read or written keeps nothing and hinders nobody.
class BuildStore {
 public:
  /// An empty `dir`: nothing is kept. Makes the folder.
  BuildStore(std::string dir, std::uint64_t max_bytes);

  /// What is kept under `key`, which counts as used now.
  [[nodiscard]] std::optional<Product> find(const std::string& key) const;
  /// Keeps a product; what was used the longest time ago goes when there is too much.
  void keep(const std::string& key, const Product& product);

  /// A key that nobody else, in this process or another, builds meanwhile. Destroyed: free again.
  class Lock {
   public:
    Lock() = default;
    Lock(Fd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
    Lock(Lock&& other) noexcept = default;
    Lock& operator=(Lock&& other) noexcept = delete;
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock();

   private:
    Fd file_;
    std::string path_;
  };
  /// Waits for it until `deadline`; empty when that passed. Throws Error{timed_out} on `stop`.
  [[nodiscard]] std::optional<Lock> lock(const std::string& key,
                                         const Deadline& deadline,
                                         const std::stop_token& stop) const;

 private:
  enum class Attempt : std::uint8_t { taken, held_by_other, impossible };
  [[nodiscard]] Attempt try_lock(const std::string& key, std::optional<Lock>& lock) const;
  /// Removes the oldest entries until the rest is well below the bound, and leftovers of the dead.
  void make_room() const;

  const std::string dir_;
  const std::uint64_t max_bytes_;
  std::mutex mutex_;                ///< Guards all below.
  std::uint64_t unseen_bytes_ = 0;  ///< Kept since the folder was last looked through.
  bool has_looked_ = false;
};

}  // namespace drk::worker
