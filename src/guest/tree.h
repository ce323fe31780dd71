// SPDX-License-Identifier: Apache-2.0
// Python values to bundles and back.
#pragma once

#include "drk/guest.h"

#include "guest/cuda_driver.h"
#include "guest/tensors.h"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace drk::guest {

/// Gets shared memory of so many bytes.
using Allocator = std::function<Fd(std::uint64_t bytes)>;

enum class Strides : std::uint8_t {
  keep,   ///< Inputs: a candidate must meet the views that the problem made.
  dense,  ///< Outputs: only the elements count.
};

struct Exported {
  value::Bundle bundle;
  std::optional<BadLeaf> bad_leaf;  ///< Then the bundle is empty.
};

/// Copies a value and its tensors to memory from `allocate`. Containers are read by their concrete
/// type, so that no overridden method of a subclass runs. More than `max_bytes` is a bad leaf.
/// `driver` reads what lies on the device; without one such a leaf cannot be sent.
/// Throws PythonRaised only when Python itself fails (memory), CudaFailed when the device does.
[[nodiscard]] Exported export_value(const TorchFunctions& torch,
                                    const CudaDriver* driver,
                                    PyObject* value,
                                    const std::string& root_name,
                                    Strides strides,
                                    std::uint64_t max_bytes,
                                    const Allocator& allocate);

/// The elements of a bundle: on the host and, where some tensor lies there, on the device too.
struct Placed {
  Memory host;
  Memory device;
};
/// Builds the value over the memory. `bundle` must have passed value::check.
[[nodiscard]] Ref import_value(const TorchFunctions& torch,
                               const value::Bundle& bundle,
                               const Placed& memory);

}  // namespace drk::guest
