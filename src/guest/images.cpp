// SPDX-License-Identifier: Apache-2.0
// /proc/self/maps, ELF and fatbin headers, origins.
#include "guest/images.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace drk::guest {

namespace {

using task::KernelOrigin;

constexpr std::uint32_t kElfMagic = 0x464C457F;     // 7f 'E' 'L' 'F'
constexpr std::uint32_t kFatbinMagic = 0xBA55ED50;  // then u16 version, u16 header bytes, u64 bytes
constexpr std::uint32_t kFatbinWrapperMagic = 0x466243B1;  // u32 version, then the fatbin's address

template <class T>
T read_at(const void* data, std::size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + offset, sizeof value);
  return value;
}

/// Cubins end with one of their two tables.
std::uint64_t elf_bytes(const void* elf) {
  const auto program_headers = read_at<std::uint64_t>(elf, 32);
  const auto section_headers = read_at<std::uint64_t>(elf, 40);
  const std::uint64_t program_bytes =
      std::uint64_t{read_at<std::uint16_t>(elf, 54)} * read_at<std::uint16_t>(elf, 56);
  const std::uint64_t section_bytes =
      std::uint64_t{read_at<std::uint16_t>(elf, 58)} * read_at<std::uint16_t>(elf, 60);
  return std::max(program_headers + program_bytes, section_headers + section_bytes);
}

std::string_view file_name(std::string_view file) {
  return file.substr(file.rfind('/') + 1);  // npos + 1 is 0
}

template <std::size_t N>
bool begins_with_one_of(std::string_view text, const std::array<std::string_view, N>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(), [&](std::string_view beginning) {
    return text.starts_with(beginning);
  });
}

bool is_torch_file(std::string_view file) {
  return begins_with_one_of(file_name(file), std::array<std::string_view, 2>{"libtorch", "libc10"});
}

/// Libraries that make kernels at run time and load them from the heap.
bool is_vendor_file(std::string_view file) {
  constexpr std::array<std::string_view, 11> kNames = {"libcublas",
                                                       "libcudnn",
                                                       "libcufft",
                                                       "libcurand",
                                                       "libcusolver",
                                                       "libcusparse",
                                                       "libcutensor",
                                                       "libnccl",
                                                       "libnpp",
                                                       "libnvjpeg",
                                                       "libnvshmem"};
  return begins_with_one_of(file_name(file), kNames);
}

/// Cuts the text before the first space off `line`, and the spaces behind it.
std::string_view take_field(std::string_view& line) {
  const std::string_view field = line.substr(0, line.find(' '));
  line.remove_prefix(field.size());
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
  return field;
}

std::uint64_t read_hex(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

}  // namespace

// A line: "7f00-7f80 r-xp 00001000 fd:01 1234      /usr/lib/libc.so.6". The sixth field counts only
// as a whole: a process may name its anonymous memory "[anon:/usr/lib/libc.so.6]".
MapTable::MapTable(std::string_view maps) {
  while (!maps.empty()) {
    std::string_view line = maps.substr(0, maps.find('\n'));
    maps.remove_prefix(std::min(maps.size(), line.size() + 1));
    const std::string_view range = take_field(line);
    for (int i = 0; i < 4; ++i) (void)take_field(line);
    constexpr std::string_view kDeleted = " (deleted)";
    if (line.ends_with(kDeleted)) line.remove_suffix(kDeleted.size());
    const std::size_t dash = range.find('-');
    if (!line.starts_with('/') || dash == range.npos) continue;
    regions_.push_back(
        {read_hex(range.substr(0, dash)), read_hex(range.substr(dash + 1)), std::string(line)});
  }
  std::sort(regions_.begin(), regions_.end(), [](const Region& a, const Region& b) {
    return a.begin < b.begin;
  });
}

std::string_view MapTable::file_at(std::uint64_t address, std::uint64_t bytes) const {
  auto region = std::upper_bound(
      regions_.begin(), regions_.end(), address, [](std::uint64_t value, const Region& candidate) {
        return value < candidate.begin;
      });
  if (region == regions_.begin()) return {};
  --region;
  if (address >= region->end) return {};
  const std::string_view file = region->file;
  const std::uint64_t end = address + bytes;
  if (end < address) return {};
  // A file lies in several regions, one behind the other, as its protections differ.
  while (end > region->end) {
    const std::uint64_t reached = region->end;
    ++region;
    if (region == regions_.end() || region->begin != reached || region->file != file) return {};
  }
  return file;
}

Image image_at(const void* data) {
  if (data == nullptr) return {};
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  switch (read_at<std::uint32_t>(data, 0)) {
    case kElfMagic:
      return {address, elf_bytes(data)};
    case kFatbinMagic:
      return {address, read_at<std::uint16_t>(data, 6) + read_at<std::uint64_t>(data, 8)};
    case kFatbinWrapperMagic: {
      const void* fatbin = read_at<const void*>(data, 8);
      // A wrapper of a wrapper is none: one step only.
      if (fatbin == nullptr || read_at<std::uint32_t>(fatbin, 0) == kFatbinWrapperMagic) break;
      return image_at(fatbin);
    }
    default:
      break;
  }
  return {address, 0};
}

Installation::Installation(std::vector<std::string> folders) : folders_(std::move(folders)) {
  folders_.insert(folders_.end(), {"/usr", "/lib", "/lib64"});
  std::erase_if(folders_, [](const std::string& folder) {
    return folder.size() < 2 || !folder.starts_with('/');
  });
  for (std::string& folder : folders_) {
    if (!folder.ends_with('/')) folder += '/';
  }
}

bool Installation::holds(std::string_view file) const {
  return std::any_of(folders_.begin(), folders_.end(), [&](const std::string& folder) {
    return file.starts_with(folder);
  });
}

bool is_driver_file(std::string_view file) {
  constexpr std::array<std::string_view, 4> kNames = {
      "libcuda.so", "libcudart", "libcupti", "libnvidia-"};
  return begins_with_one_of(file_name(file), kNames);
}

task::KernelOrigin origin_of(const LoadSite& site, const Installation& installation) {
  if (installation.holds(site.image_file)) {
    return is_torch_file(site.image_file) ? KernelOrigin::torch : KernelOrigin::library;
  }
  if (!site.image_file.empty() && !site.by_name) return KernelOrigin::candidate_cuda;
  const std::string_view caller = file_name(site.caller);
  if (caller.starts_with("cuda_utils") && caller.find(".so") != caller.npos) {
    return KernelOrigin::candidate_triton;
  }
  if (!installation.holds(site.caller)) return KernelOrigin::candidate_cuda;
  if (site.by_name) {
    const bool is_inductor =
        caller.starts_with("libtorch_python") && site.image_file.ends_with(".cubin");
    return is_inductor ? KernelOrigin::torch_compile : KernelOrigin::candidate_cuda;
  }
  if (is_torch_file(site.caller)) return KernelOrigin::torch;
  return is_vendor_file(site.caller) ? KernelOrigin::library : KernelOrigin::candidate_cuda;
}

}  // namespace drk::guest
