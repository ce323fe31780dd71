// SPDX-License-Identifier: Apache-2.0
// The two tables: reasons to severities, refused calls to reasons.
#include "drk/base/fd.h"
#include "drk/base/json.h"
#include "drk/judge.h"

#include "judge/refusals.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace drk::judge {
namespace {

using task::Ownership;
using task::Reason;
using task::Severity;

TEST(SeverityOf, RejectsForEveryReasonByDefault) {
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<Reason>>([](auto reason) {
    for (const Ownership ownership : {Ownership::mixed, Ownership::strict}) {
      task::Policy policy;
      policy.ownership = ownership;
      EXPECT_EQ(severity_of(reason.value, policy), Severity::reject) << reason.name;
    }
  });
}

TEST(SeverityOf, OwnKernelsDoNotMatterWhereAnythingGoes) {
  task::Policy policy;
  policy.ownership = Ownership::free;
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<Reason>>([&](auto reason) {
    const bool about_ownership = reason.value == Reason::decoy_kernel ||
                                 reason.value == Reason::no_candidate_kernel ||
                                 reason.value == Reason::torch_fallback;
    EXPECT_EQ(severity_of(reason.value, policy),
              about_ownership ? Severity::note : Severity::reject)
        << reason.name;
  });
}

TEST(AttemptOf, KnowsWhatACallIsAnAttemptAt) {
  const struct {
    const char* call;
    Reason reason;
    bool harmless;
  } cases[] = {
      {"socket(AF_INET)", Reason::network_escape, false},
      {"socket(AF_INET6)", Reason::network_escape, false},
      {"socket(17)", Reason::network_escape, false},
      {"socket", Reason::network_escape, false},
      {"socket(AF_UNIX)", Reason::network_escape, true},
      {"socket(AF_NETLINK)", Reason::network_escape, true},
      {"socketpair", Reason::network_escape, true},
      {"ptrace", Reason::process_tamper, false},
      {"process_vm_readv", Reason::process_tamper, false},
      {"process_vm_writev", Reason::process_tamper, false},
      {"kill", Reason::process_tamper, false},
      {"execve", Reason::process_tamper, false},
      {"clone(new namespaces)", Reason::process_tamper, false},
      {"unshare", Reason::process_tamper, false},
      {"bpf", Reason::process_tamper, false},
      {"mount", Reason::filesystem_escape, false},
      {"open_tree", Reason::filesystem_escape, false},
      {"pivot_root", Reason::filesystem_escape, false},
      {"ioctl(TIOCSTI)", Reason::io_tamper, false},
      {"ioctl(TCGETS)", Reason::process_tamper, true},
      {"io_uring_setup", Reason::process_tamper, true},
      {"system call 435", Reason::process_tamper, true},
      {"socketry", Reason::process_tamper, true},
      {"", Reason::process_tamper, true},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(attempt_of(c.call).reason, c.reason) << c.call;
    EXPECT_EQ(attempt_of(c.call).harmless, c.harmless) << c.call;
  }
}

TEST(FindingsPage, IsTheOneInTheDocs) {
  const std::string path = std::string(DRK_SOURCE_DIR) + "/docs/findings.md";
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread sets any
  if (std::getenv("DRK_UPDATE_DOCS") != nullptr) write_file(path, findings_page());
  EXPECT_EQ(read_file(path), findings_page()) << "DRK_UPDATE_DOCS=1 rewrites it";
}

}  // namespace
}  // namespace drk::judge
