// SPDX-License-Identifier: Apache-2.0
// The border to NVML. Names, layouts and constants are those of nvml.h.
#include "gpu/nvml.h"

#include "drk/base/clock.h"
#include "drk/base/error.h"

#include "gpu/throttle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace drk::gpu {

namespace {

constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;
constexpr int kFunctionNotFound = 13;
constexpr int kGpuIsLost = 15;
constexpr int kResetRequired = 16;
constexpr int kGpuNotFound = 28;

constexpr unsigned kClockSm = 1;
constexpr unsigned kClockMemory = 2;
constexpr unsigned kTemperatureGpu = 0;
constexpr unsigned kErrorUncorrected = 1;
constexpr unsigned kEccVolatile = 0;
constexpr unsigned kLocationDram = 2;
constexpr unsigned kLocationSram = 7;
constexpr unsigned long long kEventDoubleBit = 0x2;
constexpr unsigned long long kEventXid = 0x8;
constexpr unsigned long long kNotAvailable = ~0ULL;
constexpr std::uint32_t kXidDoubleBit = 48;

struct NvmlMemory {  // nvmlMemory_t
  unsigned long long total, free, used;
};
static_assert(sizeof(NvmlMemory) == 24);

struct NvmlPciInfo {  // nvmlPciInfo_t, since _v3
  std::array<char, 16> bus_id_legacy;
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  std::array<char, 32> bus_id;
};
static_assert(sizeof(NvmlPciInfo) == 68);

struct NvmlProcess {  // nvmlProcessInfo_t, since _v2
  unsigned pid;
  unsigned long long used_gpu_memory;
  unsigned gpu_instance_id, compute_instance_id;
};
static_assert(sizeof(NvmlProcess) == 24);

struct NvmlEvent {  // nvmlEventData_t, since _v2
  NvmlDevice device;
  unsigned long long type, data;
  unsigned gpu_instance_id, compute_instance_id;
};
static_assert(sizeof(NvmlEvent) == 32);

bool is_lost(int status) noexcept {
  return status == kGpuIsLost || status == kResetRequired || status == kGpuNotFound;
}

bool is_absent(int status) noexcept {
  return status == kNotSupported || status == kFunctionNotFound;
}

}  // namespace

template <class... Arguments>
int Nvml::ask(const char* name, Arguments... arguments) const {
  auto* function = library_.function<int(Arguments...)>(name);
  return function == nullptr ? kFunctionNotFound : function(arguments...);
}

template <class... Arguments>
void Nvml::require(const char* name, Arguments... arguments) const {
  const int status = ask(name, arguments...);
  if (status != kSuccess) fail(name, status);
}

template <class... Arguments>
bool Nvml::tells(const char* name, Arguments... arguments) const {
  const int status = ask(name, arguments...);
  if (is_lost(status)) fail(name, status);
  return status == kSuccess;
}

void Nvml::fail(const char* name, int status) const {
  auto* text = library_.function<const char*(int)>("nvmlErrorString");
  throw Error(is_lost(status) ? ErrorCode::not_found : ErrorCode::unavailable,
              fmt::format("{} failed with error {}{}{}",
                          name,
                          status,
                          text == nullptr ? "" : ": ",
                          text == nullptr ? "" : text(status)));
}

const char* Nvml::newest(std::initializer_list<const char*> names) const noexcept {
  const char* last = nullptr;
  for (const char* name : names) {
    last = name;
    if (library_.function<int()>(name) != nullptr) break;
  }
  return last;
}

Nvml::Nvml(const std::string& library) : library_(library) {
  if (!library_) throw Error(ErrorCode::unavailable, library_.problem());
  require("nvmlInit_v2");
}

Nvml::~Nvml() {
  if (events_ != nullptr) (void)ask("nvmlEventSetFree", events_);
  (void)ask("nvmlShutdown");
}

std::string Nvml::driver() const {
  std::array<char, 96> text = {};
  require("nvmlSystemGetDriverVersion", text.data(), static_cast<unsigned>(text.size()));
  return text.data();
}

unsigned Nvml::count() const {
  unsigned count = 0;
  require("nvmlDeviceGetCount_v2", &count);
  return count;
}

NvmlDevice Nvml::by_index(unsigned index) const {
  NvmlDevice device = nullptr;
  require("nvmlDeviceGetHandleByIndex_v2", index, &device);
  return device;
}

NvmlDevice Nvml::by_uuid(const std::string& uuid) const {
  NvmlDevice device = nullptr;
  const char* name = "nvmlDeviceGetHandleByUUID";
  const int status = ask(name, uuid.c_str(), &device);
  // The driver counts no device that fell off the bus.
  if (status == kNotFound) throw Error(ErrorCode::not_found, "the driver does not show it");
  if (status != kSuccess) fail(name, status);
  return device;
}

std::string Nvml::text_of(const char* name, NvmlDevice device) const {
  std::array<char, 96> text = {};
  require(name, device, text.data(), static_cast<unsigned>(text.size()));
  return text.data();
}

