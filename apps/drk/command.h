// SPDX-License-Identifier: Apache-2.0
// What a command of the program is, and the list of them.
#pragma once

#include "surroundings.h"

#include <memory>

namespace CLI {
class App;
}

namespace drk::cli {

// What the program ends with.
inline constexpr int kAccepted = 0;  ///< Or: all is as expected.
inline constexpr int kRejected = 1;  ///< Or: something is not.
inline constexpr int kUnusable = 2;  ///< Bad usage, a missing file, a broken machine.
inline constexpr int kInterrupted = 130;

/// One command: what it takes, and what it does.
class Command {
 public:
  Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  virtual ~Command() = default;

  /// Adds the command to `program`; parsing sets members of this object.
  virtual CLI::App* declare(CLI::App& program) = 0;
  /// Does it, after parsing. Returns what the program ends with. Throws Error.
  [[nodiscard]] virtual int run(const Surroundings& surroundings) = 0;
};

[[nodiscard]] std::unique_ptr<Command> make_eval();
[[nodiscard]] std::unique_ptr<Command> make_bench();
[[nodiscard]] std::unique_ptr<Command> make_hacks();
[[nodiscard]] std::unique_ptr<Command> make_rejudge();
[[nodiscard]] std::unique_ptr<Command> make_replay();
[[nodiscard]] std::unique_ptr<Command> make_serve();
[[nodiscard]] std::unique_ptr<Command> make_submit();
[[nodiscard]] std::unique_ptr<Command> make_status();
[[nodiscard]] std::unique_ptr<Command> make_cancel();
[[nodiscard]] std::unique_ptr<Command> make_top();
[[nodiscard]] std::unique_ptr<Command> make_extract();
[[nodiscard]] std::unique_ptr<Command> make_doctor();
[[nodiscard]] std::unique_ptr<Command> make_help();

}  // namespace drk::cli
