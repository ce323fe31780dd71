# SPDX-License-Identifier: Apache-2.0
"""Rewards, worked by hand."""

import dataclasses

import pytest

from drkernel import (
    CoverageReward,
    Result,
    calculate_reward_like_kernel,
    calculate_reward_speedup,
    calculate_reward_weighted,
)
from drkernel._json import JsonValue
from drkernel.rewards import CoverageKind, coverage
from drkernel.types import unjudged

RULES = [calculate_reward_speedup, calculate_reward_weighted, calculate_reward_like_kernel]


def judged(**changes: JsonValue) -> Result:
    body: dict[str, JsonValue] = {
        "task_id": "t",
        "status": "completed",
        "compiled": True,
        "correctness": True,
        "decoy_kernel": False,
        "speedup": 1.0,
    }
    return Result.from_json({**body, **changes})


WRONG = judged(correctness=False, speedup=0)
DECOY = judged(correctness=False, decoy_kernel=True, speedup=0)
NOT_COMPILED = judged(status="failed", compiled=False, correctness=False, speedup=0)
TIMED_OUT = judged(status="timeout", correctness=False, speedup=0)
COVERED = judged(
    speedup=2.0,
    metadata={
        "custom_kernel_cuda_time_in_profiling_us": 30.0,
        "total_kernel_run_time_in_profiling_us": 40.0,
        "num_custom_kernels": 1,
        "num_total_kernels": 5,
    },
)


@pytest.mark.parametrize(
    ("speedup", "reward"),
    [(0, 0.5), (0.5, 0.75), (1, 1.0), (2, 1.5), (3, 2.0), (10, 2.0)],  # 0.5 + 0.5 * min(s, 3)
)
def test_speedup_is_paid_up_to_its_bound(speedup: float, reward: float) -> None:
    assert calculate_reward_speedup(judged(speedup=speedup)) == reward


def test_a_speedup_under_the_lower_bound_counts_nothing() -> None:
    def rate(speedup: float) -> float | None:
        return calculate_reward_speedup(judged(speedup=speedup), speedup_reward_lower_bound=1.2)

    assert rate(1.19) == 0.5
    assert rate(1.2) == pytest.approx(1.1)  # 0.5 + 0.5 * 1.2


def test_weights_and_bounds_are_parameters() -> None:
    reward = calculate_reward_speedup(
        judged(speedup=9),
        init_correct_weight=0.25,
        init_performance_weight=2,
        speedup_reward_upper_bound=4,
    )
    assert reward == 8.25  # 0.25 + 2 * 4


@pytest.mark.parametrize(
    ("speedup", "reward"), [(0, 0.5), (1.0, 0.5), (1.009, 0.5), (1.01, 1.0), (50, 1.0)]
)
def test_weighted_pays_for_being_faster(speedup: float, reward: float) -> None:
    assert calculate_reward_weighted(judged(speedup=speedup)) == reward


def test_weighted_has_a_margin() -> None:
    assert calculate_reward_weighted(judged(speedup=1.05), speedup_eps=0.1) == 0.5


@pytest.mark.parametrize(
    ("speedup", "reward"),
    [
        (0, -0.1),
        (0.99, -0.1),
        (1, 0.2),
        (1.19, 0.2),
        (1.2, 0.4),
        (1.49, 0.4),
        (1.5, 0.6),
        (2, 0.8),
        (2.99, 0.8),
        (3, 1.0),
        (90, 1.0),
    ],
)
def test_like_kernel_goes_in_steps(speedup: float, reward: float) -> None:
    assert calculate_reward_like_kernel(judged(speedup=speedup)) == reward


@pytest.mark.parametrize(
    ("result", "speedup", "weighted", "like_kernel"),
    [
        (WRONG, 0, 0, -0.3),
        (DECOY, 0, 0, -1),
        (NOT_COMPILED, 0, 0, -0.5),
        (TIMED_OUT, 0, 0, -1),
        (judged(correctness=None, speedup=0), 0, 0, -0.3),  # nothing could be checked
        (judged(correctness=False, speedup=2), 0, 0, -0.3),  # a wrong candidate earns no speed
        (judged(decoy_kernel=None, speedup=0), 0.5, 0.5, -0.1),  # not determinable is no decoy
    ],
)
def test_what_is_not_right(
    result: Result, speedup: float, weighted: float, like_kernel: float
) -> None:
    assert calculate_reward_speedup(result) == speedup
    assert calculate_reward_weighted(result) == weighted
    assert calculate_reward_like_kernel(result) == like_kernel


def test_the_penalty_is_a_parameter_and_a_wrong_output_does_not_get_it() -> None:
    for rule in (calculate_reward_speedup, calculate_reward_weighted):
        assert [rule(r, penalty_score=-7) for r in (DECOY, NOT_COMPILED, TIMED_OUT)] == [-7] * 3
        assert rule(WRONG, penalty_score=-7) == 0


def test_coverage_is_paid_to_the_right_ones_when_it_is_on() -> None:
    by_time = CoverageReward()
    by_number = CoverageReward(weight=1.0, reward_type=CoverageKind.number_coverage)
    assert calculate_reward_speedup(COVERED) == 1.5
    assert calculate_reward_speedup(COVERED, coverage_reward=by_time) == 1.875  # + 0.5 * 30 / 40
    assert calculate_reward_weighted(COVERED, coverage_reward=by_time) == 1.375
    assert calculate_reward_speedup(COVERED, coverage_reward=by_number) == pytest.approx(1.7)
    wrong = dataclasses.replace(COVERED, correctness=False, speedup=0.0)
    assert calculate_reward_speedup(wrong, coverage_reward=by_time) == 0


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"custom_kernel_cuda_time_in_profiling_us": 3.0},
        {
            "custom_kernel_cuda_time_in_profiling_us": 0,
            "total_kernel_run_time_in_profiling_us": 0,
        },
        {
            "custom_kernel_cuda_time_in_profiling_us": "30",
            "total_kernel_run_time_in_profiling_us": True,
        },
    ],
)
def test_coverage_that_was_not_measured_is_none_and_pays_nothing(
    metadata: dict[str, JsonValue],
) -> None:
    result = judged(metadata=metadata)
    assert coverage(result) is None
    assert calculate_reward_speedup(result, coverage_reward=CoverageReward()) == 1.0


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "result",
    [
        unjudged("t", "the server was lost"),
        judged(status="failed", compiled=False, correctness=False, fault="infra"),
        judged(status="timeout", fault="infra"),  # the deadline passed in the queue
        judged(fault="infra"),
        judged(status="cancelled"),
        judged(status="processing"),
    ],
)
def test_without_a_verdict_there_is_no_reward_and_no_penalty(rule: object, result: Result) -> None:
    assert callable(rule)
    assert not result.has_verdict
    assert rule(result) is None
