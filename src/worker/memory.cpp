// SPDX-License-Identifier: Apache-2.0
// Blocks.
#include "worker/memory.h"

#include "drk/base/error.h"

#include <cstring>
#include <thread>
#include <vector>

namespace drk::worker {

namespace {

/// What is large is copied by several threads: most of the time goes into the pages that the kernel
/// makes for the copy.
void copy_bytes(std::byte* to, std::span<const std::byte> from) {
  constexpr std::size_t kWorthwhile = std::size_t{32} << 20U;
  constexpr std::size_t kThreads = 8;
  if (from.empty()) return;
  if (from.size() < kWorthwhile) {
    std::memcpy(to, from.data(), from.size());
    return;
  }
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    const std::size_t begin = from.size() / kThreads * i;
    const std::size_t end = i + 1 == kThreads ? from.size() : from.size() / kThreads * (i + 1);
    threads.emplace_back([=] { std::memcpy(to + begin, from.data() + begin, end - begin); });
  }
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
  rewrite(copy, block);
  return copy;
}

void rewrite(WritableCopy& copy, const Block& block) {
  const std::span<const std::byte> bytes = block.mapping.bytes();
  copy_bytes(copy.mapping.data(), bytes);
}

}  // namespace drk::worker
