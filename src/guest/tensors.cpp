// SPDX-License-Identifier: Apache-2.0
// Tensors in and out.
#include "guest/tensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace drk::guest {

namespace {

struct Code {
  value::DType dtype;
  std::uint8_t code;
  std::uint8_t bits;
};
// DLDataTypeCode of dlpack.h: 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool, 10 and 12 fp8.
constexpr std::array kCodes = {
    Code{value::DType::float64, 2, 64},
    Code{value::DType::float32, 2, 32},
    Code{value::DType::float16, 2, 16},
    Code{value::DType::bfloat16, 4, 16},
    Code{value::DType::float8_e4m3fn, 10, 8},
    Code{value::DType::float8_e5m2, 12, 8},
    Code{value::DType::complex128, 5, 128},
    Code{value::DType::complex64, 5, 64},
    Code{value::DType::complex32, 5, 32},
    Code{value::DType::int64, 0, 64},
    Code{value::DType::int32, 0, 32},
    Code{value::DType::int16, 0, 16},
    Code{value::DType::int8, 0, 8},
    Code{value::DType::uint64, 1, 64},
    Code{value::DType::uint32, 1, 32},
    Code{value::DType::uint16, 1, 16},
    Code{value::DType::uint8, 1, 8},
    Code{value::DType::bool_, 6, 8},
};

/// What a tensor made here needs until torch drops it.
struct Owned {
  dlpack::ManagedTensor managed = {};
  value::Tensor layout;
  Memory memory;
};

void free_owned(dlpack::ManagedTensor* managed) {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): C calls this
  delete static_cast<Owned*>(managed->context);
}

void free_unused_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, dlpack::kName) == 0) return;  // torch took it over
  void* managed = PyCapsule_GetPointer(capsule, dlpack::kName);
  free_owned(static_cast<dlpack::ManagedTensor*>(managed));
}

dlpack::DataType code_of(value::DType dtype) noexcept {
  const auto* found =
      std::find_if(kCodes.begin(), kCodes.end(), [&](const Code& c) { return c.dtype == dtype; });
  return {found->code, found->bits, 1};
}

/// What the functions here, and torch's own ways between a tensor and a capsule, call.
constexpr std::array kOperations = {"aten::detach",
                                    "aten::resolve_conj",
                                    "aten::resolve_neg",
                                    "aten::as_strided",
                                    "aten::view",
                                    "aten::contiguous",
                                    "aten::clone",
                                    "aten::copy_"};

/// Whether plain tensors come by this entry of an operation's table.
bool is_on_our_way(std::string_view entry) {
  constexpr std::array<std::string_view, 8> kKeys = {"CPU",
                                                     "CUDA",
                                                     "Conjugate",
                                                     "Negative",
                                                     "ADInplaceOrView",
                                                     "AutogradCPU",
                                                     "AutogradCUDA",
                                                     "BackendSelect"};
  const std::string_view key = entry.substr(0, entry.find(':'));
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

void copy_run(const std::byte* from,
              std::int64_t count,
              std::int64_t step_bytes,
              std::size_t width,
              std::byte* to) {
  if (step_bytes == static_cast<std::int64_t>(width)) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * width);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(to + static_cast<std::size_t>(i) * width, from + i * step_bytes, width);
  }
}

}  // namespace

