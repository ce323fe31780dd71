// SPDX-License-Identifier: Apache-2.0
// drk eval: one candidate against its reference.
#include "drk/base/error.h"
#include "drk/base/fd.h"
#include "drk/base/random.h"
#include "drk/extract.h"

#include "choice.h"
#include "command.h"
#include "evaluate.h"
#include "input.h"
#include "locate.h"
#include "render_verdict.h"
#include "terminal.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cmath>

namespace drk::cli {

namespace {

/// Counts out of range are the caller's mistake, and no fault of the problem's.
void check_counts(task::Task task) {
  task.reference_code = task.candidate_code = std::string(task::kMinCodeChars, 'x');
  if (const auto invalidity = task::find_invalidity(task)) {
    throw Error(ErrorCode::invalid_argument, invalidity->what + "; see drk eval --help");
  }
}

class Eval final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override {
    CLI::App* command = program.add_subcommand("eval", "Judge one candidate");
    command->add_option("REFERENCE", reference_file_, "The problem: class Model, get_inputs")
        ->required();
    command->add_option("CANDIDATE", candidate_file_, "class ModelNew, or a model's whole reply")
        ->required();
    declare_input(*command);
    declare_rules(*command);
    declare_output(*command);
    command->footer(
        "Either file may be - for standard input. Ends with 0 when the candidate was\n"
        "accepted, 1 when it was rejected, 2 when that could not be found out.");
    return command;
  }

  int run(const Surroundings& surroundings) override {
    check_usage();
    task_.task_id = make_id("eval");
    task_.reference_code = read_input(reference_file_);
    take_candidate(read_input(candidate_file_));
    EvaluateOnce how;
    how.worker = locate_worker(guests_, surroundings);
    how.progress = ProgressLine::manner_for(quiet_, verbose_);
    const task::Result result = evaluate_once(task_, how);
    if (!manifest_file_.empty()) save(result);
    print(result, Style::of_stdout(surroundings.no_color));
    return exit_code_of(result.verdict);
  }

 private:
  void declare_input(CLI::App& command) {
    add_choice(command, "--backend", task_.backend, "What the candidate is written in");
    command.add_option("--entry-point", task_.entry_point, "The reference's class");
    CLI::Option* reply = command.add_flag("--reply", is_reply_, "CANDIDATE is a whole reply");
    command.add_flag("--code", is_code_, "CANDIDATE is code, whatever it looks like")
        ->excludes(reply);
    declare_guests(command, guests_);
  }

  void declare_rules(CLI::App& command) {
    command.add_option("--trials", task_.num_correct_trials, "Inputs that must come out right");
    command.add_option("--perf-trials", task_.num_perf_trials, "Timed calls, at most");
    command.add_flag("--no-timing", no_timing_, "Right or wrong is enough");
    add_choice(command, "--correctness", task_.policy.correctness, "How close is close enough");
    add_choice(command, "--ownership", task_.policy.ownership, "Who must do the work");
    add_choice(command, "--protocol", task_.policy.protocol, "What a timed call on a GPU finds");
    command.add_flag("--require-isolation",
                     task_.policy.require_isolation,
                     "Refuse to run unless the whole sandbox is in force");
    command.add_option("--timeout", task_.limits.total_s, "Seconds for the whole evaluation");
  }

  void declare_output(CLI::App& command) {
    command.add_flag("--json", as_json_, "Print the whole result as JSON");
    command.add_option("--save", manifest_file_, "Write what drk replay needs to this file");
    command.add_flag("--quiet,-q", quiet_, "One line, and no progress");
    command.add_flag("--verbose,-v", verbose_, "Progress also where there is no terminal");
  }

  void check_usage() const {
    if (reference_file_ == kStandardInput && candidate_file_ == kStandardInput) {
      throw Error(ErrorCode::invalid_argument,
                  "REFERENCE and CANDIDATE cannot both be standard input; name a file for one");
    }
    if (!(task_.limits.total_s > 0) || !std::isfinite(task_.limits.total_s)) {
      throw Error(ErrorCode::invalid_argument, "--timeout must be a positive number of seconds");
    }
    check_counts(task_);
  }

  void take_candidate(std::string text) {
    task_.measure_performance = !no_timing_;
    if (is_code_ || !(is_reply_ || extract::looks_like_reply(text))) {
      task_.candidate_code = std::move(text);
      return;
    }
    extract::Options options;
    options.entry_point = task_.candidate_entry_point();
    const extract::Extraction extraction = extract::extract_code(text, options);
    if (!quiet_) complain("reply: " + one_line(extraction.why));
    task_.candidate_code = extraction.code;
    reply_line_ = extraction.first_line;
  }

  void save(const task::Result& result) const {
    write_file(manifest_file_, json::dump_pretty(task::to_json(result.manifest)));
    if (!quiet_) complain(fmt::format("saved; repeat it with: drk replay {}", manifest_file_));
  }

  void print(const task::Result& result, const Style& style) const {
    if (as_json_) {
      write_out(json::dump_pretty(task::to_json(result)));
    } else if (quiet_) {
      write_out(headline(result, style) + "\n");
    } else {
      write_out(render_verdict(result, style, reply_line_));
    }
  }

  std::string reference_file_;
  std::string candidate_file_;
  GuestChoice guests_;
  std::string manifest_file_;
  task::Task task_;
  bool is_reply_ = false;
  bool is_code_ = false;
  bool no_timing_ = false;
  bool as_json_ = false;
  bool quiet_ = false;
  bool verbose_ = false;
  std::optional<std::size_t> reply_line_;
};

}  // namespace

std::unique_ptr<Command> make_eval() {
  return std::make_unique<Eval>();
}

}  // namespace drk::cli
