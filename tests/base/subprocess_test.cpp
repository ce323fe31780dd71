// SPDX-License-Identifier: Apache-2.0
// Programs that end well, badly, late or never begin.
#include "drk/base/subprocess.h"

#include "base/error_matchers.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace drk {
namespace {

using namespace std::chrono_literals;

ProgramResult shell(const std::string& script, std::chrono::milliseconds limit = 20s) {
  return run_program({"/bin/sh", "-c", script}, {"PATH=/usr/bin:/bin", "COLOUR=green"}, limit);
}

/// Of the child, when it has one: its process id.
ChildProcess start(const std::vector<std::string>& arguments, int stdout_fd) {
  ProgramOptions options;
  options.arguments = arguments;
  options.stdout_fd = stdout_fd;
  return ChildProcess::start(options);
}

/// Blocks until `fd` has text or its last writer is gone (then empty).
std::string read_some(int fd) {
  std::string text(256, '\0');
  const ssize_t n = ::read(fd, text.data(), text.size());
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

TEST(RunProgram, ReturnsOutputAndExitCode) {
  const ProgramResult result = shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(result.output, "out\nerr\n");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_FALSE(result.timed_out);
}

TEST(RunProgram, AddsSignalsTo128) {
  EXPECT_EQ(shell("kill -SEGV $$").exit_code, 128 + SIGSEGV);
  EXPECT_EQ(shell("kill -KILL $$").exit_code, 128 + SIGKILL);
}

TEST(RunProgram, InheritsNothingButTheGivenEnvironment) {
  ASSERT_EQ(::setenv("DRK_SECRET", "token", 1), 0);
  EXPECT_EQ(shell("echo \"$COLOUR$DRK_SECRET\"").output, "green\n");
  EXPECT_EQ(shell("cat").output, "") << "stdin is /dev/null";
}

TEST(RunProgram, LooksTheProgramUpInThePath) {
  EXPECT_EQ(run_program({"true"}, {}, 20s).exit_code, 0);
}

TEST(RunProgram, KillsAtItsLimit) {
  const auto start_time = std::chrono::steady_clock::now();
  const ProgramResult result = shell("echo begun; while :; do :; done", 300ms);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.output, "begun\n");
  EXPECT_LT(std::chrono::steady_clock::now() - start_time, 10s);
}

TEST(RunProgram, CutsLongOutputAtOneMebibyte) {
  const ProgramResult result = shell("head -c 3000001 /dev/zero");
  EXPECT_EQ(result.output.size(), std::size_t{1} << 20);
  EXPECT_EQ(result.exit_code, 0);
}

TEST(RunProgram, AMissingProgramIsNotFound) {
  EXPECT_TRUE(throws_error(ErrorCode::not_found, "cannot start /no/such/program", [] {
    static_cast<void>(run_program({"/no/such/program"}, {}, 1s));
  }));
  EXPECT_TRUE(throws_error(ErrorCode::unavailable, "cannot start /etc/passwd", [] {
    static_cast<void>(run_program({"/etc/passwd"}, {}, 1s));
  }));
}

TEST(ChildProcess, ConnectsTheExtraDescriptorAsThree) {
  Pipe answer = make_pipe();
  Pipe request = make_pipe();
  ASSERT_EQ(::write(request.write.get(), "ping\n", 5), 5);
  request.write.reset();
  ProgramOptions options;
  options.arguments = {"/bin/sh", "-c", "read word <&3; echo got $word"};
  options.stdout_fd = answer.write.get();
  options.extra_fd = request.read.get();
  ChildProcess child = ChildProcess::start(options);
  EXPECT_EQ(read_some(answer.read.get()), "got ping\n");
  EXPECT_EQ(child.wait_for(20s), 0);
}

TEST(ChildProcess, WaitForReturnsNothingWhileItRuns) {
  Pipe pipe = make_pipe();
  ChildProcess child = start({"/bin/sh", "-c", "echo up; exec sleep 60"}, pipe.write.get());
  EXPECT_EQ(read_some(pipe.read.get()), "up\n");
  EXPECT_EQ(child.wait_for(0ms), std::nullopt);
  ::kill(child.pid(), SIGTERM);
  const auto status = child.wait_for(20s);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(WTERMSIG(*status), SIGTERM);
  EXPECT_EQ(child.pid(), -1) << "reaped: nobody may signal that number again";
}

TEST(ChildProcess, LeadsASessionOfItsOwn) {
  Pipe pipe = make_pipe();
  const ChildProcess child = start({"/bin/sh", "-c", "echo up; exec sleep 60"}, pipe.write.get());
  EXPECT_EQ(read_some(pipe.read.get()), "up\n");
  EXPECT_EQ(::getsid(child.pid()), child.pid());
}

TEST(ChildProcess, DestructorKillsItAndWhatItStarted) {
  Pipe pipe = make_pipe();
  pid_t pid = -1;
  {
    const ChildProcess child =
        start({"/bin/sh", "-c", "sleep 60 & echo up; wait"}, pipe.write.get());
    pid = child.pid();
    EXPECT_EQ(read_some(pipe.read.get()), "up\n");
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
  // Ends only when `sleep`, which holds the other end too, is gone.
  pipe.write.reset();
  EXPECT_EQ(read_some(pipe.read.get()), "");
}

TEST(ChildProcess, MovesWithItsOwner) {
  Pipe pipe = make_pipe();
  ChildProcess first = start({"/bin/sh", "-c", "exec sleep 60"}, pipe.write.get());
  const pid_t pid = first.pid();
  ChildProcess second = std::move(first);
  EXPECT_EQ(second.pid(), pid);
  EXPECT_EQ(first.pid(), -1);  // NOLINT(bugprone-use-after-move): the promise under test
  second = ChildProcess();
  EXPECT_EQ(::kill(pid, 0), -1);
}

}  // namespace
}  // namespace drk
