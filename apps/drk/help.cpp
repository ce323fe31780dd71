// SPDX-License-Identifier: Apache-2.0
// drk help [COMMAND]
#include "drk/base/error.h"

#include "command.h"
#include "terminal.h"

#include <CLI/CLI.hpp>

namespace drk::cli {

namespace {

class Help final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override {
    program_ = &program;
    CLI::App* command = program.add_subcommand("help", "Tell more of a command");
    command->add_option("COMMAND", name_, "Which one");
    return command;
  }

  int run(const Surroundings& /*surroundings*/) override {
    // Not App::help: that one answers for the command that was given, which is this one.
    const auto formatter = program_->get_formatter();
    const CLI::App* subject = name_.empty() ? program_ : &chosen();
    const std::string title = name_.empty() ? "drk" : "drk " + name_;
    write_out(formatter->make_help(subject, title, CLI::AppFormatMode::Normal));
    return kAccepted;
  }

 private:
  [[nodiscard]] const CLI::App& chosen() const {
    for (const CLI::App* command : program_->get_subcommands([](CLI::App*) { return true; })) {
      if (command->get_name() == name_) return *command;
    }
    throw Error(ErrorCode::invalid_argument, "no command " + one_line(name_) + "; see drk --help");
  }

  CLI::App* program_ = nullptr;
  std::string name_;
};

}  // namespace

std::unique_ptr<Command> make_help() {
  return std::make_unique<Help>();
}

}  // namespace drk::cli
