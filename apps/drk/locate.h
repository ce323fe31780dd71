// SPDX-License-Identifier: Apache-2.0
// Finds the Python that guests run in, and the files of the guest.
#pragma once

#include "drk/worker.h"

#include "surroundings.h"

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace drk::cli {

struct Interpreter {
  std::string path;
  std::string found_by;  ///< "--python", "DRK_PYTHON", "make setup", "PATH"
};

/// The first there is of: `requested` (from --python), DRK_PYTHON, the environment that
/// `make setup` made for this build's lock file, python3 on PATH. One that was named but is no
/// program throws Error{not_found}, and so does it when there is none; the text says what to do.
[[nodiscard]] Interpreter locate_interpreter(const std::string& requested,
                                             const Surroundings& surroundings);

/// ../lib/drk/guest from the program's own folder. Throws Error{not_found} when it is not there.
[[nodiscard]] std::string locate_guest_dir();

/// What a command lets its user say about guests.
struct GuestChoice {
  std::string python;           ///< Empty: see locate_interpreter.
  std::string device = "auto";  ///< "auto": all GPUs, or the CPU; "cpu"; indices or UUIDs.
};
void declare_guests(CLI::App& command, GuestChoice& choice);

/// All of it, as the worker wants it. Forks, to look for GPUs: call it before threads are started.
/// Throws Error{not_found} for a device that is not there.
[[nodiscard]] worker::Options locate_worker(const GuestChoice& choice,
                                            const Surroundings& surroundings);

/// The little that a Python wrapper needs of the environment: "PATH=...", "HOME=...".
[[nodiscard]] std::vector<std::string> environment_of(const Surroundings& surroundings);

}  // namespace drk::cli
