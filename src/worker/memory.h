// SPDX-License-Identifier: Apache-2.0
// Blocks of shared memory that hold the tensors of a bundle.
#pragma once

#include "drk/base/fd.h"
#include "drk/value.h"

#include <cstdint>

namespace drk::worker {

/// A bundle and its memory, immutable: nobody holds it writable any more.
struct Block {
  value::Bundle bundle;
  Fd memory;
  Mapping mapping;  ///< Read-only.

  [[nodiscard]] value::View view() const noexcept { return {&bundle, mapping.bytes()}; }
};

/// Takes what a guest made: checks the description against the memory, and seals it.
/// Throws Error{corrupt} when the description lies or the guest can still write.
[[nodiscard]] Block seal_block(value::Bundle bundle, Fd memory);
/// A copy that a guest may write to, mapped here as well.
struct WritableCopy {
  Fd memory;
  Mapping mapping;  ///< Writable: see rewrite.
};
[[nodiscard]] WritableCopy copy_memory(const Block& block);
/// Makes all pages of a memory now, large ones by several threads: who touches a page first pays
/// for it. Throws Error{exhausted}.
void commit(int memory_fd, std::uint64_t size_bytes);
/// Puts the elements of `block` into a copy of another block of the same layout.
void rewrite(WritableCopy& copy, const Block& block);

}  // namespace drk::worker
