// SPDX-License-Identifier: Apache-2.0
// The client, against our server and against ones that misbehave.
#include "drk/base/error.h"
#include "drk/base/fd.h"
#include "drk/http.h"

#include "base/error_matchers.h"
#include "http/serving.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <utility>
#include <vector>

namespace drk::http::test {
namespace {

std::string url_of(std::uint16_t port) {
  return "http://127.0.0.1:" + std::to_string(port);
}

/// Accepts connections, reads as many requests on each as it has answers for it, and closes.
class ScriptedServer {
 public:
  using Answers = std::vector<std::string>;  ///< Of one connection; "": closes instead.

  explicit ScriptedServer(std::vector<Answers> connections)
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), generic, size), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    EXPECT_EQ(::getsockname(listener_.get(), generic, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this, connections = std::move(connections)] {
      for (const Answers& answers : connections) serve(answers);
    });
  }

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// Once all connections have been served.
  [[nodiscard]] const std::string& received() {
    thread_.join();
    return received_;
  }

 private:
  void serve(const Answers& answers) {
    const Fd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    for (const std::string& answer : answers) {
      std::string request;
      while (request.find("\r\n\r\n") == std::string::npos) {
        std::string more(4096, '\0');
        const ssize_t n = ::recv(connection.get(), more.data(), more.size(), 0);
        if (n <= 0) return;
        request.append(more, 0, static_cast<std::size_t>(n));
      }
      received_ += request;
      if (answer.empty()) return;
      ::send(connection.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  }

  Fd listener_;
  std::uint16_t port_ = 0;
  std::string received_;  // of the thread, until it is joined
  std::jthread thread_;
};

const std::string kShortAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

using ClientTest = ServingTest;

TEST_F(ClientTest, SendsRequestsOverOneConnection) {
  Request seen;
  handler_.handling = [&](const Request& request, const std::shared_ptr<Exchange>& exchange) {
    seen = request;
    Reply reply = echo(request);
    reply.status = 201;
    reply.headers = {{"X-Mixed-Case", "Kept"}};
    exchange->reply(std::move(reply));
  };
  Client client({.url = url_of(serve()), .token = "secret"});
  for (int i = 0; i < 3; ++i) {
    const Answer answer =
        client.send("POST", "/a?b=" + percent_encode("c d"), "{}", {{"X-Y", "z"}});
    EXPECT_EQ(answer.status, 201U);
    EXPECT_EQ(answer.body, "POST /a b=c d; {}");
    EXPECT_EQ(answer.header("x-mixed-case"), "Kept");
    EXPECT_EQ(answer.header("content-type"), "application/json");
  }
  EXPECT_EQ(seen.header("authorization"), "Bearer secret");
  EXPECT_EQ(seen.header("x-y"), "z");
  EXPECT_EQ(seen.header("content-type"), "application/json");
  EXPECT_EQ(client.send("POST", "/").body, "POST /");
  EXPECT_EQ(seen.header("content-length"), "0");
  EXPECT_EQ(client.send("HEAD", "/head").body, "");
  EXPECT_EQ(client.send("GET", "/").body, "GET /");
  EXPECT_EQ(server_->counts().accepted, 1U);
}

TEST_F(ClientTest, ReadsStreamedAndLongAnswers) {
  handler_.handling = [](const Request& request, const std::shared_ptr<Exchange>& exchange) {
    if (request.path == "/long") {
      exchange->reply({.body = std::string(std::size_t{20} << 20, 'x')});
      return;
    }
    exchange->start_stream({});
    for (const char* part : {"one ", "two ", "three"}) exchange->send(part);
    exchange->finish();
  };
  Client client({.url = url_of(serve())});
  EXPECT_EQ(client.send("GET", "/stream").body, "one two three");
  EXPECT_EQ(client.send("GET", "/long").body.size(), std::size_t{20} << 20);
}

TEST_F(ClientTest, ConnectsAnewWhenTheServerHasClosed) {
  options_.idle_timeout = 50ms;
  const std::uint16_t port = serve();
  Client client({.url = url_of(port)});
  EXPECT_EQ(client.send("GET", "/").status, 200U);
  while (server_->counts().connections > 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(client.send("GET", "/").status, 200U);
  EXPECT_EQ(server_->counts().accepted, 2U);

  server_.reset();
  EXPECT_TRUE(throws_error(
      ErrorCode::unavailable, url_of(port).substr(7), [&] { (void)client.send("GET", "/"); }));
  options_.port = port;
  serve();
  EXPECT_EQ(client.send("GET", "/").status, 200U);
}

TEST_F(ClientTest, TriesOnceMoreWhenAReusedConnectionClosesWithoutAnAnswer) {
  ScriptedServer scripted({{kShortAnswer, ""}, {kShortAnswer}});
  Client client({.url = url_of(scripted.port())});
  EXPECT_EQ(client.send("GET", "/1").body, "ok");
  EXPECT_EQ(client.send("GET", "/2").body, "ok");
  const std::string received = scripted.received();
  EXPECT_NE(received.find("GET /2"), received.rfind("GET /2")) << received;
}

TEST_F(ClientTest, TriesAFreshConnectionOnlyOnce) {
  ScriptedServer scripted({{kShortAnswer, ""}, {""}, {kShortAnswer}});
  Client client({.url = url_of(scripted.port())});
  EXPECT_EQ(client.send("GET", "/1").body, "ok");
  EXPECT_TRUE(throws_error(
      ErrorCode::unavailable, "without an answer", [&] { (void)client.send("GET", "/2"); }));
  EXPECT_EQ(client.send("GET", "/3").body, "ok");
}

TEST_F(ClientTest, DoesNotTryAgainWhenTheAnswerHadBegun) {
  ScriptedServer scripted(
      {{kShortAnswer, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"}, {"not HTTP\r\n\r\n"}});
  Client client({.url = url_of(scripted.port())});
  EXPECT_EQ(client.send("GET", "/1").body, "ok");
  EXPECT_TRUE(throws_error(
      ErrorCode::unavailable, "cannot be read", [&] { (void)client.send("GET", "/2"); }));
  EXPECT_TRUE(throws_error(
      ErrorCode::unavailable, "cannot be read", [&] { (void)client.send("GET", "/3"); }));
}

TEST_F(ClientTest, ReadsPastInterimAnswersAndUntilTheEnd) {
  ScriptedServer scripted({{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nuntil the end"}});
  Client client({.url = url_of(scripted.port())});
  EXPECT_EQ(client.send("GET", "/").body, "until the end");
}

TEST_F(ClientTest, SeesWhyALongBodyIsRefused) {
  options_.max_body_bytes = 1000;
  Client client({.url = url_of(serve())});
  const std::string body(std::size_t{64} << 20, 'x');
  EXPECT_EQ(client.send("POST", "/", body).status, 413U);
  EXPECT_EQ(client.send("GET", "/").status, 200U);
}

TEST_F(ClientTest, GivesUpWhenTheAnswerTakesTooLong) {
  auto exchange = keep_exchange();
  Client client({.url = url_of(serve()), .timeout = 200ms});
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(
      throws_error(ErrorCode::timed_out, "took too long", [&] { (void)client.send("GET", "/"); }));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
  exchange.get()->reply({.body = "too late"});
  handler_.handling = [](const Request& request, const std::shared_ptr<Exchange>& next) {
    next->reply(echo(request));
  };
  EXPECT_EQ(client.send("GET", "/next").body, "GET /next") << "not the late answer";
}

TEST_F(ClientTest, StopsWhenTold) {
  auto exchange = keep_exchange();
  Client client({.url = url_of(serve())});
  std::stop_source stop;
  std::jthread stopping([&] {
    const std::shared_ptr<Exchange> kept = exchange.get();  // the request is under way
    stop.request_stop();
    std::this_thread::sleep_for(1s);
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(throws_error(ErrorCode::timed_out, "told to stop", [&] {
    (void)client.send("GET", "/", {}, {}, stop.get_token());
  }));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 900ms);
}

TEST_F(ClientTest, SaysThatNobodyListens) {
  const std::uint16_t port = serve();
  server_.reset();
  Client client({.url = url_of(port)});
  EXPECT_TRUE(throws_error(
      ErrorCode::unavailable, "Connection refused", [&] { (void)client.send("GET", "/"); }));
}

TEST_F(ClientTest, RefusesToWriteLinesThatAreNotOne) {
  Client client({.url = url_of(serve())});
  const auto refuses = [&](std::string_view target, const Fields& headers) {
    return throws_error(ErrorCode::invalid_argument, "cannot be sent", [&] {
      (void)client.send("GET", target, {}, headers);
    });
  };
  EXPECT_TRUE(refuses("/a b", {}));
  EXPECT_TRUE(refuses("/a\r\nX: 1", {}));
  EXPECT_TRUE(refuses("/", {{"X", "1\r\nY: 2"}}));
  EXPECT_TRUE(refuses("/", {{"X Y", "1"}}));
  EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, "URL", [] { Client bad({.url = "x"}); }));
}

}  // namespace
}  // namespace drk::http::test
