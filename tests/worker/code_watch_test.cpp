// SPDX-License-Identifier: Apache-2.0
// Machine code looked at from outside: of this very process, and of candidates that rewrite it.
#include "worker/code_watch.h"

#include "drk/base/error.h"

#include "worker/fixture.h"

#include <algorithm>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/mman.h>

namespace drk::worker::test {
namespace {

std::vector<Fd> own_memory() {
  std::vector<Fd> proc;
  for (const char* file : {"/proc/self/maps", "/proc/self/pagemap", "/proc/self/mem"}) {
    proc.emplace_back(::open(file, O_RDONLY | O_CLOEXEC));
  }
  return proc;
}

TEST(MapsFile, IsParsedAndWhatIsNoneIsLeftOut) {
  const auto ranges = parse_maps(
      "7f10000-7f12000 r-xp 00003000 fe:01 42   /usr/lib/a name with spaces.so\n"
      "7ffc000-7ffe000 r-xp 00000000 00:00 0    [vdso]\n"
      "nonsense\n"
      "2000-1000 r-xp 00000000 fe:01 42 /backwards\n"
      "\n"
      "8000-9000 rw-p 00000000 00:00 0");
  ASSERT_EQ(ranges.size(), 3U);
  EXPECT_EQ(ranges[0].begin, 0x7f10000U);
  EXPECT_EQ(ranges[0].end, 0x7f12000U);
  EXPECT_EQ(ranges[0].offset, 0x3000U);
  EXPECT_EQ(ranges[0].inode, 42U);
  EXPECT_EQ(ranges[0].name, "/usr/lib/a name with spaces.so");
  EXPECT_TRUE(ranges[0].is_code_of_file());
  EXPECT_EQ(ranges[1].name, "[vdso]");
  EXPECT_FALSE(ranges[1].is_code_of_file());
  EXPECT_EQ(ranges[2].name, "");
}

TEST(MapsFile, OfThisProcessNamesThisProgram) {
  std::ifstream file("/proc/self/maps");
  std::ostringstream text;
  text << file.rdbuf();
  const auto ranges = parse_maps(text.str());
  EXPECT_TRUE(std::any_of(ranges.begin(), ranges.end(), [](const MappedRange& range) {
    return range.is_code_of_file() && range.name.ends_with("/worker_test");
  }));
}

TEST(CodeWatch, NeedsThreeDescriptorsThatCanBeRead) {
  EXPECT_THROW(CodeWatch({}), Error);
  std::vector<Fd> closed(3);
  EXPECT_THROW(CodeWatch(std::move(closed)), Error);
}

/// A page of this program that holds nothing else.
[[gnu::aligned(4096), gnu::noinline]] int code_to_rewrite(int number) {
  return number * 7 + 1;
}
[[gnu::aligned(4096), gnu::noinline]] int code_behind_it(int number) {
  return number * 5 + code_to_rewrite(number);
}

void* page_to_rewrite() {
  EXPECT_NE(code_behind_it(1), 0);
  return reinterpret_cast<void*>(&code_to_rewrite);
}

TEST(Rewritten, PageIsSeenEvenWithItsBytesPutBack) {
  void* const page = page_to_rewrite();
  const CodeWatch watch(own_memory());
  EXPECT_TRUE(watch.changes().empty());
  ASSERT_EQ(::mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
  auto* first = static_cast<volatile unsigned char*>(page);
  const unsigned char kept = *first;
  *first = static_cast<unsigned char>(kept ^ 1U);
  *first = kept;
  ASSERT_EQ(::mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
  const auto changes = watch.changes();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_NE(changes[0].find("1 pages of code of /"), std::string::npos) << changes[0];
  const CodeWatch later(own_memory());
  EXPECT_TRUE(later.changes().empty()) << "it was so from the beginning";
}

TEST(Rewritten, MappingIsSeen) {
  void* const page = page_to_rewrite();
  const CodeWatch watch(own_memory());
  ASSERT_EQ(::mprotect(page, 4096, PROT_READ), 0);
  const auto changes = watch.changes();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_NE(changes[0].find("no longer mapped"), std::string::npos) << changes[0];
  ASSERT_EQ(::mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
  EXPECT_TRUE(watch.changes().empty());
}

// --- in a guest ---

using Tampering = WorkerTest;

/// Rewrites a function of a library in its own process, and computes honestly.
std::string patching(const std::string& library, const std::string& function) {
  return std::string(kReluCandidate) + R"(
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
at = ctypes.cast(ctypes.CDLL()" +
         library + R"().)" + function + R"(, ctypes.c_void_p).value
page = at & ~4095
assert libc.mprotect(ctypes.c_void_p(page), 8192, 7) == 0
code = (ctypes.c_char * 1).from_address(at)
code[0] = code[0]
libc.mprotect(ctypes.c_void_p(page), 8192, 5)
)";
}

TEST_F(Tampering, WithCodeOfTheCLibraryIsSeenFromOutside) {
  task::Task task = make_task(kReluReference, patching("None", "clock_gettime"));
  const task::Result result = evaluator().evaluate(task);
  EXPECT_EQ(kind_of(result), "rejected") << text_of(result);
  EXPECT_NE(text_of(result).find("harness_tamper"), std::string::npos) << text_of(result);
  EXPECT_NE(text_of(result).find("libc.so.6 were written to"), std::string::npos)
      << text_of(result);
}

TEST_F(Tampering, WithTheClockIsSeenFromOutside) {
  // The core's clock stands in the kernel's own code, which no file is behind.
  const std::string candidate = std::string(kReluCandidate) + R"(
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
page = next(int(line.split("-")[0], 16) for line in open("/proc/self/maps") if "[vdso]" in line)
libc.mprotect(ctypes.c_void_p(page), 4096, 7)
code = (ctypes.c_char * 1).from_address(page + 4)
code[0] = b"\x7f"
)";
  const task::Result result = evaluator().evaluate(make_task(kReluReference, candidate));
  // The kernel may refuse to let it be written, which ends the process.
  EXPECT_TRUE(kind_of(result) == "rejected" || kind_of(result) == "crashed") << text_of(result);
}

TEST_F(Tampering, IsNotWhatAnHonestKernelDoes) {
  task::Task task = make_task(kReluReference, kReluCandidate);
  task.measure_performance = true;
  const task::Result result = evaluator().evaluate(task);
  ASSERT_EQ(kind_of(result), "accepted") << text_of(result);
  EXPECT_TRUE(result.observations.alterations.empty());
  const auto& enforced = result.isolation.enforced;
  EXPECT_NE(std::find(enforced.begin(), enforced.end(), "code_watch"), enforced.end());
  ASSERT_TRUE(result.observations.clock);
  const task::ClockCheck& clock = *result.observations.clock;
  EXPECT_GT(clock.timed_us, 0);
  EXPECT_LE(clock.timed_us, clock.request_us);
  EXPECT_GE(clock.waited_us, clock.asked_us);
}

TEST_F(Tampering, ProcessThatEndsAfterItsLastCallHasCrashed) {
  // Behind the calls that are timed, and before the worker is done with it.
  const std::string candidate = std::string(kReluCandidate) + R"(
import os, threading, time
class Later(ModelNew):
    calls = 0
    def forward(self, x):
        y = super().forward(x)
        Later.calls += 1
        if not torch.is_grad_enabled() and Later.calls > 5 and float(y.sum()) < 1e9:
            threading.Timer(0.0, os._exit, (0,)).start()
        return y
ModelNew = Later
)";
  task::Task task = make_task(kReluReference, candidate);
  task.measure_performance = true;
  const task::Result result = evaluator().evaluate(task);
  EXPECT_EQ(kind_of(result), "crashed") << text_of(result);
}

}  // namespace
}  // namespace drk::worker::test
