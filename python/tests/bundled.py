# SPDX-License-Identifier: Apache-2.0
"""Requests made of the bundled problems, and candidates that misbehave in time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from drkernel import EvaluateRequest

PROBLEMS = Path(__file__).parents[2] / "problems"


def candidate(problem: str, name: str, **changes: object) -> EvaluateRequest:
    """For instance of "level1/gelu_tanh", "good"; few calls, no timing."""
    folder = PROBLEMS / problem
    request = EvaluateRequest(
        reference_code=(folder / "reference.py").read_text(),
        kernel_code=(folder / "candidates" / f"{name}.py").read_text(),
        num_correct_trials=1,
        run_performance=False,
    )
    return replace(request, **changes)  # type: ignore[arg-type]


def good(**changes: object) -> EvaluateRequest:
    return candidate("level1/gelu_tanh", "good", **changes)


def fresh(request: EvaluateRequest) -> EvaluateRequest:
    """The same candidate, not yet seen by any server."""
    code = f"{request.kernel_code}\n# {uuid4().hex}\n"
    return replace(request, kernel_code=code)


def sleeper(seconds: float, **changes: object) -> EvaluateRequest:
    """A right candidate that takes its time."""
    request = good(**changes)
    pause = f"\nimport time\ntime.sleep({seconds})\n"
    return fresh(replace(request, kernel_code=request.kernel_code + pause))


def needs_gpu(**changes: object) -> EvaluateRequest:
    request = good(**changes)
    demand = "\nimport torch\ntorch.zeros(1, device='cuda')\n"
    return fresh(replace(request, kernel_code=request.kernel_code + demand))
