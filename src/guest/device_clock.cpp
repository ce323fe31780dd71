// SPDX-License-Identifier: Apache-2.0
#include "guest/device_clock.h"

#include "drk/base/error.h"

namespace drk::guest {

namespace {

constexpr int kMostLate = 3;
/// The event of all streams is reached some microseconds behind another in any case.
constexpr double kBehindUs = 10;

}  // namespace

DeviceClock::DeviceClock(const CudaDriver& driver)
    : driver_(driver),
      flush_bytes_(2 * driver.l2_bytes()),
      opening_(driver.make_event()),
      closing_(driver.make_event()),
      idle_(driver.make_event()) {
  try {
    gate_.emplace(driver);
  } catch (const Error&) {  // times then have the host's gaps in them, as they say
  }
}

bool DeviceClock::is_gating() const noexcept {
  return gate_ && late_ < kMostLate;
}

void DeviceClock::empty_l2(CudaDriver::Address flush) {
  // A window of lines that persist would outlast the flush.
  driver_.reset_persisting_l2();
  driver_.fill_later(flush, 0, flush_bytes_);
}

void DeviceClock::start(bool gated) {
  is_gated_ = gated && is_gating();
  if (is_gated_) gate_->close();
  driver_.record(opening_);
}

DeviceTime DeviceClock::stop(bool has_other_streams) {
  driver_.record(closing_);
  const bool has_idle = driver_.record_all(idle_);
  if (is_gated_) gate_->open();
  driver_.check_synchronize();
  DeviceTime time;
  if (is_gated_) {
    time.gated = gate_->has_held();
    late_ = time.gated ? 0 : late_ + 1;
  }
  time.us = driver_.elapsed_us(opening_, closing_);
  if (!has_idle) return time;
  const double behind_us = driver_.elapsed_us(closing_, idle_);
  if (has_other_streams || behind_us > kBehindUs) {
    time.behind_us = behind_us;
    time.us += behind_us;
  }
  return time;
}

}  // namespace drk::guest
