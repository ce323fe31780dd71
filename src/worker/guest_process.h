// SPDX-License-Identifier: Apache-2.0
// One guest, from the worker's side: ask it, watch it, end it.
#pragma once

#include "drk/base/clock.h"
#include "drk/guest.h"

#include "worker/captured.h"
#include "worker/code_watch.h"
#include "worker/zygote.h"

#include <functional>
#include <optional>
#include <stop_token>
#include <variant>

namespace drk::worker {

class Builder;

struct AskOptions {
  task::Stage stage = task::Stage::load;
  std::chrono::duration<double> limit{60};
  std::uint64_t max_block_bytes = std::uint64_t{16} << 30;
  std::stop_token stop;
};

/// Owns one guest with everything in its cell. Not thread-safe. The destructor kills it.
class GuestProcess {
 public:
  struct Answer {
    guest::Reply reply;   ///< Never Allocate, Build or Failed.
    Fd memory;            ///< The last allocation that no Build has used up.
    std::vector<Fd> fds;  ///< That came with the reply.
  };
  /// An answer, or why there will be none. After a failure of the process itself (died, timed_out,
  /// output_flood, protocol_error) the guest is gone; after any other it can be asked again.
  using Outcome = std::variant<Answer, task::Failure>;

  /// `release` is called when the guest is gone (its user id and group are free again), with
  /// whether it ended otherwise than by being told to. `builder` compiles what it asks for; null:
  /// it may ask for nothing. Not owned.
  GuestProcess(GuestChannels channels,
               sandbox::Cell cell,
               std::function<void(bool is_broken)> release,
               Builder* builder);
  GuestProcess(const GuestProcess&) = delete;
  GuestProcess& operator=(const GuestProcess&) = delete;
  ~GuestProcess();

  /// Waits until its cell is closed. Throws Error{unavailable} when it does not come up.
  [[nodiscard]] const sandbox::Report& isolation();
  /// Makes its context on the GPU. Throws Error{unavailable} when the device does not work for it.
  /// `hardware_queues`: see guest::Prepare.
  void prepare(std::uint32_t hardware_queues);
  /// Of prepare(); empty without a GPU.
  [[nodiscard]] const std::optional<guest::Prepared>& prepared() const noexcept {
    return prepared_;
  }
  /// Remembers its machine code as it is now and closes its channel to all but the core, before any
  /// code is loaded. Throws Error{unavailable} when the guest does not answer.
  void settle();
  /// Of settle().
  [[nodiscard]] const guest::Settled& settled() const noexcept { return settled_; }
  /// What became of that code; see CodeWatch. Empty where nothing can be seen.
  [[nodiscard]] std::vector<std::string> code_changes() const;
  /// False once its init is gone, with it or with its zygote.
  [[nodiscard]] bool is_alive() const noexcept;
  /// The device still answers this guest.
  [[nodiscard]] bool probe();
  /// Sends a request and waits. Throws Error{timed_out} when `stop` was requested.
  [[nodiscard]] Outcome ask(const guest::Request& request,
                            std::span<const int> fds,
                            const AskOptions& options);
  /// For how long its builds, all together, waited for others': not its own time.
  [[nodiscard]] double queued_s() const noexcept { return queued_s_; }
  /// Lets it end by itself, for a second at most, and says what the init saw.
  [[nodiscard]] std::optional<task::ProcessReport> finish();
  [[nodiscard]] task::Captured standard_output() const { return standard_output_.captured(); }
  [[nodiscard]] task::Captured standard_error() const { return standard_error_.captured(); }

 private:
  enum class Event : std::uint8_t { control, ended, nothing };
  /// Waits for something to happen, taking in what is printed meanwhile.
  [[nodiscard]] Event wait(std::chrono::milliseconds limit);
  void read_status();
  /// Throws Error{unavailable} when it was ended from outside.
  [[nodiscard]] task::Failure died(const AskOptions& options);
  [[nodiscard]] task::Failure stopped(task::FailureKind kind,
                                      std::string what,
                                      const AskOptions& options);
  void send(std::string_view text, std::span<const int> fds);
  /// Throws Error{corrupt} beyond what a guest may have.
  void note_build(std::uint64_t bytes);
  void grant(std::uint64_t bytes, const AskOptions& options, Fd& memory);
  /// Takes `memory`, which holds the files. Moves `deadline` on by what was nobody's time.
  void build(const guest::Build& request,
             const AskOptions& options,
             Deadline& deadline,
             Fd& memory);
  [[nodiscard]] task::Failure ran_out(const AskOptions& options, bool is_building);
  void kill() noexcept;

  GuestChannels channels_;
  sandbox::Cell cell_;
  std::function<void(bool is_broken)> release_;
  Builder* const builder_;
  CapturedStream standard_output_;
  CapturedStream standard_error_;
  std::optional<sandbox::Report> isolation_;
  std::optional<guest::Prepared> prepared_;
  std::optional<CodeWatch> code_watch_;
  guest::Settled settled_;
  std::optional<guest::Ended> ended_;
  bool status_closed_ = false;
  bool killed_ = false;
  bool is_broken_ = false;
  std::uint64_t build_bytes_ = 0;
  std::uint32_t build_messages_ = 0;
  double queued_s_ = 0;
};

}  // namespace drk::worker
