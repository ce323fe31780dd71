#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks a copied build-portable/ on a machine with a GPU, needing neither compiler nor network:
# drk doctor, the gpu tests, the server and its benchmark, and the cases in $DRK_CASES if set. Prints a table last.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$root"

build='build-portable'
drk=$build/bin/drk
table=() failures=0

step() {
  local name=$1 started=$SECONDS result=passed
  shift
  printf '\n== %s\n' "$name"
  "$@" || { result="failed ($?)" && failures=$((failures + 1)); }
  table+=("$(printf '%-12s %-12s %4d s' "$name" "$result" $((SECONDS - started)))")
}

[[ -x $drk ]] || die "$drk is not there; on a build machine: make build PRESET=portable"
scripts/setup_system.sh run
DRK_PYTHON=$(scripts/setup_python.sh)
export DRK_PYTHON

step doctor "$drk" doctor
step tests scripts/run_tests.sh --direct "$build" '*_gpu_test'
step server scripts/run_tests.sh --direct "$build" 'gym_test'
step bench "$DRK_PYTHON" bench/gym_bench.py "$build"
if [[ -n ${DRK_CASES:-} ]]; then
  step honest "$drk" bench "$DRK_CASES/honest"
  step hacks "$drk" bench "$DRK_CASES/hacks"
fi

printf '\n'
printf '%s\n' "${table[@]}"
exit $((failures > 0))
