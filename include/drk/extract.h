// SPDX-License-Identifier: Apache-2.0
// Takes the candidate's code out of a model's whole reply: the one extractor of the project.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace drk::extract {

/// Why a piece of the reply was taken as the code. Enumerators are spelt as on the wire.
enum class Rule {
  entry_point,     // the last complete block that defines the entry point
  python_fence,    // no block defines it: the last complete block marked as Python
  last_fence,      // nor is one marked as Python: the last complete block
  unclosed_fence,  // a block that the reply never closes
  whole_text,      // no fence: all text outside the reasoning
  none,            // nothing but reasoning, blanks or empty blocks
};

/// The wire's word for `rule`, for instance "entry_point".
[[nodiscard]] std::string_view to_string(Rule rule) noexcept;

struct Options {
  /// Name that the candidate must define at top level by `class`, `def` or assignment. An empty
  /// name is defined by no block.
  std::string entry_point = "ModelNew";
};

struct Extraction {
  /// The code, any bytes. A run of whole lines of the reply, less the indentation of the list item
  /// and the `>` of the block quote that the block stands in; every line ending (LF, CRLF, CR) is
  /// an LF.
  std::string code;
  Rule rule = Rule::none;
  /// For people: one or more ASCII sentences (beyond `Options::entry_point`, which is quoted as
  /// given).
  std::string why;
  /// The reply ends inside the code that was taken, or it ends inside the reasoning and there is
  /// none.
  bool truncated = false;
  /// First word of the block's info string in lower case, at most 32 of [a-z0-9+#._-]; may be
  /// empty.
  std::string language;
  /// Place of the block among the `block_count` blocks outside the reasoning, from 0. Absent for
  /// `whole_text` and `none`.
  std::optional<std::size_t> block_index;
  /// A block that only wraps others (see `extract_code`) is not counted, those inside it are.
  std::size_t block_count = 0;
  /// Line of the reply, from 1, that holds the first line of `code`. Absent for `none`.
  std::optional<std::size_t> first_line;
};

/// Finds the candidate's code in `reply`.
///
/// Fences follow CommonMark: three or more backticks or tildes, closed by at least as many of the
/// same with only blanks after them; a backtick fence's info string holds no backtick. Where models
/// stray from CommonMark and the text leaves little doubt, it is read leniently. "Python" is a
/// block marked so (python, python3, py, triton) or not marked at all.
///  - An opening fence may be indented at will, follow `>` or list markers, or end a line of prose
///    if it is marked as Python. A closing fence may be indented by 3 columns more than its opening
///    one, and be followed by `</` or `<|` (`</answer>`, `<|im_end|>`).
///  - Backticks are no Python outside strings and comments: at the end of a line of Python code
///    they close the block.
///  - A fence inside a string of Python does not close the block, if the string ends further on and
///    the block then closes, or reaches the end of the reply, outside any string.
///  - A Markdown or Python block that holds fences outside strings is a wrapper, and gives way to
///    the blocks in it: if one of them defines the entry point, or if it does not itself and one
///    has any code. Python that defines the entry point ends where the next block opens.
///
/// Reasoning is left out: <think>, <thinking> or <reasoning> at the start of a line up to the next
/// closing tag, or to the end if there is none; and all text before a closing tag that nothing
/// opened, if it starts or ends its line. Tags inside a fence are text, save a line that starts
/// with an unmatched closing tag in a block of a draft that was left open: no Python has such a
/// line.
///
/// Of what remains the first of these is taken; blocks of blanks are passed over:
///   1. the last complete block that defines the entry point                        entry_point
///   2. the unclosed block, if it defines the entry point                           unclosed_fence
///   3. the text before the first fence, if it defines the entry point and that
///      fence is bare: the opening one stood in the prompt                          whole_text
///   4. the last complete block marked as Python                                    python_fence
///   5. the unclosed block, if marked as Python                                     unclosed_fence
///   6. the last complete block                                                     last_fence
///   7. the unclosed block                                                          unclosed_fence
///   8. the text, where there is no fence at all                                    whole_text
///
/// Takes any bytes, in time linear in their number. A pure function; throws only std::bad_alloc.
[[nodiscard]] Extraction extract_code(std::string_view reply, const Options& options = {});

/// True if `text` is a model's reply, false if it reads as a plain Python file (or as prose without
/// fences, which `extract_code` takes whole as well). A reply has a fence or a reasoning tag
/// outside Python's strings and comments; a file may have them in its docstrings.
[[nodiscard]] bool looks_like_reply(std::string_view text);

}  // namespace drk::extract
