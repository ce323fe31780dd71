// SPDX-License-Identifier: Apache-2.0
// Calls that come from a library of a chosen name, as a stack shows it.
#pragma once

#include <dlfcn.h>
#include <stdexcept>
#include <string>

namespace drk::guest::test {

/// A call to make: of the driver, or of the next library's drk_pass_through.
struct Step {
  int (*call)(void* first, const void* second) = nullptr;
  void* first = nullptr;
  const void* second = nullptr;
};

/// drk_pass_through of one of the libraries that tests/CMakeLists.txt lists. It makes the Step that
/// its first argument points at.
inline auto pass_through_of(const std::string& folder, const std::string& library) {
  void* opened = ::dlopen((folder + "/" + library).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) throw std::runtime_error(::dlerror());
  return reinterpret_cast<decltype(Step::call)>(::dlsym(opened, "drk_pass_through"));
}

}  // namespace drk::guest::test
