// SPDX-License-Identifier: Apache-2.0
// Clients that are slow, greedy, malformed or gone.
#include "drk/http.h"

#include "http/raw_client.h"
#include "http/serving.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace drk::http::test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::size_t resident_bytes() {
  std::size_t total_pages = 0;
  std::size_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  return resident_pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

std::string post_head(std::size_t bytes) {
  return "POST / HTTP/1.1\r\nHost: here\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n";
}

constexpr std::string_view kChunkedHead =
    "POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n";

TEST_F(ServingTest, EndsAHeadThatTricklesIn) {
  options_.header_timeout = 300ms;
  RawClient client(serve());
  const auto begin = std::chrono::steady_clock::now();
  // Each byte comes long before the limit, the whole never would.
  std::jthread trickling([&](const std::stop_token& stop) {
    client.send("GET / HTTP/1.1\r\nHost: here\r\nX-Slow: ");
    while (!stop.stop_requested() && client.send("x")) std::this_thread::sleep_for(30ms);
  });
  const Answer answer = client.read_answer();
  EXPECT_EQ(answer.status, 408U);
  EXPECT_EQ(answer.header("connection"), "close");
  EXPECT_EQ(answer.body, "header not complete in time");
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, 300ms);
  EXPECT_LT(took, 3s);
  trickling.request_stop();
  EXPECT_TRUE(client.is_at_end());
}

TEST_F(ServingTest, EndsABodyThatTricklesIn) {
  options_.body_timeout = 300ms;
  RawClient client(serve());
  std::jthread trickling([&](const std::stop_token& stop) {
    client.send(post_head(1000));
    while (!stop.stop_requested() && client.send("x")) std::this_thread::sleep_for(30ms);
  });
  EXPECT_EQ(client.read_answer().status, 408U);
  trickling.request_stop();
  EXPECT_TRUE(client.is_at_end());
}

TEST_F(ServingTest, WaitsForASlowHeadWithinTheLimit) {
  RawClient client(serve());
  for (const char c : get("/slow")) client.send({&c, 1});
  EXPECT_EQ(client.read_answer().body, "GET /slow");
}

TEST_F(ServingTest, RefusesALongHead) {
  options_.max_header_bytes = 1000;
  const std::uint16_t port = serve();
  const std::string pad(900, 'x');
  const std::vector<std::string> heads{
      get("/" + pad, "X: " + pad + "\r\n"),              // each line alone would do
      get("/", "X: " + pad + "\r\nY: " + pad + "\r\n"),  //
      get("/", "X: " + pad + pad + pad + "\r\n"),        //
      "GET /" + pad + pad + pad,                         // endless line
      "GET / HTTP/1.1\r\nHost: here\r\nA: 1\r\nB: 2\r\nC: " + pad + pad};  // endless field
  for (const std::string& head : heads) {
    RawClient client(port);
    client.send(head);
    EXPECT_EQ(client.read_answer().status, 431U) << head;
    EXPECT_TRUE(client.is_at_end());
  }
  RawClient client(port);
  client.send(get("/", "X: " + pad + "\r\n"));
  EXPECT_EQ(client.read_answer().status, 200U);

  // Counted however it comes.
  RawClient piecewise(port);
  piecewise.send("GET / HTTP/1.1\r\nHost: here\r\n");
  for (int i = 0; i < 100; ++i) piecewise.send("X-Field: some value\r\n");
  EXPECT_EQ(piecewise.read_answer().status, 431U);
}

TEST_F(ServingTest, RefusesWhatIsNotHttp) {
  const std::uint16_t port = serve();
  const std::vector<std::string> requests{
      "nonsense\r\n\r\n",
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15),  // TLS
      "GET / HTTP/2.0\r\nHost: here\r\n\r\n",
      "GET / HTTP/1.1\r\n\r\n",                                 // no Host
      "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",           //
      "GET / HTTP/1.1\r\nHost: here\r\nno colon\r\n\r\n",       //
      "GET  / HTTP/1.1\r\nHost: here\r\n\r\n",                  //
      "GET nowhere HTTP/1.1\r\nHost: here\r\n\r\n",             //
      get("/", "Content-Length: x\r\n"),                        //
      get("/", "Content-Length: -1\r\n"),                       //
      get("/", "Content-Length: 99999999999999999999999\r\n"),  //
      get("/", "Content-Length: 1\r\nContent-Length: 2\r\n"),   //
      // Two lengths, or one that cannot be known: what request smuggling is made of.
      get("/", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n",
      get("/", "Transfer-Encoding: gzip\r\n"),
      get("/", "Transfer-Encoding: gzip, chunked\r\n") + "0\r\n\r\n",
      get("/", "Transfer-Encoding: chunked, identity\r\n") + "0\r\n\r\n",
      "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      std::string(kChunkedHead) + "xyz\r\n",
      std::string(kChunkedHead) + "-1\r\n",
      std::string(kChunkedHead) + "fffffffffffffffffff\r\n",
      std::string(kChunkedHead) + "1\r\nab\r\n0\r\n\r\n"};
  for (const std::string& request : requests) {
    RawClient client(port);
    client.send(request);
    const Answer answer = client.read_answer();
    EXPECT_EQ(answer.status, 400U) << request;
    EXPECT_EQ(answer.header("connection"), "close") << request;
    EXPECT_TRUE(client.is_at_end()) << request;
  }
}

