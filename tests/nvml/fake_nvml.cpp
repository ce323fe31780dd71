// SPDX-License-Identifier: Apache-2.0
// A stand-in for libnvidia-ml.so.1, for faults that nobody can provoke on a real GPU: a device that
// falls off the bus, an ECC error, a call that hangs.
//
// It is loaded into a process that the test does not control, so a file steers it: `state`, in the
// library's own folder, read anew by each call. A line is a word and numbers, D the index of a
// device:
//
//   devices N         there are N of them, GPU-fake-0 ...; 2 without this line
//   no_driver         nvmlInit fails
//   used D BYTES      memory in use
//   process D PID BYTES
//   throttle D BITS   in decimal
//   ecc D COUNT       uncorrected errors
//   lost D            has fallen off the bus
//   failing D         calls about it fail with an unknown error
//   unsupported       devices tell nothing that they need not
//   hang              calls about devices never return
//   crash             calls about devices end the process by signal 9
//   event TYPE D DATA the first line of this kind is the first event, and so on
//
// With DRK_OLD_NVML it is an NVML of years ago: without newer functions, with their older names.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <signal.h>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;
constexpr int kDriverNotLoaded = 9;
constexpr int kTimeout = 10;
constexpr int kGpuIsLost = 15;
constexpr int kUnknown = 999;

using Number = unsigned long long;

struct Line {
  std::string word;
  std::vector<Number> numbers;
};

std::vector<Line> read_state() {
  Dl_info self = {};
  ::dladdr(reinterpret_cast<const void*>(&read_state), &self);
  const std::string path(self.dli_fname);
  std::ifstream file(path.substr(0, path.rfind('/')) + "/state");
  std::vector<Line> lines;
  for (std::string text; std::getline(file, text);) {
    std::istringstream words(text);
    Line line;
    words >> line.word;
    for (Number number = 0; words >> number;) line.numbers.push_back(number);
    lines.push_back(line);
  }
  return lines;
}

bool says(const std::string& word) {
  const std::vector<Line> lines = read_state();
  return std::any_of(
      lines.begin(), lines.end(), [&](const Line& line) { return line.word == word; });
}

/// The lines about a device, without its index.
std::vector<std::vector<Number>> about(const std::string& word, unsigned device) {
  std::vector<std::vector<Number>> found;
  for (const Line& line : read_state()) {
    if (line.word != word || line.numbers.at(0) != device) continue;
    found.emplace_back(line.numbers.begin() + 1, line.numbers.end());
  }
  return found;
}

Number number_of(const std::string& word, unsigned device) {
  const auto found = about(word, device);
  return found.empty() ? 0 : found[0].at(0);
}

/// A handle is the address of one of these.
std::array<unsigned, 16> devices = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

unsigned index_of(const void* device) {
  return *static_cast<const unsigned*>(device);
}

unsigned device_count() {
  for (const Line& line : read_state()) {
    if (line.word == "devices") return static_cast<unsigned>(line.numbers.at(0));
  }
  return 2;
}

int status_of(const void* device) {
  while (says("hang")) ::pause();
  if (says("crash")) ::raise(SIGKILL);
  if (!about("lost", index_of(device)).empty()) return kGpuIsLost;
  if (!about("failing", index_of(device)).empty()) return kUnknown;
  return kSuccess;
}

/// Of what a device may not support.
int status_of_optional(const void* device) {
  const int status = status_of(device);
  return status == kSuccess && says("unsupported") ? kNotSupported : status;
}

template <class T>
int tell(int status, T* into, T value) {
  if (status == kSuccess) *into = value;
  return status;
}

int tell_text(int status, char* into, unsigned size, const std::string& text) {
  if (status == kSuccess) std::snprintf(into, size, "%s", text.c_str());
  return status;
}

std::string uuid_of(unsigned index) {
  return "GPU-fake-" + std::to_string(index);
}

struct Memory {
  Number total, free, used;
};
struct Pci {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
};
struct Process {
  unsigned pid;
  Number used;
  unsigned gpu_instance, compute_instance;
};
struct Event {
  void* device;
  Number type, data;
  unsigned gpu_instance, compute_instance;
};

int tell_processes(const void* device, unsigned* count, Process* processes) {
  const int status = status_of_optional(device);
  if (status != kSuccess) return status;
  const auto lines = about("process", index_of(device));
  const auto room = *count;
  *count = static_cast<unsigned>(lines.size());
  if (lines.size() > room) return kInsufficientSize;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Number used = lines[i].size() > 1 ? lines[i][1] : ~Number{0};
    processes[i] = {static_cast<unsigned>(lines[i].at(0)), used, ~0U, ~0U};
  }
  return kSuccess;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are NVML's
