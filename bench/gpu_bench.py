# SPDX-License-Identifier: Apache-2.0
"""Measures evaluations on a GPU, end to end over HTTP: seconds of one, how many a second, what stays behind.

    gpu_bench.py BUILD_DIR [EVALUATIONS]     needs DRK_PYTHON and a GPU; EVALUATIONS (500) leave nothing

Every figure is a median of several runs, with the smallest and the largest beside it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gym_bench import Server, row

ELEMENTS = 1 << 20  # small: 4 MiB in, 4 MiB out
IDLE_S = 14  # after which nothing is kept warm for a next one

REFERENCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * {factor}

def get_inputs():
    return [torch.rand({elements}) - 0.5]

def get_init_inputs():
    return []
"""

CANDIDATE = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def scaled_relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(y_ptr + offs, tl.maximum(x, 0.0) * {factor}, mask=mask)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        scaled_relu_kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
        return y
"""

EXTENSION = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = """
__global__ void scaled_relu(const float* x, float* y, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (x[i] > 0.0f ? x[i] : 0.0f) * {factor};
}}
torch::Tensor run(torch::Tensor x) {{
  auto y = torch::empty_like(x);
  int n = x.numel();
  scaled_relu<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}}
"""
module = load_inline(name="scaled_relu", cpp_sources="torch::Tensor run(torch::Tensor x);",
                     cuda_sources={marker}CUDA, functions=["run"])

class ModelNew(nn.Module):
    def forward(self, x):
        return module.run(x)
'''


def task(task_id: str, factor: float, prompt: str = "", elements: int = ELEMENTS) -> dict[str, Any]:
    """A candidate whose text, and so its verdict, is new; its kernel is new where the factor is."""
    return {
        "task_id": task_id,
        "reference_code": REFERENCE.format(factor=factor, elements=elements) + f"# {prompt}\n",
        "kernel_code": CANDIDATE.format(factor=factor) + f"# {task_id}\n",
        "num_correct_trials": 5,
        "num_perf_trials": 100,
        "enable_profiling": True,
    }


def judged(server: Server, body: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    begin = time.perf_counter()
    result = server.ask("POST", "/evaluate", body)
    seconds = time.perf_counter() - begin
    if not result["correctness"] or not result["speedup"] > 0:
        raise SystemExit(json.dumps(result)[:4000])
    return seconds, result


def print_stages(name: str, results: list[dict[str, Any]]) -> None:
    """Where the time goes: means, in ms. Waits lie within the stage that waited."""
    stages: dict[str, float] = {}
    for result in results:
        for span in result["timeline"]:
            stages[span["name"]] = stages.get(span["name"], 0) + span["duration_ms"]
    text = ", ".join(f"{stage} {ms / len(results):.0f}" for stage, ms in stages.items())
    print(f"  {name}, ms by stage: {text}")


def bench_single(server: Server) -> None:
    judged(server, task("first", 1.5, "p"))
    warm = [judged(server, task(f"warm{i}", 1.5, "p")) for i in range(15)]
    row("evaluation, warm Triton cache", "s", [s for s, _ in warm], "< 1.0")
    print_stages("warm", [result for _, result in warm])
    cold = [judged(server, task(f"cold{i}", 2.0 + i / 16, "cold")) for i in range(8)]
    row("evaluation, new kernel and new reference", "s", [s for s, _ in cold], "< 2.0")
    print_stages("cold", [result for _, result in cold])
    coverages = [
        float(result["metadata"]["custom_kernel_cuda_time_coverage"][:-1]) for _, result in warm
    ]
    row("  coverage of a kernel that does all the work", "%", coverages, "100")


def bench_repeatability(server: Server) -> None:
    medians_us = []
    for i in range(10):
        _, result = judged(server, task(f"repeat{i}", 1.5, "repeat", 1 << 24))
        medians_us.append(result["kernel_runtime"] * 1e3)
    row("median of a kernel, repeated evaluations", "us", medians_us, "")
    spread = 100 * statistics.stdev(medians_us) / statistics.mean(medians_us)
    row("  coefficient of variation", "%", [spread], "< 1.5")


def bench_batch(server: Server) -> None:
    rates = []
    for turn in range(3):
        tasks = [task(f"b{turn}-{i}", 1.5, f"batch{i % 8}") for i in range(64)]
        begin = time.perf_counter()
        body = server.ask("POST", "/evaluate/batch", {"batch_id": f"b{turn}", "tasks": tasks})
        rates.append(64 / (time.perf_counter() - begin))
        if not all(result["correctness"] for result in body["results"]):
            raise SystemExit(json.dumps(body)[:4000])
    row("batch of 64 over 8 new references", "1/s", rates[:1], "")
    row("batch of 64 over 8 references, warm", "1/s", rates[1:], ">= 3.0")
    print_stages("batch, warm", body["results"])


def bench_extension(server: Server) -> None:
    def extension(name: str, factor: float, marker: str) -> dict[str, Any]:
        body = task(name, factor, "ext")
        body["kernel_code"] = EXTENSION.format(factor=factor, marker=marker) + f"# {name}\n"
        return body | {"backend": "cuda", "timeout": 300}

    slim, result = judged(server, extension("slim", 1.5, ""))
    row("load_inline, cold", "s", [slim], "< 12")
    print_stages("load_inline, cold", [result])
    # What the slim headers do not have: the stock ones are needed.
    stock = '"#include <torch/nn/functional.h>\\n" + '
    seconds, result = judged(server, extension("stock", 1.75, stock))
    row("load_inline with all of torch, cold", "s", [seconds], "< 25")
    cached = [judged(server, extension(f"cached{i}", 1.5, "")) for i in range(5)]
    row("load_inline, from the store", "s", [s for s, _ in cached], "< 1.0")


def processes_below(pid: int) -> int:
    table = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True).stdout
    parent_of = {int(child): int(parent) for child, parent in map(str.split, table.splitlines())}
    found = {pid}
    while more := {p for p, parent in parent_of.items() if parent in found} - found:
        found |= more
    return len(found) - 1


def descriptors(pid: int) -> int:
    """Beside shared memory: that is the inputs and outputs which references keep, so many at most."""
    count = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            count += not os.readlink(entry).startswith("/memfd:")
        except FileNotFoundError:  # closed meanwhile
            pass
    return count


def traces(server: Server) -> dict[str, int]:
    pid = server.process.pid
    used = sum(gpu["used_bytes"] for gpu in server.ask("GET", "/health")["gpu_status"].values())
    return {
        "device MiB": used >> 20,
        "processes": processes_below(pid),
        "descriptors": descriptors(pid),
        "files in /tmp": len(os.listdir("/tmp")),
        "files in /dev/shm": len(os.listdir("/dev/shm")),
    }


def bench_traces(server: Server, evaluations: int) -> None:
    if evaluations == 0:
        return
    time.sleep(IDLE_S)
    before = traces(server)
    begin = time.perf_counter()
    for start in range(0, evaluations, 50):
        tasks = [task(f"t{start + i}", 1.5, f"batch{i % 8}") for i in range(50)]
        body = server.ask("POST", "/evaluate/batch", {"batch_id": f"t{start}", "tasks": tasks})
        if not all(result["correctness"] for result in body["results"]):
            raise SystemExit(json.dumps(body)[:4000])
    rate = evaluations / (time.perf_counter() - begin)
    row(f"{evaluations} evaluations in batches of 50", "1/s", [rate], ">= 3.0")
    time.sleep(IDLE_S)
    after = traces(server)
    for name, count in after.items():
        row(f"  {name} left behind", "", [float(count - before[name])], "0")


def main() -> None:
    drk = Path(sys.argv[1] if len(sys.argv) > 1 else "build") / "bin/drk"
    evaluations = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    print(f"{'GPU':<58} {'median':>9} {'min':>9} {'max':>9} {'n':>4}  unit   goal")
    with tempfile.TemporaryDirectory(prefix="gpu_bench_") as folder:
        begin = time.perf_counter()
        server = Server(drk, Path(folder) / "data", "--python", os.environ["DRK_PYTHON"])
        server.wait_until_healthy()
        row("start of the server until it is ready", "s", [time.perf_counter() - begin], "")
        bench_single(server)
        bench_repeatability(server)
        bench_batch(server)
        bench_extension(server)
        bench_traces(server, evaluations)
        server.stop()


if __name__ == "__main__":
    main()
