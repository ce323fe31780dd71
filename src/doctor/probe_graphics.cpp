// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's libraries say. They are opened at run time, so this builds and runs without them.
#include "drk/base/error.h"
#include "drk/base/json.h"

#include "doctor/child.h"
#include "doctor/library.h"
#include "doctor/parse.h"
#include "doctor/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace drk::doctor {

namespace {

namespace fs = std::filesystem;

// The parts of nvml.h, cuda.h and cupti.h that are called here. Every function returns 0 when it
// has done what it was asked for.
struct NvmlMemory {
  unsigned long long total, free, used;
};
using NvmlDevice = void*;
using NvmlCall = int();
using NvmlDriver = int(char*, unsigned);
using NvmlCount = int(unsigned*);
using NvmlHandle = int(unsigned, NvmlDevice*);
using NvmlName = int(NvmlDevice, char*, unsigned);
using NvmlMemoryInfo = int(NvmlDevice, NvmlMemory*);
using CudaInit = int(unsigned);
using CudaVersion = int(int*);
using CudaCount = int(int*);
using CuptiVersion = int(std::uint32_t*);

/// Calls a function of `library`; throws Error{unavailable} when it is not there or fails.
template <class Function, class... Arguments>
void call(const Library& library, const char* name, Arguments... arguments) {
  auto* function = library.function<Function>(name);
  if (function == nullptr) throw Error(ErrorCode::unavailable, fmt::format("it has no {}", name));
  const int status = function(arguments...);
  if (status == 0) return;
  throw Error(ErrorCode::unavailable, fmt::format("{} failed with error {}", name, status));
}

std::string text_of(const Library& nvml, const char* name, NvmlDevice device) {
  std::array<char, 96> text = {};
  call<NvmlName>(nvml, name, device, text.data(), static_cast<unsigned>(text.size()));
  return text.data();
}

Gpu read_gpu(const Library& nvml, unsigned index) {
  NvmlDevice device = nullptr;
  call<NvmlHandle>(nvml, "nvmlDeviceGetHandleByIndex_v2", index, &device);
  NvmlMemory memory = {};
  call<NvmlMemoryInfo>(nvml, "nvmlDeviceGetMemoryInfo", device, &memory);
  return {text_of(nvml, "nvmlDeviceGetName", device),
          text_of(nvml, "nvmlDeviceGetUUID", device),
          memory.total};
}

void read_nvml(Graphics& graphics) {
  const Library nvml("libnvidia-ml.so.1");
  if (!nvml) throw Error(ErrorCode::not_found, nvml.problem());
  call<NvmlCall>(nvml, "nvmlInit_v2");
  std::array<char, 96> driver = {};
  call<NvmlDriver>(
      nvml, "nvmlSystemGetDriverVersion", driver.data(), static_cast<unsigned>(driver.size()));
  graphics.driver = driver.data();
  unsigned count = 0;
  call<NvmlCount>(nvml, "nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; i < count; ++i) graphics.gpus.push_back(read_gpu(nvml, i));
}

void read_cuda(Graphics& graphics) {
  const Library cuda("libcuda.so.1");
  if (!cuda) throw Error(ErrorCode::not_found, cuda.problem());
  call<CudaInit>(cuda, "cuInit", 0U);
  int version = 0;
  call<CudaVersion>(cuda, "cuDriverGetVersion", &version);
  int count = 0;
  call<CudaCount>(cuda, "cuDeviceGetCount", &count);
  graphics.cuda = cuda_version_text(version);
  graphics.cuda_devices = static_cast<std::uint32_t>(count);
}

/// Where pip's packages put CUPTI: nvidia/cu13/lib, nvidia/cuda_cupti/lib ...
std::vector<std::string> cupti_in(const std::string& package_dir) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const fs::directory_entry& package :
       fs::directory_iterator(fs::path(package_dir) / "nvidia", ignored)) {
    for (const fs::directory_entry& file :
         fs::directory_iterator(package.path() / "lib", ignored)) {
      const std::string name = file.path().filename().string();
      if (name.starts_with("libcupti.so")) files.push_back(file.path().string());
    }
  }
  std::sort(files.rbegin(), files.rend());  // the newest first
  return files;
}

void read_cupti(Graphics& graphics, const std::vector<std::string>& package_dirs) {
  std::vector<std::string> files;
  for (const std::string& dir : package_dirs) {
    for (std::string& file : cupti_in(dir)) files.push_back(std::move(file));
  }
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"}) {
    files.emplace_back(name);
  }
  for (const std::string& file : files) {
    const Library cupti(file);
    if (!cupti) continue;
    call<CuptiVersion>(cupti, "cuptiGetVersion", &graphics.cupti_version);
    graphics.cupti_file = file;
    return;
  }
  throw Error(ErrorCode::not_found, "no libcupti.so opens");
}

/// The border of each part: what fails is kept as the reason why it is absent.
template <class Read>
void keep_problem(std::string& problem, const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    problem = error.what();
  }
}

std::string read_all(const std::vector<std::string>& package_dirs) {
  Graphics graphics;
  keep_problem(graphics.nvml_problem, [&] { read_nvml(graphics); });
  keep_problem(graphics.cuda_problem, [&] { read_cuda(graphics); });
  keep_problem(graphics.cupti_problem, [&] { read_cupti(graphics, package_dirs); });
  return json::dump(json::to_json(graphics));
}

}  // namespace

Graphics probe_graphics(const std::vector<std::string>& package_dirs) {
  // A sick GPU makes a driver call hang for good, and cuInit starts threads: hence the child.
  constexpr std::chrono::seconds kLimit{20};
  Graphics graphics;
  keep_problem(graphics.nvml_problem, [&] {
    const std::string answer = run_in_child([&] { return read_all(package_dirs); }, kLimit);
    graphics = json::from_json<Graphics>(json::parse(answer), "graphics");
  });
  return graphics;
}

Graphics probe_gpus() {
  return probe_graphics({});
}

}  // namespace drk::doctor
