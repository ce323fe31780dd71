// SPDX-License-Identifier: Apache-2.0
// drk bench, drk hacks: every candidate of some suites, held against what is known of it.
#include "drk/base/error.h"
#include "drk/base/json.h"
#include "drk/base/random.h"

#include "bench_runner.h"
#include "command.h"
#include "interrupts.h"
#include "locate.h"
#include "terminal.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace drk::cli {

namespace {

suite::Table::Paint painter(const Style& style) {
  return [style](suite::Agreement agreement, const std::string& mark) {
    switch (agreement) {
      case suite::Agreement::met:
        return style.good(mark);
      case suite::Agreement::unmet:
        return style.bad(mark);
      case suite::Agreement::known:
      case suite::Agreement::inert:
        return style.doubtful(mark);
      case suite::Agreement::skipped:
        return style.faint(mark);
    }
    return mark;
  };
}

class Bench : public Command {
 public:
  CLI::App* declare(CLI::App& program) override {
    CLI::App* command = declare_command(program);
    command->add_option("DIR", folders_, "Folder with problem.json or case.json in it or below")
        ->required()
        ->default_str("");
    command->add_option("--filter", filter_, "Only where this glob fits PROBLEM[/CANDIDATE]");
    command->add_option("--trials", trials_, "Inputs that must come out right")
        ->check(CLI::Range(1, 20));
    command->add_option("--timeout", timeout_s_, "Seconds for each candidate, at most")
        ->check(CLI::PositiveNumber);
    command
        ->add_option("--jobs,-j", jobs_, "Candidates judged side by side; else as suits the device")
        ->check(CLI::Range(1, 64));
    command->add_flag(
        "--keep-going,!--fail-fast", keep_going_, "Go on after a wrong verdict (default)");
    declare_guests(*command, guests_);
    command->add_flag("--json", as_json_, "Print rows and sums as JSON, at the end");
    command->add_flag("--verbose,-v", verbose_, "Progress also where there is no terminal");
    command->footer(
        "Ends with 0 when every verdict is the expected one (what needs a GPU is\n"
        "skipped), 1 when one is not.");
    return command;
  }

  int run(const Surroundings& surroundings) override {
    std::vector<suite::Case> cases = load_cases();
    worker::Options worker_options = locate_worker(guests_, surroundings);
    is_on_gpu_ = !worker_options.gpus.empty();
    // A GPU is measured by one at a time while others compile; an interpreter takes a core.
    const std::uint32_t fitting = std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
    jobs_ = jobs_.value_or(is_on_gpu_ ? fitting : 1);
    worker_options.warm_guests = *jobs_;
    worker_options.max_warm_guests = *jobs_;
    worker_options.kept_references = std::max(worker_options.kept_references, *jobs_);
    const Interrupts interrupts;  // before the evaluator's threads
    worker::Evaluator evaluator(worker_options);
    (void)evaluator.environment();  // a machine that can judge nothing is told of once
    const suite::Table table(cases, painter(Style::of_stdout(surroundings.no_color)));
    if (!as_json_) write_out(table.header() + "\n");
    BenchRunner::Options how = runner_options(interrupts.token(), table);
    prepare(cases, how);
    BenchRunner runner(evaluator, cases, std::move(how));
    const suite::Report report = suite::summarize(runner.run());
    print(report, table);
    if (interrupts.token().stop_requested()) {
      complain(
          fmt::format("drk: interrupted after {} of {} cases", report.all.cases, cases.size()));
      return kInterrupted;
    }
    return report.all.unmet == 0 ? kAccepted : kRejected;
  }

 protected:
  virtual CLI::App* declare_command(CLI::App& program) {
    return program.add_subcommand("bench", "Judge every candidate of some suites");
  }
  /// What is different about a run, and told after it.
  virtual void prepare(std::vector<suite::Case>& /*cases*/, BenchRunner::Options& /*options*/) {}
  [[nodiscard]] virtual std::string summary(const suite::Report& /*report*/) const { return ""; }
  /// The same for --json.
  virtual void add_to(json::Object& /*out*/, const suite::Report& /*report*/) const {}

