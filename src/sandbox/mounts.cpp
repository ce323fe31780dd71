// SPDX-License-Identifier: Apache-2.0
// The guest's view of the file tree: what it must read, and one small folder it may write.
#include "drk/base/error.h"

#include "sandbox/steps.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace drk::sandbox {

namespace {

constexpr std::array kDevices = {
    "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
// Any existing folder will do: the new root is built on top of it, then becomes the root.
constexpr const char* kStage = "/tmp";

void restrict_mount(int mount, std::uint64_t attributes) {
  mount_attr attr = {};
  attr.attr_set = attributes;
  if (::mount_setattr(mount, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) != 0) {
    throw_errno("mount_setattr");
  }
}

Fd copy_tree(const std::string& path) {
  Fd tree(::open_tree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
  if (!tree) throw_errno("open_tree " + path);
  return tree;
}

/// mkdir -p below the current folder. `path` is absolute and read as relative to it.
void make_folders(const std::string& path) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = "." + path.substr(0, slash);
    if (::mkdir(part.c_str(), 0755) != 0 && errno != EEXIST) throw_errno("mkdir " + part);
    if (slash == std::string::npos) return;
  }
}

std::string parent_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

void put(const Tree& tree) {
  const std::string target = "." + tree.path;
  if (const std::string parent = parent_of(tree.path); !parent.empty()) make_folders(parent);
  if (!tree.link_target.empty()) {
    if (::symlink(tree.link_target.c_str(), target.c_str()) != 0 && errno != EEXIST) {
      throw_errno("symlink " + target);
    }
    return;
  }
  if (tree.is_directory) {
    make_folders(tree.path);
  } else {
    const Fd file(::open(target.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    if (!file) throw_errno("create " + target);
  }
  if (::move_mount(tree.mount.get(), "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    throw_errno("move_mount " + target);
  }
}

void mount_tmpfs(const char* target, const std::string& options, unsigned long flags) {
  if (::mount("tmpfs", target, "tmpfs", flags | MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    throw_errno(std::string("mount tmpfs on ") + target);
  }
}

std::string sized(std::uint64_t bytes, const char* mode) {
  return "size=" + std::to_string(bytes) + ",nr_inodes=16384,mode=" + mode;
}

void make_devices() {
  make_folders("/dev");
  ::symlink("/proc/self/fd", "./dev/fd");
  ::symlink("/proc/self/fd/1", "./dev/stdout");
  ::symlink("/proc/self/fd/2", "./dev/stderr");
  make_folders("/dev/shm");
  mount_tmpfs("./dev/shm", sized(16U << 20U, "1777"), MS_NOEXEC);
}

void switch_root() {
  // The old root is stacked below the new one and then taken away, so nothing leads back.
  if (::syscall(SYS_pivot_root, ".", ".") != 0) throw_errno("pivot_root");
  if (::umount2(".", MNT_DETACH) != 0) throw_errno("umount of the old root");
  if (::chdir("/") != 0) throw_errno("chdir /");
  mount_attr read_only = {};
  read_only.attr_set = MOUNT_ATTR_RDONLY;
  if (::mount_setattr(AT_FDCWD, "/", 0, &read_only, sizeof read_only) != 0) {
    throw_errno("mount_setattr /");
  }
}

Tree take_device(const std::string& path) {
  Tree device;
  device.path = path;
  device.mount = copy_tree(path);
  restrict_mount(device.mount.get(), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
  return device;
}

}  // namespace

std::vector<Tree> take_trees(const std::vector<std::string>& readable,
                             const std::vector<std::string>& devices) {
  // Nothing that is mounted here from now on shows outside, nor the other way round.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) throw_errno("mount /");
  std::vector<Tree> trees;
  for (const std::string& path : readable) {
    struct stat status = {};
    if (::lstat(path.c_str(), &status) != 0) continue;
    Tree tree;
    tree.path = path;
    if (S_ISLNK(status.st_mode)) {
      std::array<char, 4096> target = {};
      const ssize_t n = ::readlink(path.c_str(), target.data(), target.size());
      if (n <= 0) throw_errno("readlink " + path);
      tree.link_target.assign(target.data(), static_cast<std::size_t>(n));
    } else {
      tree.is_directory = S_ISDIR(status.st_mode);
      tree.mount = copy_tree(path);
      restrict_mount(tree.mount.get(), MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    }
    trees.push_back(std::move(tree));
  }
  for (const char* path : kDevices) trees.push_back(take_device(path));
  for (const std::string& path : devices) trees.push_back(take_device(path));
  return trees;
}

void enter_mount_view(const std::vector<Tree>& trees, std::uint64_t tmp_bytes) {
  mount_tmpfs(kStage, sized(1U << 20U, "0755"), 0);
  if (::chdir(kStage) != 0) throw_errno("chdir to the new root");
  make_devices();
  for (const Tree& tree : trees) put(tree);
  make_folders("/proc");
  if (::mount("proc", "./proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
    throw_errno("mount proc");
  }
  make_folders("/tmp");
  mount_tmpfs("./tmp", sized(tmp_bytes, "1777"), 0);
  switch_root();
}

}  // namespace drk::sandbox
