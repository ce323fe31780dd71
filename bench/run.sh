#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures drkernel's own speed and prints one table; says on what machine, when, and what is in it.
#   run.sh [BUILD_DIR]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
: "${DRK_PYTHON:=$(scripts/setup_python.sh)}"
export DRK_PYTHON

cores=$(nproc)
cpu=$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)
printf '%s\n' "$(date -u +%F), $cpu, $cores cores, $(uname -sr); bench/run.sh $build"
"$build/bin/worker_bench"

problem=problems/level1/gelu_tanh
for run in 1 2 3 4 5; do
  started=$(date +%s%N)
  "$build/bin/drk" eval --quiet "$problem/reference.py" "$problem/candidates/good.py" >/dev/null
  echo $((($(date +%s%N) - started) / 1000000))
done | sort -n | awk '{ v[NR] = $1 } END {
  printf "%-52s %9.1f %9.1f %9.1f  %4d\n", "cold drk eval of " problem " (ms)", v[int((NR + 1) / 2)], v[1], v[NR], NR
}' problem="$problem"

"$DRK_PYTHON" bench/gym_bench.py "$build"
