// SPDX-License-Identifier: Apache-2.0
// Forking guests.
#include "guest/zygote.h"

#include "drk/base/error.h"
#include "drk/base/json.h"
#include "drk/guest.h"

#include "guest/python.h"
#include "guest/session.h"
#include "guest/supervisor.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <optional>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace drk::guest {

namespace {

constexpr int kFirstFreeFd = 3;

/// Forking copies only the calling thread; a lock that another one holds would stay held for ever.
void check_single_threaded() {
  const std::string status = read_file("/proc/self/status");
  if (status.find("\nThreads:\t1\n") == std::string::npos) {
    throw Error(ErrorCode::internal, "zygote: it has more than one thread, so it must not fork");
  }
}

struct GuestFds {
  Fd control, status, standard_output, standard_error;
};

/// Moves `fd` to `target` and leaves it open over exec as any standard stream.
void take_place(Fd fd, int target) {
  if (::dup2(fd.get(), target) < 0) throw_errno("dup2");
}

/// In the guest: standard streams, and nothing else open but its control socket.
Fd settle_fds(GuestFds fds) {
  take_place(std::move(fds.standard_output), 1);
  take_place(std::move(fds.standard_error), 2);
  const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (null) ::dup2(null.get(), 0);
  ::close_range(static_cast<unsigned>(fds.control.get()) + 1, ~0U, 0);
  Fd control(::fcntl(fds.control.get(), F_DUPFD_CLOEXEC, kFirstFreeFd));
  for (int fd = kFirstFreeFd; fd <= fds.control.get(); ++fd) {
    if (fd != control.get()) ::close(fd);
  }
  (void)fds.control.release();
  (void)fds.status.release();  // closed by the loop above, or by close_range
  return control;
}

class Zygote {
 public:
  Zygote(const TorchFunctions& torch, Fd socket) : torch_(torch), socket_(std::move(socket)) {}

  void run(const std::string& hello) {
    ::signal(SIGCHLD, SIG_IGN);  // inits are watched by the worker through their pidfds
    send_message(socket_.get(), hello);
    while (std::optional<Message> message = receive_message(socket_.get())) {
      const auto request = json::from_json<ZygoteRequest>(json::parse(message->text), "request");
      if (const auto* configure = std::get_if<Configure>(&request)) {
        plan_ = configure->plan;
        send_message(socket_.get(), json::dump(json::to_json(ZygoteReply(Configured{}))));
      } else {
        spawn(std::get<Spawn>(request), std::move(message->fds));
      }
    }
  }

 private:
  void spawn(const Spawn& request, std::vector<Fd> fds) {
    try {
      if (fds.size() != 4) throw Error(ErrorCode::corrupt, "zygote: spawn needs four descriptors");
      check_single_threaded();
      sandbox::Clone clone = sandbox::clone_into_namespaces(request.cell);
      if (clone.pid == 0) {
        socket_.reset();
        become_init(request.cell,
                    std::move(clone.report),
                    {std::move(fds[0]), std::move(fds[1]), std::move(fds[2]), std::move(fds[3])});
      }
      const std::string reply = json::dump(json::to_json(ZygoteReply(Spawned{clone.pid})));
      const int pidfd = clone.pidfd.get();
      send_message(socket_.get(), reply, {&pidfd, 1});
    } catch (const Error& error) {
      send_message(socket_.get(),
                   json::dump(json::to_json(ZygoteReply(SpawnFailed{error.what()}))));
    }
  }

  /// The cloned process. Nothing of it ever goes back to the zygote's loop.
  [[noreturn]] void become_init(const sandbox::Cell& cell,
                                sandbox::Report report,
                                GuestFds fds) noexcept {
    try {
      ::signal(SIGCHLD, SIG_DFL);
      sandbox::Entered entered = sandbox::enter(plan_, cell, std::move(report));
      // After the user changed, which clears it: a dead zygote takes its guests along.
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::prctl(PR_SET_CHILD_SUBREAPER, 1);
      if (::chdir(entered.scratch.c_str()) != 0) throw_errno("chdir " + entered.scratch);
      send_message(fds.status.get(), json::dump(json::to_json(Status(Started{entered.report}))));
      const pid_t guest = ::fork();  // glibc's: runs the libraries' fork handlers
      if (guest < 0) throw_errno("fork of the guest");
      if (guest == 0) become_guest(std::move(entered), std::move(fds));
      ::close_range(0, 2, 0);
      fds.control.reset();
      fds.standard_output.reset();
      fds.standard_error.reset();
      supervise({guest,
                 std::move(fds.status),
                 std::move(entered.refusals),
                 ::getpid() == 1,
                 entered.owns_scratch ? entered.scratch : ""});
    } catch (const std::exception& error) {
      fmt::print(stderr, "init: {}\n", error.what());
      ::_exit(72);
    }
  }

  [[noreturn]] void become_guest(sandbox::Entered entered, GuestFds fds) noexcept {
    try {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::setsid();
      entered.refusals.reset();
      Fd control = settle_fds(std::move(fds));
      PyOS_AfterFork_Child();
      serve_guest(torch_, std::move(control), plan_, entered.scratch);
      ::_exit(0);
    } catch (const std::exception& error) {
      fmt::print(stderr, "guest: {}\n", error.what());
      ::_exit(72);
    }
  }

  const TorchFunctions& torch_;
  Fd socket_;
  sandbox::Plan plan_;
};

}  // namespace

void serve_zygote(const TorchFunctions& torch, Fd socket, const std::string& hello) noexcept {
  try {
    // Until the worker's end of the socket closes: the worker gave up, or died. (A death signal
    // would come when the worker's thread that started this process ends.)
    Zygote(torch, std::move(socket)).run(hello);
    ::_exit(0);
  } catch (const std::exception& error) {
    fmt::print(stderr, "zygote: {}\n", error.what());
    ::_exit(72);
  }
}

}  // namespace drk::guest
