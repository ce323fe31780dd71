// SPDX-License-Identifier: Apache-2.0
// See torch/types.h. This is it with Python's bindings, unless DRK_NO_BINDINGS says that a source
// has none: nvcc takes as long for them as for all the rest.
#pragma once

#include <torch/all.h>
#ifndef DRK_NO_BINDINGS
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#endif