extern "C" {

int nvmlInit_v2() {
  return says("no_driver") ? kDriverNotLoaded : kSuccess;
}

int nvmlShutdown() {
  return kSuccess;
}

const char* nvmlErrorString(int status) {
  return status == kGpuIsLost ? "GPU is lost" : "Some Error";
}

int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return tell_text(kSuccess, text, size, "580.65.06");
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  return tell(kSuccess, count, device_count());
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  return tell<void*>(status_of(&devices.at(index)), device, &devices.at(index));
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  for (unsigned i = 0; i < device_count(); ++i) {
    if (uuid == uuid_of(i)) return nvmlDeviceGetHandleByIndex_v2(i, device);
  }
  return kNotFound;
}

int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  return tell_text(status_of(device), text, size, uuid_of(index_of(device)));
}

int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  return tell_text(status_of(device), text, size, "NVIDIA Fake");
}

int nvmlDeviceGetPciInfo_v3(void* device, Pci* pci) {
  const unsigned bus = 0x1b + index_of(device);
  std::snprintf(pci->legacy, sizeof(pci->legacy), "0000:%02X:00.0", bus);
  std::snprintf(pci->bus_id, sizeof(pci->bus_id), "00000000:%02X:00.0", bus);
  return status_of(device);
}

int nvmlDeviceGetMinorNumber(void* device, unsigned* minor_number) {
  return tell(status_of_optional(device), minor_number, index_of(device) + 3);
}

int nvmlDeviceGetCudaComputeCapability(void* device, int* major_number, int* minor_number) {
  *minor_number = 1;
  return tell(status_of_optional(device), major_number, 9);
}

int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  constexpr Number kTotal = Number{80} << 30;
  const Number used = number_of("used", index_of(device));
  return tell(status_of_optional(device), memory, Memory{kTotal, kTotal - used, used});
}

int nvmlDeviceGetClockInfo(void* device, unsigned type, unsigned* mhz) {
  return tell(status_of_optional(device), mhz, type == 1 ? 1980U : 2619U);
}

int nvmlDeviceGetTemperature(void* device, unsigned sensor, unsigned* degrees) {
  return tell(status_of_optional(device), degrees, sensor == 0 ? 41U : 0U);
}

#ifdef DRK_OLD_NVML

int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, Number* bits) {
  return tell(status_of_optional(device), bits, number_of("throttle", index_of(device)));
}

int nvmlDeviceGetComputeRunningProcesses_v2(void* device, unsigned* count, Process* processes) {
  return tell_processes(device, count, processes);
}

#else

int nvmlDeviceGetCurrentClocksEventReasons(void* device, Number* bits) {
  return tell(status_of_optional(device), bits, number_of("throttle", index_of(device)));
}

int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, Process* processes) {
  return tell_processes(device, count, processes);
}

int nvmlDeviceGetTotalEccErrors(void* device, unsigned type, unsigned counter, Number* count) {
  const bool is_uncorrected_volatile = type == 1 && counter == 0;
  const Number errors = is_uncorrected_volatile ? number_of("ecc", index_of(device)) : 1'000'000;
  return tell(status_of_optional(device), count, errors);
}

int nvmlEventSetCreate(void** set) {
  return tell<void*>(kSuccess, set, &devices);
}

int nvmlEventSetFree(void*) {
  return kSuccess;
}

int nvmlDeviceGetSupportedEventTypes(void* device, Number* types) {
  return tell(status_of(device), types, Number{0x1f});
}

int nvmlDeviceRegisterEvents(void* device, Number types, void* set) {
  const bool is_meant = types == 0xa && set == &devices;
  return is_meant ? status_of_optional(device) : kUnknown;
}

int nvmlEventSetWait_v2(void*, Event* event, unsigned timeout_ms) {
  static std::size_t delivered = 0;  // by this process
  std::vector<Line> events = read_state();
  std::erase_if(events, [](const Line& line) { return line.word != "event"; });
  if (events.size() <= delivered) {
    ::usleep(timeout_ms * 1000);
    return kTimeout;
  }
  const std::vector<Number>& numbers = events[delivered++].numbers;
  *event = {&devices.at(numbers.at(1)), numbers.at(0), numbers.at(2), ~0U, ~0U};
  return kSuccess;
}

#endif

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
