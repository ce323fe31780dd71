// SPDX-License-Identifier: Apache-2.0
// Control groups, version 2: one for the worker, one below it for each guest.
#include "drk/base/error.h"
#include "drk/sandbox.h"

#include <array>
#include <atomic>
#include <dirent.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace drk::sandbox {

namespace {

// The base of a guest: torch and its libraries, touched pages of the zygote's memory.
constexpr std::uint64_t kBaseBytes = std::uint64_t{1} << 30;

bool has_word(const std::string& path, const std::string& word) {
  std::istringstream words(read_file(path));
  for (std::string found; words >> found;) {
    if (found == word) return true;
  }
  return false;
}

std::string find_mount() {
  for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    if (::access((std::string(mount) + "/cgroup.controllers").c_str(), R_OK) == 0) return mount;
  }
  throw Error(ErrorCode::unavailable, "cgroup v2 is not mounted");
}

void enable_controllers(const std::string& dir) {
  for (const char* controller : {"memory", "pids"}) {
    if (!has_word(dir + "/cgroup.controllers", controller)) {
      throw Error(ErrorCode::unavailable, "cgroup v2 at " + dir + " does not carry " + controller);
    }
    if (!has_word(dir + "/cgroup.subtree_control", controller)) {
      write_file(dir + "/cgroup.subtree_control", std::string("+") + controller);
    }
  }
}

}  // namespace

CgroupRoot::CgroupRoot() {
  try {
    const std::string mount = find_mount();
    enable_controllers(mount);
    static std::atomic<int> count = 0;  // several workers in one process
    const std::string path =
        mount + "/drk-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
    if (::mkdir(path.c_str(), 0755) != 0) throw_errno("mkdir " + path);
    path_ = path;
    enable_controllers(path);
  } catch (const Error&) {  // not mounted, not ours, or without the controllers
    remove(path_);
    path_.clear();
  }
}

CgroupRoot::~CgroupRoot() {
  remove(path_);
}

std::string CgroupRoot::make(const Limits& limits) const {
  if (path_.empty()) return "";
  static std::atomic<std::uint64_t> count = 0;
  std::string dir = path_ + "/g" + std::to_string(count++);
  if (::mkdir(dir.c_str(), 0755) != 0) throw_errno("mkdir " + dir);
  write_file(dir + "/memory.max", std::to_string(limits.memory_bytes + kBaseBytes));
  write_file(dir + "/pids.max", std::to_string(limits.processes));
  // Swapping would turn "out of memory" into "slow"; a kernel without swap has no such file.
  if (::access((dir + "/memory.swap.max").c_str(), W_OK) == 0)
    write_file(dir + "/memory.swap.max", "0");
  return dir;
}

bool CgroupRoot::ran_out_of_memory(const std::string& dir) {
  if (dir.empty()) return false;
  std::istringstream lines(read_file(dir + "/memory.events"));
  std::string key;
  std::uint64_t count = 0;
  while (lines >> key >> count) {
    if (key == "oom_kill" && count > 0) return true;
  }
  return false;
}

void CgroupRoot::remove(const std::string& dir) noexcept {
  if (!dir.empty()) ::rmdir(dir.c_str());
}

}  // namespace drk::sandbox
