// SPDX-License-Identifier: Apache-2.0
// Asking, watching, killing.
#include "worker/guest_process.h"

#include "drk/base/error.h"
#include "drk/base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace drk::worker {

namespace {

constexpr std::uint64_t kMaxPrintedBytes = std::uint64_t{64} << 20;
constexpr std::chrono::milliseconds kTick(100);  // how soon a stop request is seen
constexpr std::chrono::milliseconds kEndLimit(1000);
constexpr std::chrono::milliseconds kStartLimit(20000);

const char* signal_meaning(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "segmentation fault";
    case SIGABRT:
      return "it aborted";
    case SIGBUS:
      return "bus error";
    case SIGFPE:
      return "arithmetic error";
    case SIGILL:
      return "illegal instruction";
    case SIGKILL:
      return "killed, by itself or for want of memory";
    case SIGSYS:
      return "a forbidden system call";
    default:
      return "signal";
  }
}

task::Death death_of(int wait_status) {
  task::Death death;
  if (WIFEXITED(wait_status)) {
    death.exit_code = WEXITSTATUS(wait_status);
    death.what = fmt::format("left with exit status {} before it answered", *death.exit_code);
  } else {
    death.signal = WTERMSIG(wait_status);
    const char* name = ::sigabbrev_np(*death.signal);
    death.what = fmt::format(
        "killed by SIG{} ({})", name == nullptr ? "?" : name, signal_meaning(*death.signal));
  }
  return death;
}

/// A reply of the kind that the request asks for.
bool answers(const guest::Request& request, const guest::Reply& reply) {
  using guest::Call, guest::LoadCandidate, guest::LoadReference, guest::MakeInputs;
  if (std::holds_alternative<LoadReference>(request) ||
      std::holds_alternative<LoadCandidate>(request)) {
    return std::holds_alternative<guest::Loaded>(reply);
  }
  if (std::holds_alternative<MakeInputs>(request)) {
    return std::holds_alternative<guest::InputsMade>(reply);
  }
  if (std::holds_alternative<Call>(request)) return std::holds_alternative<guest::Called>(reply);
  return std::holds_alternative<guest::Restricted>(reply);
}

bool has(const sandbox::Report& report, sandbox::Feature feature) {
  return std::find(report.enforced.begin(), report.enforced.end(), feature) !=
         report.enforced.end();
}

}  // namespace

GuestProcess::GuestProcess(GuestChannels channels,
                           sandbox::Cell cell,
                           std::function<void()> release)
    : channels_(std::move(channels)),
      cell_(std::move(cell)),
      release_(std::move(release)),
      standard_output_(std::move(channels_.standard_output)),
      standard_error_(std::move(channels_.standard_error)) {}

GuestProcess::~GuestProcess() {
  kill();
  if (release_) release_();
}

GuestProcess::Event GuestProcess::wait(std::chrono::milliseconds limit) {
  std::array<pollfd, 5> watched = {pollfd{channels_.control.get(), POLLIN, 0},
                                   pollfd{status_closed_ ? -1 : channels_.status.get(), POLLIN, 0},
                                   pollfd{standard_output_.fd(), POLLIN, 0},
                                   pollfd{standard_error_.fd(), POLLIN, 0},
                                   pollfd{channels_.pidfd.get(), POLLIN, 0}};
  if (::poll(watched.data(), watched.size(), static_cast<int>(limit.count())) <= 0) {
    return Event::nothing;
  }
  if (watched[2].revents != 0) standard_output_.drain();
  if (watched[3].revents != 0) standard_error_.drain();
  if (watched[1].revents != 0) read_status();
  if (watched[0].revents != 0) return Event::control;
  const bool is_over = ended_ || status_closed_ || watched[4].revents != 0;
  return is_over ? Event::ended : Event::nothing;
}

void GuestProcess::read_status() {
  const std::optional<Message> message = receive_message(channels_.status.get());
  if (!message) {
    status_closed_ = true;
    return;
  }
  const auto status = json::from_json<guest::Status>(json::parse(message->text), "status");
  if (const auto* started = std::get_if<guest::Started>(&status)) {
    isolation_ = started->report;
  } else {
    ended_ = std::get<guest::Ended>(status);
  }
}

const sandbox::Report& GuestProcess::isolation() {
  const Deadline deadline(kStartLimit);
  while (!isolation_ && !deadline.passed()) {
    if (wait(std::min(deadline.left(), kTick)) == Event::ended && !isolation_) break;
  }
  if (!isolation_) {
    throw Error(ErrorCode::unavailable,
                "worker: a guest did not start: " + standard_error_.captured().text);
  }
  return *isolation_;
}

