// SPDX-License-Identifier: Apache-2.0
// The order of choice, and the sentences that explain it to people.
#include "candidates.h"

#include "cursor.h"
#include "fence.h"
#include "python_scanner.h"

#include <algorithm>
#include <utility>

namespace drk::extract {
namespace {

/// `text` with every line ending an LF.
std::string with_lf(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (Cursor cursor(text, 1); !cursor.done(); cursor.next_line()) {
    result.append(cursor.rest());
    if (cursor.line_is_ended()) result += '\n';
  }
  return result;
}

}  // namespace

void Candidates::add(Block block) {
  const auto index = block_count_++;
  if (index == 0 && block.bare && !texts_.empty()) head_ = texts_.back();
  texts_.clear();
  if (is_blank_text(block.code)) return;
  const bool marked_python = is_python(block.language);
  if (marked_python) ++python_count_;
  auto& kept = !block.closed         ? unclosed_
               : block.defines_entry ? entry_
               : marked_python       ? python_
                                     : other_;
  kept = Placed{.block = std::move(block), .index = index};
}

void Candidates::add_text(Text text) {
  if (block_count_ == 0 && !is_blank_text(text.bytes)) texts_.push_back(text);
}

void Candidates::forget() {
  *this = Candidates(entry_point_);
}

Extraction Candidates::choose() const {
  if (entry_) {
    return take(*entry_,
                Rule::entry_point,
                "the last complete one that defines " + std::string(entry_point_));
  }
  if (unclosed_ && unclosed_->block.defines_entry) return take_unclosed();
  if (head_is_code()) {
    return take(*head_,
                "The text before the first fence, which defines " + std::string(entry_point_) +
                    "; its opening fence seems to stand in the prompt.");
  }
  const std::string no_block_defines = "no block defines " + std::string(entry_point_);
  if (python_) {
    return take(*python_, Rule::python_fence, "the last complete Python one; " + no_block_defines);
  }
  if (unclosed_ && is_python(unclosed_->block.language)) return take_unclosed();
  if (other_) return take(*other_, Rule::last_fence, "the last complete one; " + no_block_defines);
  if (unclosed_) return take_unclosed();
  return block_count_ == 0 ? take_whole_text() : take_none();
}

bool Candidates::head_is_code() const {
  return head_ && defines_entry_point(head_->bytes, entry_point_);
}

Extraction Candidates::take(const Placed& placed, Rule rule, std::string why) const {
  const auto& block = placed.block;
  return {.code = block.code,
          .rule = rule,
          .why = place(placed) + ", " + std::move(why) + "." + notes(placed),
          .truncated = !block.closed,
          .language = block.language,
          .block_index = placed.index,
          .block_count = block_count_,
          .first_line = block.first_line};
}

Extraction Candidates::take_unclosed() const {
  return take(*unclosed_,
              Rule::unclosed_fence,
              "which the reply ends without closing: the code may be cut off");
}

Extraction Candidates::take(Text text, std::string why) const {
  Extraction result;
  result.code = with_lf(text.bytes);
  result.rule = Rule::whole_text;
  result.why = std::move(why);
  result.block_count = block_count_;
  result.first_line = text.first_line;
  if (has_reasoning_) result.why += " Reasoning was left out.";
  return result;
}

Extraction Candidates::take_whole_text() const {
  const std::string name(entry_point_);
  const auto defining = std::find_if(texts_.rbegin(), texts_.rend(), [this](const Text& text) {
    return defines_entry_point(text.bytes, entry_point_);
  });
  if (defining != texts_.rend()) {
    return take(*defining, "The text as a whole: there is no fence, and it defines " + name + ".");
  }
  // Words before reasoning that never ends are no answer.
  if (texts_.empty() || open_reasoning_) return take_none();
  return take(texts_.back(),
              "The text as a whole: there is no fence. It does not define " + name + ".");
}

Extraction Candidates::take_none() const {
  Extraction result;
  result.block_count = block_count_;
  result.truncated = open_reasoning_;
  if (open_reasoning_) {
    result.why = "No code: the reply ends inside its reasoning.";
  } else if (block_count_ > 0) {
    result.why = "No code: every block is empty.";
  } else {
    result.why =
        has_reasoning_ ? "No code: nothing follows the reasoning." : "No code: the reply is blank.";
  }
  return result;
}

std::string Candidates::place(const Placed& placed) const {
  return "Block " + std::to_string(placed.index + 1) + " of " + std::to_string(block_count_);
}

std::string Candidates::notes(const Placed& placed) const {
  std::string text;
  const auto others = python_count_ - (is_python(placed.block.language) ? 1 : 0);
  if (others > 0) {
    text +=
        " Python blocks besides it: " + std::to_string(others) + "; they are not part of the code.";
  }
  if (placed.block.holds_fence_in_string) {
    text += " A fence inside a triple-quoted string was kept as code.";
  }
  if (placed.block.closed && unclosed_) text += " A later block is cut off and was passed over.";
  if (has_reasoning_) text += " Reasoning was left out.";
  if (open_reasoning_) text += " The reply ends inside reasoning.";
  return text;
}

}  // namespace drk::extract
