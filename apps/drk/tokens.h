// SPDX-License-Identifier: Apache-2.0
// The file of tokens that a server takes.
#pragma once

#include <map>
#include <string>

namespace drk::cli {

/// Lines "NAME TOKEN"; blank lines and lines that begin with # do not count. Name by token.
/// Throws Error{invalid_argument} for any other line, a token of less than 16 characters, or a
/// token that is there twice; Error{not_found} when the file cannot be read.
[[nodiscard]] std::map<std::string, std::string> parse_tokens(const std::string& text,
                                                              const std::string& file);

}  // namespace drk::cli
