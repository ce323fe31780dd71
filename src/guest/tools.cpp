// SPDX-License-Identifier: Apache-2.0
// Files, commands, logs.
#include "guest/tools.h"

#include "drk/base/clock.h"
#include "drk/base/error.h"
#include "drk/base/subprocess.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace drk::guest {

namespace {

constexpr std::size_t kLogBytes = std::size_t{8} << 10;  // at either end of a log
constexpr std::int32_t kCannotStart = 127;               // as a shell says it

void write_files(const RunTools& request,
                 std::span<const std::byte> content,
                 const std::string& scratch) {
  for (const BuildFile& file : request.files) {
    if (file.bytes > content.size()) throw Error(ErrorCode::corrupt, "tools: too few bytes came");
    const std::filesystem::path path = std::filesystem::path(scratch) / file.name;
    std::error_code error;  // of no matter: writing the file then fails
    std::filesystem::create_directories(path.parent_path(), error);
    const auto* text = reinterpret_cast<const char*>(content.data());
    write_file(path, {text, file.bytes});
    content = content.subspan(file.bytes);
  }
}

std::int32_t exit_code_of(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

/// The beginning, where compilers say what is wrong, and the end, where linkers do.
std::string shortened(std::string log) {
  if (log.size() <= 2 * kLogBytes) return log;
  const std::size_t left_out = log.size() - 2 * kLogBytes;
  return fmt::format("{}\n[{} bytes left out]\n{}",
                     log.substr(0, kLogBytes),
                     left_out,
                     log.substr(log.size() - kLogBytes));
}

/// One command of a step: what runs for it now, and what is left to try.
class Running {
 public:
  Running(const ToolCommand& command, const std::vector<std::string>& environment, Fd log)
      : command_(command), environment_(environment), log_(std::move(log)) {
    start(command_.arguments);
  }

  [[nodiscard]] pid_t pid() const noexcept { return child_.pid(); }
  [[nodiscard]] std::int32_t exit_code() const noexcept { return exit_code_; }
  [[nodiscard]] double seconds() const noexcept { return seconds_; }

  /// Called when the child has ended.
  void ended() {
    exit_code_ = exit_code_of(child_.wait());
    seconds_ = static_cast<double>(now_ns() - begin_ns_) * 1e-9;
    if (exit_code_ == 0 || has_fallen_back_ || command_.otherwise.empty()) return;
    has_fallen_back_ = true;
    if (::ftruncate(log_.get(), 0) != 0) throw_errno("tools: ftruncate of a log");
    start(command_.otherwise);
  }

  /// The first part that can be told: a log may fill the whole of /tmp.
  [[nodiscard]] std::string log() const {
    constexpr off_t kRead = off_t{1} << 20;
    const auto size = static_cast<off_t>(file_size_bytes(log_.get()));
    std::string text(static_cast<std::size_t>(std::min(size, kRead)), '\0');
    const ssize_t n =
        ::pread(log_.get(), text.data(), text.size(), std::max<off_t>(0, size - kRead));
    text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
    return text + reason_;
  }

 private:
  void start(const std::vector<std::string>& arguments) {
    ProgramOptions program;
    program.arguments = arguments;
    program.environment = environment_;
    program.stdout_fd = log_.get();
    program.stderr_fd = log_.get();
    try {
      child_ = ChildProcess::start(program);
    } catch (const Error& error) {  // the machine's tools, not ours: as a shell would say it
      exit_code_ = kCannotStart;
      reason_ = fmt::format("{}\n", error.what());
    }
  }

  const ToolCommand& command_;
  const std::vector<std::string>& environment_;
  Fd log_;
  ChildProcess child_;
  std::int64_t begin_ns_ = now_ns();
  std::int32_t exit_code_ = 0;
  double seconds_ = 0;
  bool has_fallen_back_ = false;
  std::string reason_;
};

/// A file without a name, which each of a command's processes appends to.
Fd open_log(const std::string& scratch) {
  Fd log(::open(scratch.c_str(), O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600));
  if (!log) throw_errno("tools: open a log in " + scratch);
  return log;
}

void wait_for_all(std::vector<Running>& commands) {
  for (;;) {
    if (std::none_of(
            commands.begin(), commands.end(), [](const Running& c) { return c.pid() > 0; }))
      return;
    // Left unreaped: its owner does that.
    siginfo_t info = {};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) != 0) {
      if (errno == EINTR) continue;
      throw_errno("tools: waitid");
    }
    for (Running& command : commands) {
      if (command.pid() == info.si_pid) command.ended();
    }
  }
}

void run_step(const ToolStep& step,
              const std::vector<std::string>& environment,
              const std::string& scratch,
              ToolsRan& ran) {
  std::vector<Running> commands;
  commands.reserve(step.commands.size());
  for (const ToolCommand& command : step.commands) {
    commands.emplace_back(command, environment, open_log(scratch));
  }
  // All to their end, also beside a failed one: what is said of a build must not depend on which
  // command was faster.
  wait_for_all(commands);
  for (const Running& command : commands) {
    ran.command_s.push_back(command.seconds());
    ran.log += command.log();
    if (ran.exit_code == 0) ran.exit_code = command.exit_code();
  }
}

void measure_product(const RunTools& request, const std::string& scratch, ToolsRan& ran) {
  struct stat status = {};
  const std::string path = scratch + "/" + request.product;
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
    ran.log += "the tools made no product\n";
    ran.exit_code = 1;
  } else if (static_cast<std::uint64_t>(status.st_size) > request.max_product_bytes) {
    ran.log += fmt::format("the product of {} bytes is over the limit of {}\n",
                           status.st_size,
                           request.max_product_bytes);
    ran.exit_code = 1;
  } else {
    ran.product_bytes = static_cast<std::uint64_t>(status.st_size);
  }
}

}  // namespace

ToolsRan run_tools(const RunTools& request,
                   std::span<const std::byte> files,
                   const std::string& scratch) {
  write_files(request, files, scratch);
  const std::vector<std::string> environment = {
      "PATH=" + request.path, "HOME=" + scratch, "TMPDIR=" + scratch, "LC_ALL=C"};
  ToolsRan ran;
  for (const ToolStep& step : request.steps) {
    run_step(step, environment, scratch, ran);
    if (ran.exit_code != 0) break;
  }
  if (ran.exit_code == 0) measure_product(request, scratch, ran);
  ran.log = shortened(std::move(ran.log));
  return ran;
}

}  // namespace drk::guest
