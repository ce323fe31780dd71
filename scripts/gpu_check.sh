#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks a copied build-portable/ on a machine with a GPU, needing neither compiler nor network.
#   gpu_check.sh [STEP...]   doctor, demo, honest, hacks, tests, bench (default: all, in this order)
# honest and hacks judge the cases in $DRK_CASES too, if set. A table of the steps comes last.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$root"

build='build-portable'
drk=$build/bin/drk
bench_evaluations=${DRK_BENCH_EVALUATIONS:-200} # that must leave nothing behind
table=() failures=0

step() {
  local name=$1 started=$SECONDS result=passed
  shift
  printf '\n== %s\n' "$name"
  "$@" || { result="failed ($?)" && failures=$((failures + 1)); }
  table+=("$(printf '%-12s %-12s %4d s' "$name" "$result" $((SECONDS - started)))")
}

judge_honest() {
  [[ -n ${DRK_CASES:-} ]] || { echo 'skipped: DRK_CASES is not set' && return; }
  "$drk" bench "$DRK_CASES/honest"
}

judge_hacks() {
  "$drk" hacks --timeout 15 tests/redteam ${DRK_CASES:+"$DRK_CASES/hacks"} # some of them never end
}

run_step() {
  case $1 in
    doctor) step doctor "$drk" doctor ;;
    demo) step demo make demo ;;
    honest | hacks) step "$1" "judge_$1" ;;
    tests) step tests scripts/run_tests.sh --direct "$build" '*_gpu_test' ;;
    bench) step bench "$DRK_PYTHON" -u bench/gpu_bench.py "$build" "$bench_evaluations" ;;
    *) die "unknown step $1" ;;
  esac
}

[[ -x $drk ]] || die "$drk is not there; on a build machine: make build PRESET=portable"
scripts/setup_system.sh run
DRK_PYTHON=$(scripts/setup_python.sh)
export DRK_PYTHON
(($#)) || set -- doctor demo honest hacks tests bench
for name in "$@"; do run_step "$name"; done

printf '\n'
printf '%s\n' "${table[@]}"
exit $((failures > 0))