TorchFunctions::TorchFunctions(PyObject* inputs) {
  const Ref torch = import_module("torch");
  const Ref c = attribute(torch.get(), "_C");
  const Ref base = attribute(c.get(), "TensorBase");
  tensor_type = attribute(torch.get(), "Tensor");
  dtype_type = attribute(torch.get(), "dtype");
  detach = attribute(base.get(), "detach");
  requires_grad = attribute(base.get(), "requires_grad_");
  resolve_conj = attribute(torch.get(), "resolve_conj");
  resolve_neg = attribute(torch.get(), "resolve_neg");
  to_dlpack = attribute(c.get(), "_to_dlpack");
  from_dlpack = attribute(c.get(), "_from_dlpack");
  set_grad_enabled = attribute(c.get(), "_set_grad_enabled");
  manual_seed = attribute(attribute(torch.get(), "default_generator").get(), "manual_seed");
  const Ref nn = import_module("torch.nn");
  parameter_type = attribute(nn.get(), "Parameter");
  module_type = attribute(nn.get(), "Module");
  named_parameters = attribute(module_type.get(), "named_parameters");
  named_buffers = attribute(module_type.get(), "named_buffers");
  const Ref device_type = attribute(torch.get(), "device");
  cuda_device = call(device_type.get(), make_text("cuda:0").get());
  const Ref cuda = import_module("torch.cuda");
  cuda_init = attribute(cuda.get(), "init");
  device_context =
      call(attribute(import_module("torch.utils._device").get(), "DeviceContext").get(),
           cuda_device.get());
  module_to = attribute(module_type.get(), "to");
  contiguous = attribute(base.get(), "contiguous");
  empty = attribute(torch.get(), "empty");
  byte_type = attribute(torch.get(), "uint8");
  allow_cudnn_tf32 = attribute(c.get(), "_set_cudnn_allow_tf32");
  // A torch that was built without CUDA has neither.
  if (PyObject_HasAttrString(c.get(), "_cuda_emptyCache") != 0) {
    empty_cuda_cache = attribute(c.get(), "_cuda_emptyCache");
    cuda_memory_stats = attribute(c.get(), "_cuda_memoryStats");
    reset_cuda_peaks = attribute(c.get(), "_cuda_resetPeakMemoryStats");
  }
  vary = attribute(inputs, "vary");
  widen_model = attribute(inputs, "widen_model");
  call_exactly = attribute(inputs, "call_exactly");
  inference_mode = attribute(c.get(), "_InferenceMode");
  no_function_modes = attribute(c.get(), "DisableTorchFunction");
  dispatch_modes = attribute(c.get(), "_len_torch_dispatch_stack");
  pop_dispatch_mode = attribute(c.get(), "_pop_torch_dispatch_stack");
  dispatch_table = attribute(c.get(), "_dispatch_dump_table");
  for (const char* operation : kOperations) {
    dispatch_tables.push_back(
        text_of(call(dispatch_table.get(), make_text(operation).get()).get()));
  }
  // random.seed is Python, whose code a candidate could replace.
  random_generator = attribute(import_module("random").get(), "_inst");
  random_seed = attribute(attribute(import_module("_random").get(), "Random").get(), "seed");
  numpy_seed = attribute(import_module("numpy.random").get(), "seed");
}

void ContextScope::enter() {
  (void)call(attribute(manager_.get(), "__enter__").get());
}

ContextScope::~ContextScope() {
  // Not of C++: torch's own function, which raises nothing. What was raised within stays.
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  Py_DecRef(PyObject_CallMethod(manager_.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
  PyErr_Restore(type, value, traceback);
}

std::size_t pop_dispatch_modes(const TorchFunctions& torch) {
  for (std::size_t popped = 0;; ++popped) {
    const Ref left = call(torch.dispatch_modes.get());
    if (PyLong_AsLong(left.get()) <= 0) return popped;
    (void)call(torch.pop_dispatch_mode.get(), Py_None);
  }
}

std::vector<std::string> find_overrides(const TorchFunctions& torch) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < kOperations.size(); ++i) {
    const std::string now_text =
        text_of(call(torch.dispatch_table.get(), make_text(kOperations[i]).get()).get());
    if (now_text == torch.dispatch_tables[i]) continue;
    std::string_view before = torch.dispatch_tables[i];
    std::string_view now = now_text;
    while (!before.empty() && !now.empty()) {
      const std::string_view was = next_line(before);
      const std::string_view is = next_line(now);
      if (was == is || !is_on_our_way(is)) continue;
      found.push_back(std::string(kOperations[i]) + " for " + std::string(is));
    }
  }
  return found;
}

