// SPDX-License-Identifier: Apache-2.0
// drk serve: the server, with workers of its own.
#include "drk/base/error.h"
#include "drk/base/hash.h"
#include "drk/gpu.h"
#include "drk/gym/server.h"
#include "drk/version.h"

#include "command.h"
#include "input.h"
#include "interrupts.h"
#include "locate.h"
#include "terminal.h"
#include "tokens.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <sys/resource.h>
#include <thread>

namespace drk::cli {

namespace {

std::uint32_t usable_cores() {
  return std::max(1U, std::thread::hardware_concurrency());
}

constexpr rlim_t kOwnDescriptors = 64;     // store, log, libraries
constexpr rlim_t kDescriptorsOfSlot = 48;  // a candidate's guest, references, warm guests

class Serve final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override {
    CLI::App* command = program.add_subcommand("serve", "Serve evaluations over HTTP");
    declare_network(*command);
    declare_work(*command);
    command->set_config("--config", "", "Read options from a TOML file");
    command->footer(
        "Speaks KernelGYM's interface and more: docs/http-api.md, GET /openapi.json.\n"
        "Ctrl-C or SIGTERM: evaluations under way may finish, the rest stays in the store;\n"
        "once more: ends at once.");
    return command;
  }

  int run(const Surroundings& surroundings) override {
    gym::ServerOptions options = server_options(surroundings);
    fit_into_descriptors(options);
    const Interrupts interrupts;  // before the server's threads
    gym::Server server(std::move(options));
    complain("listening on " + server.url());
    wait_for_stop(interrupts.token());
    complain("stopping");
    server.drain(std::chrono::milliseconds(static_cast<std::int64_t>(drain_s_ * 1000)));
    return kAccepted;
  }

 private:
  void declare_network(CLI::App& command) {
    command.add_option("--host", options_.http.host, "Address to listen on");
    command.add_option("--port", options_.http.port, "Port; 0: any free one");
    command.add_option("--tokens", tokens_file_, "File with lines NAME TOKEN; then one is needed");
    CLI::Option* certificate = command.add_option(
        "--tls-cert", options_.http.tls_certificate_file, "PEM file; speaks https");
    CLI::Option* key = command.add_option("--tls-key", options_.http.tls_key_file, "PEM file");
    certificate->needs(key);
    key->needs(certificate);
    command.add_option("--http-threads", options_.http.threads, "Threads for connections")
        ->check(CLI::Range(1, 64));
    command.add_option("--max-connections", options_.http.max_connections, "More are answered 503");
    command.add_option("--max-body-mib", max_body_mib_, "Longer bodies are answered 413")
        ->check(CLI::Range(1, 4096));
  }

  void declare_work(CLI::App& command) {
    command.add_option("--data-dir", options_.data_dir, "Where tasks and results are kept")
        ->default_str("~/.local/share/drkernel/server");
    command.add_option("--jobs,-j", options_.slots, "Evaluations side by side")
        ->check(CLI::Range(0, 64));
    command.add_option("--max-pending", options_.max_pending, "More submissions are answered 429")
        ->check(CLI::PositiveNumber);
    command.add_option("--max-attempts", options_.max_attempts, "Of a task, before it is given up")
        ->check(CLI::Range(1, 20));
    command
        .add_option(
            "--abandon-after", abandon_s_, "Seconds after which a task nobody waits for ends")
        ->check(CLI::NonNegativeNumber);
    command.add_option("--drain", drain_s_, "Seconds that evaluations may go on when stopped")
        ->check(CLI::NonNegativeNumber);
    declare_guests(command, guests_);
    command.add_option("--log-file", options_.log_file, "Where the log goes; else standard error");
    command.add_flag("--verbose,-v", options_.log_debug, "Log more");
  }

