// SPDX-License-Identifier: Apache-2.0
// The border to NVML: the parts of nvml.h that are needed, called by name. Every call may hang, so
// this is used in child processes only.
#pragma once

#include "drk/base/library.h"
#include "drk/gpu.h"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace drk::gpu {

using NvmlDevice = void*;    // nvmlDevice_t
using NvmlEventSet = void*;  // nvmlEventSet_t

/// NVML, initialized. A device that the driver has lost, or that must be reset first, is
/// Error{not_found}; all else that fails is Error{unavailable}. What an older NVML does not have,
/// and what a device does not support, stays absent.
class Nvml {
 public:
  explicit Nvml(const std::string& library);
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml();

  [[nodiscard]] std::string driver() const;
  [[nodiscard]] unsigned count() const;
  [[nodiscard]] NvmlDevice by_index(unsigned index) const;
  [[nodiscard]] NvmlDevice by_uuid(const std::string& uuid) const;
  [[nodiscard]] Device describe(NvmlDevice device) const;
  [[nodiscard]] Sample sample(NvmlDevice device) const;

  /// Has the Xids and double-bit errors of the device of this UUID told by `take_events`.
  void register_events(NvmlDevice device, const std::string& uuid);
  /// What has happened by now; does not wait for more. An event has no UUID when it is of a device
  /// that was not registered.
  [[nodiscard]] std::vector<Event> take_events() const;

 private:
  /// NVML's answer; kFunctionNotFound when it has no such function. Arguments must have the very
  /// types of nvml.h: nothing else tells the compiler what the function takes.
  template <class... Arguments>
  [[nodiscard]] int ask(const char* name, Arguments... arguments) const;
  /// Throws unless it was answered.
  template <class... Arguments>
  void require(const char* name, Arguments... arguments) const;
  /// Whether a part that may be absent was told. Throws Error{not_found} for a lost device.
  template <class... Arguments>
  [[nodiscard]] bool tells(const char* name, Arguments... arguments) const;
  [[noreturn]] void fail(const char* name, int status) const;
  /// The first of the names that NVML has, newest first; the last one when it has none.
  [[nodiscard]] const char* newest(std::initializer_list<const char*> names) const noexcept;

  [[nodiscard]] std::string text_of(const char* name, NvmlDevice device) const;
  void read_memory(NvmlDevice device, Sample& sample) const;
  [[nodiscard]] std::optional<std::uint64_t> uncorrected_errors(NvmlDevice device) const;
  [[nodiscard]] std::vector<Process> processes(NvmlDevice device) const;

  Library library_;
  NvmlEventSet events_ = nullptr;
  std::map<NvmlDevice, std::string> registered_;
};

}  // namespace drk::gpu
