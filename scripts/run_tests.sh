#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of a build folder and sums them up; the last line is `N passed, N failed, N skipped`.
#   run_tests.sh BUILD_DIR [ctest arguments]   by ctest; without arguments also Python's tests;
#                                              tests labelled gpu only if an argument speaks of gpu
#   run_tests.sh --direct BUILD_DIR PATTERN    BUILD_DIR/bin/PATTERN one by one: needs no CMake, and
#                                              works in a build folder that was copied from elsewhere
set -euo pipefail
source "$(dirname "$0")/common.sh"

binary_timeout_s=600

run_ctest() {
  local unasked=(-LE '^gpu$') status=0
  [[ $* == *gpu* ]] && unasked=()
  # The output of passed tests is kept in full, since it says why a test was skipped.
  ctest --test-dir "$build" -j2 --output-on-failure --no-tests=error --timeout "$binary_timeout_s" \
    --test-output-size-passed 10000000 --test-output-size-failed 10000000 \
    --output-junit "$results/ctest.xml" "${unasked[@]}" "$@" |
    tee "$results/ctest.log" || status=$?
  echo "$status" >"$results/ctest.rc"
}

run_pytest() {
  local status=0
  DRK_BINARY=$build/bin/drk PYTHONPATH=$root/python "$DRK_PYTHON" -m pytest -q "$root/python/tests" \
    --junitxml="$results/pytest.xml" || status=$?
  echo "$status" >"$results/pytest.rc"
}

run_direct() {
  local binary name status
  mkdir "$results/direct"
  for binary in "$build/bin"/$1; do # $1 is a pattern
    [[ -x $binary ]] || die "no test program matches $build/bin/$1"
    name=$(basename "$binary") status=0
    timeout --kill-after=10 "$binary_timeout_s" "$binary" 2>&1 | tee "$results/direct/$name.log" ||
      status=$?
    echo "$status" >"$results/direct/$name.rc"
  done
}

main() {
  local direct=false
  [[ ${1:-} != --direct ]] || { direct=true && shift; }
  [[ -d ${1:-} ]] || die "no build folder '${1:-}'; use: run_tests.sh [--direct] BUILD_DIR ..."
  build=$(cd "$1" && pwd)
  shift
  results=$build/test-results
  DRK_PYTHON=${DRK_PYTHON:-$("$root/scripts/setup_python.sh")}
  rm -rf "$results"
  mkdir -p "$results/gtest"
  # Every test program leaves its counts in gtest/<its name>.json.
  export DRK_PYTHON GTEST_OUTPUT=json:$results/gtest/ GTEST_COLOR=no

  cd "$root" # where tests expect to run
  if $direct; then
    run_direct "$@"
  else
    run_ctest "$@"
    if (($# == 0)) && [[ -d $root/python/tests ]]; then
      run_pytest
    fi
  fi
  "$DRK_PYTHON" "$root/scripts/summarize_tests.py" "$results"
}

main "$@"
