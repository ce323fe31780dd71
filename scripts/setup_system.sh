#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what drkernel needs from Debian 12; does nothing when all of it is there.
#   setup_system.sh build   compilers, libraries, tools (default)
#   setup_system.sh run     what a finished build and its Python guests need
# Elsewhere it installs nothing and only checks that the programs it would call are there.
set -euo pipefail
source "$(dirname "$0")/common.sh"

# Triton compiles a small launcher against Python.h when it first meets a GPU: hence gcc and the headers.
run_packages=(ca-certificates gcc libc6-dev python3-venv python3.11-dev)
build_packages=(
  "${run_packages[@]}" g++ make cmake ninja-build ccache git xz-utils
  clang-14 libclang-rt-14-dev clang-tidy-14 clang-format-14
  libboost1.81-dev libseccomp-dev libfmt-dev libcli11-dev
  libssl-dev libsqlite3-dev libspdlog-dev libgtest-dev libgmock-dev wrk
)
run_programs=(python3 flock sha256sum)
build_programs=("${run_programs[@]}" g++ make cmake ninja)

missing_packages() {
  comm -23 <(printf '%s\n' "$@" | sort -u) \
    <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null |
      awk '$2 == "installed" { print $1 }' | sort -u)
}

missing_programs() {
  local name
  for name in "$@"; do
    command -v "$name" >/dev/null || printf '%s\n' "$name"
  done
}

is_debian_12() {
  [[ -r /etc/os-release ]] && (source /etc/os-release && [[ ${ID:-} == debian && ${VERSION_ID:-} == 12 ]])
}

apt_install() {
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || return 1
    as_root=(sudo)
  fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
  # A mirror that fails to refresh matters only if the installation then fails.
  "${apt[@]}" update >&2 || true
  "${apt[@]}" install -y --no-install-recommends "$@" >&2
}

main() {
  local mode=${1:-build} packages programs missing=() absent=()
  case $mode in
    build) packages=("${build_packages[@]}") programs=("${build_programs[@]}") ;;
    run) packages=("${run_packages[@]}") programs=("${run_programs[@]}") ;;
    *) die "unknown mode '$mode'; use: setup_system.sh [build|run]" ;;
  esac

  if is_debian_12; then
    mapfile -t missing < <(missing_packages "${packages[@]}")
    ((${#missing[@]})) || return 0
    note "installing ${missing[*]}"
    apt_install "${missing[@]}" && return 0
    [[ $mode == run ]] || die "could not install; run as root: apt-get update && apt-get install" \
      "-y --no-install-recommends ${missing[*]}"
    note "could not install ${missing[*]}; going on with the programs that are there"
  fi

  mapfile -t absent < <(missing_programs "${programs[@]}")
  ((${#absent[@]} == 0)) ||
    die "not found: ${absent[*]}; install them, or use Debian 12, where this script does it"
}

main "$@"
