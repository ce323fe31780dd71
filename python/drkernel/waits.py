# SPDX-License-Identifier: Apache-2.0
"""Which tasks take long, and in which stage. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from drkernel.types import Result, Status, TaskStatus


@dataclass(frozen=True)
class Slow:
    """A task, the stage that it is in or that took the most of it, and how long it took so far."""

    task_id: str
    status: Status
    stage: str
    stage_s: float
    total_s: float

    def __str__(self) -> str:
        ending = f"{self.stage} for {self.stage_s:.1f} s of {self.total_s:.1f} s"
        return f"{self.task_id}: {self.status}, {ending}"


def slowest(
    entries: Iterable[Result | TaskStatus], limit: int = 5, now: datetime | None = None
) -> tuple[Slow, ...]:
    """The `limit` tasks that took or have taken the longest, the longest first.

    The times of unfinished tasks are by this machine's clock, `now`, against the server's.
    """
    moment = now or datetime.now(UTC)
    known = [_of_result(e) if isinstance(e, Result) else _of_status(e, moment) for e in entries]
    return tuple(sorted(known, key=lambda slow: slow.total_s, reverse=True)[:limit])


def describe(status: TaskStatus) -> str:
    """Where an unfinished task is, for a log."""
    if status.status is Status.processing:
        where = f"in stage {status.stage}" if status.stage else "being judged"
        return f"{where} on {status.assigned_device}" if status.assigned_device else where
    if status.status is Status.pending:
        place = "" if status.queue_position is None else f", number {status.queue_position}"
        reason = f": {status.why_waiting}" if status.why_waiting else ""
        return f"in the queue{place}{reason}"
    return status.status


def _of_result(result: Result) -> Slow:
    spans = result.timeline
    longest = max(spans, key=lambda span: span.duration_ms, default=None)
    end_ms = max((span.start_ms + span.duration_ms for span in spans), default=None)
    total_s = (result.processing_time or 0.0) if end_ms is None else end_ms * 1e-3
    if longest is None:
        return Slow(result.task_id, result.status, "unknown", total_s, total_s)
    return Slow(result.task_id, result.status, longest.name, longest.duration_ms * 1e-3, total_s)


def _of_status(status: TaskStatus, now: datetime) -> Slow:
    total_s = _seconds_since(status.submitted_at, now)
    if status.status is Status.pending:
        return Slow(status.task_id, status.status, "queue", total_s, total_s)
    stage_s = _seconds_since(status.started_at, now)  # of the attempt: a stage's start is not told
    return Slow(status.task_id, status.status, status.stage or "start", stage_s, total_s)


def _seconds_since(moment: str | None, now: datetime) -> float:
    if moment is None:
        return 0.0
    start = datetime.fromisoformat(moment)
    start = start if start.tzinfo else start.replace(tzinfo=UTC)
    return max(0.0, (now - start).total_seconds())
