// SPDX-License-Identifier: Apache-2.0
// drk status and drk cancel: a task at a server.
#include "drk/base/error.h"

#include "command.h"
#include "interrupts.h"
#include "remote.h"
#include "terminal.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace drk::cli {

namespace {

std::string line(const std::string& name, const std::string& value) {
  return value.empty() ? "" : fmt::format("{:<12}{}\n", name, one_line(value));
}

std::string number(const json::Object& task, const char* name) {
  const json::Value* value = task.if_contains(name);
  return value == nullptr || value->is_null() ? "" : json::dump(*value);
}

class Status final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override {
    CLI::App* command = program.add_subcommand("status", "Tell where a task stands");
    command->add_option("TASK", task_id_, "The task's id")->required();
    remote_.declare(*command);
    command->add_option("--wait,-w", wait_s_, "Seconds to wait for the status to change")
        ->check(CLI::Range(0.0, 300.0));
    command->add_flag(
        "--result", result_, "Print its result, which is JSON; 1 while there is none");
    command->add_flag("--json", as_json_, "Print the server's answer");
    return command;
  }

  int run(const Surroundings& surroundings) override {
    remote_.connect(surroundings);
    const Interrupts interrupts;
    const std::string id = http::percent_encode(task_id_);
    const std::string wait = wait_s_ ? fmt::format("?wait={}", *wait_s_) : "";
    const json::Value answer = remote_.ask(
        "GET", (result_ ? "/results/" : "/status/") + id + wait, {}, interrupts.token());
    write_out(as_json_ || result_ ? json::dump_pretty(answer) : render(answer.as_object()));
    return kAccepted;
  }

 private:
  [[nodiscard]] static std::string render(const json::Object& task) {
    std::string text = line("task", text_of(task, "task_id"));
    text += line("status", text_of(task, "status"));
    text += line("stage", describe_step(text_of(task, "stage"), text_of(task, "detail")));
    text += line("position", number(task, "queue_position"));
    text += line("waits", text_of(task, "why_waiting"));
    text += line("worker", text_of(task, "worker"));
    text += line("attempts", number(task, "attempts"));
    text += line("priority", text_of(task, "priority"));
    text += line("client", text_of(task, "client"));
    text += line("submitted", text_of(task, "submitted_at"));
    text += line("started", text_of(task, "started_at"));
    text += line("completed", text_of(task, "completed_at"));
    text += line("fault", text_of(task, "fault"));
    return text + line("error", text_of(task, "error_message"));
  }

  Remote remote_;
  std::string task_id_;
  std::optional<double> wait_s_;
  bool result_ = false;
  bool as_json_ = false;
};

class Cancel final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override {
    CLI::App* command = program.add_subcommand("cancel", "Cancel tasks at a server");
    command->add_option("TASK", task_ids_, "Ids of tasks")->required()->default_str("");
    remote_.declare(*command);
    command->add_flag("--json", as_json_, "Print the server's answers, one a line");
    command->footer("A running task is killed. Ends with 1 when one is unknown or final already.");
    return command;
  }

  int run(const Surroundings& surroundings) override {
    remote_.connect(surroundings);
    int code = kAccepted;
    for (const std::string& id : task_ids_) {
      try {
        const json::Value answer = remote_.ask("DELETE", "/tasks/" + http::percent_encode(id));
        write_out((as_json_ ? json::dump(answer) : one_line(id) + " cancelled") + "\n");
      } catch (const Error& error) {
        if (error.code() != ErrorCode::not_found) throw;
        complain("drk: " + one_line(error.what()));
        code = kRejected;
      }
    }
    return code;
  }

 private:
  Remote remote_;
  std::vector<std::string> task_ids_;
  bool as_json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_status() {
  return std::make_unique<Status>();
}

std::unique_ptr<Command> make_cancel() {
  return std::make_unique<Cancel>();
}

}  // namespace drk::cli
