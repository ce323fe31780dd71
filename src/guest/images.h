// SPDX-License-Identifier: Apache-2.0
// Where code for the device came from: files of this process's address space, images in memory, and
// the rules that make an origin of the two. Nothing here asks the driver.
//
// Images are told apart by place, not by content: hashing them all would cost 10 ms before the
// first matrix product, and with no table of known images there is nothing to compare with.
#pragma once

#include "drk/task/observations.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace drk::guest {

/// The files mapped into a process, as /proc/<pid>/maps lists them.
class MapTable {
 public:
  MapTable() = default;
  explicit MapTable(std::string_view maps);

  /// The file that all of [address, address + bytes) lies in, or "". Of 0 bytes, the address
  /// counts. " (deleted)" is left out. Memory that no file backs, the heap and "[vdso]" are no
  /// file.
  [[nodiscard]] std::string_view file_at(std::uint64_t address, std::uint64_t bytes = 0) const;

 private:
  struct Region {
    std::uint64_t begin;
    std::uint64_t end;
    std::string file;
  };
  std::vector<Region> regions_;  ///< By address, without overlap.
};

/// An image as it was given to a load call.
struct Image {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  ///< 0: not known (PTX text).
};
/// Follows a wrapper to the fatbin behind it. `data` must be readable as far as its own header
/// says.
[[nodiscard]] Image image_at(const void* data);

/// The read-only installation: what no candidate wrote.
class Installation {
 public:
  /// `folders`, as the kernel spells paths (no link in them), beside /usr, /lib and /lib64.
  explicit Installation(std::vector<std::string> folders);
  /// False for relative paths, "/memfd:..." and scratch: /tmp and /dev/shm, unless a folder given
  /// lies there itself.
  [[nodiscard]] bool holds(std::string_view file) const;

 private:
  std::vector<std::string> folders_;  ///< Each with its slash.
};

/// One load call.
struct LoadSite {
  /// The file that the image is mapped from, or is loaded from by name. "" for memory of no file.
  std::string image_file = {};
  bool by_name = false;     ///< The driver was given a file name, not an address.
  std::string caller = {};  ///< The file of the first frame outside the driver and CUPTI; or "".
};

/// True for the driver, the runtime and CUPTI, wherever they lie: frames to look beyond.
[[nodiscard]] bool is_driver_file(std::string_view file);

/// In this order:
///   image in (or loaded by name from) a file of the installation    torch's: torch; else library
///   image in any other file                                         candidate_cuda
///   from Triton's driver helper, cuda_utils*.so                     candidate_triton
///   a .cubin by name, from libtorch_python                          torch_compile
///   any other file by name                                          candidate_cuda
///   image in memory, from a library of torch or of NVIDIA           torch, library
///   all else (ctypes, cuda.core, CuPy, an extension, no frame)      candidate_cuda
[[nodiscard]] task::KernelOrigin origin_of(const LoadSite& site, const Installation& installation);

}  // namespace drk::guest
