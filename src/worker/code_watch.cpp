// SPDX-License-Identifier: Apache-2.0
#include "worker/code_watch.h"

#include "drk/base/error.h"
#include "drk/base/hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <unistd.h>

namespace drk::worker {

namespace {

constexpr std::uint64_t kPageBytes = 4096;
// Of an entry of pagemap, see proc_pid_pagemap(5).
constexpr std::uint64_t kPresent = std::uint64_t{1} << 63U;
constexpr std::uint64_t kSwapped = std::uint64_t{1} << 62U;
constexpr std::uint64_t kOfFile = std::uint64_t{1} << 61U;

std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

bool parse(std::string_view text, int base, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc{} && end == text.data() + text.size();
}

std::string base_name(const std::string& name) {
  return name.substr(name.rfind('/') + 1);
}

/// Modules whose read-only data, made when they were loaded, say where their calls go.
bool is_sealed(const MappedRange& range) {
  if (range.name == "[vdso]") return true;
  const bool is_constant = range.permissions == "r--p" && range.inode != 0;
  const std::string name = base_name(range.name);
  return is_constant && (name == "_drk_guest.abi3.so" || name.starts_with("libc.so") ||
                         name.starts_with("ld-linux"));
}

/// As far as the descriptor gives it.
std::string read_whole(const Fd& fd) {
  std::string text;
  std::array<char, 65536> part = {};
  for (;;) {
    const ssize_t n = ::pread(fd.get(), part.data(), part.size(), static_cast<off_t>(text.size()));
    if (n <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(n));
  }
}

/// Whether all of `range` is still mapped as it was, by one or more of `now`, in order.
bool is_still_mapped(const MappedRange& range, const std::vector<MappedRange>& now) {
  std::uint64_t covered = range.begin;
  for (const MappedRange& it : now) {
    if (it.end <= covered) continue;
    if (it.begin > covered || covered >= range.end) break;
    const bool same = it.inode == range.inode && it.device == range.device &&
                      it.permissions == range.permissions &&
                      it.offset - it.begin == range.offset - range.begin;
    if (!same) break;
    covered = it.end;
  }
  return covered >= range.end;
}

}  // namespace

std::vector<MappedRange> parse_maps(std::string_view text) {
  std::vector<MappedRange> ranges;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    MappedRange range;
    const std::string_view addresses = next_word(line);
    const std::size_t dash = addresses.find('-');
    range.permissions = next_word(line);
    const std::string_view offset = next_word(line);
    range.device = next_word(line);
    const std::string_view inode = next_word(line);
    if (dash == addresses.npos || !parse(addresses.substr(0, dash), 16, range.begin) ||
        !parse(addresses.substr(dash + 1), 16, range.end) || !parse(offset, 16, range.offset) ||
        !parse(inode, 10, range.inode) || range.end < range.begin) {
      continue;
    }
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    range.name = line;
    ranges.push_back(std::move(range));
  }
  return ranges;
}

CodeWatch::CodeWatch(std::vector<Fd> proc) {
  if (proc.size() != 3) {
    throw Error(ErrorCode::unavailable,
                "worker: a guest's memory cannot be looked at from outside");
  }
  maps_ = std::move(proc[0]);
  pagemap_ = std::move(proc[1]);
  memory_ = std::move(proc[2]);
  for (MappedRange& range : ranges()) {
    if (is_sealed(range)) sealed_.push_back({range, hash_of(range)});
    if (!range.is_code_of_file()) continue;
    const std::vector<std::uint64_t> own = own_pages(range);
    own_pages_.insert(own_pages_.end(), own.begin(), own.end());
    code_.push_back(std::move(range));
  }
  if (code_.empty()) {
    throw Error(ErrorCode::unavailable, "worker: a guest's memory cannot be read from outside");
  }
}

std::vector<std::string> CodeWatch::changes() const {
  std::vector<std::string> found;
  const std::vector<MappedRange> now = ranges();
  if (now.empty()) return found;
  for (const MappedRange& range : code_) {
    if (!is_still_mapped(range, now)) {
      found.push_back(fmt::format("code of {} is no longer mapped as it was", range.name));
      continue;
    }
    std::vector<std::uint64_t> own = own_pages(range);
    std::erase_if(own, [&](std::uint64_t page) {
      return std::binary_search(own_pages_.begin(), own_pages_.end(), page);
    });
    if (own.empty()) continue;
    found.push_back(
        fmt::format("{} pages of code of {} were written to, the first at {:#x} of the "
                    "file",
                    own.size(),
                    range.name,
                    own.front() - range.begin + range.offset));
  }
  for (const Sealed& sealed : sealed_) {
    if (is_still_mapped(sealed.range, now) && hash_of(sealed.range) == sealed.sha256) continue;
    found.push_back(fmt::format("read-only data of {} was altered", sealed.range.name));
  }
  return found;
}

std::vector<MappedRange> CodeWatch::ranges() const {
  return parse_maps(read_whole(maps_));
}

std::vector<std::uint64_t> CodeWatch::own_pages(const MappedRange& range) const {
  std::vector<std::uint64_t> own;
  std::vector<std::uint64_t> entries((range.end - range.begin) / kPageBytes);
  const std::size_t bytes = entries.size() * sizeof(std::uint64_t);
  const auto from = static_cast<off_t>(range.begin / kPageBytes * sizeof(std::uint64_t));
  const ssize_t n = ::pread(pagemap_.get(), entries.data(), bytes, from);
  if (n < 0) throw_errno("pread of a guest's pagemap");
  entries.resize(static_cast<std::size_t>(n) / sizeof(std::uint64_t));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool is_present = (entries[i] & (kPresent | kSwapped)) != 0;
    if (is_present && (entries[i] & kOfFile) == 0) own.push_back(range.begin + i * kPageBytes);
  }
  return own;
}

std::string CodeWatch::hash_of(const MappedRange& range) const {
  std::string bytes(range.end - range.begin, '\0');
  const ssize_t n =
      ::pread(memory_.get(), bytes.data(), bytes.size(), static_cast<off_t>(range.begin));
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  return sha256_hex(bytes);
}

}  // namespace drk::worker
