// SPDX-License-Identifier: Apache-2.0
// Keeps the few blocks and texts that may be the candidate's code, and chooses among them.
#pragma once

#include "drk/extract.h"

#include "block.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drk::extract {

/// A run of the reply outside reasoning and blocks.
struct Text {
  std::string_view bytes;
  std::size_t first_line = 0;
};

/// Blocks and texts come in the order of the reply. Only the last block of each kind is kept: a
/// reply may hold millions.
class Candidates {
 public:
  explicit Candidates(std::string_view entry_point) : entry_point_(entry_point) {}

  void add(Block block);
  void add_text(Text text);
  void note_reasoning() { has_reasoning_ = true; }
  void note_open_reasoning() { open_reasoning_ = true; }
  /// What was added so far turns out to be reasoning.
  void forget();

  [[nodiscard]] Extraction choose() const;

 private:
  struct Placed {
    Block block;
    std::size_t index;
  };

  [[nodiscard]] Extraction take(const Placed& placed, Rule rule, std::string why) const;
  [[nodiscard]] Extraction take(Text text, std::string why) const;
  [[nodiscard]] Extraction take_unclosed() const;
  [[nodiscard]] Extraction take_whole_text() const;
  [[nodiscard]] Extraction take_none() const;
  [[nodiscard]] bool head_is_code() const;
  [[nodiscard]] std::string place(const Placed& placed) const;
  [[nodiscard]] std::string notes(const Placed& placed) const;

  std::string_view entry_point_;
  std::optional<Placed> entry_;     // the last complete block that defines the entry point
  std::optional<Placed> python_;    // the last complete one marked as Python, unless it is `entry_`
  std::optional<Placed> other_;     // the last complete one, unless it is one of those
  std::optional<Placed> unclosed_;  // at the end of the reply
  std::size_t block_count_ = 0;
  std::size_t python_count_ = 0;
  std::vector<Text> texts_;   // those with more than blanks, as long as there is no block
  std::optional<Text> head_;  // before the first block, if its fence is bare
  bool has_reasoning_ = false;
  bool open_reasoning_ = false;
};

}  // namespace drk::extract