 private:
  [[nodiscard]] std::vector<suite::Case> load_cases() const {
    std::vector<suite::Case> cases;
    for (const std::string& folder : folders_) {
      for (suite::Case& one : suite::load(folder)) {
        if (filter_.empty() || suite::matches(one, filter_)) cases.push_back(std::move(one));
      }
    }
    if (cases.empty()) {
      throw Error(ErrorCode::not_found, "no case fits --filter " + one_line(filter_));
    }
    return cases;
  }

  [[nodiscard]] BenchRunner::Options runner_options(std::stop_token stop,
                                                    const suite::Table& table) const {
    BenchRunner::Options options;
    options.jobs = jobs_.value();
    options.mode = is_on_gpu_ ? task::Mode::gpu : task::Mode::interpreter;
    options.trials = trials_;
    options.timeout_s = timeout_s_;
    options.fail_fast = !keep_going_;
    options.stop = std::move(stop);
    options.progress = ProgressLine::manner_for(false, verbose_);
    if (!as_json_) {
      options.on_row = [&table](const suite::Row& row) { write_out(table.line(row) + "\n"); };
    }
    return options;
  }

  void print(const suite::Report& report, const suite::Table& table) const {
    if (as_json_) {
      json::Value out = json::to_json(report);
      add_to(out.as_object(), report);
      return write_out(json::dump_pretty(out));
    }
    write_out("\n");
    for (const suite::Tally& group : report.groups) write_out(table.summary(group) + "\n");
    if (report.groups.size() != 1) write_out(table.summary(report.all) + "\n");
    write_out(summary(report));
  }

  std::vector<std::string> folders_;
  std::string filter_;
  std::optional<std::uint32_t> trials_;
  std::optional<double> timeout_s_;
  std::optional<std::uint32_t> jobs_;  ///< Else as suits the device.
  bool keep_going_ = true;
  GuestChoice guests_;
  bool is_on_gpu_ = false;
  bool as_json_ = false;
  bool verbose_ = false;
};

/// The same on candidates that cheat and on their honest twins, in a random order with random
/// numbers of trials: a verdict that depends on them is itself a fault.
class Hacks final : public Bench {
 public:
  CLI::App* declare(CLI::App& program) override {
    CLI::App* command = Bench::declare(program);
    command->add_option("--seed", seed_, "Of the order and the trials; else drawn, and printed");
    command->add_option("--share", share_, "One in so many cases, always the same ones")
        ->check(CLI::Range(1, 100));
    return command;
  }

 protected:
  CLI::App* declare_command(CLI::App& program) override {
    return program.add_subcommand(
        "hacks", "Judge candidates that cheat, and their honest twins, in random order");
  }

  void prepare(std::vector<suite::Case>& cases, BenchRunner::Options& options) override {
    std::size_t place = 0;
    std::erase_if(cases, [&](const suite::Case&) { return place++ % share_ != 0; });
    if (!seed_) seed_ = secure_random(1'000'000);
    options.shuffle = seed_;
  }

  [[nodiscard]] std::string summary(const suite::Report& report) const override {
    const suite::RedTeam counts = count(report);
    return fmt::format(
        "seed {}: {} caught, {} inert, {} missed, {} known gaps; {} honest accepted, {} false "
        "alarms\n",
        counts.seed,
        counts.caught,
        counts.inert,
        counts.missed,
        counts.known_gaps,
        counts.honest_accepted,
        counts.false_alarms);
  }

  void add_to(json::Object& out, const suite::Report& report) const override {
    out["red_team"] = json::to_json(count(report));
  }

 private:
  [[nodiscard]] suite::RedTeam count(const suite::Report& report) const {
    return suite::count_red_team(report.rows, seed_.value());
  }

  std::optional<std::uint64_t> seed_;
  std::size_t share_ = 1;
};

}  // namespace

std::unique_ptr<Command> make_hacks() {
  return std::make_unique<Hacks>();
}

std::unique_ptr<Command> make_bench() {
  return std::make_unique<Bench>();
}

}  // namespace drk::cli
