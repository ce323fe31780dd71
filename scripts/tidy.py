#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over every source file of the project, skipping files that were clean before.

A file is clean until its content, that of a project header it reaches, its compile command, a
.clang-tidy file above it or clang-tidy itself changes. Each clean state is an empty file in the cache
folder, named by the hash of all these. (run-clang-tidy tells only whether all files together were clean.)
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE_FOLDERS = ("apps", "bench", "src")
CLANG_TIDY = "clang-tidy-14"
FILE_TIMEOUT_S = 600
CACHE_KEEP_S = 60 * 24 * 3600
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)

log = logging.getLogger("tidy")


@dataclass(frozen=True)
class Unit:
    """One source file and how it is compiled."""

    source: Path
    arguments: tuple[str, ...]
    directory: Path

    @property
    def name(self) -> str:
        return str(self.source.relative_to(ROOT))

    def include_folders(self) -> Iterator[Path]:
        for index, argument in enumerate(self.arguments):
            for flag in ("-isystem", "-iquote", "-I"):
                if argument == flag:
                    yield (self.directory / self.arguments[index + 1]).resolve()
                elif argument.startswith(flag):
                    yield (self.directory / argument.removeprefix(flag)).resolve()


@dataclass(frozen=True)
class Report:
    """What became of one file: `problem` is empty if it is clean."""

    unit: Unit
    problem: str
    elapsed_s: float


def load_units(build_dir: Path) -> list[Unit]:
    """The project's own sources, one unit a file; generated sources are left out."""
    units: dict[Path, Unit] = {}
    for entry in json.loads((build_dir / "compile_commands.json").read_text()):
        directory = Path(entry["directory"])
        source = (directory / entry["file"]).resolve()
        if source.is_relative_to(ROOT) and source.relative_to(ROOT).parts[0] in SOURCE_FOLDERS:
            arguments = tuple(entry.get("arguments") or shlex.split(entry["command"]))
            units.setdefault(source, Unit(source, arguments, directory))
    return sorted(units.values(), key=lambda unit: unit.name)


def project_files(unit: Unit) -> set[Path]:
    """The source and every project header it may include, whatever the preprocessor would skip."""
    folders = [folder for folder in unit.include_folders() if folder.is_relative_to(ROOT)]
    found: set[Path] = set()
    pending = [unit.source]
    while pending:
        path = pending.pop()
        if path in found:
            continue
        found.add(path)
        for name in INCLUDE.findall(path.read_text(errors="replace")):
            candidates = ((folder / name).resolve() for folder in [path.parent, *folders])
            pending += [header for header in candidates if header.is_file()]
    return found


def state_key(unit: Unit, tool_version: str) -> str:
    """The hash of all that decides what clang-tidy says; the same in every checkout."""
    configs = [
        folder / ".clang-tidy" for folder in unit.source.parents if folder.is_relative_to(ROOT)
    ]
    files = project_files(unit) | {config for config in configs if config.is_file()}
    command = " ".join(unit.arguments).replace(str(ROOT), "")
    digest = hashlib.sha256(f"{tool_version}\0{command}\0{unit.name}\0".encode())
    for path in sorted(files):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(ROOT)}\0{content}\0".encode())
    return digest.hexdigest()


def check(unit: Unit, build_dir: Path, clean_mark: Path, deadline: float) -> Report:
    started = time.monotonic()
    if started > deadline:
        return Report(
            unit, "not checked: the time budget is spent; run again, clean files are kept", 0
        )
    command = [CLANG_TIDY, "--quiet", "-p", str(build_dir)]
    # The commands are GCC's, and clang does not know all of its warnings.
    command += ["--extra-arg=-Wno-unknown-warning-option", str(unit.source)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=FILE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return Report(unit, f"clang-tidy took more than {FILE_TIMEOUT_S} s", FILE_TIMEOUT_S)
    elapsed_s = time.monotonic() - started
    if run.returncode == 0:
        clean_mark.touch()
        return Report(unit, "", elapsed_s)
    return Report(unit, run.stdout.strip() or run.stderr.strip(), elapsed_s)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", type=Path, required=True)
    parser.add_argument("--cache-dir", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--budget-s", type=int, default=1500, help="start no file after this time")
    return parser.parse_args()


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stderr)
    options = parse_arguments()
    units = load_units(options.build_dir)
    if not units:
        log.error("no source file in %s", options.build_dir / "compile_commands.json")
        return 1
    tool_version = subprocess.run(
        [CLANG_TIDY, "--version"], capture_output=True, text=True, check=True
    ).stdout

    options.cache_dir.mkdir(parents=True, exist_ok=True)
    pending: list[tuple[Unit, Path]] = []
    for unit in units:
        clean_mark = options.cache_dir / state_key(unit, tool_version)
        if clean_mark.exists():
            clean_mark.touch()
        else:
            pending.append((unit, clean_mark))
    log.info("%d files, %d to check", len(units), len(pending))

    deadline = time.monotonic() + options.budget_s
    dirty = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for report in pool.map(lambda p: check(p[0], options.build_dir, p[1], deadline), pending):
            log.info(
                "%s: %s (%.1f s)", report.unit.name, report.problem or "clean", report.elapsed_s
            )
            dirty += bool(report.problem)

    for mark in options.cache_dir.iterdir():
        if mark.stat().st_mtime < time.time() - CACHE_KEEP_S:
            mark.unlink(missing_ok=True)
    return 1 if dirty else 0


if __name__ == "__main__":
    sys.exit(main())
