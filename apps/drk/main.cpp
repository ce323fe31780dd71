// SPDX-License-Identifier: Apache-2.0
// The program drk: its environment, its command line, its exit code.
#include "drk/base/error.h"
#include "drk/version.h"

#include "command.h"
#include "terminal.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdlib>
#include <sstream>
#include <vector>

namespace drk::cli {
namespace {

struct Declared {
  std::unique_ptr<Command> command;
  CLI::App* options = nullptr;
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread yet
  return value == nullptr ? std::string() : std::string(value);
}

Surroundings read_surroundings() {
  Surroundings surroundings;
  surroundings.drk_python = variable("DRK_PYTHON");
  surroundings.path = variable("PATH");
  surroundings.home = variable("HOME");
  const std::string cache = variable("XDG_CACHE_HOME");
  surroundings.cache_dir = (cache.empty() ? surroundings.home + "/.cache" : cache) + "/drkernel";
  surroundings.server = variable("DRK_SERVER");
  surroundings.token = variable("DRK_TOKEN");
  surroundings.no_color = !variable("NO_COLOR").empty();
  return surroundings;
}

std::vector<Declared> declare_all(CLI::App& program) {
  std::vector<Declared> all;
  for (const auto& make : {make_eval,
                           make_bench,
                           make_hacks,
                           make_replay,
                           make_rejudge,
                           make_serve,
                           make_submit,
                           make_status,
                           make_cancel,
                           make_top,
                           make_extract,
                           make_doctor,
                           make_help}) {
    std::unique_ptr<Command> command = make();
    CLI::App* options = command->declare(program);
    all.push_back({std::move(command), options});
  }
  return all;
}

/// Help was asked for, or the line makes no sense.
int answer_parser(CLI::App& program, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {
    std::ostringstream answer;
    program.exit(error, answer, answer);
    write_out(answer.str());
    return kAccepted;
  }
  const std::vector<CLI::App*> chosen = program.get_subcommands();
  const std::string name = chosen.empty() ? "drk" : "drk " + chosen[0]->get_name();
  complain(fmt::format("{}: {}; see {} --help", name, one_line(error.what()), name));
  return kUnusable;
}

int run(int argc, char** argv) {
  CLI::App program("Judges kernels written in Triton against a PyTorch reference.", "drk");
  program.set_version_flag("--version", std::string("drk ") + kVersion);
  program.require_subcommand(1);
  program.option_defaults()->always_capture_default();  // what the members hold, in the help
  program.footer(
      "Ends with 0 for yes, 1 for no, 2 when it could not find out.\n"
      "drk help COMMAND tells more of one.");
  const std::vector<Declared> commands = declare_all(program);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return answer_parser(program, error);
  }
  for (const Declared& declared : commands) {
    if (declared.options->parsed()) return declared.command->run(read_surroundings());
  }
  return kUnusable;
}

}  // namespace
}  // namespace drk::cli

int main(int argc, char** argv) {
  try {
    const int code = drk::cli::run(argc, argv);
    drk::cli::finish_output();
    return code;
  } catch (const drk::Error& error) {
    drk::cli::complain("drk: " + drk::cli::one_line(error.what()));
    // Only an evaluation that was told to stop is out of time without a verdict.
    return error.code() == drk::ErrorCode::timed_out ? drk::cli::kInterrupted : drk::cli::kUnusable;
  } catch (const std::exception& error) {  // a library's fault: ours to explain
    drk::cli::complain("drk: " + drk::cli::one_line(error.what()));
    return drk::cli::kUnusable;
  }
}
