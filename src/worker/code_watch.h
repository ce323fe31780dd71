// SPDX-License-Identifier: Apache-2.0
// Machine code of a guest, looked at from outside: was any of what was there before its candidate's
// first line rewritten?
//
// The guest's core opens its own /proc/self/maps, pagemap and mem while nothing else has run in the
// process, and hands the descriptors over: they go on showing that memory, to a worker without any
// privilege, whatever the process does later. Code comes from files, so a page of it that is the
// process's own has been written to, even if its bytes were put back.
#pragma once

#include "drk/base/fd.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace drk::worker {

/// One line of /proc/PID/maps.
struct MappedRange {
  std::uint64_t begin = 0, end = 0;  ///< Addresses.
  std::uint64_t offset = 0;          ///< Of `begin`, in the file.
  std::string permissions;           ///< "r-xp"
  std::string device;
  std::uint64_t inode = 0;  ///< 0: no file.
  std::string name;         ///< Of the file, "[vdso]" or the like; may be empty.

  [[nodiscard]] bool is_code_of_file() const noexcept {
    return inode != 0 && permissions.find('x') != std::string::npos;
  }
};
/// Lines that are none of a maps file are left out.
[[nodiscard]] std::vector<MappedRange> parse_maps(std::string_view text);

/// Not thread-safe.
class CodeWatch {
 public:
  /// `proc`: maps, pagemap and mem. Throws Error{unavailable} when they cannot be read.
  explicit CodeWatch(std::vector<Fd> proc);
  /// Sentences; empty when all is as it was, and when the process has ended.
  [[nodiscard]] std::vector<std::string> changes() const;

 private:
  /// Of which bytes are compared, too: what code jumps through, and the clock.
  struct Sealed {
    MappedRange range;
    std::string sha256;
  };
  [[nodiscard]] std::vector<MappedRange> ranges() const;
  /// Addresses of the range's pages that are no longer the file's.
  [[nodiscard]] std::vector<std::uint64_t> own_pages(const MappedRange& range) const;
  [[nodiscard]] std::string hash_of(const MappedRange& range) const;

  Fd maps_, pagemap_, memory_;
  std::vector<MappedRange> code_;
  std::vector<std::uint64_t> own_pages_;  ///< That were there from the beginning; in order.
  std::vector<Sealed> sealed_;
};

}  // namespace drk::worker
