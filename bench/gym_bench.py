# SPDX-License-Identifier: Apache-2.0
"""Measures the server: requests, durable submissions, memory, restart, added latency, batches.

    gym_bench.py BUILD_DIR     needs DRK_PYTHON; wrk for requests and submissions

Every figure is a median of several runs, with the smallest and the largest beside it.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WRK_S = 8
TASKS_QUEUED = 10_000
TASKS_STORED = 100_000

REFERENCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(64, 33)]

def get_init_inputs():
    return []
"""

CANDIDATE = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(y_ptr + offs, tl.maximum(tl.load(x_ptr + offs, mask=mask), 0.0), mask=mask)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
"""


class Server:
    """A server of its own, in a folder of its own."""

    def __init__(self, drk: Path, data_dir: Path, *options: str) -> None:
        self._log = open(data_dir.parent / "stderr", "w+", encoding="utf-8")
        log_file = str(data_dir.parent / "log")
        command = [str(drk), "serve", "--port", "0", "--data-dir", str(data_dir)]
        begin = time.perf_counter()
        self.process = subprocess.Popen(
            [*command, "--log-file", log_file, "--max-pending", "1000000", *options],
            stderr=self._log,
        )
        self.url = self._wait_for_url()
        self.start_s = time.perf_counter() - begin
        self.host, port = self.url.removeprefix("http://").split(":")
        self.connection = http.client.HTTPConnection(self.host, int(port), timeout=600)

    def _wait_for_url(self) -> str:
        while self.process.poll() is None:
            found = re.search(r"listening on (\S+)", Path(self._log.name).read_text())
            if found:
                return found.group(1)
            time.sleep(0.002)
        raise SystemExit("drk serve ended: " + Path(self._log.name).read_text())

    def ask(self, method: str, target: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        text = None if body is None else json.dumps(body)
        self.connection.request(method, target, text)
        answer = self.connection.getresponse()
        content = json.loads(answer.read())
        if answer.status >= 400:
            raise SystemExit(f"{method} {target}: {answer.status} {content}")
        return dict(content)

    def wait_until_healthy(self) -> None:
        while self.ask("GET", "/health")["status"] != "healthy":
            time.sleep(0.05)

    def stop(self) -> None:
        self.connection.close()
        self.process.terminate()
        self.process.wait(60)
        self._log.close()


def row(name: str, unit: str, values: list[float], goal: str) -> None:
    low, middle, high = min(values), statistics.median(values), max(values)
    print(f"{name:<58} {middle:>9.1f} {low:>9.1f} {high:>9.1f} {len(values):>4}  {unit:<6} {goal}")
    sys.stdout.flush()


def wrk(url: str, *arguments: str) -> tuple[float, float]:
    """Requests a second, and the 99th percentile of the latency in ms."""
    command = ["wrk", "-t1", "-c64", f"-d{WRK_S}s", "--latency", *arguments]
    output = subprocess.run([*command], check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in output:
        raise SystemExit(output)
    rate = float(re.findall(r"Requests/sec:\s+([\d.]+)", output)[0])
    value, unit = re.findall(r"99%\s+([\d.]+)(us|ms|s)", output)[0]
    return rate, float(value) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit]


def small_task(task_id: str) -> dict[str, Any]:
    return {
        "task_id": task_id,
        "reference_code": "class Model: pass",
        "kernel_code": f"class ModelNew: pass  # {task_id} " + "x" * 6000,
    }


def relu_task(task_id: str, prompt: str) -> dict[str, Any]:
    return {
        "task_id": task_id,
        "reference_code": f"{REFERENCE}# {prompt}\n",
        "kernel_code": f"{CANDIDATE}# {task_id}\n",
        "num_correct_trials": 5,
        "num_perf_trials": 25,
    }


def bench_requests(drk: Path, folder: Path) -> None:
    if shutil.which("wrk") is None:
        print("requests and submissions: skipped, no wrk; scripts/setup_system.sh installs it")
        return
    server = Server(drk, folder / "data", "--jobs", "0")
    server.ask("POST", "/evaluate?async=1", small_task("t1"))
    status = [wrk(server.url, server.url + "/status/t1") for _ in range(5)]
    row("GET /status, 64 connections", "1/s", [rate for rate, _ in status], ">= 15000")
    row("  99th percentile", "ms", [p99 for _, p99 in status], "< 10")
    script = ["-s", str(ROOT / "bench/submit.lua"), server.url, "--"]
    submits = [wrk(server.url, *script, f"run{i}") for i in range(5)]
    row("durable submissions of 6 KB, 64 connections", "1/s", [r for r, _ in submits], ">= 2000")
    row("  99th percentile", "ms", [p99 for _, p99 in submits], "")
    server.stop()


def submit_many(server: Server, count: int, prefix: str) -> None:
    for start in range(0, count, 2000):
        ids = range(start, min(start + 2000, count))
        tasks = [small_task(f"{prefix}{i}") for i in ids]
        server.ask(
            "POST", "/evaluate/batch?async=1", {"batch_id": f"{prefix}{start}", "tasks": tasks}
        )


def bench_memory_and_restart(drk: Path, folder: Path) -> None:
    server = Server(drk, folder / "data", "--jobs", "0")
    submit_many(server, TASKS_QUEUED, "q")
    resident = server.ask("GET", "/health")["memory_usage"]["resident_bytes"] / 2**20
    row("memory with 10,000 queued tasks", "MiB", [resident], "< 300")
    submit_many(server, TASKS_STORED - TASKS_QUEUED, "s")
    server.stop()
    starts = []
    for _ in range(5):
        server = Server(drk, folder / "data", "--jobs", "0")
        assert server.ask("GET", "/queue/status")["pending"] == TASKS_STORED
        starts.append(server.start_s)
        server.stop()
    row("start with 100,000 stored tasks, all pending", "s", starts, "< 2")


def bench_evaluations(drk: Path, folder: Path) -> None:
    server = Server(drk, folder / "data", "--python", os.environ["DRK_PYTHON"])
    server.wait_until_healthy()
    server.ask("POST", "/evaluate", relu_task("warm-up", "warm-up"))
    added_ms = []
    for i in range(40):
        begin = time.perf_counter()
        result = server.ask("POST", "/evaluate", relu_task(f"latency{i}", "latency"))
        whole_s = time.perf_counter() - begin
        added_ms.append((whole_s - result["processing_time"]) * 1e3)
    row("latency that the server adds to an evaluation", "ms", added_ms, "< 5")
    serial_s, batch_s = [], []
    for turn in range(3):
        tasks = [relu_task(f"serial{turn}-{i}", f"serial{turn}-{i % 8}") for i in range(64)]
        begin = time.perf_counter()
        for task in tasks:
            assert server.ask("POST", "/evaluate", task)["correctness"]
        serial_s.append(time.perf_counter() - begin)
        tasks = [relu_task(f"batch{turn}-{i}", f"batch{turn}-{i % 8}") for i in range(64)]
        begin = time.perf_counter()
        body = server.ask("POST", "/evaluate/batch", {"batch_id": f"b{turn}", "tasks": tasks})
        batch_s.append(time.perf_counter() - begin)
        assert all(result["correctness"] for result in body["results"])
    row("64 small candidates over 8 references, one by one", "s", serial_s, "")
    row("the same number as a batch", "s", batch_s, "")
    ratios = [serial / batch for serial, batch in zip(serial_s, batch_s, strict=True)]
    row("  times as fast", "", ratios, ">= 1.7")
    server.stop()


def main() -> None:
    drk = Path(sys.argv[1] if len(sys.argv) > 1 else "build") / "bin/drk"
    print(f"{'server':<58} {'median':>9} {'min':>9} {'max':>9} {'n':>4}  unit   goal")
    # What writes much comes last: a disk that is still busy with it makes each commit slow.
    for bench in (bench_evaluations, bench_requests, bench_memory_and_restart):
        with tempfile.TemporaryDirectory(prefix="gym_bench_") as folder:
            bench(drk, Path(folder))


if __name__ == "__main__":
    main()
