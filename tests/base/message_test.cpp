// SPDX-License-Identifier: Apache-2.0
// Messages with descriptors between two ends of a socket.
#include "drk/base/fd.h"

#include "base/error_matchers.h"

#include <gtest/gtest.h>

#include <array>
#include <fcntl.h>
#include <filesystem>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace drk {
namespace {

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

TEST(Messages, ArriveWholeAndInOrder) {
  const auto [left, right] = make_socket_pair();
  send_message(left.get(), "first");
  send_message(left.get(), std::string("sec\0ond", 7));
  EXPECT_EQ(receive_message(right.get())->text, "first");
  EXPECT_EQ(receive_message(right.get())->text, std::string("sec\0ond", 7));
}

TEST(Messages, CarryTheLargestText) {
  const auto [left, right] = make_socket_pair();
  const std::string text(kMaxMessageBytes, 'x');
  std::jthread sender([&, fd = left.get()] { send_message(fd, text); });
  EXPECT_EQ(receive_message(right.get())->text, text);
}

TEST(Messages, CarryDescriptors) {
  const auto [left, right] = make_socket_pair();
  const Pipe pipe = make_pipe();
  const std::array<int, 2> fds{pipe.read.get(), pipe.write.get()};
  send_message(left.get(), "pipe", fds);
  const auto message = receive_message(right.get());
  ASSERT_EQ(message->fds.size(), 2U);
  EXPECT_NE(message->fds[1].get(), pipe.write.get());
  EXPECT_TRUE((::fcntl(message->fds[0].get(), F_GETFD) & FD_CLOEXEC) != 0);
  ASSERT_EQ(::write(message->fds[1].get(), "!", 1), 1);
  char byte = 0;
  ASSERT_EQ(::read(pipe.read.get(), &byte, 1), 1);
  EXPECT_EQ(byte, '!');
}

TEST(Messages, CarryAtMostEightDescriptors) {
  const auto [left, right] = make_socket_pair();
  const Pipe pipe = make_pipe();
  const std::vector<int> most(kMaxMessageFds, pipe.read.get());
  send_message(left.get(), "most", most);
  EXPECT_EQ(receive_message(right.get())->fds.size(), kMaxMessageFds);
  const std::vector<int> too_many(kMaxMessageFds + 1, pipe.read.get());
  EXPECT_TRUE(throws_error(ErrorCode::internal, "broken invariant", [&, fd = left.get()] {
    send_message(fd, "more", too_many);
  }));
}

TEST(Messages, RefuseTextsThatCannotBeReceived) {
  const auto [left, right] = make_socket_pair();
  const int fd = left.get();
  EXPECT_TRUE(throws_error(ErrorCode::exhausted, "is over the limit", [&] {
    send_message(fd, std::string(kMaxMessageBytes + 1, 'x'));
  }));
  // Would read as the end of the conversation.
  EXPECT_TRUE(throws_error(ErrorCode::internal, "empty", [&] { send_message(fd, ""); }));
}

TEST(Messages, EndWhenTheOtherSideCloses) {
  auto [left, right] = make_socket_pair();
  left.reset();
  EXPECT_EQ(receive_message(right.get()), std::nullopt);
  EXPECT_TRUE(throws_error(ErrorCode::unavailable, "sendmsg", [fd = right.get()] {
    send_message(fd, "anybody there?");
  }));
}

/// What a process that does not keep to send_message's limits can do.
void send_raw(int socket, std::string_view text, std::span<const int> fds) {
  iovec part = {const_cast<char*>(text.data()), text.size()};
  std::array<char, 1024> control = {};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::copy_n(reinterpret_cast<const char*>(fds.data()),
                fds.size_bytes(),
                reinterpret_cast<char*>(CMSG_DATA(c)));
  }
  ASSERT_GE(::sendmsg(socket, &header, 0), 0);
}

TEST(Messages, TooLongOnesAreCorrupt) {
  const auto [left, right] = make_socket_pair();
  std::jthread sender(
      [fd = left.get()] { send_raw(fd, std::string(kMaxMessageBytes + 1, 'x'), {}); });
  EXPECT_TRUE(throws_error(ErrorCode::corrupt, "longer than the protocol", [fd = right.get()] {
    static_cast<void>(receive_message(fd));
  }));
}

TEST(Messages, TooManyDescriptorsAreCorruptAndNoneIsLeaked) {
  const auto [left, right] = make_socket_pair();
  const Pipe pipe = make_pipe();
  const std::vector<int> fds(kMaxMessageFds + 5, pipe.read.get());
  const std::size_t before = open_descriptors();
  send_raw(left.get(), "flood", fds);
  EXPECT_TRUE(throws_error(ErrorCode::corrupt, "longer than the protocol", [fd = right.get()] {
    static_cast<void>(receive_message(fd));
  }));
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace drk
