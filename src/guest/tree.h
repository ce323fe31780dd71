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

/// When the elements of a value's tensors are read.
enum class Reading : std::uint8_t {
  at_once,    ///< Whoever else holds the tensors may write to them afterwards.
  at_the_end  ///< By finish(): nothing of the candidate's runs until then.
};

/// Python values on their way to another process. Containers are read by their concrete type, so
/// that no overridden method of a subclass runs; torch's modes are off meanwhile. Needs the GIL.
class Export {
 public:
  /// `driver` reads what lies on the device; without one such a leaf cannot be sent. A value of
  /// more than `max_bytes` is a bad leaf, as are values that take more than kMaxDescriptionBytes to
  /// describe.
  Export(const TorchFunctions& torch,
         const CudaDriver* driver,
         Strides strides,
         std::uint64_t max_bytes);
  Export(const Export&) = delete;
  Export& operator=(const Export&) = delete;
  ~Export();

  /// Reads a value; behind a bad leaf nothing more. Throws PythonRaised only when Python itself
  /// fails (memory), CudaFailed when the device does.
  void add(PyObject* value, const std::string& name, Reading reading);
  /// Copies the elements to memory from `allocate`. The values as a list, or, without `as_list`,
  /// the only one. Throws as add() does.
  [[nodiscard]] Exported finish(bool as_list, const Allocator& allocate);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

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
