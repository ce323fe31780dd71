// SPDX-License-Identifier: Apache-2.0
// drk extract: the code in a model's reply.
#include "drk/extract.h"

#include "drk/base/json.h"

#include "command.h"
#include "input.h"
#include "terminal.h"

#include <CLI/CLI.hpp>

namespace drk::cli {

namespace {

json::Value to_json(const extract::Extraction& extraction) {
  json::Object object;
  object["code"] = json::to_json(extraction.code);
  object["rule"] = json::to_json(std::string(extract::to_string(extraction.rule)));
  object["why"] = json::to_json(extraction.why);
  object["truncated"] = extraction.truncated;
  object["language"] = extraction.language;
  if (extraction.block_index) object["block_index"] = *extraction.block_index;
  object["block_count"] = extraction.block_count;
  if (extraction.first_line) object["first_line"] = *extraction.first_line;
  return object;
}

class Extract final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override {
    CLI::App* command = program.add_subcommand("extract", "Take the code out of a model's reply");
    command->add_option("FILE", file_, "The reply; - is standard input");
    command->add_option("--entry-point", options_.entry_point, "What the code should define");
    command->add_flag("--json", as_json_, "Print code, rule and reason as JSON");
    command->footer(
        "Prints the code; says on standard error why it is the code. Ends with 1 when\n"
        "there is none.");
    return command;
  }

  int run(const Surroundings& /*surroundings*/) override {
    const extract::Extraction extraction = extract::extract_code(read_input(file_), options_);
    complain("drk extract: " + one_line(extraction.why));
    write_out(as_json_ ? json::dump_pretty(to_json(extraction)) : extraction.code);
    return extraction.rule == extract::Rule::none ? kRejected : kAccepted;
  }

 private:
  std::string file_ = kStandardInput;
  extract::Options options_;
  bool as_json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_extract() {
  return std::make_unique<Extract>();
}

}  // namespace drk::cli
