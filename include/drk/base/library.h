// SPDX-License-Identifier: Apache-2.0
// A shared library that is opened at run time and may be absent.
#pragma once

#include <dlfcn.h>
#include <memory>
#include <string>

namespace drk {

class Library {
 public:
  /// Empty when it does not open; `problem()` says why.
  explicit Library(const std::string& file)
      : handle_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc keeps one text for each thread
    if (!handle_) problem_ = ::dlerror();
  }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

  /// Null when the library has no such function.
  template <class Function>
  [[nodiscard]] Function* function(const char* name) const noexcept {
    return reinterpret_cast<Function*>(::dlsym(handle_.get(), name));
  }

 private:
  struct Close {
    void operator()(void* handle) const noexcept { ::dlclose(handle); }
  };
  std::unique_ptr<void, Close> handle_;
  std::string problem_;
};

}  // namespace drk
