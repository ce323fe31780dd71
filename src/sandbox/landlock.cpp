// SPDX-License-Identifier: Apache-2.0
// Landlock: the mount view's rules once more, by the kernel's other mechanism.
#include "drk/base/fd.h"

#include "sandbox/steps.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace drk::sandbox {

namespace {

// Rights that younger kernels know and the build machine's header may not.
constexpr std::uint64_t kTruncate = 1ULL << 14;  // since ABI 3
constexpr std::uint64_t kRead =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kWrite = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                                 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                                 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                 LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                 LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;
constexpr std::uint64_t kNotForFiles =
    LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
    LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
    LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER;

class Ruleset {
 public:
  explicit Ruleset(std::uint64_t handled) : handled_(handled) {
    const landlock_ruleset_attr attr = {.handled_access_fs = handled};
    fd_ = Fd(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0)));
  }
  [[nodiscard]] bool valid() const noexcept { return static_cast<bool>(fd_); }

  /// Paths that do not exist need no rule.
  void allow(const std::string& path, std::uint64_t access) {
    const Fd parent(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!parent) return;
    landlock_path_beneath_attr rule = {};
    rule.parent_fd = parent.get();
    rule.allowed_access = access & handled_;
    if (add(rule)) return;
    rule.allowed_access &= ~kNotForFiles;  // it was a file
    (void)add(rule);
  }
  [[nodiscard]] bool enforce() const noexcept {
    return ::syscall(SYS_landlock_restrict_self, fd_.get(), 0) == 0;
  }

 private:
  [[nodiscard]] bool add(const landlock_path_beneath_attr& rule) const noexcept {
    return ::syscall(SYS_landlock_add_rule, fd_.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
  }

  std::uint64_t handled_;
  Fd fd_;
};

}  // namespace

void apply_landlock(const std::vector<std::string>& readable,
                    const std::string& scratch,
                    const Cell& cell,
                    Report& report) {
  const long abi =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi < 1) {
    note_missing(report, Feature::landlock, errno_text("landlock_create_ruleset"));
    return;
  }
  const std::uint64_t truncate = abi >= 3 ? kTruncate : 0;
  Ruleset rules(kRead | kWrite | truncate | (abi >= 2 ? LANDLOCK_ACCESS_FS_REFER : 0));
  for (const std::string& path : readable) rules.allow(path, kRead);
  // The CUDA driver names its threads through /proc/self/task/*/comm, and gives up where it cannot.
  // Nothing else there can be written: the cell's processes are not dumpable, so that their files
  // are root's, save for that one.
  rules.allow("/proc", cell.has_devices ? kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | truncate : kRead);
  rules.allow(
      "/dev",
      LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_DIR);
  rules.allow("/dev/shm", kRead | kWrite | truncate);
  rules.allow(scratch, kRead | kWrite | truncate | LANDLOCK_ACCESS_FS_REFER);
  if (rules.valid() && rules.enforce()) {
    note_enforced(report, Feature::landlock);
  } else {
    note_missing(report, Feature::landlock, errno_text("landlock_restrict_self"));
  }
}

}  // namespace drk::sandbox
