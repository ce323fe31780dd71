// SPDX-License-Identifier: Apache-2.0
// Which commands of which tools make what a guest asked for.
#pragma once

#include "drk/guest.h"

#include <string>
#include <variant>
#include <vector>

namespace drk::worker {

/// What makes the builds of extensions short: headers under the names of torch's long ones, and
/// nvcc.sh, which runs nvcc's passes side by side.
struct SlimHeaders {
  std::vector<guest::BuildFile> files;
  std::string content;  ///< One behind the other.
};
/// Those of a folder; none when there is no such folder.
[[nodiscard]] SlimHeaders load_slim_headers(const std::string& dir);

struct Recipe {
  guest::RunTools run;  ///< Its files: the build's, then, `with_slim`, the slim headers.
  bool with_slim = false;
  std::vector<std::string> tools;  ///< Files whose version is part of what the product is.
};

/// A source of an extension is first compiled with the slim headers, and with torch's own when that
/// fails or there are none.
/// A guest::Built, with why, when this machine has no tool for it. Throws Error{corrupt} for what
/// no guest core asks for.
[[nodiscard]] std::variant<Recipe, guest::Built> make_recipe(const guest::Build& build,
                                                             const guest::Toolchain& toolchain,
                                                             const SlimHeaders& slim);

}  // namespace drk::worker
