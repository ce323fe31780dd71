// SPDX-License-Identifier: Apache-2.0
// An option whose values are the names of an enum.
#pragma once

#include "drk/base/json.h"

#include <CLI/CLI.hpp>

#include <string>

namespace drk::cli {

/// `target` holds the default, and must outlive the parsing.
template <class E>
CLI::Option* add_choice(CLI::App& command,
                        const std::string& flag,
                        E& target,
                        const std::string& what) {
  const auto set = [&target](const std::string& name) { target = *json::enum_from<E>(name); };
  return command.add_option_function<std::string>(flag, set, what)
      ->check(CLI::IsMember(json::detail::enumerator_names<E>()))
      ->default_str(json::name_of(target));
}

}  // namespace drk::cli
