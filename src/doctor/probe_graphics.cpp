// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's libraries say. They are opened at run time, so this builds and runs without them.
#include "drk/base/child.h"
#include "drk/base/error.h"
#include "drk/base/json.h"
#include "drk/base/library.h"
#include "drk/gpu.h"

#include "doctor/parse.h"
#include "doctor/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace drk::doctor {

namespace {

namespace fs = std::filesystem;

// The parts of cuda.h and cupti.h that are called here. Every function returns 0 when it has done
// what it was asked for.
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

void read_nvml(Graphics& graphics) {
  const gpu::Listing listing = gpu::list_devices();
  if (!listing.driver.empty()) graphics.driver = listing.driver;
  for (const gpu::Device& device : listing.devices) {
    graphics.gpus.push_back({device.name, device.uuid, device.memory_bytes});
  }
  graphics.nvml_problem = listing.problem;
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

std::string read_cuda_and_cupti(const std::vector<std::string>& package_dirs) {
  Graphics graphics;
  keep_problem(graphics.cuda_problem, [&] { read_cuda(graphics); });
  keep_problem(graphics.cupti_problem, [&] { read_cupti(graphics, package_dirs); });
  return json::dump(json::to_json(graphics));
}

}  // namespace

Graphics probe_graphics(const std::vector<std::string>& package_dirs) {
  // A sick GPU makes a driver call hang for good, and cuInit starts threads: hence the child.
  constexpr std::chrono::seconds kLimit{20};
  Graphics graphics;
  try {
    const std::string answer =
        run_in_child([&] { return read_cuda_and_cupti(package_dirs); }, kLimit);
    graphics = json::from_json<Graphics>(json::parse(answer), "graphics");
  } catch (const Error& error) {  // the border of both parts
    graphics.cuda_problem = error.what();
    graphics.cupti_problem = error.what();
  }
  read_nvml(graphics);
  return graphics;
}

}  // namespace drk::doctor
