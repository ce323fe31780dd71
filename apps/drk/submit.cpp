// SPDX-License-Identifier: Apache-2.0
// drk submit: one candidate to a server.
#include "drk/base/error.h"
#include "drk/base/random.h"
#include "drk/extract.h"
#include "drk/task/priority.h"
#include "drk/task/result.h"

#include "choice.h"
#include "command.h"
#include "input.h"
#include "interrupts.h"
#include "remote.h"
#include "render_verdict.h"
#include "terminal.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace drk::cli {

namespace {

class Submit final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override {
    CLI::App* command = program.add_subcommand("submit", "Hand a candidate to a server");
    command->add_option("REFERENCE", reference_file_, "The problem: class Model, get_inputs")
        ->required();
    command->add_option("CANDIDATE", candidate_file_, "class ModelNew, or a model's whole reply")
        ->required();
    remote_.declare(*command);
    command->add_option("--id", task_id_, "Of the task; made up when not given");
    add_choice(*command, "--priority", priority_, "Who goes first");
    add_choice(*command, "--backend", backend_, "What the candidate is written in");
    command->add_option("--entry-point", entry_point_, "The reference's class");
    command->add_option("--trials", num_correct_trials_, "Inputs that must come out right");
    command->add_option("--perf-trials", num_perf_trials_, "Timed calls, at most");
    command->add_option("--timeout", timeout_s_, "Seconds of the candidate's own time");
    command->add_option("--deadline", deadline_s_, "Seconds in all, the queue included");
    command->add_flag("--force", force_refresh_, "Replace a task of this id, use no old result");
    command->add_flag("--wait,-w", wait_, "Until it is judged; prints the verdict");
    command->add_flag("--json", as_json_, "Print the server's answer");
    command->footer(
        "Prints the task's id, which drk status and drk cancel take. With --wait it ends as\n"
        "drk eval does: 0 accepted, 1 not, 2 when that could not be found out.");
    return command;
  }

  int run(const Surroundings& surroundings) override {
    remote_.connect(surroundings);
    const Interrupts interrupts;
    const std::stop_token stop = interrupts.token();
    const json::Value accepted = remote_.ask("POST", "/evaluate?async=1", json::dump(body()), stop);
    if (!wait_) {
      write_out(as_json_ ? json::dump_pretty(accepted) : task_id_ + "\n");
      return kAccepted;
    }
    await_end(stop);
    if (as_json_) {
      const json::Value result = remote_.ask("GET", "/results/" + http::percent_encode(task_id_));
      write_out(json::dump_pretty(result));
      return exit_code_of(result.as_object());
    }
    return print_verdict(surroundings);
  }

 private:
  [[nodiscard]] json::Object body() {
    if (task_id_.empty()) task_id_ = make_id("task");
    json::Object body;
    body["task_id"] = task_id_;
    body["reference_code"] = read_input(reference_file_);
    body["kernel_code"] = candidate_code();
    body["entry_point"] = entry_point_;
    body["backend"] = json::name_of(backend_);
    body["priority"] = json::name_of(priority_);
    body["num_correct_trials"] = num_correct_trials_;
    body["num_perf_trials"] = num_perf_trials_;
    body["timeout"] = timeout_s_;
    body["force_refresh"] = force_refresh_;
    if (deadline_s_) body["deadline_s"] = *deadline_s_;
    return body;
  }

  [[nodiscard]] std::string candidate_code() const {
    std::string text = read_input(candidate_file_);
    if (!extract::looks_like_reply(text)) return text;
    extract::Options options;
    options.entry_point = entry_point_ + "New";
    return extract::extract_code(text, options).code;
  }

  /// Polls with long waits, and tells what it waits for.
  void await_end(const std::stop_token& stop) {
    ProgressLine progress(ProgressLine::manner_for(false, false));
    std::string status = "pending";
    while (status == "pending" || status == "processing") {
      const json::Value answer = remote_.ask(
          "GET",
          fmt::format("/status/{}?wait=1&since={}", http::percent_encode(task_id_), status),
          {},
          stop);
      const json::Object& task = answer.as_object();
      status = text_of(task, "status");
      progress.show(status == "pending"
                        ? "waiting: " + one_line(text_of(task, "why_waiting"))
                        : describe_step(text_of(task, "stage"), text_of(task, "detail")));
    }
  }

  [[nodiscard]] int print_verdict(const Surroundings& surroundings) {
    const json::Value status = remote_.ask("GET", "/status/" + http::percent_encode(task_id_));
    const json::Object& task = status.as_object();
    if (text_of(task, "status") == "cancelled" || text_of(task, "fault") == "infra") {
      write_out(
          fmt::format("{}: no verdict: {}\n", task_id_, printable(text_of(task, "error_message"))));
      return kUnusable;
    }
    const json::Value full =
        remote_.ask("GET", "/results/" + http::percent_encode(task_id_) + "?form=full");
    const task::Result result = task::result_from_json(full);
    write_out(render_verdict(result, Style::of_stdout(surroundings.no_color), std::nullopt));
    return drk::cli::exit_code_of(result.verdict);
  }

  [[nodiscard]] static int exit_code_of(const json::Object& result) {
    if (text_of(result, "status") == "cancelled" || text_of(result, "fault") == "infra") {
      return kUnusable;
    }
    const json::Value* correct = result.if_contains("correctness");
    return correct != nullptr && correct->is_bool() && correct->get_bool() ? kAccepted : kRejected;
  }

  Remote remote_;
  std::string reference_file_;
  std::string candidate_file_;
  std::string task_id_;
  std::string entry_point_ = "Model";
  task::Priority priority_ = task::Priority::normal;
  task::Backend backend_ = task::Backend::triton;
  std::uint32_t num_correct_trials_ = 5;
  std::uint32_t num_perf_trials_ = 100;
  double timeout_s_ = 300;
  std::optional<double> deadline_s_;
  bool force_refresh_ = false;
  bool wait_ = false;
  bool as_json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_submit() {
  return std::make_unique<Submit>();
}

}  // namespace drk::cli
