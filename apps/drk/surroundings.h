// SPDX-License-Identifier: Apache-2.0
// What the program takes from its environment. main reads it; nothing below main does.
#pragma once

#include <string>

namespace drk::cli {

struct Surroundings {
  std::string drk_python;  ///< DRK_PYTHON; empty when unset, as are the others.
  std::string path;        ///< PATH
  std::string home;        ///< HOME
  std::string cache_dir;   ///< ${XDG_CACHE_HOME:-~/.cache}/drkernel
  std::string server;      ///< DRK_SERVER: URL of a server.
  std::string token;       ///< DRK_TOKEN: for it.
  bool no_color = false;   ///< NO_COLOR (no-color.org)
};

}  // namespace drk::cli
