#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formats C++ and Python in place; with --check changes nothing and fails where it would.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$root"

folders() {
  local folder
  for folder in "$@"; do
    [[ ! -d $folder ]] || printf '%s\n' "$folder"
  done
}

main() {
  local clang=(-i) black=() status=0 cpp_folders python_folders files
  case ${1:-} in
    "") ;;
    --check) clang=(--dry-run --Werror --ferror-limit=1) black=(--check) ;;
    *) die "unknown argument '$1'; use: format.sh [--check]" ;;
  esac
  local python=${DRK_PYTHON:-$(scripts/setup_python.sh)}

  mapfile -t cpp_folders < <(folders apps bench include src tests)
  mapfile -d '' -t files < <(find "${cpp_folders[@]}" -type f \
    \( -name '*.h' -o -name '*.cpp' -o -name '*.cuh' -o -name '*.cu' \) -print0)
  if ((${#files[@]})); then
    clang-format-14 "${clang[@]}" "${files[@]}" || status=1
  fi

  mapfile -t python_folders < <(folders python problems scripts bench)
  # A candidate that must not parse cannot be formatted.
  "$python" -m black --quiet --line-length 100 --target-version py311 "${black[@]}" \
    --extend-exclude '/syntax_error\.py$' "${python_folders[@]}" || {
    note "Python is not as black writes it, or black failed; run: make format"
    status=1
  }
  return "$status"
}

main "$@"
