// SPDX-License-Identifier: Apache-2.0
// Loads, unloads, look-ups.
#include "guest/kernel_origins.h"

#include "drk/base/fd.h"

#include <array>
#include <cstdlib>
#include <cxxabi.h>
#include <execinfo.h>
#include <filesystem>
#include <memory>
#include <string_view>

namespace drk::guest {

namespace {

using cupti::Function;
using cupti::Library;
using cupti::Module;
using task::KernelOrigin;

constexpr std::size_t kMaxName = 256;
// A name is the candidate's to choose, and a short one can stand for a text without end.
constexpr std::size_t kMaxMangled = 4096;
constexpr int kMaxFrames = 64;

/// What `path` leads to when no part of it is a link any more; itself when it leads nowhere.
std::string resolved(const std::string& path) {
  std::error_code error;
  const std::filesystem::path found = std::filesystem::canonical(path, error);
  return error ? path : found.string();
}

Installation installation_at(std::vector<std::string> folders) {
  const std::size_t given = folders.size();
  for (std::size_t i = 0; i < given; ++i) folders.push_back(resolved(folders[i]));
  return Installation(std::move(folders));
}

/// Read anew at each load: what was mapped since must not be taken for what lay there before.
MapTable current_maps() {
  return MapTable(read_file("/proc/self/maps"));
}

/// The file of the first frame beyond the driver, from the inside out; "" when there is none.
std::string caller_of_driver(const MapTable& maps) {
  std::array<void*, kMaxFrames> frames = {};
  const int count = ::backtrace(frames.data(), kMaxFrames);
  bool in_driver = false;
  for (int i = 0; i < count; ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(frames.at(static_cast<std::size_t>(i)));
    const std::string_view file = maps.file_at(address);
    if (is_driver_file(file)) {
      in_driver = true;
    } else if (in_driver) {
      return std::string(file);
    }
  }
  return {};
}

std::string demangled(const char* name) {
  if (name == nullptr || *name == 0) return "?";
  const std::string_view text(name);
  // Only what is mangled: to the demangler a plain "f" is the type float.
  if (!text.starts_with("_Z") || text.size() > kMaxMangled)
    return std::string(text.substr(0, kMaxName));
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> readable(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return std::string(std::string_view(readable ? readable.get() : name).substr(0, kMaxName));
}

}  // namespace

KernelOrigins::KernelOrigins(const cupti::Driver& driver, std::vector<std::string> system_paths)
    : driver_(driver), installation_(installation_at(std::move(system_paths))) {
  (void)current_maps();
  // The first call loads the unwinder: here, and not inside a callback.
  std::array<void*, 1> frame = {};
  (void)::backtrace(frame.data(), 1);
}

void KernelOrigins::loaded_image(const void* handle, const void* image) {
  const MapTable maps = current_maps();
  const Image found = image_at(image);
  loaded(handle, {.image_file = std::string(maps.file_at(found.address, found.bytes))}, maps);
}

void KernelOrigins::loaded_file(const void* handle, const char* file) {
  loaded(handle, {.image_file = resolved(file), .by_name = true}, current_maps());
}

void KernelOrigins::loaded(const void* handle, LoadSite site, const MapTable& maps) {
  site.caller = caller_of_driver(maps);
  set_origin(handle, origin_of(site, installation_));
}

void KernelOrigins::set_origin(const void* handle, KernelOrigin origin) {
  const std::lock_guard lock(mutex_);
  forget_functions_of(handle);
  owners_[handle] = {origin, nullptr};
}

bool KernelOrigins::knows(const void* handle) const {
  const std::lock_guard lock(mutex_);
  return owners_.contains(handle);
}

void KernelOrigins::derived_module(Module module, Library library) {
  const std::lock_guard lock(mutex_);
  const auto owner = owners_.find(library);
  if (owner == owners_.end()) return;
  const Owner derived = {owner->second.origin, library};
  Owner& entry = owners_[module];
  if (entry == derived) return;
  forget_functions_of(module);
  entry = derived;
}

void KernelOrigins::derived_function(Function function, Function kernel) {
  Module module = nullptr;
  Library library = nullptr;
  if (driver_.kernel_get_library == nullptr || driver_.kernel_get_library(&library, kernel) != 0 ||
      driver_.func_get_module(&module, function) != 0) {
    return;
  }
  derived_module(module, library);
}

void KernelOrigins::unloaded(const void* handle) {
  const std::lock_guard lock(mutex_);
  forget_functions_of(handle);
  owners_.erase(handle);
  std::erase_if(owners_, [&](const auto& entry) {
    if (entry.second.library != handle) return false;
    forget_functions_of(entry.first);
    return true;
  });
}

void KernelOrigins::forget_functions() {
  const std::lock_guard lock(mutex_);
  functions_.clear();
}

void KernelOrigins::forget_functions_of(const void* owner) {
  std::erase_if(functions_, [&](const auto& entry) { return entry.second.owner == owner; });
}

Kernel* KernelOrigins::find(Function function, const char* symbol) {
  if (function == nullptr) return nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto known = functions_.find(function);
    if (known != functions_.end()) return known->second.kernel;
  }
  const Asked asked = ask_driver(function);
  const char* name = asked.name == nullptr ? symbol : asked.name;
  if (asked.owner == nullptr) return intern(name, KernelOrigin::unknown);
  std::string readable = demangled(name);
  const std::lock_guard lock(mutex_);
  const auto found = owners_.find(asked.owner);
  const KernelOrigin origin = found == owners_.end() ? KernelOrigin::unknown : found->second.origin;
  Kernel* kernel = intern_locked(std::move(readable), origin);
  functions_[function] = {kernel, asked.owner};
  return kernel;
}

KernelOrigins::Asked KernelOrigins::ask_driver(Function function) const {
  Asked asked;
  Module module = nullptr;
  Library library = nullptr;
  int (*get_name)(const char**, Function) = nullptr;
  // The wrong question of the two is answered with an error.
  if (driver_.func_get_module(&module, function) == 0) {
    asked.owner = module;
    get_name = driver_.func_get_name;
  } else if (driver_.kernel_get_library != nullptr &&
             driver_.kernel_get_library(&library, function) == 0) {
    asked.owner = library;
    get_name = driver_.kernel_get_name;
  }
  if (get_name != nullptr && get_name(&asked.name, function) != 0) asked.name = nullptr;
  return asked;
}

Kernel* KernelOrigins::intern(const char* mangled, KernelOrigin origin) {
  std::string name = demangled(mangled);
  const std::lock_guard lock(mutex_);
  return intern_locked(std::move(name), origin);
}

void KernelOrigins::reset_counts() {
  const std::lock_guard lock(mutex_);
  for (auto& [key, kernel] : kernels_) kernel.launches = 0;
}

Kernel* KernelOrigins::intern_locked(std::string name, KernelOrigin origin) {
  Kernel& kernel = kernels_[{name, origin}];
  if (kernel.name.empty()) {
    kernel.name = std::move(name);
    kernel.origin = origin;
  }
  return &kernel;
}

}  // namespace drk::guest
