#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz targets and runs each on its corpus.
#   fuzz.sh [SECONDS]         for so long each (default 300)
#   fuzz.sh --merge TARGET    adds to the corpus of http or wire what the last runs found and covers more
# Crashes and new inputs are left in build-fuzz/fuzz/TARGET/; the last line is the verdict.
set -euo pipefail
source "$(dirname "$0")/common.sh"

targets=(http wire)
build=$root/build-fuzz
found=$build/fuzz
corpus=$root/tests/fuzz/corpus
max_input_bytes=4096
max_kept_bytes=1024
max_new_files=75

build_targets() {
  cmake --preset fuzz -S "$root" >/dev/null
  cmake --build --preset fuzz -j "${JOBS:-$(nproc)}" >&2
}

# Options of libFuzzer that differ between the targets.
options_of() {
  # A server keeps what it allocates: the leak check at every input would find that again and again.
  [[ $1 != http ]] || printf '%s\n' -detect_leaks=0 -timeout=60
}

# What the server stores goes to memory where there is a file system in it.
make_scratch() {
  local parent=${TMPDIR:-/tmp}
  [[ ! -w /dev/shm ]] || parent=/dev/shm
  scratch=$(mktemp -d -p "$parent" drk_fuzz_XXXXXX)
  trap 'rm -rf "$scratch"' EXIT
}

run_target() {
  local target=$1 seconds=$2 log=$found/$1.log status=0 options
  mkdir -p "$found/$target/new" "$found/$target/crashes"
  mapfile -t options < <(options_of "$target")
  note "$target: $seconds s"
  (cd "$root" && TMPDIR=$scratch "$build/bin/${target}_fuzz" "$found/$target/new" "$corpus/$target" \
    -max_total_time="$seconds" -max_len="$max_input_bytes" -rss_limit_mb=3072 -print_final_stats=1 \
    -dict="$root/tests/fuzz/http.dict" -artifact_prefix="$found/$target/crashes/" \
    "${options[@]}") >"$log" 2>&1 || status=$?
  printf '%s: %s runs, %s/s, peak %s MB, %s\n' "$target" "$(stat_of "$log" number_of_executed_units)" \
    "$(stat_of "$log" average_exec_per_sec)" "$(stat_of "$log" peak_rss_mb)" \
    "$( ((status)) && echo "FAILED, see $log" || echo clean)"
  return "$status"
}

stat_of() {
  awk -v name="stat::$2:" '$1 == name { value = $2 } END { print value == "" ? "?" : value }' "$1"
}

# Small ones, for new code alone (how often it ran is no reason to keep a file), and of these the few
# that cover most: libFuzzer writes them in that order.
merge() {
  local target=$1 merged=$scratch/merged options kept
  mapfile -t options < <(options_of "$target")
  cp -r "$corpus/$target" "$merged"
  (cd "$root" && TMPDIR=$scratch "$build/bin/${target}_fuzz" -set_cover_merge=1 -use_counters=0 \
    -max_len="$max_kept_bytes" -artifact_prefix="$found/$target/crashes/" "${options[@]}" "$merged" "$found/$target/new") >"$found/$target.merge.log" 2>&1
  mapfile -t kept < <(cd "$merged" && ls -tr -- | grep -xE '[0-9a-f]{40}' | grep -vxF -f <(ls -- "$corpus/$target") |
    head -n "$max_new_files")
  ((${#kept[@]} == 0)) || (cd "$merged" && cp -- "${kept[@]}" "$corpus/$target/")
  note "$target: ${#kept[@]} new files in $corpus/$target"
}

main() {
  local target failed=0
  make_scratch
  if [[ ${1:-} == --merge ]]; then
    [[ -d $found/${2:?use: fuzz.sh --merge http|wire} ]] || die "run fuzz.sh first"
    merge "$2"
    return
  fi
  [[ ${1:-300} =~ ^[1-9][0-9]*$ ]] || die "use: fuzz.sh [SECONDS] or fuzz.sh --merge TARGET"
  build_targets
  for target in "${targets[@]}"; do
    run_target "$target" "${1:-300}" || failed=1
  done
  ((failed == 0)) && echo "fuzz: clean" || echo "fuzz: FAILED"
  return "$failed"
}

main "$@"
