// SPDX-License-Identifier: Apache-2.0
// See torch/types.h. Every operator's header includes this one and needs nothing of it: left out is
// at::globalContext() and what it knows.
#pragma once

#include <ATen/core/ATenGeneral.h>
#include <ATen/core/LegacyTypeDispatch.h>
