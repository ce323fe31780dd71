// SPDX-License-Identifier: Apache-2.0
// Blocks.
#include "worker/memory.h"

#include "drk/base/error.h"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <system_error>
#include <thread>
#include <vector>

namespace drk::worker {

namespace {

constexpr std::size_t kLargePageBytes = std::size_t{2} << 20U;

/// Calls `work(begin, end)` for parts of [0, size_bytes), by several threads where that pays: most
/// of the time goes into the pages that the kernel makes.
template <class Work>
void in_parts(std::size_t size_bytes, const Work& work) {
  constexpr std::size_t kWorthwhile = std::size_t{32} << 20U;
  constexpr std::size_t kThreads = 8;
  if (size_bytes < kWorthwhile) return work(std::size_t{0}, size_bytes);
  const std::size_t part = size_bytes / kThreads / kLargePageBytes * kLargePageBytes;
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    const std::size_t end = i + 1 == kThreads ? size_bytes : part * (i + 1);
    threads.emplace_back([=] { work(part * i, end); });
  }
}

void copy_bytes(std::byte* to, std::span<const std::byte> from) {
  if (from.empty()) return;
  in_parts(from.size(), [to, from](std::size_t begin, std::size_t end) {
    std::memcpy(to + begin, from.data() + begin, end - begin);
  });
}

/// Large pages where the system lets shared memory have them.
void advise_large_pages(const Mapping& mapping, std::size_t size_bytes) noexcept {
  if (size_bytes >= kLargePageBytes) (void)::madvise(mapping.data(), size_bytes, MADV_HUGEPAGE);
}

}  // namespace

Block seal_block(value::Bundle bundle, Fd memory) {
  if (!memory) memory = make_shared_memory("empty", 0);
  const std::size_t size_bytes = file_size_bytes(memory.get());
  value::check(bundle, size_bytes);
  // Copies are made of the whole block, into others whose descriptions are the same.
  if (bundle.block_bytes != size_bytes) {
    throw Error(ErrorCode::corrupt, "a guest described less memory than it handed over");
  }
  if (!seal_against_writes(memory.get())) {
    throw Error(ErrorCode::corrupt, "a guest kept its output writable after it had handed it over");
  }
  Block block;
  block.bundle = std::move(bundle);
  block.mapping = Mapping::shared(memory.get(), size_bytes, false);
  block.memory = std::move(memory);
  return block;
}

WritableCopy copy_memory(const Block& block) {
  const std::size_t size_bytes = block.mapping.bytes().size();
  WritableCopy copy;
  copy.memory = make_shared_memory("inputs", size_bytes);
  copy.mapping = Mapping::shared(copy.memory.get(), size_bytes, true);
  advise_large_pages(copy.mapping, size_bytes);
  rewrite(copy, block);
  return copy;
}

void commit(int memory_fd, std::uint64_t size_bytes) {
  if (size_bytes == 0) return;
  const Mapping mapping = Mapping::shared(memory_fd, size_bytes, true);
  advise_large_pages(mapping, size_bytes);
  std::atomic<int> failure = 0;
  in_parts(size_bytes, [&](std::size_t begin, std::size_t end) {
    if (::madvise(mapping.data() + begin, end - begin, MADV_POPULATE_WRITE) != 0) failure = errno;
  });
  // Before Linux 5.14 there is no such advice.
  if (failure == EINVAL) failure = ::posix_fallocate(memory_fd, 0, static_cast<off_t>(size_bytes));
  if (failure == 0) return;
  throw Error(ErrorCode::exhausted,
              fmt::format("worker: no {} MiB of shared memory: {}",
                          size_bytes >> 20U,
                          std::generic_category().message(failure)));
}

void rewrite(WritableCopy& copy, const Block& block) {
  const std::span<const std::byte> bytes = block.mapping.bytes();
  copy_bytes(copy.mapping.data(), bytes);
}

}  // namespace drk::worker
