#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints a build folder to run from (stdout, one line): built now or, where nothing can be built, a
# finished build-portable/ that was copied here.
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$root"

# Only that configuring fails leads to the copied build: a build that fails is a failure.
can_configure() {
  scripts/setup_system.sh build >&2 && DRK_PYTHON=$(scripts/setup_python.sh) cmake --preset dev >/dev/null
}

if can_configure; then
  make build >&2
  echo build
elif [[ -x build-portable/bin/drk ]]; then
  note "cannot build here; using build-portable/"
  scripts/setup_system.sh run >&2
  echo build-portable
else
  die "cannot build here, and there is no build-portable/bin/drk"
fi
