// SPDX-License-Identifier: Apache-2.0
// torch tensors to memory and back, by DLPack capsules: no Python attribute of theirs is asked.
#pragma once

#include "drk/base/fd.h"
#include "drk/value.h"

#include "guest/dlpack.h"
#include "guest/python.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace drk::guest {

/// References to torch's own C functions, taken before any line of a candidate runs: what the
/// candidate later assigns to these names changes nothing here.
struct TorchFunctions {
  /// `inputs`: the module inputs.py.
  explicit TorchFunctions(PyObject* inputs);
  Ref tensor_type, parameter_type, dtype_type;
  Ref detach, resolve_conj, resolve_neg, requires_grad;
  Ref to_dlpack, from_dlpack;
  Ref set_grad_enabled, manual_seed;
  Ref module_type, named_parameters, named_buffers;
  Ref random_generator, random_seed, numpy_seed;
  Ref vary, widen_model, call_exactly;
  Ref inference_mode, no_function_modes;     ///< Types of context managers.
  Ref dispatch_modes, pop_dispatch_mode;     ///< How many are on, and how one is taken off.
  Ref dispatch_table;                        ///< Of an operation, as text.
  std::vector<std::string> dispatch_tables;  ///< Of those that are called here, as they should be.
  // Of the GPU; none of them is called before the context is wanted.
  Ref cuda_device, cuda_init, device_context, module_to, contiguous;
  Ref empty, byte_type, empty_cuda_cache, cuda_memory_stats, reset_cuda_peaks, allow_cudnn_tf32;
};

/// Within torch's context manager, until the end of the scope.
class ContextScope {
 public:
  /// `arguments`: the type's, if any.
  template <class... Arguments>
  explicit ContextScope(const Ref& type, Arguments*... arguments)
      : manager_(call(type.get(), arguments...)) {
    enter();
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope();

 private:
  void enter();
  Ref manager_;
};

/// Takes off what a candidate has left on and would come between torch's operations and whoever
/// calls them: TorchDispatchModes. How many there were. (A TorchFunctionMode may well stay on for
/// good, as set_default_device's does.)
std::size_t pop_dispatch_modes(const TorchFunctions& torch);

/// Operations that are called here and now do something else than in the beginning: "aten::detach
/// for CPU: registered at /tmp/candidate.py:9".
[[nodiscard]] std::vector<std::string> find_overrides(const TorchFunctions& torch);

/// A tensor whose memory is held for reading. Destroyed with the GIL held.
class TensorHold {
 public:
  /// Throws PythonRaised (torch's own reason) for what has no plain strided memory.
  TensorHold(const TorchFunctions& torch, PyObject* tensor);
  /// The element type, if it is one of value::DType's.
  [[nodiscard]] std::optional<value::DType> dtype() const noexcept;
  /// Empty for a device that is neither.
  [[nodiscard]] std::optional<value::Device> device() const noexcept;
  [[nodiscard]] value::Tensor layout() const;
  [[nodiscard]] const std::byte* data() const noexcept {
    return static_cast<const std::byte*>(tensor_->data) + tensor_->byte_offset;
  }

 private:
  Ref capsule_;
  const dlpack::Tensor* tensor_;
};

/// Copies the elements of `from` (strided) densely in row-major order to `to`.
void copy_dense(const std::byte* from, const value::Tensor& layout, std::byte* to) noexcept;

/// Memory that tensors are made over. `owner` keeps it, as long as any tensor uses it.
struct Memory {
  std::byte* data = nullptr;  ///< An address of the device, where `device` is one.
  value::Device device = value::Device::cpu;
  std::shared_ptr<const void> owner;
};
[[nodiscard]] Ref make_tensor(const TorchFunctions& torch,
                              const value::Tensor& layout,
                              const Memory& memory);

}  // namespace drk::guest
