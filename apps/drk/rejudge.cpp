// SPDX-License-Identifier: Apache-2.0
// drk rejudge: stored observations under this version's rules; nothing runs.
#include "drk/base/error.h"
#include "drk/judge.h"

#include "command.h"
#include "input.h"
#include "render_verdict.h"
#include "terminal.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace drk::cli {

namespace {

/// A result as eval --json prints it, or as the member of what replay --json prints.
task::Result parse_result(const std::string& text, const std::string& file) {
  try {
    const json::Value value = json::parse(text);
    const json::Object* object = value.if_object();
    const json::Value* inner = object == nullptr ? nullptr : object->if_contains("result");
    return task::result_from_json(inner == nullptr ? value : *inner);
  } catch (const Error& error) {
    throw Error(
        error.code(),
        fmt::format(
            "{}: {}; give a file that drk eval --json wrote", file, one_line(error.what())));
  }
}

class Rejudge final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override {
    CLI::App* command =
        program.add_subcommand("rejudge", "Judge stored observations by this version's rules");
    command->add_option("FILE", files_, "A result of drk eval --json; - is standard input")
        ->required();
    command->add_flag("--json", as_json_, "Print each result with its new verdict, in an array");
    command->add_flag("--quiet,-q", quiet_, "One line for each file");
    command->footer(
        "Nothing runs again: what an older version did not look at stays unseen. Ends\n"
        "with 0 when every outcome is the recorded one, 1 when one is another.");
    return command;
  }

  int run(const Surroundings& surroundings) override {
    const Style style = Style::of_stdout(surroundings.no_color);
    bool all_same = true;
    boost::json::array results;
    for (const std::string& file : files_) {
      task::Result result = parse_result(read_input(file), file);
      task::Task task;  // of which the judge reads what was asked for, and no text
      static_cast<task::TaskOptions&>(task) =
          static_cast<const task::TaskOptions&>(result.manifest);
      const task::Verdict before =
          std::exchange(result.verdict, judge::decide(result.observations, task));
      const std::string recorded = task::outcome_kind(before);
      const std::string outcome = task::outcome_kind(result.verdict);
      all_same = all_same && recorded == outcome;
      if (as_json_) {
        results.push_back(task::to_json(result));
        continue;
      }
      const std::string line =
          recorded == outcome
              ? style.good(fmt::format("SAME OUTCOME: {}", outcome))
              : style.bad(fmt::format("OTHER OUTCOME: {}, recorded was {}", outcome, recorded));
      write_out(files_.size() > 1 ? one_line(file) + ": " + line + "\n" : line + "\n");
      if (!quiet_) write_out("\n" + render_verdict(result, style));
    }
    if (as_json_) write_out(json::dump_pretty(results));
    return all_same ? kAccepted : kRejected;
  }

 private:
  std::vector<std::string> files_;
  bool as_json_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_rejudge() {
  return std::make_unique<Rejudge>();
}

}  // namespace drk::cli
