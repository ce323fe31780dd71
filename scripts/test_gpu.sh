#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests labelled gpu: from a build made here, or, where none can be made, from a finished
# build-portable/ that was copied here.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$root"

# Only that configuring fails leads to the copied build: a build that fails is a failure.
can_configure() {
  scripts/setup_system.sh build && cmake --preset dev >/dev/null
}

if ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
  echo "skipped: no GPU here (no /dev/nvidia*)"
elif can_configure; then
  make build
  scripts/run_tests.sh build -j1 -L gpu
elif [[ -x build-portable/bin/drk ]]; then
  note "cannot build here; running the tests of build-portable/"
  scripts/run_tests.sh --direct build-portable '*_gpu_test'
else
  die "cannot build here, and there is no build-portable/bin/drk"
fi
