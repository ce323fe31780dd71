# SPDX-License-Identifier: Apache-2.0
"""Which tasks are slow, and in which stage."""

from datetime import UTC, datetime

import pytest

from drkernel import Result, Slow, Status, TaskStatus, slowest
from drkernel._json import JsonValue
from drkernel.waits import describe

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def state(**fields: JsonValue) -> TaskStatus:
    return TaskStatus.from_json({"task_id": "t", "status": "pending", **fields})


def ended(task_id: str, spans: dict[str, float], **fields: JsonValue) -> Result:
    timeline: list[JsonValue] = []
    start_ms = 0.0
    for name, duration_ms in spans.items():
        timeline.append({"name": name, "start_ms": start_ms, "duration_ms": duration_ms})
        start_ms += duration_ms
    return Result.from_json(
        {"task_id": task_id, "status": "completed", "timeline": timeline, **fields}
    )


def test_the_slowest_come_first_with_the_stage_that_took_most() -> None:
    entries: list[Result | TaskStatus] = [
        ended("quick", {"queue": 10, "load": 200, "time": 90}),
        ended("queued", {"queue": 60_000, "load": 100}),
        state(
            task_id="running",
            status="processing",
            stage="correctness",
            submitted_at="2026-11-30T11:58:00Z",
            started_at="2026-11-30T11:59:30.500Z",
        ),
        state(task_id="waiting", submitted_at="2026-11-30T11:59:00+00:00"),
        ended("old server", {}, processing_time=1.5),
    ]
    slow = slowest(entries, limit=4, now=NOON)
    assert slow == (
        Slow("running", Status.processing, "correctness", 29.5, 120.0),
        Slow("queued", Status.completed, "queue", 60.0, 60.1),
        Slow("waiting", Status.pending, "queue", 60.0, 60.0),
        Slow("old server", Status.completed, "unknown", 1.5, 1.5),
    )
    assert str(slow[0]) == "running: processing, correctness for 29.5 s of 120.0 s"


def test_a_clock_that_is_behind_the_servers_gives_no_negative_time() -> None:
    assert slowest([state(submitted_at="2026-11-30T12:00:09Z")], now=NOON)[0].total_s == 0


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (state(), "in the queue"),
        (state(queue_position=3), "in the queue, number 3"),
        (state(queue_position=3, why_waiting="busy"), "in the queue, number 3: busy"),
        (state(status="processing"), "being judged"),
        (state(status="processing", stage="time"), "in stage time"),
        (
            state(status="processing", stage="time", assigned_device="cuda:0"),
            "in stage time on cuda:0",
        ),
        (state(status="failed"), "failed"),
    ],
)
def test_where_a_task_is_in_words(status: TaskStatus, text: str) -> None:
    assert describe(status) == text
