// SPDX-License-Identifier: Apache-2.0
// Who closes what, and memory that nobody can write to.
#include "drk/base/fd.h"

#include "base/error_matchers.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <type_traits>
#include <unistd.h>

namespace drk {
namespace {

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Fd, ClosesExactlyOnce) {
  Pipe pipe = make_pipe();
  const int raw = pipe.read.get();
  {
    const Fd owner = std::move(pipe.read);
    EXPECT_EQ(owner.get(), raw);
    EXPECT_FALSE(pipe.read);  // NOLINT(bugprone-use-after-move): the promise under test
    EXPECT_TRUE(is_open(raw));
  }
  EXPECT_FALSE(is_open(raw));
}

TEST(Fd, AssignmentClosesWhatItHeld) {
  Pipe pipe = make_pipe();
  const int old = pipe.read.get();
  const int kept = pipe.write.get();
  pipe.read = std::move(pipe.write);
  EXPECT_FALSE(is_open(old));
  EXPECT_TRUE(is_open(kept));
  Fd& self = pipe.read;
  pipe.read = std::move(self);
  EXPECT_TRUE(is_open(kept));
}

TEST(Fd, ReleaseGivesUpOwnership) {
  Pipe pipe = make_pipe();
  const int raw = pipe.read.release();
  pipe.read.reset();
  EXPECT_TRUE(is_open(raw));
  ::close(raw);
}

TEST(Fd, NeverThrowsWhileCleaningUp) {
  static_assert(std::is_nothrow_destructible_v<Fd>);
  static_assert(std::is_nothrow_move_constructible_v<Fd>);
  static_assert(std::is_nothrow_move_assignable_v<Fd>);
  static_assert(std::is_nothrow_destructible_v<Mapping>);
  static_assert(std::is_nothrow_move_assignable_v<Mapping>);
  static_assert(!std::is_copy_constructible_v<Fd>);
}

TEST(MakePipe, DoesNotReachChildPrograms) {
  const Pipe pipe = make_pipe();
  EXPECT_TRUE((::fcntl(pipe.read.get(), F_GETFD) & FD_CLOEXEC) != 0);
  EXPECT_TRUE((::fcntl(pipe.write.get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST(SharedMemory, IsSharedBetweenMappings) {
  const Fd memory = make_shared_memory("test", 4096);
  EXPECT_EQ(file_size_bytes(memory.get()), 4096U);
  const Mapping writable = Mapping::shared(memory.get(), 4096, true);
  const Mapping readable = Mapping::shared(memory.get(), 4096, false);
  writable.data()[17] = std::byte{42};
  EXPECT_EQ(readable.bytes()[17], std::byte{42});
}

TEST(SharedMemory, CanNeitherGrowNorShrink) {
  const Fd memory = make_shared_memory("test", 4096);
  EXPECT_NE(::ftruncate(memory.get(), 0), 0);
  EXPECT_NE(::ftruncate(memory.get(), 8192), 0);
}

TEST(SharedMemory, OfNoBytesMapsToNothing) {
  const Fd memory = make_shared_memory("test", 0);
  const Mapping mapping = Mapping::shared(memory.get(), 0, true);
  EXPECT_TRUE(mapping.bytes().empty());
}

TEST(SealedMemory, HoldsItsContentAgainstEveryWrite) {
  const Fd memory = make_sealed_memory("test", bytes_of("the problem"));
  EXPECT_LT(::pwrite(memory.get(), "X", 1, 0), 0);
  EXPECT_NE(::ftruncate(memory.get(), 1), 0);
  EXPECT_TRUE(throws_error(ErrorCode::unavailable, "mmap", [&] {
    static_cast<void>(Mapping::shared(memory.get(), 11, true));
  }));
  const Mapping mapping = Mapping::shared(memory.get(), 11, false);
  EXPECT_NE(::mprotect(mapping.data(), 4096, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(std::memcmp(mapping.data(), "the problem", 11), 0);
}

TEST(SealedMemory, TheSealCannotBeTakenOff) {
  const Fd memory = make_sealed_memory("test", bytes_of("x"));
  EXPECT_NE(::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
}

TEST(SealAgainstWrites, FailsWhileSomebodyCanStillWrite) {
  const Fd memory = make_shared_memory("test", 4096);
  Mapping writable = Mapping::shared(memory.get(), 4096, true);
  EXPECT_FALSE(seal_against_writes(memory.get()));
  writable.reset();
  EXPECT_TRUE(seal_against_writes(memory.get()));
}

TEST(Mapping, ReleaseLeavesTheMemoryMapped) {
  const Fd memory = make_shared_memory("test", 4096);
  Mapping mapping = Mapping::shared(memory.get(), 4096, true);
  std::byte* data = mapping.release();
  mapping.reset();
  data[0] = std::byte{1};
  EXPECT_EQ(::munmap(data, 4096), 0);
}

TEST(Files, ReadBackWhatWasWritten) {
  const std::string path = testing::TempDir() + "drk_fd_test";
  const std::string content("line\n\0\xFF", 7);
  write_file(path, content);
  EXPECT_EQ(read_file(path), content);
  write_file(path, "short");
  EXPECT_EQ(read_file(path), "short");
  std::filesystem::remove(path);
}

TEST(Files, AMissingFileIsNotFound) {
  EXPECT_TRUE(throws_error(ErrorCode::not_found, "cannot read /no/such/file", [] {
    static_cast<void>(read_file("/no/such/file"));
  }));
  EXPECT_TRUE(throws_error(ErrorCode::unavailable, "cannot write /no/such/dir/file", [] {
    write_file("/no/such/dir/file", "x");
  }));
}

}  // namespace
}  // namespace drk
