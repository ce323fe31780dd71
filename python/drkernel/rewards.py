# SPDX-License-Identifier: Apache-2.0
"""Rewards of single results, by the rules that KernelGYM's trainers use.

Each is None for a result without a verdict: what kept it away is not the candidate's fault, so
there is neither reward nor penalty, and the sample has to be left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from drkernel._json import JsonObject
from drkernel.types import Result, Status

# calculate_reward_like_kernel: a speedup from so much on, and its reward.
_SPEEDUP_STEPS = ((3.0, 1.0), (2.0, 0.8), (1.5, 0.6), (1.2, 0.4), (1.0, 0.2))


class CoverageKind(StrEnum):
    """The candidate's own kernels, as a share of all: by GPU time, or by their number."""

    time_coverage = "time_coverage"
    number_coverage = "number_coverage"


@dataclass(frozen=True)
class CoverageReward:
    """Adds weight * coverage for a right candidate."""

    weight: float = 0.5
    reward_type: CoverageKind = CoverageKind.time_coverage


def calculate_reward_speedup(
    result: Result,
    *,
    penalty_score: float = 0.0,
    init_correct_weight: float = 0.5,
    init_performance_weight: float = 0.5,
    speedup_reward_lower_bound: float = 0.0,
    speedup_reward_upper_bound: float = 3.0,
    coverage_reward: CoverageReward | None = None,
) -> float | None:
    """correct_weight * correct + performance_weight * min(speedup, upper) [+ weight * coverage].

    `penalty_score` when the task is not completed or a decoy; a speedup under the lower bound, or
    of a wrong candidate, counts 0.
    """
    if not result.has_verdict:
        return None
    if _is_penalised(result):
        return penalty_score
    speedup = min(_earned_speedup(result), speedup_reward_upper_bound)
    if speedup < speedup_reward_lower_bound:
        speedup = 0.0
    reward = init_correct_weight * _is_correct(result) + init_performance_weight * speedup
    return reward + _coverage_part(result, coverage_reward)


def calculate_reward_weighted(
    result: Result,
    *,
    penalty_score: float = 0.0,
    init_correct_weight: float = 0.5,
    init_performance_weight: float = 0.5,
    speedup_eps: float = 0.01,
    coverage_reward: CoverageReward | None = None,
) -> float | None:
    """As `calculate_reward_speedup`, with (speedup >= 1 + eps) for the speedup."""
    if not result.has_verdict:
        return None
    if _is_penalised(result):
        return penalty_score
    is_faster = _earned_speedup(result) >= 1 + speedup_eps
    reward = init_correct_weight * _is_correct(result) + init_performance_weight * is_faster
    return reward + _coverage_part(result, coverage_reward)


def calculate_reward_like_kernel(
    result: Result,
    *,
    failed: float = -1.0,
    compilation_fail: float = -0.5,
    correctness_fail: float = -0.3,
    perf_degrade: float = -0.1,
) -> float | None:
    """A step for each thing that went right, up to 1 for a speedup of 3.

    That it compiled is asked first, since what did not compile is never `completed`.
    """
    if not result.has_verdict:
        return None
    if not result.compiled:
        return compilation_fail
    if _is_penalised(result):
        return failed
    if not _is_correct(result):
        return correctness_fail
    steps = (reward for speedup, reward in _SPEEDUP_STEPS if result.speedup >= speedup)
    return next(steps, perf_degrade)


def coverage(result: Result, kind: CoverageKind = CoverageKind.time_coverage) -> float | None:
    """From 0 to 1; None when it was not measured."""
    parts = {
        CoverageKind.time_coverage: (
            "custom_kernel_cuda_time_in_profiling_us",
            "total_kernel_run_time_in_profiling_us",
        ),
        CoverageKind.number_coverage: ("num_custom_kernels", "num_total_kernels"),
    }
    own, total = (_number(result.metadata, name) for name in parts[kind])
    if own is None or not total:
        return None
    return own / total


def _is_penalised(result: Result) -> bool:
    return result.status is not Status.completed or result.decoy_kernel is True


def _is_correct(result: Result) -> bool:
    return result.correctness is True


def _earned_speedup(result: Result) -> float:
    return result.speedup if _is_correct(result) else 0.0


def _coverage_part(result: Result, rule: CoverageReward | None) -> float:
    if rule is None or not _is_correct(result):
        return 0.0
    return rule.weight * (coverage(result, rule.reward_type) or 0.0)


def _number(metadata: JsonObject, name: str) -> float | None:
    value = metadata.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None  # type: ignore[arg-type]
