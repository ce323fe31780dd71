// SPDX-License-Identifier: Apache-2.0
// The values that a model is called with: a block of the worker's, and its copy on the device.
#pragma once

#include "drk/value.h"

#include "guest/core.h"

#include <array>
#include <cstdint>
#include <vector>

namespace drk::guest {

/// The last ones that came. Needs the GIL.
class CallInputs {
 public:
  /// `core` must outlast it.
  explicit CallInputs(const Core& core) : core_(core) {}

  /// Maps and places them; what was there before is given up first. The Python value over them.
  /// Throws Error for a bundle that does not fit its block, RequestFailed.
  [[nodiscard]] Ref take_in(const value::Bundle& bundle, int block_fd);
  /// Gives them up, so that nothing of them is kept for later.
  void drop();

  /// The block as the worker has rewritten it.
  void copy_to_device() const;
  /// What was written to them shows in the worker's block.
  void copy_to_host() const;

  /// A further copy of what is on the device, aligned as the first; the Python value over it. Only
  /// where something is on the device. Throws RequestFailed, CudaFailed.
  [[nodiscard]] Ref add_copy();
  /// Which copy is meant by the calls around: 0 is the first.
  void turn_to(std::size_t copy) noexcept { turn_ = copy; }
  /// The first is given what the one that it was turned to holds, and is the only one again.
  void drop_copies();

  [[nodiscard]] const value::Bundle& bundle() const noexcept { return bundle_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bundle_.block_bytes; }
  [[nodiscard]] bool is_on_device() const noexcept { return placed_.device.data != nullptr; }
  /// Writes to the host's and the device's.
  void write(std::uint64_t at_bytes, const std::byte* from, std::uint64_t size_bytes) const;
  /// The host's.
  [[nodiscard]] const std::byte* data() const noexcept { return placed_.host.data; }

 private:
  [[nodiscard]] CudaDriver::Address address() const noexcept { return address_of(turn_); }
  [[nodiscard]] CudaDriver::Address address_of(std::size_t copy) const noexcept {
    const Memory& memory = copy == 0 ? placed_.device : copies_[copy - 1];
    return reinterpret_cast<CudaDriver::Address>(memory.data);
  }

  const Core& core_;
  value::Bundle bundle_;
  Placed placed_;
  std::vector<Memory> copies_;  ///< On the device, beside the first.
  std::size_t turn_ = 0;
};

/// Changes a few elements in place, until the end of the scope.
class FewChanges {
 public:
  /// `change_seed`: see value::few_changes; 0 changes nothing. Throws CudaFailed.
  FewChanges(const CallInputs& inputs, std::uint64_t change_seed);
  FewChanges(const FewChanges&) = delete;
  FewChanges& operator=(const FewChanges&) = delete;
  ~FewChanges();

 private:
  using Element = std::array<std::byte, 8>;  // or a part of it
  void put(const std::vector<Element>& elements) const;

  const CallInputs& inputs_;
  std::vector<value::Change> changes_;
  std::vector<Element> saved_;
};

}  // namespace drk::guest
