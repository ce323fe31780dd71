// SPDX-License-Identifier: Apache-2.0
// Standard output and standard error.
#include "terminal.h"

#include "drk/base/error.h"
#include "drk/base/utf8.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>

namespace drk::cli {

namespace {

/// One character of well-formed UTF-8.
struct Character {
  std::uint32_t code = 0;
  std::size_t size_bytes = 1;
};

Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  std::uint32_t code = lead & (0x7FU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  return {code, size};
}

bool is_harmless(std::uint32_t code) {
  if (code == '\n' || code == '\t') return true;
  const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
  const bool reorders = (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  return !control && !reorders;
}

std::size_t terminal_columns() {
  winsize size = {};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

void write_err(std::string_view text) noexcept {
  // Nobody is left to tell when standard error does not take it.
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fflush(stderr);
}

}  // namespace

Style Style::of_stdout(bool no_color) {
  return Style(!no_color && ::isatty(STDOUT_FILENO) == 1);
}

std::string Style::paint(std::string_view code, std::string_view text) const {
  return colours_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

std::string printable(std::string_view text) {
  const std::string valid = sanitize_utf8(text);
  std::string shown;
  for (std::string_view rest = valid; !rest.empty();) {
    const Character character = first_character(rest);
    if (is_harmless(character.code)) {
      shown += rest.substr(0, character.size_bytes);
    } else {
      shown += character.code < 0x100 ? fmt::format("\\x{:02x}", character.code)
                                      : fmt::format("\\u{:04x}", character.code);
    }
    rest.remove_prefix(character.size_bytes);
  }
  return shown;
}

std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : printable(text)) {
    const bool blank = c == ' ' || c == '\n' || c == '\t';
    if (!blank) line += c;
    if (blank && !line.empty() && line.back() != ' ') line += ' ';
  }
  if (line.ends_with(' ')) line.pop_back();
  return line;
}

std::string describe_step(std::string_view stage, std::string_view detail) {
  std::string text(stage);
  if (!detail.empty()) text += ": " + one_line(detail);
  return text;
}

void write_out(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) throw_errno("standard output");
}

void finish_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw_errno("standard output");
}

void complain(std::string_view line) noexcept {
  write_err(line);
  write_err("\n");
}

ProgressLine::Manner ProgressLine::manner_for(bool quiet, bool verbose) {
  if (quiet) return Manner::silent;
  if (::isatty(STDERR_FILENO) == 1) return Manner::in_place;
  return verbose ? Manner::lines : Manner::silent;
}

void ProgressLine::show(std::string_view text) noexcept {
  if (manner_ == Manner::silent) return;
  if (manner_ == Manner::lines) return complain(text);
  // One column less than there are: a full line would wrap, and then stay.
  write_err("\r\x1b[K");
  write_err(text.substr(0, terminal_columns() - 1));
  is_shown_ = true;
}

void ProgressLine::clear() noexcept {
  if (is_shown_) write_err("\r\x1b[K");
  is_shown_ = false;
}

}  // namespace drk::cli
