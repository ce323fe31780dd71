// SPDX-License-Identifier: Apache-2.0
// Well-behaved clients of the server: connections, forms of answers, stopping.
#include "drk/base/error.h"
#include "drk/http.h"

#include "base/error_matchers.h"
#include "http/raw_client.h"
#include "http/serving.h"

#include <gtest/gtest.h>

#include <string>
#include <sys/resource.h>
#include <thread>
#include <vector>

namespace drk::http::test {
namespace {

TEST_F(ServingTest, AnswersOneRequestAfterTheOtherOnOneConnection) {
  RawClient client(serve());
  for (int i = 0; i < 3; ++i) {
    const std::string path = "/" + std::to_string(i);
    client.send(get(path));
    EXPECT_EQ(client.read_answer().body, "GET " + path);
  }
  EXPECT_EQ(server_->counts().accepted, 1U);
  EXPECT_EQ(server_->counts().connections, 1U);
}

TEST_F(ServingTest, AnswersPipelinedRequestsInOrder) {
  // The first is answered late: the second must wait for it.
  handler_.handling = [&](const Request& request, const std::shared_ptr<Exchange>& exchange) {
    reply_after(request.path == "/1" ? 50ms : 0ms, echo(request), exchange);
  };
  RawClient client(serve());
  client.send(get("/1") + post("two") + get("/3"));
  EXPECT_EQ(client.read_answer().body, "GET /1");
  EXPECT_EQ(client.read_answer().body, "POST /; two");
  EXPECT_EQ(client.read_answer().body, "GET /3");
}

TEST_F(ServingTest, AnswersAClientThatHasClosedItsSendingHalf) {
  handler_.handling = [&](const Request& request, const std::shared_ptr<Exchange>& exchange) {
    reply_after(50ms, echo(request), exchange);
  };
  RawClient client(serve());
  client.send(get("/1") + get("/2"));
  client.close_sending();
  EXPECT_EQ(client.read_answer().body, "GET /1");
  EXPECT_EQ(client.read_answer().body, "GET /2");
  EXPECT_TRUE(client.is_at_end());
}

TEST_F(ServingTest, TellsTheHandlerWhatWasAsked) {
  Request seen;
  handler_.handling = [&](const Request& request, const std::shared_ptr<Exchange>& exchange) {
    seen = request;
    exchange->reply({});
  };
  RawClient client(serve());
  client.send(
      "POST /a%20b/c?x=1%2B1&y=a+b&flag HTTP/1.1\r\nHost: here\r\nX-Name:  v  \r\n"
      "Content-Length: 4\r\n\r\nbody");
  EXPECT_EQ(client.read_answer().status, 200U);
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.path, "/a b/c");
  EXPECT_EQ(seen.query, (Fields{{"x", "1+1"}, {"y", "a b"}, {"flag", ""}}));
  EXPECT_EQ(seen.parameter("y"), "a b");
  EXPECT_EQ(seen.parameter("z"), std::nullopt);
  EXPECT_EQ(seen.header("x-name"), "v");
  EXPECT_EQ(seen.body, "body");
  EXPECT_EQ(seen.peer, "127.0.0.1");
}

TEST_F(ServingTest, WritesTheUsualHeadersAndThoseOfTheReply) {
  handler_.handling = [](const Request&, const std::shared_ptr<Exchange>& exchange) {
    Reply reply;
    reply.status = 429;
    reply.body = "{}";
    reply.headers = {{"Retry-After", "3"}, {"X-Split", "a\r\nX-Forged: 1"}};
    exchange->reply(reply);
  };
  RawClient client(serve());
  client.send(get("/"));
  const Answer answer = client.read_answer();
  EXPECT_EQ(answer.status, 429U);
  EXPECT_EQ(answer.header("content-type"), "application/json");
  EXPECT_EQ(answer.header("content-length"), "2");
  EXPECT_EQ(answer.header("retry-after"), "3");
  EXPECT_EQ(answer.header("x-split"), "a  X-Forged: 1");
  EXPECT_EQ(answer.header("connection"), std::nullopt);
  EXPECT_EQ(answer.header("date").value_or("").size(),
            std::string_view("Sun, 06 Nov 1994 08:49:37 GMT").size());
}

TEST_F(ServingTest, SendsLongAnswersWhole) {
  std::string long_text;
  for (int i = 0; long_text.size() < (std::size_t{20} << 20); ++i) long_text += std::to_string(i);
  handler_.handling = [&](const Request&, const std::shared_ptr<Exchange>& exchange) {
    Reply reply;
    reply.body = long_text;
    exchange->reply(reply);
  };
  RawClient client(serve());
  client.send(get("/"));
  EXPECT_TRUE(client.read_answer().body == long_text);
}

TEST_F(ServingTest, AnswersHeadAsGetWithoutTheBody) {
  RawClient client(serve());
  client.send("HEAD /x HTTP/1.1\r\nHost: here\r\n\r\n" + get("/y"));
  const Answer answer = client.read_answer(true);
  EXPECT_EQ(answer.status, 200U);
  EXPECT_EQ(answer.header("content-length"), std::to_string(std::string("GET /x").size()));
  EXPECT_EQ(client.read_answer().body, "GET /y");
}

TEST_F(ServingTest, SendsNoBodyWithAStatusThatHasNone) {
  handler_.handling = [](const Request&, const std::shared_ptr<Exchange>& exchange) {
    Reply reply;
    reply.status = 204;
    reply.body = "not to be sent";
    exchange->reply(reply);
  };
  RawClient client(serve());
  client.send(get("/"));
  const Answer answer = client.read_answer();
  EXPECT_EQ(answer.status, 204U);
  EXPECT_EQ(answer.header("content-length"), std::nullopt);
  client.send(get("/"));
  EXPECT_EQ(client.read_answer().status, 204U);
}

TEST_F(ServingTest, ClosesWhenAskedTo) {
  RawClient client(serve());
  client.send(get("/", "Connection: close\r\n"));
  EXPECT_EQ(client.read_answer().header("connection"), "close");
  EXPECT_TRUE(client.is_at_end());
}

TEST_F(ServingTest, KeepsOldClientsOnlyWhenTheyAsk) {
  const std::uint16_t port = serve();
  RawClient plain(port);
  plain.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(plain.read_answer().header("connection"), "close");
  EXPECT_TRUE(plain.is_at_end());

  RawClient keeping(port);
  for (int i = 0; i < 2; ++i) {
    keeping.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(keeping.read_answer().header("connection"), "keep-alive");
  }
}

TEST_F(ServingTest, InvitesABodyThatWaitsToBeAsked) {
  RawClient client(serve());
  client.send("POST / HTTP/1.1\r\nHost: here\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(client.read_answer().status, 100U);
  client.send("body");
  EXPECT_EQ(client.read_answer().body, "POST /; body");
}

TEST_F(ServingTest, DecodesChunkedBodies) {
  RawClient client(serve());
  client.send("POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (const char c : std::string("3;note=1\r\none\r\n4\r\n two\r\n0\r\nX-Trailer: 1\r\n\r\n")) {
    client.send({&c, 1});
  }
  EXPECT_EQ(client.read_answer().body, "POST /; one two");
  client.send(get("/next"));
  EXPECT_EQ(client.read_answer().body, "GET /next");
}

TEST_F(ServingTest, RefusesByTheHeadBeforeTheBody) {
  handler_.refusing = [](const Request& head) -> std::optional<Reply> {
    EXPECT_TRUE(head.body.empty());
    if (head.header("authorization")) return std::nullopt;
    Reply reply;
    reply.status = 401;
    reply.headers = {{"WWW-Authenticate", "Bearer"}};
    return reply;
  };
  const std::uint16_t port = serve();
  RawClient client(port);
  client.send("POST / HTTP/1.1\r\nHost: here\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  const Answer refused = client.read_answer();
  EXPECT_EQ(refused.status, 401U) << "and not 100: the body is not wanted";
  EXPECT_EQ(refused.header("www-authenticate"), "Bearer");
  EXPECT_EQ(refused.header("connection"), "close") << "the body could still come";
  EXPECT_TRUE(client.is_at_end());

  RawClient without_body(port);
  without_body.send(get("/") + get("/", "Authorization: Bearer x\r\n"));
  EXPECT_EQ(without_body.read_answer().status, 401U);
  EXPECT_EQ(without_body.read_answer().status, 200U);
}

TEST_F(ServingTest, AnswersFromAnyThread) {
  auto exchange = keep_exchange();
  RawClient client(serve());
  client.send(get("/"));
  std::thread([&] { exchange.get()->reply({.status = 202, .body = "late"}); }).join();
  const Answer answer = client.read_answer();
  EXPECT_EQ(answer.status, 202U);
  EXPECT_EQ(answer.body, "late");
}

TEST_F(ServingTest, AnswersForAHandlerThatThrows) {
  handler_.refusing = [](const Request& head) -> std::optional<Reply> {
    if (head.path == "/refuse") throw std::runtime_error("secret");
    return std::nullopt;
  };
  handler_.handling = [](const Request& request, const std::shared_ptr<Exchange>& exchange) {
    if (request.path == "/answered") exchange->reply({.status = 201});
    if (request.path == "/odd") throw 1;
    throw std::runtime_error("secret");
  };
  RawClient client(serve());
  for (const char* path : {"/refuse", "/handle", "/odd"}) {
    client.send(get(path));
    const Answer answer = client.read_answer();
    EXPECT_EQ(answer.status, 500U) << path;
    EXPECT_EQ(answer.body, "internal error") << path;
  }
  client.send(get("/answered"));
  EXPECT_EQ(client.read_answer().status, 201U) << "what was said before stands";
}

TEST_F(ServingTest, AnswersForAnExchangeThatWasDropped) {
  handler_.handling = [](const Request&, const std::shared_ptr<Exchange>&) {};
  RawClient client(serve());
  client.send(get("/"));
  EXPECT_EQ(client.read_answer().status, 500U) << "at once";

  auto exchange = keep_exchange();
  client.send(get("/"));
  exchange.get().reset();
  EXPECT_EQ(client.read_answer().status, 500U) << "later";
}

TEST_F(ServingTest, LetsAnExchangeOutliveTheServer) {
  auto exchange = keep_exchange();
  RawClient client(serve());
  client.send(get("/"));
  const std::shared_ptr<Exchange> kept = exchange.get();
  server_.reset();
  EXPECT_TRUE(client.is_at_end());
  kept->on_leave([] { FAIL() << "the server left, not the client"; });
  kept->reply({});
}

TEST_F(ServingTest, TurnsAwayWhoComesWhenItIsFull) {
  options_.max_connections = 2;
  const std::uint16_t port = serve();
  RawClient first(port);
  RawClient second(port);
  first.send(get("/"));
  second.send(get("/"));
  EXPECT_EQ(first.read_answer().status, 200U);
  EXPECT_EQ(second.read_answer().status, 200U);

  RawClient third(port);
  third.send(get("/"));
  const Answer answer = third.read_answer();
  EXPECT_EQ(answer.status, 503U);
  EXPECT_EQ(answer.header("retry-after"), "1");
  EXPECT_EQ(answer.header("connection"), "close");
  EXPECT_TRUE(third.is_at_end());
  EXPECT_EQ(server_->counts().refused, 1U);
  EXPECT_EQ(server_->counts().connections, 2U);

  first.close();
  while (server_->counts().connections == 2) std::this_thread::yield();
  RawClient fourth(port);
  fourth.send(get("/"));
  EXPECT_EQ(fourth.read_answer().status, 200U);
}

TEST_F(ServingTest, GoesOnAfterDescriptorsRanOut) {
  RawClient client;
  const std::uint16_t port = serve();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;  // open ones stay, a new one is refused
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  client.connect(port);
  client.send(get("/"));
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(server_->counts().accepted, 0U);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(client.read_answer().status, 200U);
}

TEST_F(ServingTest, ClosesIdleConnections) {
  options_.idle_timeout = 100ms;
  RawClient client(serve());
  client.send(get("/"));
  EXPECT_EQ(client.read_answer().status, 200U);
  EXPECT_TRUE(client.is_at_end()) << "without a word";
}

TEST_F(ServingTest, ServesManyConnectionsFromManyThreads) {
  options_.threads = 4;
  const std::uint16_t port = serve();
  std::vector<std::jthread> clients;
  clients.reserve(16);
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back([&, i] {
      RawClient client(port);
      for (int j = 0; j < 100; ++j) {
        const std::string path = "/" + std::to_string(i) + "/" + std::to_string(j);
        client.send(get(path));
        EXPECT_EQ(client.read_answer().body, "GET " + path);
      }
    });
  }
}

TEST_F(ServingTest, DrainsIdleConnectionsAtOnce) {
  const std::uint16_t port = serve();
  RawClient client(port);
  client.send(get("/"));
  EXPECT_EQ(client.read_answer().status, 200U);
  server_->drain(10s);
  EXPECT_TRUE(client.is_at_end());
  EXPECT_EQ(server_->counts().connections, 0U);
  EXPECT_THROW(RawClient{port}, BadAnswer) << "nobody listens any more";
}

TEST_F(ServingTest, DrainsAfterTheAnswersUnderWay) {
  auto exchange = keep_exchange();
  RawClient client(serve());
  client.send(get("/"));
  const std::shared_ptr<Exchange> kept = exchange.get();
  server_->drain(20ms);
  EXPECT_EQ(server_->counts().connections, 1U) << "the limit passed, the client is still served";
  std::jthread draining([&] { server_->drain(10s); });
  kept->reply({.body = "last"});
  const Answer answer = client.read_answer();
  EXPECT_EQ(answer.body, "last");
  EXPECT_EQ(answer.header("connection"), "close");
  draining.join();
  EXPECT_EQ(server_->counts().connections, 0U);
}

TEST_F(ServingTest, CannotListenWhereSomebodyElseDoes) {
  options_.port = serve();
  EXPECT_TRUE(throws_error(ErrorCode::unavailable, "cannot listen on 127.0.0.1", [&] {
    const Server second(options_, handler_);
  }));
}

TEST_F(ServingTest, ListensOnAddressesAndNames) {
  for (const char* host : {"127.0.0.1", "localhost", "::1", "[::1]", "0.0.0.0"}) {
    options_.host = host;
    const bool is_v6 = std::string_view(host).find(':') != std::string_view::npos;
    try {
      const Server other(options_, handler_);
      const std::string name = is_v6                            ? "[::1]"
                               : host == std::string("0.0.0.0") ? "127.0.0.1"
                                                                : host;
      Client client({.url = "http://" + name + ":" + std::to_string(other.port())});
      EXPECT_EQ(client.send("GET", "/").status, 200U) << host;
    } catch (const Error& error) {
      EXPECT_TRUE(is_v6) << host << ": " << error.what();  // a machine may have no v6
    }
  }
  options_.host = "no.such.host.invalid";
  EXPECT_TRUE(throws_error(ErrorCode::unavailable, "no.such.host.invalid", [&] {
    const Server nowhere(options_, handler_);
  }));
}

}  // namespace
}  // namespace drk::http::test
