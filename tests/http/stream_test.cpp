// SPDX-License-Identifier: Apache-2.0
// Answers of unknown length.
#include "drk/base/error.h"
#include "drk/http.h"

#include "base/error_matchers.h"
#include "http/answer_queue.h"
#include "http/raw_client.h"
#include "http/serving.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace drk::http::test {
namespace {

TEST_F(ServingTest, StreamsPartsAsTheyCome) {
  auto exchange = keep_exchange();
  RawClient client(serve());
  client.send(get("/") + get("/"));
  const std::shared_ptr<Exchange> kept = exchange.get();
  kept->start_stream({.content_type = "text/event-stream", .headers = {{"X-Extra", "1"}}});
  const Answer head = client.read_head();
  EXPECT_EQ(head.header("content-type"), "text/event-stream");
  EXPECT_EQ(head.header("x-extra"), "1");
  EXPECT_EQ(head.header("transfer-encoding"), "chunked");
  EXPECT_EQ(head.header("content-length"), std::nullopt);
  for (const char* part : {"one", "two", "three"}) {
    kept->send("");  // would end the stream, were it a chunk
    kept->send(part);
    EXPECT_EQ(client.read_chunk(), part);
  }
  handler_.handling = [](const Request& request, const std::shared_ptr<Exchange>& next) {
    next->reply(echo(request));
  };
  kept->finish();
  EXPECT_EQ(client.read_chunk(), "");
  EXPECT_EQ(client.read_answer().body, "GET /") << "the connection goes on";
}

TEST_F(ServingTest, StreamsWhatWasSaidBeforeTheHandlerReturned) {
  handler_.handling = [](const Request&, const std::shared_ptr<Exchange>& exchange) {
    exchange->start_stream({});
    for (int i = 0; i < 1000; ++i) exchange->send(std::to_string(i) + ",");
    exchange->finish();
  };
  std::string all;
  for (int i = 0; i < 1000; ++i) all += std::to_string(i) + ",";
  const std::uint16_t port = serve();
  RawClient client(port);
  client.send(get("/"));
  EXPECT_EQ(client.read_answer().body, all);
  client.send("HEAD / HTTP/1.1\r\nHost: here\r\n\r\n");
  EXPECT_EQ(client.read_answer(true).header("transfer-encoding"), "chunked");

  RawClient old(port);
  old.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const Answer answer = old.read_answer();
  EXPECT_EQ(answer.header("transfer-encoding"), std::nullopt);
  EXPECT_EQ(answer.header("connection"), "close");
  EXPECT_EQ(answer.body, all);
}

TEST_F(ServingTest, LeavesAnAbandonedStreamIncomplete) {
  auto exchange = keep_exchange();
  RawClient client(serve());
  client.send(get("/"));
  std::shared_ptr<Exchange> kept = exchange.get();
  kept->start_stream({});
  kept->send("part");
  kept.reset();
  client.read_head();
  EXPECT_EQ(client.read_chunk(), "part");
  EXPECT_TRUE(client.is_at_end()) << "without the chunk that ends a stream";
}

TEST_F(ServingTest, NoticesThatTheReaderOfAStreamLeft) {
  auto exchange = keep_exchange();
  RawClient client(serve());
  client.send(get("/"));
  const std::shared_ptr<Exchange> kept = exchange.get();
  const Signal left;
  kept->on_leave(left.function());
  kept->start_stream({});
  kept->send("part");
  client.read_head();
  client.close();
  EXPECT_TRUE(left.comes_within(5s));
  kept->send("for nobody");
  kept->finish();
}

TEST_F(ServingTest, NoticesThatTheReaderOfABusyStreamLeft) {
  auto exchange = keep_exchange();
  RawClient client(serve());
  client.send(get("/"));
  const std::shared_ptr<Exchange> kept = exchange.get();
  const Signal left;
  kept->on_leave(left.function());
  kept->start_stream({});
  client.read_head();
  client.close();
  while (!left.comes_within(10ms)) kept->send("part");
}

TEST_F(ServingTest, ClosesAStreamThatIsNotRead) {
  auto exchange = keep_exchange();
  RawClient client(serve());
  client.send(get("/"));
  const std::shared_ptr<Exchange> kept = exchange.get();
  const Signal left;
  kept->on_leave(left.function());
  kept->start_stream({});
  const std::string part(std::size_t{1} << 20, 'x');
  for (int i = 0; i < 100 && !left.comes_within(0ms); ++i) kept->send(part);
  EXPECT_TRUE(left.comes_within(5s));
  while (server_->counts().connections > 0) std::this_thread::sleep_for(1ms);
}

TEST_F(ServingTest, DrainsAStreamWhenItIsFinished) {
  auto exchange = keep_exchange();
  RawClient client(serve());
  client.send(get("/"));
  const std::shared_ptr<Exchange> kept = exchange.get();
  kept->start_stream({});
  client.read_head();
  std::jthread draining([&] { server_->drain(10s); });
  kept->send("part");
  EXPECT_EQ(client.read_chunk(), "part");
  kept->finish();
  EXPECT_EQ(client.read_chunk(), "");
  EXPECT_TRUE(client.is_at_end());
}

TEST(AnswerQueue, ChecksTheOrderOfWhatIsSaid) {
  struct Deaf final : AnswerQueue::Listener {
    void wake() override {}
  } listener;
  const auto queue = std::make_shared<AnswerQueue>(listener);
  const std::shared_ptr<Exchange> exchange = make_exchange(queue);
  EXPECT_TRUE(throws_error(ErrorCode::internal, "", [&] { exchange->send("x"); }));
  EXPECT_TRUE(throws_error(ErrorCode::internal, "", [&] { exchange->finish(); }));
  exchange->reply({});
  EXPECT_TRUE(throws_error(ErrorCode::internal, "", [&] { exchange->reply({}); }));
  EXPECT_TRUE(throws_error(ErrorCode::internal, "", [&] { exchange->start_stream({}); }));
  queue->detach();
  exchange->reply({});  // nobody is left to be misled
}

}  // namespace
}  // namespace drk::http::test
