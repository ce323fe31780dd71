// SPDX-License-Identifier: Apache-2.0
// Which devices there are.
#include "drk/base/child.h"
#include "drk/base/error.h"
#include "drk/base/json.h"
#include "drk/gpu.h"

#include "gpu/nvml.h"

#include <fmt/format.h>

namespace drk::gpu {

namespace {

/// The border of each step: what fails is kept as the reason.
template <class Step>
void keep_problem(Listing& listing, const std::string& of, const Step& step) {
  try {
    step();
  } catch (const Error& error) {
    if (!listing.problem.empty()) listing.problem += "; ";
    listing.problem += of + error.what();
  }
}

void read_devices(const std::string& library, Listing& listing) {
  const Nvml nvml(library);
  listing.driver = nvml.driver();
  const unsigned count = nvml.count();
  for (unsigned i = 0; i < count; ++i) {
    keep_problem(listing, fmt::format("GPU {}: ", i), [&] {
      listing.devices.push_back(nvml.describe(nvml.by_index(i)));
    });
  }
  if (count == 0) listing.problem = "the driver shows no GPU";
}

std::string list_here(const std::string& library) {
  Listing listing;
  keep_problem(listing, "", [&] { read_devices(library, listing); });
  return json::dump(json::to_json(listing));
}

}  // namespace

Listing list_devices(const std::string& library) {
  constexpr std::chrono::seconds kLimit{20};
  Listing listing;
  keep_problem(listing, "", [&] {
    const std::string answer = run_in_child([&] { return list_here(library); }, kLimit);
    listing = json::from_json<Listing>(json::parse(answer), "listing");
  });
  return listing;
}

}  // namespace drk::gpu
