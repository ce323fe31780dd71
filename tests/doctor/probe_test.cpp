// SPDX-License-Identifier: Apache-2.0
// The probes answer on any machine.
#include "doctor/probe.h"

#include "drk/base/fd.h"

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>

namespace drk::doctor {
namespace {

TEST(ProbeSystem, FindsThisMachine) {
  EXPECT_TRUE(probe_kernel().starts_with("Linux "));
  EXPECT_GE(probe_processor().cores, 1U);
  const Memory memory = probe_memory();
  EXPECT_GT(memory.available_bytes, 0U);
  EXPECT_LE(memory.available_bytes, memory.total_bytes);
}

TEST(ProbeDisk, LooksAtWhereAFolderWouldBe) {
  EXPECT_GT(probe_disk("/tmp/there/is/no/such/folder").total_bytes, 0U);
}

TEST(ProbePort, SeesAListener) {
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener.get(), generic, size), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), generic, &size), 0);
  EXPECT_FALSE(probe_port(ntohs(address.sin_port)).free);
}

TEST(ProbePython, KeepsTheReasonWhyItDoesNotAnswer) {
  Options options;
  options.python_problem = "none found";
  EXPECT_EQ(probe_python(options).problem, "none found");
  options.python_problem.clear();
  options.python = "/bin/false";
  EXPECT_EQ(probe_python(options).problem, "it ended with status 1: ");
  options.python = "/nonexistent/python";
  EXPECT_NE(probe_python(options).problem.find("cannot start"), std::string::npos);
  options.python = "/bin/echo";
  EXPECT_NE(probe_python(options).problem.find("not JSON"), std::string::npos);
}

TEST(ProbeGraphics, SaysForEachPartWhyItIsAbsent) {
  const Graphics graphics = probe_graphics({"/nonexistent"});
  EXPECT_TRUE(graphics.driver.has_value() || !graphics.nvml_problem.empty());
  EXPECT_TRUE(graphics.cuda.has_value() || !graphics.cuda_problem.empty());
  EXPECT_TRUE(graphics.cupti_file.has_value() || !graphics.cupti_problem.empty());
}

TEST(ProbeTrial, DoesNotStartWithoutPythonOrGuest) {
  Options options;
  EXPECT_EQ(probe_trial(options).problem, "there is no Python to run it in");
  options.python = "/bin/false";
  options.guest_problem = "no guest folder";
  EXPECT_EQ(probe_trial(options).problem, "no guest folder");
}

}  // namespace
}  // namespace drk::doctor
