// SPDX-License-Identifier: Apache-2.0
// The stand-in for NVML in a folder of its own, and what it is told to do.
#pragma once

#include "drk/base/fd.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <unistd.h>

namespace drk::gpu::test {

/// A state that is shown to nobody else: each has a copy of the library.
class FakeNvml {
 public:
  /// `file` is "fake_nvml.so" or "old_fake_nvml.so", beside the binary of the test.
  explicit FakeNvml(const std::string& file = "fake_nvml.so") {
    std::string folder = (std::filesystem::temp_directory_path() / "drk-nvml-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) throw std::filesystem::filesystem_error(folder, {});
    folder_ = folder;
    const auto bin = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    std::filesystem::copy_file(bin / file, library());
    be("");
  }
  FakeNvml(const FakeNvml&) = delete;
  FakeNvml& operator=(const FakeNvml&) = delete;
  ~FakeNvml() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  [[nodiscard]] std::string library() const { return folder_ / "libnvidia-ml.so.1"; }

  /// Lines of fake_nvml.cpp, in place of those before.
  void be(const std::string& lines) {
    lines_ = lines;
    write_file(folder_ / "next", lines_);
    std::filesystem::rename(folder_ / "next", folder_ / "state");  // never seen half written
  }
  /// One line more.
  void also(const std::string& line) { be(lines_ + line + "\n"); }

 private:
  std::filesystem::path folder_;
  std::string lines_;
};

/// Whether it becomes true, in time that is ample.
template <class Condition>
[[nodiscard]] bool eventually(const Condition& condition) {
  for (int i = 0; i < 4000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace drk::gpu::test
