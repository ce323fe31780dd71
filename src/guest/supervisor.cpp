// SPDX-License-Identifier: Apache-2.0
// Waiting, reaping, answering, reporting.
#include "guest/supervisor.h"

#include "drk/base/json.h"
#include "drk/guest.h"

#include <array>
#include <cstdlib>
#include <dirent.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace drk::guest {

namespace {

constexpr std::size_t kMaxRefusalNames = 32;

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};

bool is_zombie(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(") ");
  return name_end == std::string::npos || text[name_end + 2] == 'Z' || text[name_end + 2] == 'X';
}

/// Living processes of the cell besides this one.
std::uint32_t count_processes() {
  const std::unique_ptr<DIR, CloseDirectory> proc(::opendir("/proc"));
  if (!proc) return 0;
  std::uint32_t count = 0;
  while (const dirent* entry =
             ::readdir(proc.get())) {  // NOLINT(concurrency-mt-unsafe): one thread
    const std::string name = entry->d_name;
    if (name.find_first_not_of("0123456789") != std::string::npos || name == "1") continue;
    if (!is_zombie(name)) ++count;
  }
  return count;
}

class Supervisor {
 public:
  explicit Supervisor(Supervised supervised) : supervised_(std::move(supervised)) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    signals_ = Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  void run() {
    reap();  // a guest that ended before its signals were kept sent one that nobody saw
    while (!ended_ && !told_to_end_) {
      std::array<pollfd, 2> watched = {pollfd{signals_.get(), POLLIN, 0},
                                       pollfd{supervised_.refusals.get(), POLLIN, 0}};
      if (::poll(watched.data(), watched.size(), -1) < 0) continue;
      if ((watched[0].revents & POLLIN) != 0) read_signals();
      if ((watched[1].revents & POLLIN) != 0) answer_one();
    }
    // With the cell's last process gone the listener has nobody left to speak for.
    report();
    end_others();
    std::error_code error;  // of no use to anybody now
    if (!supervised_.scratch_to_remove.empty()) {
      std::filesystem::remove_all(supervised_.scratch_to_remove, error);
    }
  }

 private:
  void read_signals() {
    signalfd_siginfo info = {};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      // A sender in this namespace has a number here; the worker, outside it, has none.
      const bool from_outside = info.ssi_pid == 0 || !supervised_.is_namespace_init;
      if (info.ssi_signo == SIGTERM && from_outside) told_to_end_ = true;
    }
    reap();
  }

  void reap() {
    int status = 0;
    rusage usage = {};
    for (pid_t pid = 0; (pid = ::wait4(-1, &status, WNOHANG, &usage)) > 0;) {
      if (pid != supervised_.guest) continue;
      ended_ = true;
      report_.wait_status = status;
      report_.peak_rss_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
      report_.cpu_s = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                      static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    }
  }

  void answer_one() {
    const auto name = sandbox::answer_refusal(supervised_.refusals.get());
    if (!name) return;
    if (report_.refusals.size() < kMaxRefusalNames || report_.refusals.contains(*name)) {
      ++report_.refusals[*name];
    }
  }

  void report() {
    if (!ended_) return;
    if (supervised_.is_namespace_init) report_.processes_left = count_processes();
    send_message(supervised_.status.get(), json::dump(json::to_json(Status(report_))));
  }

  /// A namespace ends with its init. Without one, the orphans are this process's children.
  void end_others() const {
    if (supervised_.is_namespace_init) return;
    for (int round = 0; round < 100; ++round) {
      std::ifstream children("/proc/self/task/" + std::to_string(::getpid()) + "/children");
      for (pid_t pid = 0; children >> pid;) ::kill(pid, SIGKILL);
      if (::waitpid(-1, nullptr, 0) < 0) return;
    }
  }

  Supervised supervised_;
  Fd signals_;
  Ended report_;
  bool ended_ = false;
  bool told_to_end_ = false;
};

}  // namespace

void supervise(Supervised supervised) noexcept {
  try {
    Supervisor(std::move(supervised)).run();
    ::_exit(0);
  } catch (const std::exception&) {  // the worker is gone, or this process is out of memory
    ::_exit(71);
  }
}

}  // namespace drk::guest
