#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks format, the types of the Python client with mypy, then C++ with clang-tidy over the compile
# commands of a build folder.
#   lint.sh BUILD_DIR
set -euo pipefail
source "$(dirname "$0")/common.sh"
(($# == 1)) || die "use: lint.sh BUILD_DIR"

status=0
"$root/scripts/format.sh" --check || status=1
python=${DRK_PYTHON:-$("$root/scripts/setup_python.sh")}
(cd "$root/python" && "$python" -m mypy --no-error-summary --cache-dir "$cache/mypy") || status=1
python3 "$root/scripts/tidy.py" --build-dir "$1" --cache-dir "$cache/tidy" || status=1
exit "$status"
