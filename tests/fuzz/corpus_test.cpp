// SPDX-License-Identifier: Apache-2.0
// What fuzzing found worth keeping, replayed without a fuzzer: tests/fuzz/corpus/<target>/*.
#include "drk/base/fd.h"

#include "fuzz/border.h"
#include "fuzz/wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace drk::fuzz {
namespace {

/// In a fixed order: a server remembers what came before. Tests run in the root of the sources.
std::vector<std::string> corpus(const std::string& target) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fuzz/corpus/" + target)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

template <class Replay>
void replay_all(const std::string& target, Replay replay) {
  const std::vector<std::string> files = corpus(target);
  EXPECT_FALSE(files.empty());
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    EXPECT_NO_THROW(replay(read_file(file)));
  }
}

TEST(HttpBorder, AnswersWhateverIsSentAsDocumented) {
  Border border;
  replay_all("http", [&](const std::string& bytes) { border.replay(bytes); });
}

TEST(WireBorder, RefusesOrReadsWhateverIsSent) {
  replay_all("wire", [](const std::string& bytes) { replay_wire(bytes); });
}

}  // namespace
}  // namespace drk::fuzz