TEST_F(ServingTest, RefusesTargetsThatDoNotDecode) {
  const std::uint16_t port = serve();
  for (const char* target : {"/%",
                             "/%4",
                             "/%zz",
                             "/a%00b",
                             "/?x=%",
                             "/?x=%00",
                             "/?%g0=1",
                             "/%ff",
                             "/%c3",
                             "/%c0%af",     // an overlong '/'
                             "/%ed%a0%80",  // half of a surrogate pair
                             "/?q=%fe"}) {
    RawClient client(port);
    client.send(get(target));
    EXPECT_EQ(client.read_answer().status, 400U) << target;
  }
  RawClient client(port);
  client.send(get("/%c3%a4?q=%E2%82%AC&&r=%25"));
  EXPECT_EQ(client.read_answer().body, "GET /\u00e4 q=\u20ac r=%");
}

TEST_F(ServingTest, AnswersARequestThatEndsEarly) {
  const std::uint16_t port = serve();
  for (const std::string& text : {std::string("GET / HTT"), post_head(10) + "body"}) {
    RawClient client(port);
    client.send(text);
    client.close_sending();
    EXPECT_EQ(client.read_answer().status, 400U);
  }
}

TEST_F(ServingTest, RefusesALongBodyUnread) {
  const std::uint16_t port = serve();
  const std::string piece(kMiB, 'x');
  const std::size_t before = resident_bytes();
  for (int i = 0; i < 20; ++i) {
    RawClient client(port);
    client.send(post_head(std::size_t{1} << 30));
    // It goes on sending all the same, and must see the answer, not a reset.
    for (int j = 0; j < 4; ++j) client.send(piece);
    EXPECT_EQ(client.read_answer().status, 413U);
    client.close_sending();
    EXPECT_TRUE(client.is_at_end());
  }
  EXPECT_LT(resident_bytes(), before + 32 * kMiB);
}

TEST_F(ServingTest, StopsListeningToAClientThatNeverStops) {
  RawClient client(serve());
  client.send(post_head(std::size_t{1} << 40));
  std::size_t sent = 0;
  const std::string piece(kMiB, 'x');
  while (sent < 1024 * kMiB && client.send(piece)) sent += piece.size();
  EXPECT_LT(sent, 128 * kMiB);
}

TEST_F(ServingTest, RefusesChunksThatAddUpToTooMuch) {
  options_.max_body_bytes = 2 * kMiB;
  const std::uint16_t port = serve();
  const std::size_t before = resident_bytes();

  RawClient claiming(port);
  claiming.send(std::string(kChunkedHead) + "40000000\r\n");
  EXPECT_EQ(claiming.read_answer().status, 413U);

  RawClient adding(port);
  adding.send(kChunkedHead);
  const std::string chunk = "10000\r\n" + std::string(std::size_t{64} << 10, 'x') + "\r\n";
  for (int i = 0; i < 64; ++i) adding.send(chunk);  // 4 MiB
  EXPECT_EQ(adding.read_answer().status, 413U);

  RawClient extending(port);
  extending.send(std::string(kChunkedHead) + "1;");
  extending.send(std::string(kMiB, 'x'));
  EXPECT_EQ(extending.read_answer().status, 431U) << "the extension of a chunk is text to keep";

  RawClient fitting(port);
  fitting.send(kChunkedHead);
  for (int i = 0; i < 32; ++i) fitting.send(chunk);
  fitting.send("0\r\n\r\n");
  EXPECT_EQ(fitting.read_answer().body.size(), 2 * kMiB + std::string("POST /; ").size());
  EXPECT_LT(resident_bytes(), before + 64 * kMiB);
}

