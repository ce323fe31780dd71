// SPDX-License-Identifier: Apache-2.0
// The GPUs of this machine as NVIDIA's management library (NVML) knows them, and whether one of
// them is sick. NVML is opened at run time: without it everything says so, and nothing fails.
#pragma once

#include <boost/describe.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace drk::gpu {

struct Device {
  std::string uuid;        ///< "GPU-…"
  std::string pci_bus_id;  ///< "00000000:1B:00.0"
  std::string name;
  std::uint32_t minor = 0;  ///< Of /dev/nvidiaN; 0 where NVML does not tell (WSL).
  std::uint64_t memory_bytes = 0;
  std::uint32_t compute_major = 0;
  std::uint32_t compute_minor = 0;
};
BOOST_DESCRIBE_STRUCT(Device,
                      (),
                      (uuid, pci_bus_id, name, minor, memory_bytes, compute_major, compute_minor))

/// Part of it may be there together with a problem: seven GPUs, and why the eighth is not.
struct Listing {
  std::vector<Device> devices;
  std::string driver;   ///< "580.65.06"; empty without NVML.
  std::string problem;  ///< Why there is no NVML, no device, or one device less.
};
BOOST_DESCRIBE_STRUCT(Listing, (), (devices, driver, problem))

inline constexpr const char* kNvml = "libnvidia-ml.so.1";

/// Takes 20 s at most: a sick GPU makes NVML hang, so it is asked in a child. Throws nothing that
/// NVML causes. Forks, so call it before other threads are started.
[[nodiscard]] Listing list_devices(const std::string& library = kNvml);

/// Whose doing an Xid is, the driver's number for what went wrong on a GPU.
enum class XidKind : std::uint8_t {
  candidate,  ///< What a wrong kernel can do; the device goes on.
  device,     ///< Hardware, firmware or driver: the device must not be used before it is reset.
  harmless,   ///< Neither a wrong result nor its cause.
};
BOOST_DESCRIBE_ENUM(XidKind, candidate, device, harmless)

/// An Xid that the table (src/gpu/xid.cpp) does not have is the device's: a wrong verdict costs
/// more than a device that is out of use.
[[nodiscard]] XidKind xid_kind(std::uint32_t xid) noexcept;
/// "Xid 31: GPU memory page fault"
[[nodiscard]] std::string describe_xid(std::uint32_t xid);

struct Process {
  std::uint32_t pid = 0;  ///< As the driver counts; in a container NVML may show none, or others.
  std::optional<std::uint64_t> used_bytes;
};
BOOST_DESCRIBE_STRUCT(Process, (), (pid, used_bytes))

/// One look at a device. What NVML does not tell of it is 0, empty or absent.
struct Sample {
  std::uint64_t used_bytes = 0;  ///< With what the driver keeps for itself.
  std::uint64_t total_bytes = 0;
  std::uint32_t sm_clock_mhz = 0;
  std::uint32_t memory_clock_mhz = 0;
  std::uint32_t temperature_c = 0;
  std::vector<std::string> throttle_reasons;  ///< "sw_power_cap"; "gpu_idle" slows nothing down.
  std::optional<std::uint64_t> uncorrected_ecc_errors;  ///< Since the driver was loaded.
  std::vector<Process> processes;                       ///< That compute.
  std::int64_t taken_ns = 0;                            ///< By now_ns.
};
BOOST_DESCRIBE_STRUCT(Sample,
                      (),
                      (used_bytes,
                       total_bytes,
                       sm_clock_mhz,
                       memory_clock_mhz,
                       temperature_c,
                       throttle_reasons,
                       uncorrected_ecc_errors,
                       processes,
                       taken_ns))

struct Event {
  std::int64_t at_ns = 0;  ///< By now_ns, when NVML was asked; the driver knew up to 50 ms before.
  std::string uuid;
  std::uint32_t xid = 0;  ///< 48, as in the driver's log, for a double-bit error without one.
  XidKind kind = XidKind::device;
  std::string what;  ///< describe_xid(xid)
};
BOOST_DESCRIBE_STRUCT(Event, (), (at_ns, uuid, xid, kind, what))

struct WatchOptions {
  std::string library = kNvml;
  std::chrono::milliseconds interval{1000};      ///< Between two samples of a device.
  std::chrono::milliseconds hang_limit{10'000};  ///< A device of which nothing is heard is sick.
};

/// Watches devices from construction to destruction. Thread-safe.
///
/// A call of NVML may hang for good, inside the kernel, where no signal reaches it. So every call
/// is made by a child process, and a thread of ours reads what the child sends. What hangs is the
/// child: our threads wait for it no longer than `hang_limit`, the destructor kills it and waits
/// two seconds at most, and this process can always exit.
class Watch {
 public:
  /// Without NVML all devices are sick. Forks, which other threads may live through: the child
  /// needs none of our locks, and glibc keeps malloc and dlopen usable in it. Were it to hang all
  /// the same, that is a silence as any other.
  explicit Watch(const std::vector<Device>& devices, WatchOptions options = {});
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();

  /// The last one; none before the first. Throws Error{not_found} for a device that is not watched,
  /// as do the next two.
  [[nodiscard]] std::optional<Sample> sample(const std::string& uuid) const;
  /// Takes one now. Events that NVML has by then are in `events_since` when this returns. Throws
  /// Error{unavailable} when the device is sick or NVML fails, Error{timed_out} after `hang_limit`.
  [[nodiscard]] Sample sample_now(const std::string& uuid);
  /// Why this device must not be given out. It lost contact, had an Xid of kind `device`, or has
  /// more uncorrected memory errors than at the first sample: this stays, until a new Watch. Or
  /// nothing was heard of it for `hang_limit`: this ends when something is heard again.
  [[nodiscard]] std::optional<std::string> sickness(const std::string& uuid) const;
  /// The latest thousand at most, in the order they were heard of.
  [[nodiscard]] std::vector<Event> events_since(std::int64_t at_ns) const;
  /// What is not watched, and why; mostly empty.
  [[nodiscard]] std::string problem() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drk::gpu
