// SPDX-License-Identifier: Apache-2.0
// The compiled part of Boost.JSON (Debian ships no library of it for 1.81).
#pragma GCC diagnostic ignored "-Wconversion"
#include <boost/json/src.hpp>
