// SPDX-License-Identifier: Apache-2.0
// Standard output and standard error: colours, harmless text, a line that tells of progress.
#pragma once

#include <string>
#include <string_view>

namespace drk::cli {

/// Paints text, or leaves it as it is.
class Style {
 public:
  explicit Style(bool colours) : colours_(colours) {}
  /// Colours when standard output is a terminal and nobody said no.
  [[nodiscard]] static Style of_stdout(bool no_color);

  [[nodiscard]] std::string good(std::string_view text) const { return paint("1;32", text); }
  [[nodiscard]] std::string bad(std::string_view text) const { return paint("1;31", text); }
  [[nodiscard]] std::string doubtful(std::string_view text) const { return paint("33", text); }
  [[nodiscard]] std::string faint(std::string_view text) const { return paint("2", text); }

 private:
  [[nodiscard]] std::string paint(std::string_view code, std::string_view text) const;

  bool colours_;
};

/// A text of unknown origin, as it may be shown: control characters (a terminal obeys them) and
/// marks that reorder text are written as escapes; newlines and tabs stay.
[[nodiscard]] std::string printable(std::string_view text);
/// The same with each run of blanks and newlines as one space.
[[nodiscard]] std::string one_line(std::string_view text);

/// "correctness: trial 3 of 5"
[[nodiscard]] std::string describe_step(std::string_view stage, std::string_view detail);

/// Writes to standard output. Throws Error{unavailable} when it does not take it.
void write_out(std::string_view text);
/// Throws Error{unavailable} when something written did not arrive.
void finish_output();
/// One line on standard error.
void complain(std::string_view line) noexcept;

/// Tells on standard error what is being done. Not thread-safe.
class ProgressLine {
 public:
  enum class Manner {
    silent,
    lines,     ///< A line for each step.
    in_place,  ///< One line of the terminal, rewritten.
  };
  /// In place on a terminal; else lines when `verbose`.
  [[nodiscard]] static Manner manner_for(bool quiet, bool verbose);

  explicit ProgressLine(Manner manner) : manner_(manner) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { clear(); }

  void show(std::string_view text) noexcept;
  /// Leaves the terminal's line empty for what is written next.
  void clear() noexcept;

 private:
  Manner manner_;
  bool is_shown_ = false;
};

}  // namespace drk::cli
