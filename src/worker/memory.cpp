// SPDX-License-Identifier: Apache-2.0
// Blocks.
#include "worker/memory.h"

#include "drk/base/error.h"

#include <cstring>

namespace drk::worker {

Block seal_block(value::Bundle bundle, Fd memory) {
  if (!memory) memory = make_shared_memory("empty", 0);
  const std::size_t size_bytes = file_size_bytes(memory.get());
  value::check(bundle, size_bytes);
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

void rewrite(WritableCopy& copy, const Block& block) noexcept {
  const std::span<const std::byte> bytes = block.mapping.bytes();
  if (!bytes.empty()) std::memcpy(copy.mapping.data(), bytes.data(), bytes.size());
}

}  // namespace drk::worker
