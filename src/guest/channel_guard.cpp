// SPDX-License-Identifier: Apache-2.0
#include "guest/channel_guard.h"

#include "drk/sandbox.h"

#include "base/channel_calls.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <utility>
#include <vector>

namespace drk::guest {

namespace {

/// All that reads, writes, duplicates or otherwise uses the descriptor that it is given first.
constexpr std::array<std::uint32_t, 22> kUses = {
    SYS_read,        SYS_write,    SYS_readv,   SYS_writev,  SYS_preadv2,  SYS_pwritev2,
    SYS_sendto,      SYS_recvfrom, SYS_sendmsg, SYS_recvmsg, SYS_sendmmsg, SYS_recvmmsg,
    SYS_dup,         SYS_dup2,     SYS_dup3,    SYS_fcntl,   SYS_shutdown, SYS_setsockopt,
    SYS_getpeername, SYS_sendfile, SYS_splice,  SYS_ioctl};
/// May carry a descriptor to another socket. (io_submit uses one that no filter sees.)
constexpr std::array<std::uint32_t, 2> kRefused = {SYS_sendmsg, SYS_sendmmsg};

/// Jumps go forward to a label that is placed later.
class Program {
 public:
  enum Label : std::uint8_t {
    use,
    same_half,
    other_code,
    splice,
    allow,
    refuse,
    end_process,
    count
  };

  void load(std::size_t offset) {
    add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
  }
  /// Goes on with the next instruction where the test fails.
  void jump_if(std::uint16_t test, std::uint32_t value, Label label) {
    pending_.push_back({filter_.size(), label});
    add(static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), value);
  }
  void jump(Label label) {
    pending_.push_back({filter_.size(), label});
    add(BPF_JMP | BPF_JA, 0);
  }
  void end(Label label, std::uint32_t action) {
    place(label);
    add(BPF_RET | BPF_K, action);
  }
  void place(Label label) { places_.at(label) = filter_.size(); }

  sandbox::FilterProgram take() {
    for (const auto& [at, label] : pending_) {
      const std::size_t distance = places_.at(label) - at - 1;
      if (filter_[at].code == (BPF_JMP | BPF_JA)) {
        filter_[at].k = static_cast<std::uint32_t>(distance);
      } else {
        filter_[at].jt = static_cast<std::uint8_t>(distance);
      }
    }
    sandbox::FilterProgram program;
    for (const sock_filter& instruction : filter_) {
      program.push_back(std::bit_cast<std::uint64_t>(instruction));
    }
    return program;
  }

 private:
  void add(std::uint16_t code, std::uint32_t value) { filter_.push_back({code, 0, 0, value}); }

  std::vector<sock_filter> filter_;
  std::vector<std::pair<std::size_t, Label>> pending_;
  std::array<std::size_t, count> places_ = {};
};

constexpr std::size_t argument(std::size_t number) {
  return offsetof(seccomp_data, args) + number * sizeof(std::uint64_t);  // its lower half
}

sandbox::FilterProgram program_for(std::uint32_t socket, const CallerRange& callers) {
  constexpr std::size_t kAddress = offsetof(seccomp_data, instruction_pointer);
  constexpr std::size_t kUpperHalf = sizeof(std::uint32_t);
  const auto upper_half = static_cast<std::uint32_t>(callers.begin >> 32U);
  Program program;
  program.load(offsetof(seccomp_data, nr));
  for (const std::uint32_t number : kUses) program.jump_if(BPF_JEQ, number, Program::use);
  program.jump_if(BPF_JEQ, SYS_io_submit, Program::refuse);
  program.jump(Program::allow);

  program.place(Program::use);
  program.load(kAddress + kUpperHalf);
  program.jump_if(BPF_JEQ, upper_half, Program::same_half);
  program.jump(Program::other_code);
  program.place(Program::same_half);
  program.load(kAddress);
  program.jump_if(BPF_JGT, static_cast<std::uint32_t>(callers.end), Program::other_code);
  program.jump_if(BPF_JGT, static_cast<std::uint32_t>(callers.begin), Program::allow);

  program.place(Program::other_code);
  program.load(argument(0));
  program.jump_if(BPF_JEQ, socket, Program::end_process);
  program.load(offsetof(seccomp_data, nr));
  for (const std::uint32_t number : kRefused) program.jump_if(BPF_JEQ, number, Program::refuse);
  program.jump_if(BPF_JEQ, SYS_splice, Program::splice);
  program.jump(Program::allow);
  program.place(Program::splice);
  program.load(argument(2));
  program.jump_if(BPF_JEQ, socket, Program::end_process);

  program.end(Program::allow, SECCOMP_RET_ALLOW);
  program.end(Program::refuse, SECCOMP_RET_ERRNO | EPERM);
  program.end(Program::end_process, SECCOMP_RET_KILL_PROCESS);
  return program.take();
}

}  // namespace

std::string guard_channel(int socket) {
  const CallerRange callers = channel_callers();
  if (callers.end == 0) return "only on x86-64 does a filter know who calls";
  const bool installed =
      sandbox::add_filter(program_for(static_cast<std::uint32_t>(socket), callers));
  return installed ? "" : "its filter was refused";
}

}  // namespace drk::guest
