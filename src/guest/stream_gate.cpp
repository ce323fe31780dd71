// SPDX-License-Identifier: Apache-2.0
#include "guest/stream_gate.h"

#include <array>

namespace drk::guest {

namespace {

constexpr std::uint64_t kLimitNs = 5'000'000;

constexpr const char* kPtx = R"(.version 7.0
.target sm_52
.address_size 64
.visible .entry drk_gate(.param .u64 words, .param .u32 number, .param .u64 limit_ns) {
  .reg .b64 %rd<6>;
  .reg .b32 %r<3>;
  .reg .pred %p<3>;
  ld.param.u64 %rd1, [words];
  ld.param.u32 %r1, [number];
  ld.param.u64 %rd2, [limit_ns];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u64 %rd3, %globaltimer;
again:
  ld.volatile.global.u32 %r2, [%rd1];
  setp.eq.u32 %p1, %r2, %r1;
  @%p1 bra done;
  mov.u64 %rd4, %globaltimer;
  sub.u64 %rd5, %rd4, %rd3;
  setp.lt.u64 %p2, %rd5, %rd2;
  @%p2 bra again;
  st.volatile.global.u32 [%rd1+4], %r1;
done:
  ret;
}
)";

}  // namespace

StreamGate::StreamGate(const CudaDriver& driver)
    : driver_(driver), kernel_(driver.load_function(kPtx, "drk_gate")) {
  const CudaDriver::HostMemory memory = driver.allocate_host(sizeof(Words));
  words_ = new (memory.data) Words;
  device_words_ = memory.address;
}

void StreamGate::close() {
  ++number_;
  std::uint64_t limit_ns = kLimitNs;
  std::array<void*, 3> parameters = {&device_words_, &number_, &limit_ns};
  driver_.launch_one_thread(kernel_, parameters.data());
}

void StreamGate::open() noexcept {
  words_->opened = number_;
}

bool StreamGate::has_held() const noexcept {
  return words_->late != number_;
}

}  // namespace drk::guest
