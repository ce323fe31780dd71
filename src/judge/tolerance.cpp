// SPDX-License-Identifier: Apache-2.0
// The error that correct kernels make, by element type.
#include "drk/judge.h"

namespace drk::judge {

namespace {

/// Narrow types: two units in the last place (a result rounded the other way, or truncated as
/// Triton's interpreter does for bfloat16, is off by one). float32 and float64 get room for sums
/// in another order, of some thousand terms.
Tolerance strict_tolerance(value::DType dtype) noexcept {
  using value::DType;
  switch (dtype) {
    case DType::float64:
    case DType::complex128:
      return {.atol = 1e-9, .rtol = 1e-9, .atol_of_spread = true};
    case DType::float32:
    case DType::complex64:
      return {.atol = 1e-4, .rtol = 1e-4, .atol_of_spread = true};
    case DType::float16:
    case DType::complex32:
      return {.atol = 2e-3, .rtol = 2e-3, .atol_of_spread = true};
    case DType::bfloat16:
      return {.atol = 1e-2, .rtol = 1.6e-2, .atol_of_spread = true};
    case DType::float8_e4m3fn:
      return {.atol = 0.1, .rtol = 0.25, .atol_of_spread = true};
    case DType::float8_e5m2:
      return {.atol = 0.2, .rtol = 0.5, .atol_of_spread = true};
    default:
      return {};  // integers and booleans: exactly
  }
}

}  // namespace

Tolerance tolerance_for(value::DType dtype, task::Correctness correctness) noexcept {
  if (correctness == task::Correctness::kernelgym) return {.atol = 1e-2, .rtol = 1e-2};
  return strict_tolerance(dtype);
}

}  // namespace drk::judge
