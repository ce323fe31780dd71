// SPDX-License-Identifier: Apache-2.0
// A raised exception as data.
#pragma once

#include "drk/task/observations.h"

#include <string>

namespace drk::guest {

struct RaisedError {
  task::PythonError error;
  bool is_syntax = false;         ///< In the judged source itself.
  bool is_compile = false;        ///< By Triton's compiler: the kernel cannot be built.
  bool is_import = false;         ///< ImportError.
  bool is_out_of_memory = false;  ///< MemoryError, torch.OutOfMemoryError.
  bool needs_tool = false;        ///< A compiler that is not there: toolchain.py's ToolMissing.
  bool needs_gpu = false;         ///< Raised where Triton's interpreter or torch lacks a GPU.
};

/// Takes the exception that is set and clears it. `source_file` is the judged code's path.
/// What kind it is follows from types and from the file that raised, never from its text.
[[nodiscard]] RaisedError take_error(const std::string& source_file);

}  // namespace drk::guest
