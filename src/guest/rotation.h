// SPDX-License-Identifier: Apache-2.0
// Copies of a call's inputs that take turns, so that no call finds them where the last one did.
#pragma once

#include "guest/call_inputs.h"
#include "guest/core.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace drk::guest {

/// What a model is called with.
struct Arguments {
  Ref positional;
  Ref keywords;  ///< Empty where there are none.

  /// Of a list, or of a dict of keyword arguments.
  [[nodiscard]] static Arguments of(const Ref& inputs);
};

/// Of inputs on the device; others take no turns. Needs the GIL.
class Rotation {
 public:
  /// `calls`: that there will be; of 1 there is no rotation. As many copies as go beyond the L2
  /// cache, unless that is more than there are calls or memory is short; but two. All must outlast
  /// it. Throws RequestFailed, CudaFailed.
  Rotation(const Core& core, CallInputs& inputs, const Arguments& first, std::uint32_t calls);
  Rotation(const Rotation&) = delete;
  Rotation& operator=(const Rotation&) = delete;
  /// What the last call has written to its copy is then in the first.
  ~Rotation();

  /// The next call's; the inputs are turned to them.
  [[nodiscard]] const Arguments& next() noexcept;

 private:
  [[nodiscard]] std::size_t choose_count(std::uint32_t calls) const;

  const Core& core_;
  CallInputs& inputs_;
  const Arguments& first_;
  std::vector<Arguments> copies_;
  std::size_t turn_ = 0;
};

}  // namespace drk::guest
