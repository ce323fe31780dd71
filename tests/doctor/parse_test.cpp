// SPDX-License-Identifier: Apache-2.0
// Texts of the system and of Python are read as they are written.
#include "doctor/parse.h"

#include "drk/base/error.h"

#include <gtest/gtest.h>

namespace drk::doctor {
namespace {

constexpr std::string_view kCpuinfo =
    "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 85\n"
    "model name\t: Intel(R) Xeon(R) CPU @ 2.00GHz\nprocessor\t: 1\nmodel name\t: Other\n";

constexpr std::string_view kMeminfo =
    "MemTotal:       24616396 kB\nMemFree:         3003108 kB\nMemAvailable:   21000000 kB\n"
    "HugePages_Total:       3\n";

TEST(ParseCpuModel, TakesTheFirstOne) {
  EXPECT_EQ(parse_cpu_model(kCpuinfo), "Intel(R) Xeon(R) CPU @ 2.00GHz");
  EXPECT_EQ(parse_cpu_model("processor : 0\n"), std::nullopt);
  EXPECT_EQ(parse_cpu_model(""), std::nullopt);
}

TEST(ParseMeminfo, GivesBytes) {
  EXPECT_EQ(parse_meminfo(kMeminfo, "MemTotal"), 24616396ULL * 1024);
  EXPECT_EQ(parse_meminfo(kMeminfo, "MemAvailable"), 21000000ULL * 1024);
  EXPECT_EQ(parse_meminfo(kMeminfo, "HugePages_Total"), std::nullopt);
  EXPECT_EQ(parse_meminfo(kMeminfo, "SwapTotal"), std::nullopt);
}

TEST(ParseMemoryLimit, KnowsBothWaysToSayNone) {
  EXPECT_EQ(parse_memory_limit("max\n"), std::nullopt);
  EXPECT_EQ(parse_memory_limit("9223372036854771712\n"), std::nullopt);
  EXPECT_EQ(parse_memory_limit("4294967296\n"), 4294967296U);
  EXPECT_EQ(parse_memory_limit(""), std::nullopt);
}

TEST(ParseVersion, TakesTheNumbersItStartsWith) {
  using Numbers = std::vector<std::uint32_t>;
  const std::vector<std::pair<std::string, Numbers>> cases = {{"2.5.0", {2, 5, 0}},
                                                              {"2.5rc1", {2, 5}},
                                                              {"2.11.0+cu130", {2, 11, 0}},
                                                              {"3.6.0a1", {3, 6, 0}},
                                                              {"1.2.", {1, 2}},
                                                              {"v1", {}},
                                                              {"", {}}};
  for (const auto& [text, numbers] : cases) EXPECT_EQ(parse_version(text), numbers) << text;
}

TEST(CudaVersionText, SplitsTheNumber) {
  EXPECT_EQ(cuda_version_text(13000), "13.0");
  EXPECT_EQ(cuda_version_text(12080), "12.8");
}

TEST(ParsePythonAnswer, LeavesOutWhatIsNotInstalled) {
  Python python;
  parse_python_answer(R"({"version": "3.11.2", "package_dirs": ["/env/lib"], "torch": "2.11.0"})",
                      python);
  EXPECT_EQ(python.version, "3.11.2");
  EXPECT_EQ(python.package_dirs, std::vector<std::string>{"/env/lib"});
  EXPECT_EQ(python.torch, "2.11.0");
  EXPECT_EQ(python.triton, std::nullopt);
  EXPECT_THROW(parse_python_answer("Python 2.7", python), Error);
}

TEST(FirstAndLastLine, LeavesOutTheMiddleOfATraceback) {
  EXPECT_EQ(first_and_last_line("it failed: Traceback\n  File a\n\nKeyError: 'b'\n\n"),
            "it failed: Traceback ... KeyError: 'b'");
  EXPECT_EQ(first_and_last_line("one line\n"), "one line");
  EXPECT_EQ(first_and_last_line(""), "");
}

TEST(DescribeBytes, PicksTheUnit) {
  EXPECT_EQ(describe_bytes(0), "0.0 KiB");
  EXPECT_EQ(describe_bytes(1536), "1.5 KiB");
  EXPECT_EQ(describe_bytes(std::uint64_t{64} << 20), "64.0 MiB");
  EXPECT_EQ(describe_bytes(std::uint64_t{141} << 30), "141.0 GiB");
  EXPECT_EQ(describe_bytes(std::uint64_t{3} << 50), "3072.0 TiB");
}

}  // namespace
}  // namespace drk::doctor
