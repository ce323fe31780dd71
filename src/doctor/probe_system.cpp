// SPDX-License-Identifier: Apache-2.0
// Kernel, processor, memory, disks, port.
#include "drk/base/error.h"
#include "drk/base/fd.h"

#include "doctor/parse.h"
#include "doctor/probe.h"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <filesystem>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <thread>

namespace drk::doctor {

namespace {

namespace fs = std::filesystem;

/// Empty when the file cannot be read: not every kernel has every file.
std::string content_or_nothing(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) ? read_file(path) : std::string();
}

std::uint32_t usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof(cores), &cores) == 0) {
    return static_cast<std::uint32_t>(CPU_COUNT(&cores));
  }
  return std::thread::hardware_concurrency();  // more cores than the mask holds
}

}  // namespace

std::string probe_kernel() {
  utsname names = {};
  ::uname(&names);
  return fmt::format("{} {} {}", names.sysname, names.release, names.machine);
}

Processor probe_processor() {
  const std::string cpuinfo = content_or_nothing("/proc/cpuinfo");
  return {parse_cpu_model(cpuinfo).value_or("unknown"), usable_cores()};
}

Memory probe_memory() {
  const std::string meminfo = content_or_nothing("/proc/meminfo");
  Memory memory;
  memory.total_bytes = parse_meminfo(meminfo, "MemTotal").value_or(0);
  memory.available_bytes = parse_meminfo(meminfo, "MemAvailable").value_or(0);
  for (const std::string path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    if (!memory.limit_bytes) memory.limit_bytes = parse_memory_limit(content_or_nothing(path));
  }
  return memory;
}

Disk probe_disk(const std::string& path) {
  fs::path there = fs::absolute(path);
  std::error_code ignored;
  while (!fs::exists(there, ignored) && there.has_relative_path()) there = there.parent_path();
  const fs::space_info space = fs::space(there, ignored);
  Disk disk;
  disk.path = path;
  if (ignored) return disk;
  disk.free_bytes = space.available;
  disk.total_bytes = space.capacity;
  return disk;
}

Port probe_port(std::uint16_t port) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;  // what has just closed does not count as a listener
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool is_free =
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  return {fmt::format("127.0.0.1:{}", port), is_free};
}

}  // namespace drk::doctor
