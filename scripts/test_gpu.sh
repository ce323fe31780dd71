#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests labelled gpu, from whatever build can be had here.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$root"

if ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
  echo "skipped: no GPU here (no /dev/nvidia*)"
  exit
fi
build=$(scripts/usable_build.sh)
scripts/run_tests.sh --direct "$build" '*_gpu_test'