TensorHold::TensorHold(const TorchFunctions& torch, PyObject* tensor) {
  const Ref detached = call(torch.detach.get(), tensor);
  const Ref plain = call(torch.resolve_conj.get(), detached.get());
  const Ref positive = call(torch.resolve_neg.get(), plain.get());
  capsule_ = call(torch.to_dlpack.get(), positive.get());
  const void* managed = PyCapsule_GetPointer(capsule_.get(), dlpack::kName);
  if (managed == nullptr) throw PythonRaised{};
  tensor_ = &static_cast<const dlpack::ManagedTensor*>(managed)->tensor;
}

std::optional<value::DType> TensorHold::dtype() const noexcept {
  const dlpack::DataType& type = tensor_->dtype;
  for (const Code& code : kCodes) {
    if (type.code == code.code && type.bits == code.bits && type.lanes == 1) return code.dtype;
  }
  return std::nullopt;
}

std::optional<value::Device> TensorHold::device() const noexcept {
  if (tensor_->device.type == dlpack::kCpu) return value::Device::cpu;
  if (tensor_->device.type == dlpack::kCuda) return value::Device::cuda;
  return std::nullopt;
}

value::Tensor TensorHold::layout() const {
  value::Tensor layout;
  layout.device = device().value_or(value::Device::cpu);
  layout.dtype = dtype().value();
  layout.shape.assign(tensor_->shape, tensor_->shape + tensor_->ndim);
  layout.strides =
      tensor_->strides == nullptr
          ? value::dense_strides(layout.shape)
          : std::vector<std::int64_t>(tensor_->strides, tensor_->strides + tensor_->ndim);
  return layout;
}

void copy_dense(const std::byte* from, const value::Tensor& layout, std::byte* to) noexcept {
  const std::size_t width = value::size_bytes(layout.dtype);
  const auto wide = static_cast<std::int64_t>(width);
  const std::int64_t count = value::element_count(layout);
  if (count == 0) return;
  if (layout.strides == value::dense_strides(layout.shape)) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * width);
    return;
  }
  const std::size_t outer = layout.shape.size() - 1;  // not dense, so there is a dimension
  const std::int64_t run = layout.shape[outer];
  std::vector<std::int64_t> index(outer, 0);
  for (std::int64_t done = 0; done < count; done += run) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < outer; ++d) offset += index[d] * layout.strides[d];
    copy_run(from + offset * wide, run, layout.strides[outer] * wide, width, to);
    to += static_cast<std::size_t>(run) * width;
    for (std::size_t d = outer; d-- > 0;) {
      if (++index[d] < layout.shape[d]) break;
      index[d] = 0;
    }
  }
}

Ref make_tensor(const TorchFunctions& torch, const value::Tensor& layout, const Memory& memory) {
  auto owned = std::make_unique<Owned>();
  owned->layout = layout;
  owned->memory = memory;
  dlpack::Tensor& tensor = owned->managed.tensor;
  // A tensor without elements may lie in a block without bytes; torch wants no particular pointer.
  tensor.data = memory.data == nullptr ? nullptr : memory.data + layout.offset_bytes;
  tensor.device = {memory.device == value::Device::cuda ? dlpack::kCuda : dlpack::kCpu, 0};
  tensor.ndim = static_cast<std::int32_t>(layout.shape.size());
  tensor.dtype = code_of(layout.dtype);
  tensor.shape = owned->layout.shape.data();
  tensor.strides = owned->layout.strides.data();
  owned->managed.context = owned.get();
  owned->managed.deleter = free_owned;
  const Ref capsule = Ref::own(PyCapsule_New(&owned->managed, dlpack::kName, free_unused_capsule));
  (void)owned.release();  // the capsule's, then torch's
  Ref made = call(torch.from_dlpack.get(), capsule.get());
  if (layout.requires_grad) made = call(torch.requires_grad.get(), made.get());
  return made;
}

}  // namespace drk::guest
