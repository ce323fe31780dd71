// SPDX-License-Identifier: Apache-2.0
// See torch/types.h beside this file.
#pragma once

#include <torch/all.h>
