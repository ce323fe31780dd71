# SPDX-License-Identifier: Apache-2.0
"""The package as it is built and typed."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import drkernel

PYTHON_ROOT = Path(__file__).parents[1]
REPOSITORY = PYTHON_ROOT.parent


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_version_is_that_of_the_project() -> None:
    cmake = (REPOSITORY / "CMakeLists.txt").read_text()
    found = re.search(r"^project\(drkernel VERSION ([\d.]+)", cmake, re.MULTILINE)
    assert found is not None and found.group(1) == drkernel.__version__


def test_the_types_are_sound(tmp_path: Path) -> None:
    run(sys.executable, "-m", "mypy", "--cache-dir", tmp_path, cwd=PYTHON_ROOT)


def test_all_that_is_offered_is_there() -> None:
    assert len(set(drkernel.__all__)) == len(drkernel.__all__)
    assert all(hasattr(drkernel, name) for name in drkernel.__all__)


def test_the_wheel_holds_the_client_and_nothing_else_and_works(tmp_path: Path) -> None:
    build = (sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", tmp_path)
    run(*build, cwd=PYTHON_ROOT)
    (wheel,) = tmp_path.glob("drkernel-*.whl")
    assert wheel.name == f"drkernel-{drkernel.__version__}-py3-none-any.whl"
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    sources = {path.name for path in (PYTHON_ROOT / "drkernel").glob("*.py")}
    assert names == {f"drkernel/{name}" for name in (*sources, "py.typed")}

    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv, cwd=tmp_path)
    venv_python = venv / "bin" / "python"
    install = ("--python", venv_python, "install", "--no-index", "--no-deps", "--quiet")
    run(sys.executable, "-m", "pip", "--disable-pip-version-check", *install, wheel, cwd=tmp_path)
    # httpx and what it needs come from the environment of this test.
    site = run(venv_python, "-c", "import site; print(site.getsitepackages()[0])", cwd=tmp_path)
    (Path(site.strip()) / "outer.pth").write_text(sysconfig.get_path("purelib") + "\n")
    program = (
        "import drkernel, drkernel.kernelgym; from importlib.metadata import version;"
        "print(drkernel.__file__, version('drkernel'))"
    )
    told = run(venv_python, "-I", "-c", program, cwd=tmp_path).split()
    assert told[0].startswith(str(venv)) and told[1] == drkernel.__version__


def test_all_that_it_needs_is_locked() -> None:
    lock = (PYTHON_ROOT / "requirements.lock").read_text()
    locked = dict(re.findall(r"^([\w-]+)==([\w.]+)", lock, re.MULTILINE))
    assert locked["httpx"] == importlib.metadata.version("httpx")
