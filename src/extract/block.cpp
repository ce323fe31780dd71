// SPDX-License-Identifier: Apache-2.0
// Decides line by line whether a block goes on; extract_code's documentation has the rules.
#include "block.h"

#include "reasoning.h"

#include <algorithm>
#include <utility>

namespace drk::extract {

bool may_be_python(const Block& block) {
  return block.language.empty() || is_python(block.language);
}

BlockReader::BlockReader(Cursor& cursor, const Opener& opener, const BlockRules& rules)
    : cursor_(cursor), opener_(opener), rules_(rules), scanner_(rules.entry_point) {
  block_.language = opener.language;
  block_.bare = opener.bare;
  python_ = may_be_python(block_);
}

Block BlockReader::read() {
  cursor_.next_line();
  leave_quote_if_undecorated();
  block_.first_line = cursor_.line_number();
  while (!cursor_.done() && read_line()) cursor_.next_line();
  if (fallback_ && starts_in_string()) fall_back();
  block_.holds_fence_in_string = fallback_.has_value();
  return std::move(block_);
}

/// Some models put the `>` before the opening fence only.
void BlockReader::leave_quote_if_undecorated() {
  if (!strip(cursor_.rest(), opener_.container)) opener_.container = {};
}

bool BlockReader::read_line() {
  const auto stripped = strip(cursor_.rest(), opener_.container);
  if (!stripped) {  // the quote that holds the block has ended
    block_.closed = true;
    return false;
  }
  const auto line = *stripped;
  if (const auto length = closer_length(line, opener_)) {
    if (close_at(line, *length)) return false;
  } else if (ends_reasoning(line)) {
    return false;
  } else if (!starts_in_string() && parse_opener(line)) {
    if (fallback_) {  // no Python has a fence here, so it was not a string that held the last one
      fall_back();
      return false;
    }
    note_inner_fence();
  }
  const auto facts = scanner_.scan_line(line);
  block_.defines_entry |= facts.defines_entry;
  if (close_after_code(line, facts)) return false;
  keep(line);
  return true;
}

void BlockReader::note_inner_fence() {
  if (block_.inner_fence) return;
  block_.inner_fence = InnerFence{.offset = block_.code.size(),
                                  .line = cursor_.line_number(),
                                  .follows_entry = block_.defines_entry};
}

/// A closing fence on a line of its own. Returns false if it is part of a string so far.
bool BlockReader::close_at(std::string_view line, std::size_t closer_length) {
  if (starts_in_string() && rules_.string_searches_left > 0) {
    if (!fallback_) {
      auto after = cursor_;
      after.advance(cursor_.rest().size() - line.size() + closer_length);
      fallback_ = Fallback{
          .cursor = after, .code_bytes = block_.code.size(), .defines_entry = block_.defines_entry};
    }
    return false;
  }
  cursor_.advance(cursor_.rest().size() - line.size() + closer_length);
  block_.closed = true;
  return true;
}

/// A closing fence at the end of a line of code.
bool BlockReader::close_after_code(std::string_view line, const LineFacts& facts) {
  if (!python_ || !facts.backtick || opener_.mark != '`') return false;
  const auto run = line.substr(*facts.backtick);
  if (!is_closing_run(run, opener_)) return false;
  const auto code = line.substr(0, *facts.backtick);
  if (!is_blank(code)) block_.code.append(code).append(1, '\n');
  const auto after = run.substr(std::min(run.find_first_not_of('`'), run.size()));
  cursor_.advance(cursor_.rest().size() - after.size());
  block_.closed = true;
  return true;
}

/// A closing tag which nothing in the block opened, where no code has one: the draft that the block
/// holds was left open, and the reasoning around it ends here.
bool BlockReader::ends_reasoning(std::string_view line) {
  if (!rules_.tags_end_block) return false;
  if (leading_opening_tag(line)) saw_opening_tag_ = true;
  if (saw_opening_tag_) return false;
  const bool trails = rules_.in_reasoning && trailing_closing_tag(line);
  if (!trails && !leading_closing_tag(line)) return false;
  if (fallback_) {
    fall_back();
    return true;
  }
  return !starts_in_string() && (python_ || rules_.in_reasoning);
}

void BlockReader::keep(std::string_view line) {
  block_.code.append(line);
  if (cursor_.line_is_ended()) block_.code += '\n';
}

void BlockReader::fall_back() {
  --rules_.string_searches_left;
  cursor_ = fallback_->cursor;
  block_.code.resize(fallback_->code_bytes);
  block_.defines_entry = fallback_->defines_entry;
  block_.closed = true;
  fallback_.reset();
}

}  // namespace drk::extract
