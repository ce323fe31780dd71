# SPDX-License-Identifier: Apache-2.0
# Sourced by the other scripts: the repository's folder, the cache folder, messages.
# shellcheck shell=bash disable=SC2034

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${XDG_CACHE_HOME:-${HOME:?set HOME or XDG_CACHE_HOME}/.cache}/drkernel
program=$(basename "$0")

note() { printf '%s: %s\n' "$program" "$*" >&2; }
die() {
  note "$@"
  exit 1
}
