// SPDX-License-Identifier: Apache-2.0
// Asks the worker for what a guest may not make itself: shared memory, compiled code.
#pragma once

#include "drk/base/fd.h"

#include <Python.h>

#include <cstdint>

namespace drk::guest {

/// Shared memory of `bytes`, from the worker at the other end of `control`.
[[nodiscard]] Fd request_memory(int control, std::uint64_t bytes);

/// From now on build() asks over `control`, which must stay open.
void set_build_channel(int control) noexcept;

/// For Python: build(tool: str, arguments: list[str], files: dict[str, bytes])
///   -> tuple[int, str, bytes | None]: exit code, log, and the product if the exit code is 0.
/// Holds the GIL throughout, so that nothing else is said over the channel meanwhile.
[[nodiscard]] PyObject* build(PyObject* self, PyObject* arguments) noexcept;

}  // namespace drk::guest
