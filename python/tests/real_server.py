# SPDX-License-Identifier: Apache-2.0
"""The built server as a child process, to be killed and started again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
BINARY = Path(os.environ.get("DRK_BINARY") or REPOSITORY / "build" / "bin" / "drk")
PYTHON = os.environ.get("DRK_PYTHON") or sys.executable
START_LIMIT_S = 60.0
_LISTENING = re.compile(r"listening on (http://[\d.]+:(\d+))")


def why_not() -> str | None:
    """Why no server can be started here; None if one can."""
    if not BINARY.is_file():
        return f"no {BINARY}; build it, or set DRK_BINARY"
    asked = subprocess.run([BINARY, "serve", "--help"], capture_output=True, text=True, timeout=60)
    if asked.returncode != 0:
        return f"{BINARY} has no serve: {asked.stderr.strip()[:200]}"
    return None


class RealServer:
    """`drk serve` on a data folder and, after its first start, on one port."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder = folder
        self._options = options
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self.url = ""

    @property
    def log(self) -> str:
        return "".join(path.read_text() for path in sorted(self._folder.glob("stderr-*.txt")))

    def start(self) -> RealServer:
        self._starts += 1
        errors = self._folder / f"stderr-{self._starts}.txt"
        command: list[str | Path] = [BINARY, "serve", "--port", str(self._port), "--python", PYTHON]
        command += ["--data-dir", self._folder / "data", *self._options]
        with errors.open("wb") as stderr:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr
            )
        limit = time.monotonic() + START_LIMIT_S
        while (found := _LISTENING.search(errors.read_text())) is None:
            if self._process.poll() is not None or time.monotonic() > limit:
                self.kill()
                raise RuntimeError(f"the server did not start: {errors.read_text()}")
            time.sleep(0.02)
        self.url, self._port = found.group(1), int(found.group(2))
        return self

    def kill(self) -> None:
        """As a power cut: SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Politely; returns its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        try:
            return self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
