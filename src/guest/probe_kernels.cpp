// SPDX-License-Identifier: Apache-2.0
// PTX, its loading, its launching.
#include "guest/probe_kernels.h"

#include "drk/base/error.h"

#include <fmt/format.h>

#include <array>

namespace drk::guest {

namespace {

constexpr const char* kPtx = R"(.version 7.0
.target sm_52
.address_size 64
.visible .entry drk_empty() {
  ret;
}
.visible .entry drk_write(.param .u64 target, .param .u32 value) {
  .reg .b64 %rd<3>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [target];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r1;
  ret;
}
)";

// CUfunction_attribute
constexpr int kMaxDynamicSharedBytes = 8;
constexpr int kNonPortableClusterAllowed = 14;
// The most a block can be given on any device so far (Hopper; others refuse, and keep 48 KiB).
constexpr int kMostSharedBytes = 227 * 1024;

void require(const char* function, int status) {
  if (status == 0) return;
  throw Error(ErrorCode::unavailable,
              fmt::format("guest: the driver's {} answered {}", function, status));
}

/// Four bytes on the device.
class Word {
 public:
  explicit Word(const cupti::Driver& driver) : driver_(driver) {
    require("cuMemAlloc", driver_.mem_alloc(&address, sizeof(std::uint32_t)));
  }
  Word(const Word&) = delete;
  Word& operator=(const Word&) = delete;
  ~Word() { (void)driver_.mem_free(address); }

  cupti::Address address = 0;

 private:
  const cupti::Driver& driver_;
};

}  // namespace

ProbeKernels::ProbeKernels(const cupti::Driver& driver) : driver_(driver) {
  require("cuModuleLoadData", driver_.module_load_data(&module_, kPtx));
  require("cuModuleGetFunction", driver_.module_get_function(&empty_, module_, "drk_empty"));
  require("cuModuleGetFunction", driver_.module_get_function(&write_, module_, "drk_write"));
  // Where a device refuses, no kernel has that much either.
  for (const int bytes : {kMostSharedBytes, 163 * 1024, 99 * 1024, 64 * 1024}) {
    if (driver_.func_set_attribute(empty_, kMaxDynamicSharedBytes, bytes) == 0) break;
  }
  (void)driver_.func_set_attribute(empty_, kNonPortableClusterAllowed, 1);
}

void ProbeKernels::launch_empty() const {
  require("cuLaunchKernel",
          driver_.launch_kernel(empty_, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  require("cuCtxSynchronize", driver_.ctx_synchronize());
}

std::uint32_t ProbeKernels::write(By by, std::uint32_t value) const {
  Word word(driver_);
  require("cuMemsetD32", driver_.memset_d32(word.address, 0, 1));
  std::array<void*, 2> parameters = {&word.address, &value};
  if (by == By::launch_kernel) {
    require(
        "cuLaunchKernel",
        driver_.launch_kernel(write_, 2, 1, 1, 32, 1, 1, 0, nullptr, parameters.data(), nullptr));
  } else {
    cupti::LaunchConfig config = {};
    config.grid = {2, 1, 1};
    config.block = {32, 1, 1};
    require("cuLaunchKernelEx",
            driver_.launch_kernel_ex(&config, write_, parameters.data(), nullptr));
  }
  require("cuCtxSynchronize", driver_.ctx_synchronize());
  std::uint32_t found = 0;
  require("cuMemcpyDtoH", driver_.memcpy_to_host(&found, word.address, sizeof found));
  return found;
}

}  // namespace drk::guest
