// SPDX-License-Identifier: Apache-2.0
// See torch/types.h beside this file.
#pragma once

#include <array>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <torch/types.h>
#include <tuple>
#include <unordered_map>
#include <vector>
