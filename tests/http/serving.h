// SPDX-License-Identifier: Apache-2.0
// A server with a handler made of two functions.
#pragma once

#include "drk/http.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace drk::http::test {

using namespace std::chrono_literals;

inline std::string get(std::string_view target, std::string_view more_headers = "") {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: here\r\n" + std::string(more_headers) +
         "\r\n";
}

inline std::string post(std::string_view body) {
  return "POST / HTTP/1.1\r\nHost: here\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string(body);
}

/// "GET /path name=value; body": what the server made of the request.
inline Reply echo(const Request& request) {
  Reply reply;
  reply.body = request.method + " " + request.path;
  for (const auto& [name, value] : request.query) {
    reply.body.append(" ").append(name).append("=").append(value);
  }
  if (!request.body.empty()) reply.body += "; " + request.body;
  return reply;
}

class FunctionHandler final : public Handler {
 public:
  std::function<std::optional<Reply>(const Request&)> refusing;
  std::function<void(Request, std::shared_ptr<Exchange>)> handling =
      [](const Request& request, const std::shared_ptr<Exchange>& exchange) {
        exchange->reply(echo(request));
      };

  std::optional<Reply> refuse(const Request& head) override {
    return refusing ? refusing(head) : std::nullopt;
  }
  void handle(Request request, std::shared_ptr<Exchange> exchange) override {
    handling(std::move(request), std::move(exchange));
  }
  Reply describe_failure(std::uint32_t status, std::string_view what) override {
    Reply reply;
    reply.status = status;
    reply.body = what;
    return reply;
  }
};

class ServingTest : public ::testing::Test {
 protected:
  /// The port.
  std::uint16_t serve() {
    server_ = std::make_unique<Server>(options_, handler_);
    return server_->port();
  }

  /// A handler that leaves every request unanswered, and hands its exchange to the test.
  std::future<std::shared_ptr<Exchange>> keep_exchange() {
    auto kept = std::make_shared<std::promise<std::shared_ptr<Exchange>>>();
    handler_.handling = [kept](const Request&, std::shared_ptr<Exchange> exchange) {
      kept->set_value(std::move(exchange));
    };
    return kept->get_future();
  }

  /// Answers from a thread of its own.
  void reply_after(std::chrono::milliseconds delay,
                   Reply reply,
                   std::shared_ptr<Exchange> exchange) {
    const std::lock_guard lock(late_mutex_);
    late_.emplace_back([delay, reply = std::move(reply), exchange = std::move(exchange)] {
      std::this_thread::sleep_for(delay);
      exchange->reply(reply);
    });
  }

  ServerOptions options_;
  FunctionHandler handler_;
  std::unique_ptr<Server> server_;

 private:
  std::mutex late_mutex_;
  std::vector<std::jthread> late_;
};

/// A function that can be called once, and the way to wait for that.
struct Signal {
  std::shared_ptr<std::promise<void>> called = std::make_shared<std::promise<void>>();
  std::future<void> future = called->get_future();

  [[nodiscard]] std::function<void()> function() const {
    return [signal = called] { signal->set_value(); };
  }
  [[nodiscard]] bool comes_within(std::chrono::milliseconds limit) const {
    return future.wait_for(limit) == std::future_status::ready;
  }
};

}  // namespace drk::http::test
