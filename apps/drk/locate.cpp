// SPDX-License-Identifier: Apache-2.0
// Finds the Python that guests run in, and the files of the guest.
#include "locate.h"

#include "drk/base/error.h"
#include "drk/base/subprocess.h"
#include "drk/gpu.h"

#include "terminal.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <unistd.h>

namespace drk::cli {

namespace {

namespace fs = std::filesystem;

bool is_program(const std::string& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
}

/// A program by its name, as a shell finds it; a name with a slash is a path.
std::optional<std::string> find_program(const std::string& name, const std::string& path) {
  if (name.find('/') != std::string::npos) {
    // Not canonical: a virtual environment's python is a link, and knows itself by its own path.
    return is_program(name) ? std::optional(fs::absolute(name).string()) : std::nullopt;
  }
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find(':', start), path.size());
    const std::string file = path.substr(start, end - start) + "/" + name;
    if (end > start && is_program(file)) return file;
    start = end + 1;
  }
  return std::nullopt;
}

Interpreter named_interpreter(const std::string& name,
                              const std::string& named_by,
                              const Surroundings& surroundings) {
  if (const auto file = find_program(name, surroundings.path)) return {*file, named_by};
  throw Error(ErrorCode::not_found,
              fmt::format("{} names {}, which is no program; name a Python with torch and triton, "
                          "or leave it out",
                          named_by,
                          name));
}

/// The interpreter behind a wrapper such as pyenv's, which would not start without PATH.
std::optional<std::string> ask_for_itself(const std::string& python,
                                          const Surroundings& surroundings) {
  const ProgramResult result = run_program({python, "-c", "import sys; print(sys.executable)"},
                                           environment_of(surroundings),
                                           std::chrono::seconds(10));
  const std::string answer = result.output.substr(0, result.output.find('\n'));
  if (result.exit_code != 0 || !is_program(answer)) return std::nullopt;
  return answer;
}

/// One of them, by its index or by the beginning of its UUID.
const gpu::Device& find_device(const std::vector<gpu::Device>& devices, const std::string& name) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (name == std::to_string(i)) return devices[i];
    if (name.size() >= 8 && devices[i].uuid.starts_with(name)) return devices[i];
  }
  throw Error(
      ErrorCode::not_found,
      fmt::format(
          "--device: there is no GPU {} among the {} here; see drk doctor", name, devices.size()));
}

std::vector<gpu::Device> choose_devices(const std::string& requested) {
  if (requested == "cpu") return {};
  gpu::Listing listing = gpu::list_devices();
  const std::vector<gpu::Device>& devices = listing.devices;
  const bool has_driver = ::access("/dev/nvidiactl", F_OK) == 0;
  if (has_driver && !listing.problem.empty()) complain("drk: GPUs: " + listing.problem);
  if (requested == "auto") return std::move(listing.devices);
  std::vector<gpu::Device> chosen;
  std::istringstream names(requested);
  for (std::string name; std::getline(names, name, ',');) {
    const gpu::Device& device = find_device(devices, name);
    const bool is_new = std::none_of(chosen.begin(), chosen.end(), [&](const gpu::Device& other) {
      return other.uuid == device.uuid;
    });
    if (is_new) chosen.push_back(device);
  }
  if (chosen.empty()) throw Error(ErrorCode::invalid_argument, "--device names no device");
  return chosen;
}

}  // namespace

std::vector<std::string> environment_of(const Surroundings& surroundings) {
  return {"PATH=" + surroundings.path, "HOME=" + surroundings.home};
}

Interpreter locate_interpreter(const std::string& requested, const Surroundings& surroundings) {
  if (!requested.empty()) return named_interpreter(requested, "--python", surroundings);
  if (!surroundings.drk_python.empty()) {
    return named_interpreter(surroundings.drk_python, "DRK_PYTHON", surroundings);
  }
  const std::string env_dir = surroundings.cache_dir + "/env-" + DRK_LOCK_HASH;
  if (fs::exists(env_dir + "/.complete") && is_program(env_dir + "/bin/python")) {
    return {env_dir + "/bin/python", "make setup"};
  }
  if (const auto python = find_program("python3", surroundings.path)) {
    if (const auto itself = ask_for_itself(*python, surroundings)) return {*itself, "PATH"};
  }
  throw Error(ErrorCode::not_found,
              fmt::format("found no Python: {} is not there, and no python3 on PATH; "
                          "run `make setup`, or set DRK_PYTHON",
                          env_dir));
}

std::string locate_guest_dir() {
  const fs::path program = fs::read_symlink("/proc/self/exe");
  const fs::path dir = program.parent_path().parent_path() / "lib" / "drk" / "guest";
  if (fs::exists(dir / "host.py")) return dir.string();
  throw Error(ErrorCode::not_found,
              fmt::format("no host.py in {}; run `make build`", dir.string()));
}

void declare_guests(CLI::App& command, GuestChoice& choice) {
  command.add_option("--python", choice.python, "Interpreter with torch and triton");
  command.add_option("--device",
                     choice.device,
                     "auto: all GPUs, or Triton's interpreter; cpu; else indices or UUIDs of GPUs");
}

worker::Options locate_worker(const GuestChoice& choice, const Surroundings& surroundings) {
  worker::Options options;
  options.python = locate_interpreter(choice.python, surroundings).path;
  options.guest_dir = locate_guest_dir();
  options.build_dir = surroundings.cache_dir + "/builds";
  options.gpus = choose_devices(choice.device);
  return options;
}

}  // namespace drk::cli