GuestProcess::Outcome GuestProcess::ask(const guest::Request& request,
                                        std::span<const int> fds,
                                        const AskOptions& options) {
  DRK_CHECK(!killed_);
  const Deadline deadline(std::chrono::duration_cast<std::chrono::nanoseconds>(options.limit));
  Fd memory;
  try {
    send(json::dump(json::to_json(request)), fds);
    for (;;) {
      if (options.stop.stop_requested()) {
        kill();
        throw Error(ErrorCode::timed_out, "worker: the evaluation was stopped");
      }
      if (deadline.passed()) {
        return stopped(task::FailureKind::timed_out,
                       fmt::format("no answer within {} s", options.limit.count()),
                       options);
      }
      const Event event = wait(std::min(deadline.left(), kTick));
      if (standard_output_.total_bytes() + standard_error_.total_bytes() > kMaxPrintedBytes) {
        return stopped(task::FailureKind::output_flood,
                       fmt::format("it printed more than {} MiB", kMaxPrintedBytes >> 20U),
                       options);
      }
      if (event == Event::ended) return died(options);
      if (event == Event::nothing) continue;
      std::optional<Message> message = receive_message(channels_.control.get());
      if (!message) return died(options);
      auto reply = json::from_json<guest::Reply>(json::parse(message->text), "reply");
      if (const auto* allocate = std::get_if<guest::Allocate>(&reply)) {
        grant(allocate->bytes, options, memory);
      } else if (auto* failed = std::get_if<guest::Failed>(&reply)) {
        return task::Failure{options.stage,
                             failed->failure,
                             std::move(failed->what),
                             std::move(failed->error),
                             std::nullopt,
                             std::nullopt};
      } else if (answers(request, reply)) {
        return Answer{std::move(reply), std::move(memory)};
      } else {
        throw Error(ErrorCode::corrupt, "it answered another question than it was asked");
      }
    }
  } catch (const Error& error) {
    switch (error.code()) {
      case ErrorCode::invalid_argument:  // not JSON, or not a reply of ours
      case ErrorCode::corrupt:
        return stopped(
            task::FailureKind::protocol_error,
            std::string("bytes that the guest core never sends came through its channel: ") +
                error.what(),
            options);
      case ErrorCode::unavailable:  // it closed its end
        return died(options);
      default:
        throw;
    }
  }
}

void GuestProcess::grant(std::uint64_t bytes, const AskOptions& options, Fd& memory) {
  // One block a request: shared memory, which no limit counts, must not pile up in the guest.
  if (memory) throw Error(ErrorCode::corrupt, "it asked for shared memory twice");
  if (bytes > options.max_block_bytes) {
    throw Error(ErrorCode::corrupt, fmt::format("it asked for {} bytes of shared memory", bytes));
  }
  memory = make_shared_memory("block", bytes);
  const int fd = memory.get();
  send("{}", {&fd, 1});
}

void GuestProcess::send(std::string_view text, std::span<const int> fds) {
  // Our core reads what it is sent at once: a channel that stays full is the candidate's doing.
  pollfd writable = {channels_.control.get(), POLLOUT, 0};
  if (::poll(&writable, 1, static_cast<int>(kEndLimit.count())) <= 0) {
    throw Error(ErrorCode::corrupt, "it does not read its channel");
  }
  send_message(channels_.control.get(), text, fds);
}

task::Failure GuestProcess::died(const AskOptions& options) {
  const Deadline deadline(kEndLimit);
  while (!ended_ && !status_closed_ && !deadline.passed()) {
    // Its control socket stays readable once closed, so do not spin on it.
    channels_.control.reset();
    (void)wait(std::min(deadline.left(), kTick));
  }
  task::Failure failure;
  failure.stage = options.stage;
  failure.kind = task::FailureKind::died;
  if (sandbox::CgroupRoot::ran_out_of_memory(cell_.cgroup_dir)) {
    failure.kind = task::FailureKind::out_of_memory;
    failure.what =
        fmt::format("it needed more than {} MiB of memory", cell_.limits.memory_bytes >> 20U);
  } else if (ended_) {
    failure.death = death_of(ended_->wait_status);
    failure.what =
        "the process " + std::string(failure.death->signal ? "was " : "") + failure.death->what;
  } else if (status_closed_) {
    // The init went without its last word. No candidate can end the init above it, so something
    // outside did.
    kill();
    throw Error(ErrorCode::unavailable, "worker: a guest was ended from outside, with its zygote");
  } else {
    failure.what = "the process closed its channel and went silent";
  }
  standard_output_.drain();
  standard_error_.drain();
  kill();
  return failure;
}

task::Failure GuestProcess::stopped(task::FailureKind kind,
                                    std::string what,
                                    const AskOptions& options) {
  standard_output_.drain();
  standard_error_.drain();
  kill();
  task::Failure failure;
  failure.stage = options.stage;
  failure.kind = kind;
  failure.what = std::move(what);
  if (kind == task::FailureKind::timed_out) failure.limit_s = options.limit.count();
  return failure;
}

std::optional<task::ProcessReport> GuestProcess::finish() {
  if (!killed_) {
    channels_.control.reset();
    const Deadline deadline(kEndLimit);
    while (!ended_ && !status_closed_ && !deadline.passed())
      (void)wait(std::min(deadline.left(), kTick));
    standard_output_.drain();
    standard_error_.drain();
    kill();
  }
  if (!ended_) return std::nullopt;
  task::ProcessReport report;
  report.processes_left = ended_->processes_left;
  report.peak_rss_bytes = ended_->peak_rss_bytes;
  report.cpu_s = ended_->cpu_s;
  for (const auto& [call, count] : ended_->refusals) report.refusals.push_back({call, count});
  return report;
}

void GuestProcess::kill() noexcept {
  if (killed_) return;
  killed_ = true;
  const auto signal_init = [&](int signal) {
    (void)::syscall(SYS_pidfd_send_signal, channels_.pidfd.get(), signal, nullptr, 0);
  };
  const auto gone_within = [&](std::chrono::milliseconds limit) {
    pollfd over = {channels_.pidfd.get(), POLLIN, 0};
    return ::poll(&over, 1, static_cast<int>(limit.count())) > 0;
  };
  // A namespace ends with its init. Without one, the init must sweep its children first.
  const bool has_namespace = isolation_ && has(*isolation_, sandbox::Feature::pid_namespace);
  if (!has_namespace) {
    signal_init(SIGTERM);
    (void)gone_within(std::chrono::milliseconds(300));
  }
  signal_init(SIGKILL);
  // The init is gone only when every process of its namespace is.
  (void)gone_within(std::chrono::milliseconds(5000));
}

}  // namespace drk::worker
