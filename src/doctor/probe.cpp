// SPDX-License-Identifier: Apache-2.0
// All probes, in their order: the one that forks comes before the trial, which starts threads.
#include "doctor/probe.h"

namespace drk::doctor {

Facts probe(const Options& options) {
  constexpr std::uint16_t kPort = 10907;
  Facts facts;
  facts.kernel = probe_kernel();
  facts.processor = probe_processor();
  facts.memory = probe_memory();
  facts.cache = probe_disk(options.cache_dir);
  facts.temporary = probe_disk("/tmp");
  facts.shared_memory = probe_disk("/dev/shm");
  facts.port = probe_port(kPort);
  facts.python = probe_python(options);
  facts.graphics = probe_graphics(facts.python.package_dirs);
  facts.trial = probe_trial(options);
  return facts;
}

}  // namespace drk::doctor
