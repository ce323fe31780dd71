// SPDX-License-Identifier: Apache-2.0
// Asking, watching, killing.
#include "worker/guest_process.h"

#include "drk/base/error.h"
#include "drk/base/json.h"

#include "worker/builder.h"
#include "worker/memory.h"

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
// A context on a GPU is taken down while its process ends, and a busy machine takes its time.
constexpr std::chrono::milliseconds kEndLimit(3000);
constexpr std::chrono::milliseconds kStartLimit(20000);
constexpr std::chrono::seconds kPrepareLimit(60);  // many contexts at once wait for each other
constexpr std::chrono::seconds kProbeLimit(10);

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

/// A fault while something was built for a guest: of this machine, whatever its code, and not of
/// the guest's channel.
struct BuilderFault {
  Error error;
};

/// A reply of the kind that the request asks for.
bool answers(const guest::Request& request, const guest::Reply& reply) {
  return std::visit(
      [&]<class Asked>(const Asked& /*request*/) {
        return std::holds_alternative<typename Asked::Answer>(reply);
      },
      request);
}

bool has(const sandbox::Report& report, sandbox::Feature feature) {
  return std::find(report.enforced.begin(), report.enforced.end(), feature) !=
         report.enforced.end();
}

}  // namespace

GuestProcess::GuestProcess(GuestChannels channels,
                           sandbox::Cell cell,
                           std::function<void(bool is_broken)> release,
                           Builder* builder)
    : channels_(std::move(channels)),
      cell_(std::move(cell)),
      release_(std::move(release)),
      builder_(builder),
      standard_output_(std::move(channels_.standard_output)),
      standard_error_(std::move(channels_.standard_error)) {}

GuestProcess::~GuestProcess() {
  kill();
  if (release_) release_(is_broken_);
}

void GuestProcess::prepare(std::uint32_t hardware_queues) {
  AskOptions options;
  options.limit = kPrepareLimit;
  Outcome outcome = ask(guest::Prepare{hardware_queues}, {}, options);
  if (const auto* failure = std::get_if<task::Failure>(&outcome)) {
    const std::string why = failure->error ? ": " + failure->error->message : "";
    throw Error(ErrorCode::unavailable, "worker: no context on the GPU: " + failure->what + why);
  }
  prepared_ = std::move(std::get<guest::Prepared>(std::get<Answer>(outcome).reply));
}

void GuestProcess::settle() {
  AskOptions options;
  options.limit = kProbeLimit;
  Outcome outcome = ask(guest::Settle{}, {}, options);
  if (const auto* failure = std::get_if<task::Failure>(&outcome)) {
    throw Error(ErrorCode::unavailable, "worker: a guest did not answer: " + failure->what);
  }
  auto& answer = std::get<Answer>(outcome);
  settled_ = std::move(std::get<guest::Settled>(answer.reply));
  if (!settled_.memory_problem.empty()) return;
  try {
    code_watch_.emplace(std::move(answer.fds));
  } catch (const Error& error) {
    settled_.memory_problem = error.what();
  }
}

std::vector<std::string> GuestProcess::code_changes() const {
  return code_watch_ && is_alive() ? code_watch_->changes() : std::vector<std::string>{};
}

bool GuestProcess::is_alive() const noexcept {
  pollfd over = {channels_.pidfd.get(), POLLIN, 0};
  return !killed_ && ::poll(&over, 1, 0) == 0;
}

bool GuestProcess::probe() {
  AskOptions options;
  options.limit = kProbeLimit;
  return std::holds_alternative<Answer>(ask(guest::Probe{}, {}, options));
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
  Deadline deadline(std::chrono::duration_cast<std::chrono::nanoseconds>(options.limit));
  Fd memory;
  try {
    send(json::dump(json::to_json(request)), fds);
    for (;;) {
      if (options.stop.stop_requested()) {
        kill();
        throw Error(ErrorCode::timed_out, "worker: the evaluation was stopped");
      }
      if (deadline.passed()) {
        return ran_out(options, false);
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
      } else if (const auto* wanted = std::get_if<guest::Build>(&reply)) {
        build(*wanted, options, deadline, memory);
        if (deadline.passed()) return ran_out(options, true);
      } else if (auto* failed = std::get_if<guest::Failed>(&reply)) {
        is_broken_ |= failed->failure == task::FailureKind::cuda_error;
        return task::Failure{options.stage,
                             failed->failure,
                             std::move(failed->what),
                             std::move(failed->error),
                             std::nullopt,
                             std::nullopt,
                             std::move(failed->cuda)};
      } else if (answers(request, reply)) {
        if (memory && file_size_bytes(memory.get()) > options.max_block_bytes) {
          throw Error(ErrorCode::corrupt, "it answered with more shared memory than it may");
        }
        return Answer{std::move(reply), std::move(memory), std::move(message->fds)};
      } else {
        throw Error(ErrorCode::corrupt, "it answered another question than it was asked");
      }
    }
  } catch (const BuilderFault& fault) {
    throw Error(fault.error);
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
        kill();  // it still waits for an answer, and would take the next request for one
        throw;
    }
  }
}

