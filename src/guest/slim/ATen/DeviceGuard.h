// SPDX-License-Identifier: Apache-2.0
// See torch/types.h. Left out: device_of a list of tensors, for which all of IValue is needed.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>

namespace at {

inline std::optional<Device> device_of(const Tensor& tensor) {
  if (!tensor.defined()) return std::nullopt;
  return tensor.device();
}

inline std::optional<Device> device_of(const std::optional<Tensor>& tensor) {
  return tensor.has_value() ? device_of(tensor.value()) : std::nullopt;
}

}  // namespace at
