// SPDX-License-Identifier: Apache-2.0
// Runs the built program as a user does, in a folder that is gone with the test.
#pragma once

#include "drk/base/error.h"
#include "drk/base/fd.h"
#include "drk/base/subprocess.h"

#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <vector>

namespace drk::cli {

/// How a run of the program ended, and what it wrote.
struct Ended {
  int exit_code = -1;  ///< 128 + signal when one ended it; -1 when it had to be killed.
  std::string out;
  std::string err;
};

inline std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread sets any
  return value == nullptr ? std::string() : std::string(value);
}

class Program {
 public:
  Program() {
    std::string name = std::filesystem::temp_directory_path() / "cli_test_XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  /// Beside the test, so that a build folder can be copied to another machine.
  [[nodiscard]] static std::string binary() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "drk";
  }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  /// The path of a new file in the folder.
  [[nodiscard]] std::string file(const std::string& name, std::string_view content) const {
    write_file(path(name), content);
    return path(name);
  }

  /// Starts drk with `arguments`, and of the environment only what `environment` says.
  [[nodiscard]] ChildProcess start(std::vector<std::string> arguments,
                                   std::string_view input = "",
                                   std::vector<std::string> environment = {}) const {
    const Fd in = open_file(file("stdin", input), O_RDONLY);
    const Fd out = open_file(path("stdout"), O_WRONLY | O_CREAT | O_TRUNC);
    const Fd err = open_file(path("stderr"), O_WRONLY | O_CREAT | O_TRUNC);
    ProgramOptions options;
    options.arguments = std::move(arguments);
    options.arguments.insert(options.arguments.begin(), binary());
    options.environment = std::move(environment);
    options.stdin_fd = in.get();
    options.stdout_fd = out.get();
    options.stderr_fd = err.get();
    return ChildProcess::start(options);
  }

  [[nodiscard]] Ended wait(ChildProcess child) const {
    // For what hangs. The longest run judges dozens of candidates, on whatever machine this is.
    const std::optional<int> status = child.wait_for(std::chrono::minutes(6));
    Ended ended;
    if (status) {
      ended.exit_code = WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
    }
    ended.out = read_file(path("stdout"));
    ended.err = read_file(path("stderr"));
    return ended;
  }

  [[nodiscard]] Ended run(std::vector<std::string> arguments,
                          std::string_view input = "",
                          std::vector<std::string> environment = {}) const {
    return wait(start(std::move(arguments), input, std::move(environment)));
  }

 private:
  static Fd open_file(const std::string& path, int flags) {
    Fd fd(::open(path.c_str(), flags | O_CLOEXEC, 0600));
    if (!fd) throw_errno("open " + path);
    return fd;
  }

  std::string folder_;
};

}  // namespace drk::cli
