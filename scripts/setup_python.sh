#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the Python interpreter that guests run in (stdout, one line); makes its environment if need be.
# In this order:
#   1. $DRK_PYTHON
#   2. an environment made earlier from the same lock file
#   3. the python3 on PATH, if it has the lock's torch and triton, and some NumPy
#   4. a new environment, from python/requirements.lock
# Safe to call from several processes at once.
set -euo pipefail
source "$(dirname "$0")/common.sh"

lock=$root/python/requirements.lock
env_dir=$cache/env-$(sha256sum "$lock" | cut -c1-16)
env_python=$env_dir/bin/python
base_python=/usr/bin/python3

is_complete() { [[ -e $env_dir/.complete && -x $env_python ]]; }

# Prints the interpreter behind python3 if it will do. Reads metadata only: importing torch takes seconds.
adoptable_python() {
  command -v python3 >/dev/null && python3 - "$lock" <<'EOF'
import re
import sys
from importlib.metadata import PackageNotFoundError, version

locked = dict(re.findall(r"^([\w-]+)==([\w.]+)", open(sys.argv[1]).read(), re.MULTILINE))
try:
    found = {name: version(name) for name in ("torch", "triton", "numpy")}
except PackageNotFoundError:
    sys.exit(1)
if sys.version_info < (3, 11) or any(
    found[name].partition("+")[0] != locked[name] for name in ("torch", "triton")
):
    sys.exit(1)
if found["numpy"] != locked["numpy"]:
    print(
        f"setup_python.sh: using {sys.executable} with NumPy {found['numpy']}, not {locked['numpy']}:"
        " Triton's interpreter (runs without a GPU) may not work",
        file=sys.stderr,
    )
print(sys.executable)
EOF
}

make_environment() {
  mkdir -p "$cache"
  # Held until this script ends. The environment is made in place, since scripts in it name its path.
  exec 9>"$env_dir.lock"
  flock --nonblock 9 || {
    note "waiting for another set-up of $env_dir"
    flock 9
  }
  is_complete && return

  "$base_python" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    die "$base_python must be 3.11 or newer and have venv; run scripts/setup_system.sh," \
      "or set DRK_PYTHON to an interpreter with the packages of python/requirements.lock"
  note "making $env_dir (about 5 GB; once per lock file)"
  rm -rf "$env_dir"
  "$base_python" -m venv "$env_dir" >&2
  "$env_python" -m pip install --disable-pip-version-check --no-input --only-binary :all: \
    --require-hashes --no-deps -r "$lock" >&2
  "$env_python" -m pip check --disable-pip-version-check >&2
  "$env_python" -c 'import numpy, torch, triton' >&2
  touch "$env_dir/.complete"
}

main() {
  local python
  if [[ -n ${DRK_PYTHON:-} ]]; then
    python=$(command -v "$DRK_PYTHON") || die "DRK_PYTHON=$DRK_PYTHON is not a program"
    realpath --no-symlinks "$python" # a virtual environment's python is a link: keep it
  elif is_complete; then
    echo "$env_python"
  elif python=$(adoptable_python); then
    echo "$python"
  else
    make_environment
    echo "$env_python"
  fi
}

main