Device Nvml::describe(NvmlDevice device) const {
  Device described;
  described.uuid = text_of("nvmlDeviceGetUUID", device);
  described.name = text_of("nvmlDeviceGetName", device);
  NvmlPciInfo pci = {};
  require("nvmlDeviceGetPciInfo_v3", device, &pci);
  described.pci_bus_id = pci.bus_id.data();
  Sample sample;
  read_memory(device, sample);
  described.memory_bytes = sample.total_bytes;
  if (!tells("nvmlDeviceGetMinorNumber", device, &described.minor)) described.minor = 0;
  int major = 0;
  int minor = 0;
  if (tells("nvmlDeviceGetCudaComputeCapability", device, &major, &minor)) {
    described.compute_major = static_cast<std::uint32_t>(major);
    described.compute_minor = static_cast<std::uint32_t>(minor);
  }
  return described;
}

Sample Nvml::sample(NvmlDevice device) const {
  const auto number = [&](const char* name, unsigned of) {
    unsigned value = 0;
    return tells(name, device, of, &value) ? value : 0;
  };
  Sample sample;
  sample.taken_ns = now_ns();
  read_memory(device, sample);
  sample.sm_clock_mhz = number("nvmlDeviceGetClockInfo", kClockSm);
  sample.memory_clock_mhz = number("nvmlDeviceGetClockInfo", kClockMemory);
  sample.temperature_c = number("nvmlDeviceGetTemperature", kTemperatureGpu);
  unsigned long long throttle = 0;
  const char* reasons = newest(
      {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  if (tells(reasons, device, &throttle)) sample.throttle_reasons = throttle_names(throttle);
  sample.uncorrected_ecc_errors = uncorrected_errors(device);
  sample.processes = processes(device);
  return sample;
}

void Nvml::read_memory(NvmlDevice device, Sample& sample) const {
  const char* name = "nvmlDeviceGetMemoryInfo";
  NvmlMemory memory = {};
  const int status = ask(name, device, &memory);
  if (is_absent(status)) return;  // a device that shares the host's memory
  if (status != kSuccess) fail(name, status);
  sample.used_bytes = memory.used;
  sample.total_bytes = memory.total;
}

std::optional<std::uint64_t> Nvml::uncorrected_errors(NvmlDevice device) const {
  const char* total = "nvmlDeviceGetTotalEccErrors";
  const char* part = "nvmlDeviceGetMemoryErrorCounter";
  unsigned long long count = 0;
  if (newest({total, part}) == total) {
    if (!tells(total, device, kErrorUncorrected, kEccVolatile, &count)) return std::nullopt;
    return count;
  }
  // NVML announces that it drops the total. Nobody must mix both ways: their sums may differ.
  std::optional<std::uint64_t> sum;
  for (const unsigned location : {kLocationDram, kLocationSram}) {
    if (!tells(part, device, kErrorUncorrected, kEccVolatile, location, &count)) continue;
    sum = sum.value_or(0) + count;
  }
  return sum;
}

std::vector<Process> Nvml::processes(NvmlDevice device) const {
  constexpr int kAttempts = 3;  // there may be more of them each time
  const char* name = newest(
      {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
  std::vector<NvmlProcess> told(64);
  unsigned count = 0;
  int status = kInsufficientSize;
  for (int i = 0; i < kAttempts && status == kInsufficientSize; ++i) {
    if (i > 0) told.resize(2 * std::max<std::size_t>(told.size(), count));
    count = static_cast<unsigned>(told.size());
    status = ask(name, device, &count, told.data());
  }
  if (is_lost(status)) fail(name, status);
  std::vector<Process> processes;
  if (status != kSuccess) return processes;
  told.resize(std::min<std::size_t>(told.size(), count));
  for (const NvmlProcess& process : told) {
    processes.push_back({process.pid, std::nullopt});
    if (process.used_gpu_memory == kNotAvailable) continue;
    processes.back().used_bytes = process.used_gpu_memory;
  }
  return processes;
}

void Nvml::register_events(NvmlDevice device, const std::string& uuid) {
  if (events_ == nullptr) require("nvmlEventSetCreate", &events_);
  unsigned long long supported = 0;
  require("nvmlDeviceGetSupportedEventTypes", device, &supported);
  const unsigned long long wanted = supported & (kEventXid | kEventDoubleBit);
  if ((wanted & kEventXid) == 0) throw Error(ErrorCode::unavailable, "it does not tell of Xids");
  require("nvmlDeviceRegisterEvents", device, wanted, events_);
  registered_[device] = uuid;
}

std::vector<Event> Nvml::take_events() const {
  constexpr int kMost = 1000;  // of a storm; the rest is taken the next time
  constexpr unsigned kTimeoutMs = 1;
  std::vector<Event> events;
  if (events_ == nullptr) return events;
  for (int i = 0; i < kMost; ++i) {
    NvmlEvent told = {};
    // That there is none is an error, too; what is wrong with a device, its samples show.
    if (ask("nvmlEventSetWait_v2", events_, &told, kTimeoutMs) != kSuccess) break;
    Event event;
    event.at_ns = now_ns();
    // NVML is not asked: it may not tell the UUID of a device that has just been lost.
    const auto device = registered_.find(told.device);
    if (device != registered_.end()) event.uuid = device->second;
    event.xid = told.type == kEventXid ? static_cast<std::uint32_t>(told.data) : kXidDoubleBit;
    event.kind = xid_kind(event.xid);
    event.what = describe_xid(event.xid);
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace drk::gpu
