# SPDX-License-Identifier: Apache-2.0
"""fast_p, counted by hand."""

import pytest

from drkernel import Result, fast_p, fast_p_best_so_far, fast_p_per_turn
from drkernel._json import JsonValue
from drkernel.types import unjudged


def right(speedup: float, **changes: JsonValue) -> Result:
    body: dict[str, JsonValue] = {"task_id": "t", "status": "completed", "compiled": True}
    return Result.from_json({**body, "correctness": True, "speedup": speedup, **changes})


WRONG = right(9, correctness=False)
DECOY = right(9, decoy_kernel=True)
BROKEN = right(9, status="failed", compiled=False)
LOST = unjudged("t", "lost")


def test_all_samples_count() -> None:
    samples = [right(0.9), right(1.0), right(1.3), right(2), right(5), WRONG, DECOY, BROKEN]
    counted = fast_p(samples)
    assert counted.samples == 8
    assert counted.no_verdict == 0
    assert counted.shares == {1.0: 4 / 8, 1.2: 3 / 8, 1.5: 2 / 8, 2.0: 2 / 8, 3.0: 1 / 8}


def test_samples_without_a_verdict_count_as_not_fast_and_are_told() -> None:
    counted = fast_p([right(2), LOST, None, right(2)], thresholds=[1])
    assert (counted.shares, counted.samples, counted.no_verdict) == ({1: 0.5}, 4, 1)


def test_of_no_samples_there_is_no_share() -> None:
    with pytest.raises(ValueError, match="no samples"):
        fast_p([])


TRAJECTORIES: list[list[Result | None]] = [
    [right(1), right(3), WRONG],
    [WRONG, right(1.5)],  # ended after two turns
    [DECOY, None, right(2)],
    [right(2)],
]


def test_each_turn_counts_for_itself_and_a_missing_one_is_not_fast() -> None:
    turns = fast_p_per_turn(TRAJECTORIES, thresholds=[1, 2])
    assert [turn.shares for turn in turns] == [
        {1: 2 / 4, 2: 1 / 4},
        {1: 2 / 4, 2: 1 / 4},
        {1: 1 / 4, 2: 1 / 4},
    ]
    assert [turn.samples for turn in turns] == [4, 4, 4]


def test_best_so_far_never_falls() -> None:
    turns = fast_p_best_so_far(TRAJECTORIES, thresholds=[1, 2])
    # best: 1 0 0 2, then 3 1.5 0 2, then 3 1.5 2 2
    assert [turn.shares for turn in turns] == [
        {1: 2 / 4, 2: 1 / 4},
        {1: 3 / 4, 2: 2 / 4},
        {1: 4 / 4, 2: 3 / 4},
    ]


def test_without_trajectories_there_are_no_turns() -> None:
    assert fast_p_per_turn([]) == fast_p_best_so_far([[], []]) == ()
