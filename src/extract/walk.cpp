// SPDX-License-Identifier: Apache-2.0
// Text, reasoning, blocks: where each of them starts and ends.
#include "walk.h"

#include "fence.h"
#include "reasoning.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace drk::extract {
namespace {

constexpr int kStringSearches = 16;  // far more than any honest reply has in vain
constexpr int kMaxWrappers = 3;      // each level reads the code of a block once more

std::optional<Opener> find_opener(std::string_view line) {
  auto opener = parse_opener(line);
  return opener ? opener : parse_opener_after_prose(line);
}

class Walk {
 public:
  Walk(std::string_view reply, std::string_view entry_point, Candidates& candidates)
      : reply_(reply), cursor_(reply, 1), entry_point_(entry_point), candidates_(candidates) {}

  void run() {
    start_text();
    while (!cursor_.done()) in_reasoning_ ? step_reasoning() : step_text();
    if (in_reasoning_) {
      candidates_.note_open_reasoning();
    } else {
      end_text();
    }
  }

 private:
  void step_text() {
    const auto rest = cursor_.rest();
    if (const auto length = leading_opening_tag(rest)) {
      end_text();
      in_reasoning_ = true;
      candidates_.note_reasoning();
      cursor_.advance(*length);
    } else if (const auto length_of_closing = unopened_closing_tag(rest)) {
      // All that came before it, blocks included, was reasoning opened in the prompt.
      candidates_.forget();
      candidates_.note_reasoning();
      cursor_.advance(*length_of_closing);
      start_text();
    } else if (const auto opener = find_opener(rest)) {
      read_block(*opener);
    } else {
      cursor_.next_line();
    }
  }

  void step_reasoning() {
    const auto rest = cursor_.rest();
    if (const auto length = past_closing_tag(rest)) {
      in_reasoning_ = false;
      cursor_.advance(*length);
      start_text();
    } else if (const auto opener = find_opener(rest)) {
      static_cast<void>(BlockReader(cursor_, *opener, rules()).read());  // a draft
    } else {
      cursor_.next_line();
    }
  }

  static std::optional<std::size_t> unopened_closing_tag(std::string_view line) {
    if (const auto length = leading_closing_tag(line)) return length;
    return trailing_closing_tag(line) ? std::optional{line.size()} : std::nullopt;
  }

  void read_block(const Opener& opener) {
    end_text();
    auto block = BlockReader(cursor_, opener, rules()).read();
    auto inner = wrapped_blocks(block, entry_point_);
    if (inner.empty()) candidates_.add(std::move(block));
    for (auto& one : inner) candidates_.add(std::move(one));
    start_text();
  }

  BlockRules rules() {
    return {.entry_point = entry_point_,
            .tags_end_block = true,
            .in_reasoning = in_reasoning_,
            .string_searches_left = string_searches_left_};
  }

  void start_text() {
    if (is_blank(cursor_.rest()) && !cursor_.done()) cursor_.next_line();
    text_start_ = cursor_;
  }

  void end_text() {
    const auto start = text_start_.offset();
    candidates_.add_text(
        {reply_.substr(start, cursor_.offset() - start), text_start_.line_number()});
  }

  std::string_view reply_;
  Cursor cursor_;
  std::string_view entry_point_;
  Candidates& candidates_;
  Cursor text_start_{reply_, 1};
  bool in_reasoning_ = false;
  int string_searches_left_ = kStringSearches;
};

/// Code up to the opening fence of the next block, which some models write for a closing one.
Block head_of(const Block& outer) {
  auto head = outer;
  head.code.resize(outer.inner_fence->offset);
  head.inner_fence.reset();
  head.closed = true;
  return head;
}

/// The blocks from the inner fence on. Reasoning tags mean nothing inside a block.
std::vector<Block> blocks_in(const Block& outer, std::string_view entry_point) {
  std::vector<Block> blocks;
  int string_searches_left = kStringSearches;
  const BlockRules rules{.entry_point = entry_point, .string_searches_left = string_searches_left};
  const auto inner = std::string_view(outer.code).substr(outer.inner_fence->offset);
  for (Cursor cursor(inner, outer.inner_fence->line); !cursor.done();) {
    if (const auto opener = find_opener(cursor.rest())) {
      blocks.push_back(BlockReader(cursor, *opener, rules).read());
      // The end of the wrapper ends what stands in it.
      blocks.back().closed |= outer.closed;
    } else {
      cursor.next_line();
    }
  }
  return blocks;
}

bool may_wrap(const Block& block) {
  return block.inner_fence && (may_be_python(block) || is_markdown(block.language));
}

bool is_better(const std::vector<Block>& inner, const Block& outer) {
  const auto has_code = [](const Block& block) { return !is_blank_text(block.code); };
  const auto defines = [](const Block& block) { return block.defines_entry; };
  return std::any_of(inner.begin(), inner.end(), outer.defines_entry ? +defines : +has_code);
}

}  // namespace

void walk_reply(std::string_view reply, std::string_view entry_point, Candidates& candidates) {
  Walk(reply, entry_point, candidates).run();
}

std::vector<Block> wrapped_blocks(const Block& outer, std::string_view entry_point, int depth) {
  if (depth == kMaxWrappers || !may_wrap(outer)) return {};
  std::vector<Block> blocks;
  if (outer.inner_fence->follows_entry && may_be_python(outer)) blocks.push_back(head_of(outer));
  for (auto& block : blocks_in(outer, entry_point)) {
    auto inner = wrapped_blocks(block, entry_point, depth + 1);
    if (inner.empty()) {
      blocks.push_back(std::move(block));
    } else {
      std::move(inner.begin(), inner.end(), std::back_inserter(blocks));
    }
  }
  return is_better(blocks, outer) ? blocks : std::vector<Block>{};
}

}  // namespace drk::extract
