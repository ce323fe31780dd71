// SPDX-License-Identifier: Apache-2.0
// Candidates that harm the process they run in: each costs its own evaluation and nothing else.
#include "drk/base/error.h"

#include "worker/fixture.h"

#include <chrono>
#include <fstream>
#include <thread>
#include <unistd.h>

namespace drk::worker::test {
namespace {

using Hostile = WorkerTest;

struct Case {
  const char* name;
  std::string candidate;
  const char* outcome;
  const char* says;  ///< Part of the verdict's JSON or of the captured standard error.
};

std::vector<Case> cases() {
  return {
      {"null read", candidate_with("ctypes.string_at(0); return x"), "crashed", "SIGSEGV"},
      {"abort", candidate_with("os.abort()"), "crashed", "SIGABRT"},
      {"_exit(0) in forward", candidate_with("os._exit(0)"), "crashed", "exit status 0"},
      {"_exit(0) at import", candidate_with("return x", "os._exit(0)"), "crashed", "exit status 0"},
      {"kills itself",
       candidate_with("os.kill(os.getpid(), signal.SIGKILL); return x"),
       "crashed",
       "SIGKILL"},
      {"kills everything it can reach",
       candidate_with("os.kill(-1, signal.SIGKILL); return torch.relu(x)"),
       "",
       ""},
      {"endless loop", candidate_with("\n        while True: pass"), "timed_out", "limit_s"},
      {"endless sleep at import",
       candidate_with("return x", "time.sleep(1000)"),
       "timed_out",
       "limit_s"},
      {"asks for all memory",
       candidate_with("y = [torch.ones(1 << 26) for _ in range(64)]; return x"),
       "runtime_failed",
       "memory"},
      {"asks for all memory in Python",
       candidate_with("y = [bytearray(1 << 26) for _ in range(99)]; return x"),
       "resource_exhausted",
       "MemoryError"},
      {"floods stdout",
       candidate_with("\n        while True: os.write(1, b'x' * 65536)"),
       "resource_exhausted",
       "printed more than"},
      {"forks a storm",
       candidate_with(
           "\n        while True:\n            try: os.fork()\n            except OSError: pass"),
       "",
       ""},
      {"starts threads without end",
       candidate_with(
           "\n        while True: threading.Thread(target=time.sleep, args=(99,)).start()"),
       "runtime_failed",
       "thread"},
      {"fills its disk",
       candidate_with(
           "\n        f = open('/tmp/big', 'wb')\n        while True: f.write(b'x' * (1 << 20))"),
       "runtime_failed",
       "OSError"},
      {"fills its disk with files",
       candidate_with("\n        for i in range(10**6): open(f'/tmp/f{i}', 'w').close()"),
       "runtime_failed",
       "OSError"},
      {"fills /dev/shm",
       candidate_with("\n        f = open('/dev/shm/big', 'wb')\n        while True: f.write(b'x' "
                      "* (1 << 20))"),
       "runtime_failed",
       "OSError"},
      {"opens files without end",
       candidate_with("\n        keep = [open('/dev/null') for _ in range(10**6)]"),
       "runtime_failed",
       "Too many open files"},
      {"overflows the stack",
       candidate_with("f = lambda f: f(f); sys.setrecursionlimit(10**8); return f(f)"),
       "",
       ""},
      {"closes every descriptor",
       candidate_with("os.closerange(0, 512); return torch.relu(x)"),
       "crashed",
       ""},
      {"writes a verdict into its channel",
       candidate_with("\n        for fd in range(3, 64):\n            try: os.write(fd, "
                      "b'{\"kind\":\"called\",\"correct\":true}')\n"
                      "            except OSError: pass\n        return torch.relu(x)"),
       "rejected",
       "io_tamper"},
      {"answers loading with a reply of another kind",
       candidate_with("return torch.relu(x)",
                      "for fd in range(3, 64):\n    try: os.write(fd, "
                      "b'{\"kind\":\"restricted\",\"in_force\":true}')\n"
                      "    except OSError: pass\n"),
       "rejected",
       "used the core's channel"},
      {"asks for shared memory without end",
       candidate_with(
           "\n        while True:\n            for fd in range(3, 64):\n"
           "                try: os.write(fd, b'{\"kind\":\"allocate\",\"bytes\":4096}')\n"
           "                except OSError: pass"),
       "rejected",
       "used the core's channel"},
      {"tells its init to end",
       candidate_with("os.kill(1, signal.SIGTERM); time.sleep(0.2); os.abort()"),
       "crashed",
       "SIGABRT"},
      {"returns a text of a megabyte",
       candidate_with("return 'x' * (1 << 20)"),
       "wrong_output",
       "8 KiB"},
      {"pretends to be Triton's driver",
       candidate_with(
           "exec(compile('raise RuntimeError()', '/x/triton/runtime/driver.py', 'exec'))"),
       "runtime_failed",
       "RuntimeError"},
      {"writes bytes into its channel",
       candidate_with(
           "\n        for fd in range(3, 64):\n            try: os.write(fd, b'\\xff\\x00' * 100)\n"
           "            except OSError: pass\n        return torch.relu(x)"),
       "rejected",
       "io_tamper"},
  };
}

task::Task hostile_task(const std::string& code) {
  task::Task task = make_torch_task(kReluReference, code);
  task.limits.load_s = 3;
  task.limits.correctness_s = 3;
  task.limits.memory_bytes = std::uint64_t{1} << 29;
  task.limits.tmp_bytes = std::uint64_t{64} << 20;
  return task;
}

TEST_F(Hostile, CandidateCostsOneEvaluationAndTheVerdictNamesWhatHappened) {
  for (const Case& c : cases()) {
    const task::Result result = evaluator().evaluate(hostile_task(c.candidate));
    const std::string text = text_of(result);
    if (*c.outcome != '\0') {
      EXPECT_EQ(kind_of(result), c.outcome) << c.name << ": " << text;
    }
    EXPECT_NE(kind_of(result), "undecided") << c.name << ": " << text;
    EXPECT_NE(text.find(c.says), std::string::npos) << c.name << ": " << text;
    expect_unharmed();
    if (HasFailure()) FAIL() << "after: " << c.name;
  }
}

TEST_F(Hostile, OrphansAreSeenAndDoNotSurvive) {
  const std::string marker = "drk_orphan_" + std::to_string(::getpid());
  const std::string code =
      candidate_with("return torch.relu(x)",
                     "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
                     "        ctypes.CDLL(None).prctl(15, b'" +
                         marker.substr(0, 15) +
                         "')\n"
                         "        time.sleep(60)\n    os._exit(0)\n");
  const task::Result result = evaluator().evaluate(hostile_task(code));
  EXPECT_EQ(kind_of(result), "rejected") << text_of(result);
  EXPECT_NE(text_of(result).find("process_tamper"), std::string::npos);
  const int found =
      std::system(("pgrep -x " + marker.substr(0, 15) + " > /dev/null").c_str());  // NOLINT
  EXPECT_NE(found, 0) << "a process of the candidate is still there";
}

TEST_F(Hostile, CandidateSeesNoFileOfTheUserAndNoNetwork) {
  const std::string secret = "/var/tmp/drk_secret_" + std::to_string(::getpid());
  std::ofstream(secret) << "secret";
  const std::string code =
      candidate_with("\n        seen = [os.path.exists('" + secret +
                     "'), os.path.exists('/root/.bashrc'),"
                     " os.path.exists('/home'), os.path.exists('" DRK_SOURCE_DIR
                     "/CMakeLists.txt')]\n"
                     "        assert not any(seen), seen\n"
                     "        try:\n            open('/usr/x', 'w')\n            raise "
                     "SystemExit('wrote to /usr')\n"
                     "        except OSError: pass\n"
                     "        assert sorted(int(p) for p in os.listdir('/proc') if p.isdigit()) == "
                     "[1, os.getpid()]\n"
                     "        assert os.listdir('/sys/class/net') == ['lo'] if "
                     "os.path.exists('/sys/class/net') else True\n"
                     "        import socket\n"
                     "        try:\n            socket.create_connection(('127.0.0.1', 22), 1)\n   "
                     "         raise SystemExit('connected')\n"
                     "        except OSError: pass\n"
                     "        return torch.relu(x)");
  const task::Result result = evaluator().evaluate(hostile_task(code));
  ::unlink(secret.c_str());
  EXPECT_EQ(kind_of(result), "rejected") << text_of(result);
  EXPECT_NE(text_of(result).find("network_escape"), std::string::npos) << text_of(result);
  EXPECT_TRUE(result.observations.trials.size() == 2) << text_of(result);
}

TEST_F(Hostile, AStopRequestEndsARunningEvaluationWithinASecond) {
  task::Task task = hostile_task(candidate_with("time.sleep(60); return x"));
  task.limits.correctness_s = 60;
  std::stop_source source;
  EvaluateOptions options;
  options.stop = source.get_token();
  std::jthread stopper;
  std::chrono::steady_clock::time_point asked;
  options.on_progress = [&](const Progress& progress) {
    if (progress.stage != task::Stage::correctness || stopper.joinable()) return;
    stopper = std::jthread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      asked = std::chrono::steady_clock::now();
      source.request_stop();
    });
  };
  EXPECT_THROW((void)evaluator().evaluate(task, options), Error);
  EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(1));
  expect_unharmed();
}

}  // namespace
}  // namespace drk::worker::test
