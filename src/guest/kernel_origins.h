// SPDX-License-Identifier: Apache-2.0
// Which load call brought a kernel, and so whose it is.
//
// A launch names a CUfunction or CUkernel; the driver tells the module or library that it belongs
// to; the load call that returned that handle was seen, with the image's place and its caller.
#pragma once

#include "guest/cupti_api.h"
#include "guest/images.h"

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace drk::guest {

/// Kernels of one name and one origin. Never freed, so a pointer to one outlasts its module.
struct Kernel {
  std::string name;  ///< Demangled, at most 256 characters.
  task::KernelOrigin origin = task::KernelOrigin::unknown;
  std::atomic<std::uint64_t> launches = 0;  ///< Atomic: counted on whatever thread launches.
};

/// Thread-safe. Its lock is never held while the driver is called: callbacks run with locks of the
/// driver's held, and two threads would wait for each other.
class KernelOrigins {
 public:
  /// Throws Error when /proc/self/maps cannot be read.
  KernelOrigins(const cupti::Driver& driver, std::vector<std::string> system_paths);

  /// At the exit of a load call that worked, on its thread: the caller is found in the stack.
  void loaded_image(const void* handle, const void* image);
  void loaded_file(const void* handle, const char* file);
  /// `module` is the driver's form of a library in one context.
  void derived_module(cupti::Module module, cupti::Library library);
  void derived_function(cupti::Function function, cupti::Function kernel);
  /// At the enter of an unload, before the handle can come back as another's.
  void unloaded(const void* handle);
  /// A context went, and its modules without a call for each.
  void forget_functions();

  /// Overrules how a handle's kernels are seen.
  void set_origin(const void* handle, task::KernelOrigin origin);
  [[nodiscard]] bool knows(const void* handle) const;

  /// Of a launch. `symbol` names it where the driver is too old to tell; may be null. Nullptr for
  /// nullptr; unknown is what comes from no load that was seen.
  [[nodiscard]] Kernel* find(cupti::Function function, const char* symbol);
  /// The one of that name and origin.
  [[nodiscard]] Kernel* intern(const char* mangled, task::KernelOrigin origin);

  void reset_counts();
  /// Calls visit(const Kernel&) for every kernel, under the lock.
  template <class Visit>
  void for_each(const Visit& visit) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, kernel] : kernels_) visit(kernel);
  }

 private:
  struct Owner {
    task::KernelOrigin origin = task::KernelOrigin::unknown;
    const void* library = nullptr;  ///< Of a derived module.

    friend bool operator==(const Owner&, const Owner&) = default;
  };
  struct Asked {
    const void* owner = nullptr;
    const char* name = nullptr;
  };
  struct Known {
    Kernel* kernel = nullptr;
    const void* owner = nullptr;
  };

  void loaded(const void* handle, LoadSite site, const MapTable& maps);
  void forget_functions_of(const void* owner);
  [[nodiscard]] Asked ask_driver(cupti::Function function) const;
  Kernel* intern_locked(std::string name, task::KernelOrigin origin);

  // Constant after construction.
  const cupti::Driver& driver_;
  const Installation installation_;
  // Guarded by mutex_.
  mutable std::mutex mutex_;
  std::unordered_map<const void*, Owner> owners_;  ///< By module or library.
  std::unordered_map<cupti::Function, Known> functions_;
  std::map<std::pair<std::string, task::KernelOrigin>, Kernel> kernels_;
};

}  // namespace drk::guest
