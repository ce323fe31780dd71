// SPDX-License-Identifier: Apache-2.0
// The usual ones of torch's factories (torch/csrc/autograd/generated/variable_factories.h), which
// take requires_grad where those in `at` refuse it.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <optional>

namespace torch {

namespace detail {

/// What `make` makes, as a leaf of its own where a gradient is wanted.
template <class Make>
at::Tensor make_variable(const at::TensorOptions& options, const Make& make) {
  at::AutoDispatchBelowADInplaceOrView guard;
  at::Tensor made = make(at::TensorOptions(options).requires_grad(std::nullopt));
  if (options.requires_grad()) made.set_requires_grad(true);
  return made;
}

}  // namespace detail

inline at::Tensor arange(const at::Scalar& end, at::TensorOptions options = {}) {
  return detail::make_variable(
      options, [&](const at::TensorOptions& plain) { return at::arange(end, plain); });
}
inline at::Tensor arange(const at::Scalar& start,
                         const at::Scalar& end,
                         at::TensorOptions options = {}) {
  return detail::make_variable(
      options, [&](const at::TensorOptions& plain) { return at::arange(start, end, plain); });
}
inline at::Tensor arange(const at::Scalar& start,
                         const at::Scalar& end,
                         const at::Scalar& step,
                         at::TensorOptions options = {}) {
  return detail::make_variable(
      options, [&](const at::TensorOptions& plain) { return at::arange(start, end, step, plain); });
}
inline at::Tensor empty(at::IntArrayRef size,
                        std::optional<at::DimnameList> names,
                        at::TensorOptions options = {},
                        std::optional<at::MemoryFormat> memory_format = std::nullopt) {
  return detail::make_variable(options, [&](const at::TensorOptions& plain) {
    return at::empty(size, names, plain, memory_format);
  });
}
inline at::Tensor empty(at::IntArrayRef size,
                        at::TensorOptions options = {},
                        std::optional<at::MemoryFormat> memory_format = std::nullopt) {
  return detail::make_variable(options, [&](const at::TensorOptions& plain) {
    return at::empty(size, plain, memory_format);
  });
}
inline at::Tensor empty_like(const at::Tensor& self,
                             at::TensorOptions options = {},
                             std::optional<at::MemoryFormat> memory_format = std::nullopt) {
  return detail::make_variable(options, [&](const at::TensorOptions& plain) {
    return at::empty_like(self, plain, memory_format);
  });
}
inline at::Tensor empty_strided(at::IntArrayRef size,
                                at::IntArrayRef stride,
                                at::TensorOptions options = {}) {
  return detail::make_variable(options, [&](const at::TensorOptions& plain) {
    return at::empty_strided(size, stride, plain);
  });
}
inline at::Tensor eye(int64_t n, at::TensorOptions options = {}) {
  return detail::make_variable(options,
                               [&](const at::TensorOptions& plain) { return at::eye(n, plain); });
}
inline at::Tensor eye(int64_t n, int64_t m, at::TensorOptions options = {}) {
  return detail::make_variable(
      options, [&](const at::TensorOptions& plain) { return at::eye(n, m, plain); });
}
inline at::Tensor full(at::IntArrayRef size,
                       const at::Scalar& fill_value,
                       std::optional<at::DimnameList> names,
                       at::TensorOptions options = {}) {
  return detail::make_variable(options, [&](const at::TensorOptions& plain) {
    return at::full(size, fill_value, names, plain);
  });
}
inline at::Tensor full(at::IntArrayRef size,
                       const at::Scalar& fill_value,
                       at::TensorOptions options = {}) {
  return detail::make_variable(
      options, [&](const at::TensorOptions& plain) { return at::full(size, fill_value, plain); });
}
inline at::Tensor full_like(const at::Tensor& self,
                            const at::Scalar& fill_value,
                            at::TensorOptions options = {},
                            std::optional<at::MemoryFormat> memory_format = std::nullopt) {
  return detail::make_variable(options, [&](const at::TensorOptions& plain) {
    return at::full_like(self, fill_value, plain, memory_format);
  });
}
inline at::Tensor ones(at::IntArrayRef size,
                       std::optional<at::DimnameList> names,
                       at::TensorOptions options = {}) {
  return detail::make_variable(
      options, [&](const at::TensorOptions& plain) { return at::ones(size, names, plain); });
}
inline at::Tensor ones(at::IntArrayRef size, at::TensorOptions options = {}) {
  return detail::make_variable(
      options, [&](const at::TensorOptions& plain) { return at::ones(size, plain); });
}
inline at::Tensor ones_like(const at::Tensor& self,
                            at::TensorOptions options = {},
                            std::optional<at::MemoryFormat> memory_format = std::nullopt) {
  return detail::make_variable(options, [&](const at::TensorOptions& plain) {
    return at::ones_like(self, plain, memory_format);
  });
}
inline at::Tensor rand(at::IntArrayRef size,
                       std::optional<at::DimnameList> names,
                       at::TensorOptions options = {}) {
  return detail::make_variable(
      options, [&](const at::TensorOptions& plain) { return at::rand(size, names, plain); });
}
inline at::Tensor rand(at::IntArrayRef size,
                       std::optional<at::Generator> generator,
                       std::optional<at::DimnameList> names,
                       at::TensorOptions options = {}) {
  return detail::make_variable(options, [&](const at::TensorOptions& plain) {
    return at::rand(size, generator, names, plain);
  });
}
inline at::Tensor rand(at::IntArrayRef size, at::TensorOptions options = {}) {
  return detail::make_variable(
      options, [&](const at::TensorOptions& plain) { return at::rand(size, plain); });
}
inline at::Tensor rand(at::IntArrayRef size,
                       std::optional<at::Generator> generator,
                       at::TensorOptions options = {}) {
  return detail::make_variable(
      options, [&](const at::TensorOptions& plain) { return at::rand(size, generator, plain); });
}
inline at::Tensor randn(at::IntArrayRef size, at::TensorOptions options = {}) {
  return detail::make_variable(
      options, [&](const at::TensorOptions& plain) { return at::randn(size, plain); });
}
inline at::Tensor randn(at::IntArrayRef size,
                        std::optional<at::Generator> generator,
                        at::TensorOptions options = {}) {
  return detail::make_variable(
      options, [&](const at::TensorOptions& plain) { return at::randn(size, generator, plain); });
}
inline at::Tensor randn(at::IntArrayRef size,
                        std::optional<at::DimnameList> names,
                        at::TensorOptions options = {}) {
  return detail::make_variable(
      options, [&](const at::TensorOptions& plain) { return at::randn(size, names, plain); });
}
inline at::Tensor randn(at::IntArrayRef size,
                        std::optional<at::Generator> generator,
                        std::optional<at::DimnameList> names,
                        at::TensorOptions options = {}) {
  return detail::make_variable(options, [&](const at::TensorOptions& plain) {
    return at::randn(size, generator, names, plain);
  });
}
inline at::Tensor zeros(at::IntArrayRef size,
                        std::optional<at::DimnameList> names,
                        at::TensorOptions options = {}) {
  return detail::make_variable(
      options, [&](const at::TensorOptions& plain) { return at::zeros(size, names, plain); });
}
inline at::Tensor zeros(at::IntArrayRef size, at::TensorOptions options = {}) {
  return detail::make_variable(
      options, [&](const at::TensorOptions& plain) { return at::zeros(size, plain); });
}
inline at::Tensor zeros_like(const at::Tensor& self,
                             at::TensorOptions options = {},
                             std::optional<at::MemoryFormat> memory_format = std::nullopt) {
  return detail::make_variable(options, [&](const at::TensorOptions& plain) {
    return at::zeros_like(self, plain, memory_format);
  });
}

// Those that are left out hide what `at` has under their names, which would mean something else: a
// source that calls one must not compile here.
void bartlett_window() = delete;
void blackman_window() = delete;
void empty_permuted() = delete;
void empty_quantized() = delete;
void fft_fftfreq() = delete;
void fft_rfftfreq() = delete;
void from_blob() = delete;
void from_file() = delete;
void hamming_window() = delete;
void hann_window() = delete;
void kaiser_window() = delete;
void linspace() = delete;
void logspace() = delete;
void normal() = delete;
void rand_like() = delete;
void randint() = delete;
void randint_like() = delete;
void randn_like() = delete;
void randperm() = delete;
void range() = delete;
void scalar_tensor() = delete;
void sparse_bsc_tensor() = delete;
void sparse_bsr_tensor() = delete;
void sparse_compressed_tensor() = delete;
void sparse_coo_tensor() = delete;
void sparse_csc_tensor() = delete;
void sparse_csr_tensor() = delete;
void tensor() = delete;
void tril_indices() = delete;
void triu_indices() = delete;

}  // namespace torch