void GuestProcess::grant(std::uint64_t bytes, const AskOptions& options, Fd& memory) {
  // One block a request: shared memory, which no limit counts, must not pile up in the guest.
  if (memory) throw Error(ErrorCode::corrupt, "it asked for shared memory twice");
  const std::uint64_t for_files = builder_ == nullptr ? 0 : guest::kMaxBuildBytes;
  if (bytes > std::max(options.max_block_bytes, for_files)) {
    throw Error(ErrorCode::corrupt, fmt::format("it asked for {} bytes of shared memory", bytes));
  }
  memory = make_shared_memory("block", bytes);
  // What crosses a GPU may be far larger than what a guest may have of the host's memory, and it is
  // the worker's.
  if (prepared_) commit(memory.get(), bytes);
  const int fd = memory.get();
  send("{}", {&fd, 1});
}

void GuestProcess::build(const guest::Build& request,
                         const AskOptions& options,
                         Deadline& deadline,
                         Fd& memory) {
  const Fd files = std::move(memory);
  note_build(files ? file_size_bytes(files.get()) : 0);
  if (builder_ == nullptr) throw Error(ErrorCode::corrupt, "it asked for a build in a toolbox");
  if (files && !seal_against_writes(files.get())) {
    throw Error(ErrorCode::corrupt, "it kept the files of a build writable");
  }
  Product product;
  try {
    product = builder_->build(request, files, deadline, options.stop);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::corrupt) throw;
    kill();
    throw BuilderFault{error};
  }
  note_build(product.built.product_bytes);
  const std::chrono::duration<double> queued(product.queued_s);
  deadline.postpone(std::chrono::duration_cast<std::chrono::nanoseconds>(queued));
  queued_s_ += product.queued_s;
  const int fd = product.memory.get();
  send(json::dump(json::to_json(product.built)), {&fd, product.memory ? 1U : 0U});
}

/// A guest may keep the descriptors of all that crosses for its builds.
void GuestProcess::note_build(std::uint64_t bytes) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;
  constexpr std::uint32_t kMaxMessages = 4000;
  build_bytes_ += bytes;
  if (++build_messages_ > kMaxMessages || build_bytes_ > kMaxBytes) {
    throw Error(ErrorCode::corrupt, "it asked for more builds than any code needs");
  }
}

task::Failure GuestProcess::ran_out(const AskOptions& options, bool is_building) {
  return stopped(task::FailureKind::timed_out,
                 fmt::format("no answer within {} s{}",
                             options.limit.count(),
                             is_building ? ", while its code was compiled" : ""),
                 options);
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
  is_broken_ = true;
  const Deadline deadline(kEndLimit);
  while (!ended_ && !status_closed_ && !deadline.passed()) {
    // Its control socket stays readable once closed, so do not spin on it.
    channels_.control.reset();
    (void)wait(std::min(deadline.left(), kTick));
  }
  task::Failure failure;
  failure.stage = options.stage;
  failure.kind = task::FailureKind::died;
  const bool was_forbidden =
      ended_ && WIFSIGNALED(ended_->wait_status) && WTERMSIG(ended_->wait_status) == SIGSYS;
  if (sandbox::CgroupRoot::ran_out_of_memory(cell_.cgroup_dir)) {
    failure.kind = task::FailureKind::out_of_memory;
    failure.what =
        fmt::format("it needed more than {} MiB of memory", cell_.limits.memory_bytes >> 20U);
  } else if (was_forbidden) {  // see guest/channel_guard.h
    failure.kind = task::FailureKind::protocol_error;
    failure.what = "it was ended when code of its own used the core's channel to the worker";
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
  is_broken_ = true;
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
