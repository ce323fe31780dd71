// SPDX-License-Identifier: Apache-2.0
// drk replay: an evaluation again, from its manifest, with its seeds.
#include "drk/base/error.h"

#include "command.h"
#include "evaluate.h"
#include "input.h"
#include "locate.h"
#include "render_verdict.h"
#include "terminal.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace drk::cli {

namespace {

/// A manifest, by itself or as the member of a whole result.
task::Manifest parse_manifest(const std::string& text, const std::string& file) {
  try {
    const json::Value value = json::parse(text);
    const json::Object* object = value.if_object();
    const json::Value* inner = object == nullptr ? nullptr : object->if_contains("manifest");
    return task::manifest_from_json(inner == nullptr ? value : *inner);
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("{}: {}; give a file that drk eval --save or --json wrote",
                            file,
                            one_line(error.what())));
  }
}

/// What of the surroundings is not as it was: "torch 2.10.0, now 2.11.0".
std::vector<std::string> changes_since(const task::Manifest& then, const task::Manifest& now) {
  std::vector<std::string> changes;
  const auto note = [&](const char* what, const std::string& before, const std::string& after) {
    if (before != after) changes.push_back(fmt::format("{} {}, now {}", what, before, after));
  };
  note("drkernel", then.versions.drkernel, now.versions.drkernel);
  note("Python", then.versions.python, now.versions.python);
  note("torch", then.versions.torch, now.versions.torch);
  note("triton", then.versions.triton, now.versions.triton);
  note("numpy", then.versions.numpy, now.versions.numpy);
  note("mode", json::name_of(then.mode), json::name_of(now.mode));
  note("processor", then.machine.cpu, now.machine.cpu);
  return changes;
}

class Replay final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override {
    CLI::App* command = program.add_subcommand("replay", "Repeat a saved evaluation");
    command
        ->add_option("FILE", file_, "A manifest, or a result that holds one; - is standard input")
        ->required();
    declare_guests(*command, guests_);
    command->add_flag("--json", as_json_, "Print both outcomes and the new result as JSON");
    command->add_flag("--quiet,-q", quiet_, "One line, and no progress");
    command->add_flag("--verbose,-v", verbose_, "Progress also where there is no terminal");
    command->footer(
        "Ends with 0 when the outcome is the recorded one, 1 when it is another, 2 when\n"
        "that could not be found out.");
    return command;
  }

  int run(const Surroundings& surroundings) override {
    const task::Manifest manifest = parse_manifest(read_input(file_), file_);
    const task::Task task = task::task_of(manifest);
    EvaluateOnce how;
    how.worker = locate_worker(guests_, surroundings);
    how.replay = &manifest;
    how.progress = ProgressLine::manner_for(quiet_, verbose_);
    const task::Result result = evaluate_once(task, how);
    const bool same = manifest.outcome == task::outcome_kind(result.verdict);
    print(manifest, result, same, Style::of_stdout(surroundings.no_color));
    if (same) return kAccepted;
    return exit_code_of(result.verdict) == kUnusable ? kUnusable : kRejected;
  }

 private:
  void print(const task::Manifest& manifest,
             const task::Result& result,
             bool same,
             const Style& style) const {
    if (as_json_) {
      json::Object object;
      object["same"] = same;
      object["recorded"] = json::to_json(manifest.outcome);
      object["outcome"] = task::outcome_kind(result.verdict);
      object["changes"] = json::to_json(changes_since(manifest, result.manifest));
      object["result"] = task::to_json(result);
      write_out(json::dump_pretty(object));
      return;
    }
    const std::string now = task::outcome_kind(result.verdict);
    write_out(same ? style.good("SAME OUTCOME: " + now) + "\n"
                   : style.bad(fmt::format(
                         "OTHER OUTCOME: {}, recorded was {}", now, one_line(manifest.outcome))) +
                         "\n");
    if (quiet_) return;
    for (const std::string& change : changes_since(manifest, result.manifest)) {
      write_out("  " + one_line(change) + "\n");
    }
    write_out("\n" + render_verdict(result, style));
  }

  std::string file_;
  GuestChoice guests_;
  bool as_json_ = false;
  bool quiet_ = false;
  bool verbose_ = false;
};

}  // namespace

std::unique_ptr<Command> make_replay() {
  return std::make_unique<Replay>();
}

}  // namespace drk::cli
