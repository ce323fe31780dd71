// SPDX-License-Identifier: Apache-2.0
// Ctrl-C as a stop request.
#include "interrupts.h"

#include "command.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace drk::cli {

namespace {

constexpr int kEndOfWait = SIGUSR2;

sigset_t handled_signals() noexcept {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, kEndOfWait}) sigaddset(&signals, signal);
  return signals;
}

void wait_for_signals(const std::stop_source& source) noexcept {
  const sigset_t signals = handled_signals();
  for (;;) {
    int signal = 0;
    if (::sigwait(&signals, &signal) != 0 || signal == kEndOfWait) return;
    if (!source.request_stop()) ::_exit(kInterrupted);  // asked for the second time
  }
}

}  // namespace

Interrupts::Interrupts() {
  const sigset_t signals = handled_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  waiter_ = std::jthread(wait_for_signals, source_);
  ::pthread_setname_np(waiter_.native_handle(), "interrupts");
}

Interrupts::~Interrupts() {
  ::pthread_kill(waiter_.native_handle(), kEndOfWait);
  waiter_.join();
  const sigset_t signals = handled_signals();
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace drk::cli
