// SPDX-License-Identifier: Apache-2.0
// Xids: which are a candidate's doing, and which make a device sick.
//
// After NVIDIA's catalog (docs.nvidia.com/deploy/xid-errors): "restart the application" as the
// immediate action, without a sign of bad memory, is `candidate`; a reset, a reboot or support is
// `device`. Where we are stricter, the line says why.
#include "drk/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace drk::gpu {

namespace {

struct Xid {
  std::uint32_t number;
  XidKind kind;
  const char* what;
};

constexpr XidKind kCandidate = XidKind::candidate;
constexpr XidKind kDevice = XidKind::device;
constexpr XidKind kHarmless = XidKind::harmless;

constexpr auto kXids = std::to_array<Xid>({
    {8, kCandidate, "GPU stopped processing"},
    {11, kCandidate, "invalid or corrupted push buffer stream"},
    {13, kCandidate, "graphics engine exception"},  // bad address, bad instruction, trap
    {31, kCandidate, "GPU memory page fault"},
    {32, kCandidate, "invalid or corrupted push buffer stream"},
    {39, kCandidate, "copy engine exception"},
    {40, kCandidate, "copy engine exception"},
    {41, kCandidate, "copy engine exception"},
    {43, kCandidate, "GPU stopped processing"},  // the channel of a program that faulted
    {44, kCandidate, "graphics engine fault during context switch"},
    {45, kCandidate, "preemptive cleanup"},  // also of each process that we kill at work
    {46, kDevice, "GPU stopped processing"},
    {48, kDevice, "double-bit ECC error"},
    {54, kDevice, "auxiliary power is not connected"},
    {61, kDevice, "internal micro-controller breakpoint"},
    {62, kDevice, "internal micro-controller halt"},
    // A row was remapped. The catalog lets work go on; but the repair waits for a reset, and it
    // tells of errors that a result may have met.
    {63, kDevice, "ECC page retirement or row remapping recorded"},
    {64, kDevice, "ECC page retirement or row remapping failed"},
    {68, kCandidate, "video decoder exception"},
    {69, kCandidate, "graphics engine class error"},
    {70, kCandidate, "copy engine exception"},
    {71, kCandidate, "copy engine exception"},
    {72, kCandidate, "copy engine exception"},
    {74, kDevice, "NVLink error"},
    {75, kCandidate, "copy engine exception"},
    {76, kCandidate, "copy engine exception"},
    {77, kCandidate, "copy engine exception"},
    {78, kDevice, "vGPU start error"},
    {79, kDevice, "GPU has fallen off the bus"},
    {80, kDevice, "corrupted data sent to the GPU"},
    {85, kCandidate, "copy engine exception"},
    {92, kHarmless, "high rate of single-bit ECC errors"},  // every one of them was corrected
    {93, kHarmless, "InfoROM erase limit exceeded"},
    // The catalog restarts the application. It was not the application's fault, and the memory is
    // bad until the device is reset.
    {94, kDevice, "contained ECC error"},
    {95, kDevice, "uncontained ECC error"},
    {106, kHarmless, "SMBus test message"},
    {107, kHarmless, "SMBus test message"},
    {109, kCandidate, "context switch timeout"},  // a kernel that cannot be preempted
    {110, kDevice, "security fault"},
    {119, kDevice, "GSP firmware does not answer"},
    {120, kDevice, "GSP firmware error"},
    {121, kDevice, "C2C link error"},
    {122, kDevice, "SPI read failure"},
    {123, kDevice, "SPI write failure"},
    {124, kDevice, "SPI erase failure"},
    {125, kDevice, "InfoROM failure"},
    {136, kDevice, "link training failed"},
    {137, kCandidate, "NVLink access without privilege"},
    {140, kDevice, "unrecovered ECC error"},
    {143, kDevice, "GPU initialization failed"},
    {144, kDevice, "NVLink error"},
    {145, kDevice, "NVLink error"},
    {146, kDevice, "NVLink error"},
    {147, kDevice, "NVLink error"},
    {148, kDevice, "NVLink error"},
    {149, kDevice, "NVLink error"},
    {150, kDevice, "NVLink error"},
    {151, kDevice, "key rotation error"},
    {154, kDevice, "GPU needs recovery"},
    {155, kDevice, "NVLink software error"},
    {156, kDevice, "resource retirement recorded"},  // as 63
    {157, kDevice, "resource retirement failed"},
    {158, kDevice, "GPU fatal timeout"},
});

const Xid* find(std::uint32_t xid) noexcept {
  const auto* found =
      std::find_if(kXids.begin(), kXids.end(), [=](const Xid& x) { return x.number == xid; });
  return found == kXids.end() ? nullptr : found;
}

}  // namespace

XidKind xid_kind(std::uint32_t xid) noexcept {
  const Xid* found = find(xid);
  return found == nullptr ? kDevice : found->kind;
}

std::string describe_xid(std::uint32_t xid) {
  const Xid* found = find(xid);
  return fmt::format("Xid {}: {}", xid, found == nullptr ? "not known here" : found->what);
}

}  // namespace drk::gpu
