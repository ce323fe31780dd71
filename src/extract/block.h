// SPDX-License-Identifier: Apache-2.0
// Reads one fenced block, from the line after its opening fence to where it ends.
#pragma once

#include "cursor.h"
#include "fence.h"
#include "python_scanner.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace drk::extract {

/// A fence in the code of a block that belongs to another block.
struct InnerFence {
  std::size_t offset = 0;      // in the code
  std::size_t line = 0;        // in the reply
  bool follows_entry = false;  // the entry point is defined before it
};

struct Block {
  std::string code;
  std::string language;        // as in Extraction
  std::size_t first_line = 0;  // of the code, in the reply
  bool bare = false;           // the opening fence has no info string
  bool closed = false;
  bool defines_entry = false;
  bool holds_fence_in_string = false;     // a fence inside a string was kept as code
  std::optional<InnerFence> inner_fence;  // the first outside strings
};

/// Whether the code of such a block may be read as Python when a line is in doubt.
[[nodiscard]] bool may_be_python(const Block& block);

struct BlockRules {
  std::string_view entry_point;
  bool tags_end_block = false;  // reasoning tags count here
  bool in_reasoning = false;    // the block is a draft inside reasoning that a tag opened
  /// How many more searches for the end of a string that holds a fence may fail. Each may read up
  /// to the end of the reply, and a reply could hold one in every line: a bound keeps the time
  /// linear.
  int& string_searches_left;
};

class BlockReader {
 public:
  /// `cursor` stands on the line of the opening fence and is left where the text goes on after the
  /// block: past the closing fence, at the first line outside the quote, or at a reasoning tag.
  BlockReader(Cursor& cursor, const Opener& opener, const BlockRules& rules);

  [[nodiscard]] Block read();

 private:
  /// Where the block ends if the string that holds a fence turns out not to end.
  struct Fallback {
    Cursor cursor;
    std::size_t code_bytes;
    bool defines_entry;
  };

  void leave_quote_if_undecorated();
  [[nodiscard]] bool read_line();  // false at the end of the block
  [[nodiscard]] bool close_at(std::string_view line, std::size_t closer_length);
  [[nodiscard]] bool close_after_code(std::string_view line, const LineFacts& facts);
  [[nodiscard]] bool ends_reasoning(std::string_view line);
  [[nodiscard]] bool starts_in_string() const { return python_ && scanner_.in_string(); }
  void note_inner_fence();
  void keep(std::string_view line);
  void fall_back();

  Cursor& cursor_;
  Opener opener_;
  BlockRules rules_;
  PythonScanner scanner_;
  Block block_;
  bool python_ = false;
  bool saw_opening_tag_ = false;
  std::optional<Fallback> fallback_;
};

}  // namespace drk::extract