  [[nodiscard]] gym::ServerOptions server_options(const Surroundings& surroundings) const {
    gym::ServerOptions options = options_;
    if (options.slots > 0) options.worker = locate_worker(guests_, surroundings);
    options.worker.warm_guests = 1;
    options.worker.max_warm_guests = std::max(2U, options.slots);
    // A batch is often some samples each of many prompts.
    options.worker.kept_references = 16 + options.slots;
    options.http.max_body_bytes = std::size_t{max_body_mib_} << 20U;
    options.http.max_large_bodies_bytes =
        std::max(options.http.max_large_bodies_bytes, 2 * options.http.max_body_bytes);
    options.abandon_after = std::chrono::milliseconds(static_cast<std::int64_t>(abandon_s_ * 1000));
    if (!tokens_file_.empty()) {
      options.tokens = parse_tokens(read_input(tokens_file_), tokens_file_);
    }
    if (options.data_dir.empty()) {
      options.data_dir = surroundings.home + "/.local/share/drkernel/server";
    }
    options.generation = generation(options.worker);
    return options;
  }

  /// Results are good for the program, the guest's files and the packages that made them. A
  /// folder's time changes with what is installed in it.
  [[nodiscard]] static std::string generation(const worker::Options& worker) {
    const auto stamp = [](const std::string& file) {
      std::error_code ignored;
      return fmt::format(
          "{} {}",
          std::filesystem::file_size(file, ignored),
          std::filesystem::last_write_time(file, ignored).time_since_epoch().count());
    };
    std::string made_of = fmt::format("{} {} {}", kVersion, worker.python, stamp("/proc/self/exe"));
    made_of += stamp(packages_of(worker.python));
    // A verdict of another device, or of the interpreter, is another verdict.
    for (const gpu::Device& device : worker.gpus) made_of += device.name;
    std::error_code ignored;
    for (const auto& file : std::filesystem::directory_iterator(worker.guest_dir, ignored)) {
      made_of += stamp(file.path());
    }
    return sha256_hex(made_of);
  }

  /// site-packages of the environment that an interpreter belongs to; empty when there is none.
  [[nodiscard]] static std::string packages_of(const std::string& python) {
    const std::filesystem::path lib = std::filesystem::path(python).parent_path() / "../lib";
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(lib, ignored)) {
      const std::filesystem::path packages = entry.path() / "site-packages";
      if (std::filesystem::is_directory(packages, ignored)) return packages.string();
    }
    return {};
  }

  /// Guests need descriptors too: connections must not take all that there are.
  static void fit_into_descriptors(gym::ServerOptions& options) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
    (void)::getrlimit(RLIMIT_NOFILE, &limit);
    const rlim_t wanted = kOwnDescriptors + rlim_t{kDescriptorsOfSlot} * options.slots;
    const rlim_t left = limit.rlim_cur > wanted ? limit.rlim_cur - wanted : 0;
    if (left < 16) {
      throw Error(
          ErrorCode::exhausted,
          fmt::format("{} descriptors are too few for {} jobs: {} are needed; see ulimit -n",
                      limit.rlim_cur,
                      options.slots,
                      wanted + 16));
    }
    if (left >= options.http.max_connections) return;
    options.http.max_connections = static_cast<std::uint32_t>(left);
    complain(fmt::format("drk: {} connections at most, for want of descriptors (ulimit -n)", left));
  }

  static void wait_for_stop(const std::stop_token& token) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    stopped.wait(lock, token, [] { return false; });
  }

  gym::ServerOptions options_ = [] {
    gym::ServerOptions options;
    options.http.port = 10907;
    options.slots = usable_cores();
    return options;
  }();
  std::string tokens_file_;
  GuestChoice guests_;
  std::uint32_t max_body_mib_ = static_cast<std::uint32_t>(options_.http.max_body_bytes >> 20U);
  double abandon_s_ = std::chrono::duration<double>(options_.abandon_after).count();
  double drain_s_ = 30;
};

}  // namespace

std::unique_ptr<Command> make_serve() {
  return std::make_unique<Serve>();
}

}  // namespace drk::cli
