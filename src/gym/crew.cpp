// SPDX-License-Identifier: Apache-2.0
// Threads and timers, by Asio.
#include "gym/crew.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <pthread.h>
#include <thread>
#include <vector>

namespace drk::gym {

namespace asio = boost::asio;

class Crew::Impl {
 public:
  Impl(std::uint32_t threads, std::function<void(const char*)> on_fault)
      : on_fault_(std::move(on_fault)), work_(context_.get_executor()) {
    try {
      for (std::uint32_t i = 0; i < threads; ++i) {
        threads_.emplace_back([this] { context_.run(); });
        ::pthread_setname_np(threads_.back().native_handle(), "drk-crew");
      }
    } catch (...) {  // no more threads: those that are there must not wait for work for good
      context_.stop();
      throw;
    }
  }

  void post(Job job) {
    asio::post(context_, [this, job = std::move(job)] { run(job); });
  }

  std::shared_ptr<void> after(std::chrono::milliseconds delay, Job job) {
    auto timer = std::make_shared<asio::steady_timer>(context_, delay);
    timer->async_wait([this, job = std::move(job)](const boost::system::error_code& error) {
      if (!error) run(job);
    });
    return timer;
  }

  void stop() {
    context_.stop();
    threads_.clear();
  }

 private:
  /// The body of a thread, and so a border.
  void run(const Job& job) noexcept {
    try {
      job();
    } catch (const std::exception& error) {
      on_fault_(error.what());
    }
  }

  const std::function<void(const char*)> on_fault_;
  asio::io_context context_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::vector<std::jthread> threads_;
};

Crew::Crew(std::uint32_t threads, std::function<void(const char*)> on_fault)
    : impl_(std::make_unique<Impl>(threads, std::move(on_fault))) {}

Crew::~Crew() {
  try {
    impl_->stop();
  } catch (const std::exception&) {  // a mutex that cannot be locked: there is nothing to mend
  }
}

void Crew::post(Job job) {
  impl_->post(std::move(job));
}

Crew::Timer Crew::after(std::chrono::milliseconds delay, Job job) {
  return Timer(impl_->after(delay, std::move(job)));
}

void Crew::stop() {
  impl_->stop();
}

}  // namespace drk::gym