TEST_F(ServingTest, AdmitsOnlySoManyLargeBodiesAtOnce) {
  options_.max_large_bodies_bytes = 3 * kMiB;
  const std::uint16_t port = serve();
  const std::string body(2 * kMiB, 'x');
  RawClient first(port);
  first.send("POST / HTTP/1.1\r\nHost: here\r\nExpect: 100-continue\r\nContent-Length: " +
             std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_EQ(first.read_answer().status, 100U) << "admitted";

  RawClient second(port);
  second.send(post(body));
  const Answer refused = second.read_answer();
  EXPECT_EQ(refused.status, 503U);
  EXPECT_EQ(refused.header("retry-after"), "1");
  EXPECT_EQ(refused.header("connection"), "close");
  RawClient small(port);
  small.send(post("small"));
  EXPECT_EQ(small.read_answer().status, 200U) << "small ones are not counted";

  first.send(body);
  EXPECT_EQ(first.read_answer().status, 200U);
  // Its share is free once the answer has left, which is an instant after it arrived here.
  std::uint32_t status = 503;
  while (status == 503) {
    RawClient third(port);
    third.send(post(body));
    status = third.read_answer().status;
  }
  EXPECT_EQ(status, 200U);
}

TEST_F(ServingTest, RefusesChunksThatFindNoRoom) {
  options_.max_large_bodies_bytes = kMiB;
  RawClient client(serve());
  client.send(kChunkedHead);
  const std::string chunk = "100000\r\n" + std::string(kMiB, 'x') + "\r\n";
  client.send(chunk + chunk + chunk);
  EXPECT_EQ(client.read_answer().status, 503U);
}

TEST_F(ServingTest, GivesUpOnAClientThatDoesNotRead) {
  options_.write_timeout = 200ms;
  const Signal left;
  handler_.handling = [&](const Request&, const std::shared_ptr<Exchange>& exchange) {
    exchange->on_leave(left.function());
    Reply reply;
    reply.body.assign(64 * kMiB, 'x');
    exchange->reply(std::move(reply));
  };
  const std::uint16_t port = serve();
  RawClient client(port);
  client.send(get("/"));
  EXPECT_TRUE(left.comes_within(10s));
  while (server_->counts().connections > 0) std::this_thread::sleep_for(1ms);
}

TEST_F(ServingTest, NoticesThatAWaitingClientLeft) {
  auto exchange = keep_exchange();
  RawClient client(serve());
  client.send(get("/"));
  const std::shared_ptr<Exchange> kept = exchange.get();
  const Signal left;
  kept->on_leave(left.function());
  EXPECT_FALSE(left.comes_within(50ms));
  client.close();
  EXPECT_TRUE(left.comes_within(5s));
  const Signal late;
  kept->on_leave(late.function());
  EXPECT_TRUE(late.comes_within(0ms)) << "it has left already";
  kept->reply({});
  while (server_->counts().connections > 0) std::this_thread::sleep_for(1ms);
}

TEST_F(ServingTest, AnswersAClientThatSeemedToLeave) {
  auto exchange = keep_exchange();
  RawClient client(serve());
  client.send(get("/"));
  const std::shared_ptr<Exchange> kept = exchange.get();
  const Signal left;
  kept->on_leave(left.function());
  client.close_sending();
  EXPECT_TRUE(left.comes_within(5s));
  kept->reply({.body = "still"});
  EXPECT_EQ(client.read_answer().body, "still");
}

TEST_F(ServingTest, TellsNoErrorWhenItsHandlerGaveUpAClientThatLeft) {
  auto exchange = keep_exchange();
  RawClient client(serve());
  client.send(get("/"));
  std::shared_ptr<Exchange> kept = exchange.get();
  const Signal left;
  kept->on_leave(left.function());
  client.close_sending();
  EXPECT_TRUE(left.comes_within(5s));
  kept.reset();
  EXPECT_TRUE(client.is_at_end());
}

TEST_F(ServingTest, DoesNotCallALeaverWhoWasAnswered) {
  std::atomic<int> calls = 0;
  handler_.handling = [&](const Request&, const std::shared_ptr<Exchange>& exchange) {
    exchange->on_leave([&] { ++calls; });
    exchange->reply({});
  };
  RawClient client(serve());
  client.send(get("/", "Connection: close\r\n"));
  EXPECT_EQ(client.read_answer().status, 200U);
  client.close();
  server_.reset();
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace drk::http::test
