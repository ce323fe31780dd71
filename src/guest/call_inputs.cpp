// SPDX-License-Identifier: Apache-2.0
#include "guest/call_inputs.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace drk::guest {

Ref CallInputs::take_in(const value::Bundle& bundle, int block_fd) {
  value::check(bundle, file_size_bytes(block_fd));
  const auto mapping =
      std::make_shared<Mapping>(Mapping::shared(block_fd, bundle.block_bytes, true));
  drop();  // so that the new ones may lie where the old ones lay
  bundle_ = bundle;
  placed_.host = {mapping->data(), value::Device::cpu, mapping};
  const bool on_device =
      std::any_of(bundle.tensors.begin(), bundle.tensors.end(), [](const value::Tensor& tensor) {
        return tensor.device == value::Device::cuda;
      });
  return core_.attempt(task::FailureKind::call_error, "the inputs could not be placed", [&] {
    if (on_device && core_.gpu() != nullptr) {
      placed_.device = core_.gpu()->allocate(bundle.block_bytes);
    }
    copy_to_device();
    return import_value(core_.torch(), bundle, placed_);
  });
}

void CallInputs::drop() {
  copies_.clear();
  turn_ = 0;
  bundle_ = {};
  placed_ = {};
}

void CallInputs::copy_to_device() const {
  if (!is_on_device()) return;
  core_.driver()->copy_to_device(address(), placed_.host.data, bytes());
}

void CallInputs::copy_to_host() const {
  if (!is_on_device()) return;
  core_.driver()->copy_to_host(placed_.host.data, address(), bytes());
}

Ref CallInputs::add_copy() {
  return core_.attempt(task::FailureKind::call_error, "the inputs could not be copied", [&] {
    Placed placed = placed_;
    placed.device = core_.gpu()->allocate(bytes());
    copies_.push_back(placed.device);
    core_.driver()->copy_on_device(address_of(copies_.size()), address_of(0), bytes());
    return import_value(core_.torch(), bundle_, placed);
  });
}

void CallInputs::drop_copies() {
  if (turn_ != 0) core_.driver()->copy_on_device(address_of(0), address(), bytes());
  turn_ = 0;
  copies_.clear();
}

void CallInputs::write(std::uint64_t at_bytes,
                       const std::byte* from,
                       std::uint64_t size_bytes) const {
  std::memcpy(placed_.host.data + at_bytes, from, size_bytes);
  if (!is_on_device()) return;
  core_.driver()->copy_to_device(address() + at_bytes, from, size_bytes);
}

FewChanges::FewChanges(const CallInputs& inputs, std::uint64_t change_seed) : inputs_(inputs) {
  if (change_seed == 0) return;
  changes_ = value::few_changes(inputs_.bundle(), change_seed);
  const auto element_at = [&](std::uint64_t from_bytes, std::uint64_t size_bytes) {
    Element element = {};
    std::memcpy(element.data(), inputs_.data() + from_bytes, size_bytes);
    return element;
  };
  std::vector<Element> values;
  for (const value::Change& change : changes_) {
    saved_.push_back(element_at(change.to_bytes, change.size_bytes));
    values.push_back(element_at(change.from_bytes, change.size_bytes));
  }
  put(values);
}

FewChanges::~FewChanges() {
  try {
    put(saved_);
  } catch (const CudaFailed&) {
    // A kernel has broken the context: there are no inputs any more, and whoever asks the device
    // next is told.
  }
}

void FewChanges::put(const std::vector<Element>& elements) const {
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const value::Change& change = changes_[i];
    inputs_.write(change.to_bytes, elements[i].data(), change.size_bytes);
  }
}

}  // namespace drk::guest
