# SPDX-License-Identifier: Apache-2.0
"""fast_p: the share of all samples that are right and at least p times as fast as the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from drkernel.types import Result

THRESHOLDS = (1.0, 1.2, 1.5, 2.0, 3.0)

# What a model wrote in one conversation, turn by turn; None where a turn gave nothing to judge.
Trajectory = Sequence[Result | None]


@dataclass(frozen=True)
class FastP:
    """`shares` by p, of all `samples`; `no_verdict` of them count as not fast: see how many."""

    shares: Mapping[float, float]
    samples: int
    no_verdict: int


def fast_p(samples: Sequence[Result | None], thresholds: Sequence[float] = THRESHOLDS) -> FastP:
    """Over all samples, whatever became of them. There must be one at least."""
    return _shares([_speed(s) for s in samples], _unjudged(samples), thresholds)


def fast_p_per_turn(
    trajectories: Sequence[Trajectory], thresholds: Sequence[float] = THRESHOLDS
) -> tuple[FastP, ...]:
    """For each turn that some trajectory has; one that ended earlier counts as not fast."""
    return tuple(fast_p(turn, thresholds) for turn in _turns(trajectories))


def fast_p_best_so_far(
    trajectories: Sequence[Trajectory], thresholds: Sequence[float] = THRESHOLDS
) -> tuple[FastP, ...]:
    """For each turn, by the best that each trajectory had up to then. It never falls."""
    best = [0.0] * len(trajectories)
    shares = []
    for turn in _turns(trajectories):
        best = [max(before, _speed(sample)) for before, sample in zip(best, turn, strict=True)]
        shares.append(_shares(best, _unjudged(turn), thresholds))
    return tuple(shares)


def _turns(trajectories: Sequence[Trajectory]) -> list[list[Result | None]]:
    last = max((len(trajectory) for trajectory in trajectories), default=0)
    return [[t[i] if i < len(t) else None for t in trajectories] for i in range(last)]


def _speed(sample: Result | None) -> float:
    return sample.speedup if sample is not None and sample.is_accepted else 0.0


def _unjudged(samples: Sequence[Result | None]) -> int:
    return sum(sample is not None and not sample.has_verdict for sample in samples)


def _shares(speeds: Sequence[float], no_verdict: int, thresholds: Sequence[float]) -> FastP:
    if not speeds:
        raise ValueError("fast_p of no samples")
    shares = {p: sum(speed >= p for speed in speeds) / len(speeds) for p in thresholds}
    return FastP(shares, len(speeds), no_verdict)
