// SPDX-License-Identifier: Apache-2.0
// See torch/types.h. Left out: cuSOLVER, and at::globalContext().
#pragma once

#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Logging.h>
