// SPDX-License-Identifier: Apache-2.0
#include "guest/rotation.h"

#include <algorithm>

namespace drk::guest {

Arguments Arguments::of(const Ref& inputs) {
  Arguments arguments;
  const bool by_name = PyDict_Check(inputs.get()) != 0;
  arguments.positional = Ref::own(by_name ? PyTuple_New(0) : PySequence_Tuple(inputs.get()));
  if (by_name) arguments.keywords = Ref::share(inputs.get());
  return arguments;
}

Rotation::Rotation(const Core& core,
                   CallInputs& inputs,
                   const Arguments& first,
                   std::uint32_t calls)
    : core_(core), inputs_(inputs), first_(first) {
  if (calls < 2 || !inputs_.is_on_device()) return;
  const std::size_t count = choose_count(calls);
  while (copies_.size() + 1 < count) copies_.push_back(Arguments::of(inputs_.add_copy()));
  core_.gpu()->empty_l2();  // that they were written to is not to help the first calls
}

Rotation::~Rotation() {
  try {
    inputs_.drop_copies();
  } catch (const CudaFailed&) {
    // A kernel has broken the context; whoever asks the device next is told.
  }
}

std::size_t Rotation::choose_count(std::uint32_t calls) const {
  constexpr std::uint64_t kMost = 64;
  constexpr std::uint64_t kMemoryShare = 4;
  const std::uint64_t bytes = std::max<std::uint64_t>(inputs_.bytes(), 1);
  const std::uint64_t wanted = core_.gpu()->flush_bytes() / bytes + 1;
  const std::uint64_t room = core_.driver()->free_bytes() / kMemoryShare / bytes;
  return std::max<std::uint64_t>(2, std::min({wanted, room, kMost, std::uint64_t{calls}}));
}

const Arguments& Rotation::next() noexcept {
  inputs_.turn_to(turn_);
  const Arguments& arguments = turn_ == 0 ? first_ : copies_[turn_ - 1];
  turn_ = (turn_ + 1) % (copies_.size() + 1);
  return arguments;
}

}  // namespace drk::guest
