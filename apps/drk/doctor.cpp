// SPDX-License-Identifier: Apache-2.0
// drk doctor: what this machine can do, what it lacks, and what mends it.
#include "drk/doctor.h"

#include "drk/base/error.h"
#include "drk/base/json.h"

#include "command.h"
#include "locate.h"
#include "terminal.h"

#include <CLI/CLI.hpp>

namespace drk::cli {

namespace {

/// The border of each search: what is not found is what the doctor is asked for.
template <class Find>
void keep_problem(std::string& problem, const Find& find) {
  try {
    find();
  } catch (const Error& error) {
    problem = error.what();
  }
}

class Doctor final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override {
    CLI::App* command = program.add_subcommand("doctor", "Tell what this machine lacks");
    command->add_option("--python", python_, "Interpreter with torch and triton");
    command->add_flag("--json", as_json_, "Print checks and facts as JSON");
    command->footer("Judges a tiny problem to find out. Ends with 1 when that does not work.");
    return command;
  }

  int run(const Surroundings& surroundings) override {
    const doctor::Options options = find_options(surroundings);
    ProgressLine progress(ProgressLine::manner_for(false, false));
    progress.show("looking, and judging a tiny problem");
    const doctor::Report report = doctor::assess(doctor::probe(options));
    progress.clear();
    write_out(as_json_ ? json::dump_pretty(json::to_json(report))
                       : printable_report(report, Style::of_stdout(surroundings.no_color)));
    return report.can_judge ? kAccepted : kRejected;
  }

 private:
  [[nodiscard]] doctor::Options find_options(const Surroundings& surroundings) const {
    doctor::Options options;
    options.cache_dir = surroundings.cache_dir;
    options.environment = environment_of(surroundings);
    keep_problem(options.python_problem, [&] {
      const Interpreter interpreter = locate_interpreter(python_, surroundings);
      options.python = interpreter.path;
      options.found_by = interpreter.found_by;
    });
    keep_problem(options.guest_problem, [&] { options.guest_dir = locate_guest_dir(); });
    return options;
  }

  [[nodiscard]] static std::string printable_report(const doctor::Report& report,
                                                    const Style& style) {
    return doctor::render(report, [&](doctor::Status status, const std::string& word) {
      switch (status) {
        case doctor::Status::ok:
          return style.good(word);
        case doctor::Status::warn:
          return style.doubtful(word);
        case doctor::Status::fail:
          return style.bad(word);
      }
      return word;
    });
  }

  std::string python_;
  bool as_json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_doctor() {
  return std::make_unique<Doctor>();
}

}  // namespace drk::cli
