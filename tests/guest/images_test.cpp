// SPDX-License-Identifier: Apache-2.0
// Where code for the device lies, and whose that makes it.
#include "guest/images.h"

#include "drk/base/fd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace drk::guest {
namespace {

using task::KernelOrigin;

constexpr const char* kMaps =
    "00400000-00500000 r-xp 00000000 fd:01 11                         /usr/bin/python3.12\n"
    "00f00000-00f80000 rw-p 00000000 00:00 0                          [heap]\n"
    "7f0000000000-7f0000001000 r--p 00000000 fd:01 12                 /opt/site/libtorch_cuda.so\n"
    "7f0000001000-7f0000005000 r-xp 00001000 fd:01 12                 /opt/site/libtorch_cuda.so\n"
    "7f0000005000-7f0000006000 rw-p 00000000 00:00 0 \n"
    "7f0000006000-7f0000007000 rw-p 00005000 fd:01 12                 /opt/site/libtorch_cuda.so\n"
    "7f0000007000-7f0000008000 r--p 00000000 00:01 13                 /memfd:image (deleted)\n"
    "7f0000008000-7f0000009000 r--p 00000000 fd:01 14                 /tmp/my lib.so (deleted)\n"
    "7f0000009000-7f000000a000 rw-p 00000000 00:00 0                  [anon:/usr/lib/liba.so]\n"
    "7fffff000000-7fffff001000 r-xp 00000000 00:00 0                  [vdso]";

TEST(MapTable, FindsTheFileAtAnAddress) {
  const MapTable maps(kMaps);
  EXPECT_EQ(maps.file_at(0x00400000), "/usr/bin/python3.12");
  EXPECT_EQ(maps.file_at(0x004fffff), "/usr/bin/python3.12");
  EXPECT_EQ(maps.file_at(0x7f0000004fff), "/opt/site/libtorch_cuda.so");
  EXPECT_EQ(maps.file_at(0x7f0000007000), "/memfd:image");
  EXPECT_EQ(maps.file_at(0x7f0000008800), "/tmp/my lib.so");
}

TEST(MapTable, TakesMemoryOfNoFileForNone) {
  const MapTable maps(kMaps);
  for (const std::uint64_t address : {0x0ULL,
                                      0x003fffffULL,      // before the first
                                      0x00500000ULL,      // behind its end
                                      0x00f00010ULL,      // the heap
                                      0x7f0000005000ULL,  // anonymous
                                      0x7f0000009000ULL,  // anonymous, with a name
                                      0x7fffff000000ULL,  // the vdso
                                      0xffffffffffffffffULL}) {
    EXPECT_EQ(maps.file_at(address), "") << std::hex << address;
  }
}

TEST(MapTable, FindsNoFileForWhatReachesBeyondIt) {
  const MapTable maps(kMaps);
  EXPECT_EQ(maps.file_at(0x7f0000000800, 0x2000), "/opt/site/libtorch_cuda.so");  // two regions
  EXPECT_EQ(maps.file_at(0x7f0000000000, 0x5000), "/opt/site/libtorch_cuda.so");  // to the end
  EXPECT_EQ(maps.file_at(0x7f0000000000, 0x5001), "");  // into anonymous memory
  EXPECT_EQ(maps.file_at(0x7f0000006000, 0x1001), "");  // into the next file
  EXPECT_EQ(maps.file_at(0x7f0000006000, ~0ULL), "");   // around the end of memory
}

TEST(MapTable, ReadsThisProcess) {
  const MapTable maps(read_file("/proc/self/maps"));
  const auto code = reinterpret_cast<std::uintptr_t>(&image_at);
  EXPECT_TRUE(maps.file_at(code).ends_with("/guest_test")) << maps.file_at(code);
  const int local = 0;
  EXPECT_EQ(maps.file_at(reinterpret_cast<std::uintptr_t>(&local)), "");
}

TEST(MapTable, SurvivesLinesThatAreNone) {
  const MapTable maps("\n\nx\n-\n1-2\n7f00-7f80 r-xp 0 0 0 /a/b\n   \n9-8 r-xp 0 0 0 /backwards");
  EXPECT_EQ(maps.file_at(0x7f00), "/a/b");
  EXPECT_EQ(maps.file_at(0x9), "");
  EXPECT_EQ(MapTable("").file_at(0), "");
}

// --- images ---

template <std::size_t n, class T>
void put(std::array<std::byte, n>& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

std::uint64_t address_of(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data);
}

/// The header of a cubin that ptxas 12.8 made: 4488 bytes, section table, then program headers.
alignas(8) constexpr std::array<unsigned char, 64> kCubinHeader = {
    0x7f, 0x45, 0x4c, 0x46, 0x02, 0x01, 0x01, 0x33, 0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x02, 0x00, 0xbe, 0x00, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x70, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xb0, 0x0c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x5a, 0x0d, 0x34, 0x00, 0x40, 0x00, 0x38, 0x00, 0x05, 0x00, 0x40, 0x00, 0x0f, 0x00, 0x01, 0x00};

TEST(Image, OfACubinEndsWithItsTables) {
  const Image image = image_at(kCubinHeader.data());
  EXPECT_EQ(image.address, address_of(kCubinHeader.data()));
  EXPECT_EQ(image.bytes, 4488U);  // 0x1070 + 5 * 56
}

TEST(Image, OfAFatbinHasItsHeadersBytesToo) {
  alignas(8) std::array<std::byte, 16> fatbin = {};
  put(fatbin, 0, std::uint32_t{0xBA55ED50});
  put(fatbin, 4, std::uint16_t{1});
  put(fatbin, 6, std::uint16_t{16});
  put(fatbin, 8, std::uint64_t{1000});
  EXPECT_EQ(image_at(fatbin.data()).bytes, 1016U);

  alignas(8) std::array<std::byte, 24> wrapper = {};
  put(wrapper, 0, std::uint32_t{0x466243B1});
  put(wrapper, 4, std::uint32_t{1});
  put(wrapper, 8, static_cast<const void*>(fatbin.data()));
  const Image image = image_at(wrapper.data());
  EXPECT_EQ(image.address, address_of(fatbin.data()));
  EXPECT_EQ(image.bytes, 1016U);
}

TEST(Image, OfAnythingElseHasNoLength) {
  const char* ptx = ".version 7.0\n";
  EXPECT_EQ(image_at(ptx).address, address_of(ptx));
  EXPECT_EQ(image_at(ptx).bytes, 0U);
  EXPECT_EQ(image_at(nullptr).address, 0U);

  alignas(8) std::array<std::byte, 24> wrapper = {};  // of itself
  put(wrapper, 0, std::uint32_t{0x466243B1});
  put(wrapper, 8, static_cast<const void*>(wrapper.data()));
  EXPECT_EQ(image_at(wrapper.data()).address, address_of(wrapper.data()));
  EXPECT_EQ(image_at(wrapper.data()).bytes, 0U);
}

// --- origins ---

TEST(Installation, HoldsItsFoldersAndTheSystems) {
  const Installation installation({"/opt/site", "/tmp/env/lib/", "relative", "/", ""});
  for (const char* file : {"/opt/site/torch/lib/libtorch_cuda.so",
                           "/usr/lib/x86_64-linux-gnu/libffi.so.8",
                           "/lib64/libc.so.6",
                           "/tmp/env/lib/libcublas.so"}) {
    EXPECT_TRUE(installation.holds(file)) << file;
  }
  for (const char* file : {"",
                           "/opt/sitecustom/liba.so",
                           "/opt/site",
                           "/tmp/libcublas.so",
                           "/tmp/env/libcublas.so",
                           "/dev/shm/usr/lib/liba.so",
                           "/memfd:/usr/lib/liba.so",
                           "/proc/self/fd/3",
                           "/home/x/usr/lib/liba.so",
                           "usr/lib/liba.so",
                           "relative/liba.so"}) {
    EXPECT_FALSE(installation.holds(file)) << file;
  }
}

TEST(Driver, IsLookedBeyondWhereverItLies) {
  for (const char* file : {"/usr/lib/libcuda.so.580.159.04",
                           "/opt/site/nvidia/cu13/lib/libcupti.so.13",
                           "/opt/site/nvidia/cu13/lib/libcudart.so.13",
                           "/usr/lib/libnvidia-ptxjitcompiler.so.580.159.04"}) {
    EXPECT_TRUE(is_driver_file(file)) << file;
  }
  for (const char* file : {"", "/opt/site/libcublas.so.13", "/opt/site/libcudnn.so.9"}) {
    EXPECT_FALSE(is_driver_file(file)) << file;
  }
}

struct OriginCase {
  const char* what;
  LoadSite site;
  KernelOrigin origin;
};

TEST(Origin, FollowsPlaceThenCaller) {
  const Installation installation({"/opt/site"});
  const std::string torch_cuda = "/opt/site/torch/lib/libtorch_cuda.so";
  const std::string cublas = "/opt/site/nvidia/cu13/lib/libcublasLt.so.13";
  const std::string cudnn = "/opt/site/nvidia/cudnn/lib/libcudnn_graph.so.9";
  const std::string cufft = "/opt/site/nvidia/cu13/lib/libcufft.so.12";
  const std::string python = "/opt/site/torch/lib/libtorch_python.so";
  const std::string ffi = "/usr/lib/x86_64-linux-gnu/libffi.so.8";
  const std::string helper = "/tmp/triton/AB/cuda_utils.cpython-312-x86_64-linux-gnu.so";
  const OriginCase cases[] = {
      {"torch eager", {torch_cuda, false, torch_cuda}, KernelOrigin::torch},
      {"torch, found by ctypes", {torch_cuda, false, ffi}, KernelOrigin::torch},
      {"torch's NVRTC", {"", false, torch_cuda}, KernelOrigin::torch},
      {"cuBLASLt", {cublas, false, cublas}, KernelOrigin::library},
      {"cuBLASLt from the heap", {"", false, cublas}, KernelOrigin::library},
      {"cuDNN's stubs", {"", false, cudnn}, KernelOrigin::library},
      {"cuFFT", {cufft, false, cufft}, KernelOrigin::library},
      {"an extension of the installation",
       {"/opt/site/flash_attn.so", false, "/opt/site/flash_attn.so"},
       KernelOrigin::library},
      {"Triton", {"", false, helper}, KernelOrigin::candidate_triton},
      {"torch.compile", {"/tmp/triton/CD/k.cubin", true, python}, KernelOrigin::torch_compile},
      {"a file by name", {"/tmp/k.cubin", true, ffi}, KernelOrigin::candidate_cuda},
      {"another file by libtorch_python",
       {"/tmp/k.bin", true, python},
       KernelOrigin::candidate_cuda},
      {"a library's file by name", {"/opt/site/k.cubin", true, ffi}, KernelOrigin::library},
      {"ctypes", {"", false, ffi}, KernelOrigin::candidate_cuda},
      {"cuda.core",
       {"", false, "/opt/site/cuda/bindings/_bindings/cydriver.so"},
       KernelOrigin::candidate_cuda},
      {"load_inline",
       {"/tmp/ext/inline.so", false, "/tmp/ext/inline.so"},
       KernelOrigin::candidate_cuda},
      {"a fake of torch", {"", false, "/tmp/libtorch_cuda.so"}, KernelOrigin::candidate_cuda},
      {"a fake of cuBLAS",
       {"/tmp/libcublasLt.so.13", false, "/tmp/libcublasLt.so.13"},
       KernelOrigin::candidate_cuda},
      {"a memfd, by torch", {"/memfd:x", false, torch_cuda}, KernelOrigin::candidate_cuda},
      {"no frame", {"", false, ""}, KernelOrigin::candidate_cuda},
  };
  for (const OriginCase& c : cases) EXPECT_EQ(origin_of(c.site, installation), c.origin) << c.what;
}

}  // namespace
}  // namespace drk::guest
