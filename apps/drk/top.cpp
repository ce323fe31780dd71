// SPDX-License-Identifier: Apache-2.0
// drk top: a server, live.
#include "drk/base/error.h"

#include "command.h"
#include "interrupts.h"
#include "remote.h"
#include "render_top.h"
#include "terminal.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <sys/ioctl.h>
#include <unistd.h>

namespace drk::cli {

namespace {

struct Size {
  std::size_t rows = 40;
  std::size_t columns = 120;
};

Size size_of_terminal() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return {};
  return {size.ws_row, size.ws_col};
}

class Top final : public Command {
 public:
  CLI::App* declare(CLI::App& program) override {
    CLI::App* command = program.add_subcommand("top", "Show a server, live");
    remote_.declare(*command);
    command->add_option("--interval,-i", interval_s_, "Seconds between looks")
        ->check(CLI::Range(0.1, 3600.0));
    command->add_flag("--once", once_, "Look once; so it is where there is no terminal");
    command->add_flag("--json", as_json_, "Print what the server says, once");
    return command;
  }

  int run(const Surroundings& surroundings) override {
    remote_.connect(surroundings);
    const Interrupts interrupts;
    const std::stop_token stop = interrupts.token();
    const Style style = Style::of_stdout(surroundings.no_color);
    if (as_json_) {
      write_out(json::dump_pretty(as_json(look(stop))));
    } else if (once_ || ::isatty(STDOUT_FILENO) == 0) {
      write_out(render_top(look(stop), style, 1000, 200));
    } else {
      live(style, stop);
    }
    return kAccepted;
  }

 private:
  /// Another screen without a cursor, while it lives.
  class Screen {
   public:
    Screen() { write_out("\x1b[?1049h\x1b[?25l"); }
    Screen(const Screen&) = delete;
    Screen& operator=(const Screen&) = delete;
    ~Screen() {
      try {
        write_out("\x1b[?25h\x1b[?1049l");
      } catch (const std::exception&) {  // the terminal is gone
      }
    }
  };

  void live(const Style& style, const std::stop_token& stop) {
    const Screen screen;
    while (!stop.stop_requested()) {
      const Size size = size_of_terminal();
      try {
        write_out("\x1b[H\x1b[J" + render_top(look(stop), style, size.rows - 1, size.columns));
      } catch (const Error& error) {
        if (error.code() != ErrorCode::timed_out || !stop.stop_requested()) throw;
      }
      pause(stop);
    }
  }

  void pause(const std::stop_token& stop) const {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    stopped.wait_for(lock, stop, std::chrono::duration<double>(interval_s_), [] { return false; });
  }

  [[nodiscard]] TopView look(const std::stop_token& stop) {
    const auto get = [&](const char* target) {
      json::Value answer = remote_.ask("GET", target, {}, stop);
      if (!answer.is_object()) json::detail::fail(target, "an object", answer);
      return std::move(answer.get_object());
    };
    TopView view;
    view.url = remote_.url();
    view.health = get("/health");
    view.metrics = get("/metrics");
    view.workers = get("/workers/status");
    view.running = get("/tasks?state=processing&limit=100");
    view.pending = get("/tasks?state=pending&limit=50");
    return view;
  }

  [[nodiscard]] static json::Object as_json(TopView view) {
    json::Object object;
    object["health"] = std::move(view.health);
    object["metrics"] = std::move(view.metrics);
    object["workers"] = std::move(view.workers);
    object["running"] = std::move(view.running["tasks"]);
    object["pending"] = std::move(view.pending["tasks"]);
    return object;
  }

  Remote remote_;
  double interval_s_ = 1;
  bool once_ = false;
  bool as_json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_top() {
  return std::make_unique<Top>();
}

}  // namespace drk::cli
