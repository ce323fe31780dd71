# SPDX-License-Identifier: Apache-2.0
"""Batches of both clients against a server that misbehaves."""

from __future__ import annotations

import itertools
import logging
import threading
import time

import pytest

from callers import Connect
from drkernel import (
    BatchItem,
    ClientOptions,
    Conflict,
    EvaluateRequest,
    Fault,
    NotFound,
    RetryPolicy,
    Status,
    ValidationError,
)
from drkernel._batches import plan_batch
from hostile_server import (
    Behaviour,
    Handler,
    HostileServer,
    done_event,
    events,
    half_a_reply,
    hang_up,
    reply,
    result_body,
    result_event,
    silence,
    status_body,
)

QUICK = RetryPolicy(base_s=0.01, cap_s=0.05, max_failures=6, max_no_verdicts=3)
EVENT_STREAM = "text/event-stream"


def options(**changes: object) -> ClientOptions:
    return ClientOptions(**{"retry": QUICK, "deadline_s": 20.0, **changes})  # type: ignore[arg-type]


def requests(count: int) -> list[EvaluateRequest]:
    return [EvaluateRequest(kernel_code=f"kernel code {i}") for i in range(count)]


def told(index: int, batch_id: str = "b") -> str:
    return result_event(index, result_body(f"{batch_id}-{index}"))


def shown(items: list[BatchItem]) -> list[tuple[int, str]]:
    return [(item.index, item.result.task_id) for item in items]


def test_results_come_in_the_order_of_completion(hostile: HostileServer, connect: Connect) -> None:
    hostile.script(events(": keep-alive\n\n", told(2), told(0), told(1), done_event("b", 3)))
    items = connect(hostile.url, options()).iter_batch(requests(3), batch_id="b")
    assert shown(list(items)) == [(2, "b-2"), (0, "b-0"), (1, "b-1")]
    (post,) = hostile.requests
    assert (post.method, post.path, post.headers["accept"]) == (
        "POST",
        "/evaluate/batch",
        EVENT_STREAM,
    )
    assert post.body["batch_id"] == "b"
    assert [task["task_id"] for task in post.body["tasks"]] == ["b-0", "b-1", "b-2"]
    assert 19 < post.body["tasks"][0]["deadline_s"] <= 20


def test_results_are_yielded_before_the_batch_is_done(
    hostile: HostileServer, connect: Connect
) -> None:
    hostile.script(events(told(1), told(0), done_event("b", 2), pause_s=0.5))
    started = time.monotonic()
    items = connect(hostile.url, options()).iter_batch(requests(2), batch_id="b")
    assert next(iter(items)).index == 1
    assert time.monotonic() - started < 0.5


def test_the_whole_batch_is_in_the_order_of_the_requests(
    hostile: HostileServer, connect: Connect
) -> None:
    lost = result_event(0, result_body("b-0", status="failed", compiled=False, fault="infra"))
    hostile.script(events(told(2), lost, told(1), done_event("b", 3)))
    batch = connect(hostile.url, options()).evaluate_batch(requests(3), batch_id="b")
    assert [result.task_id for result in batch.results] == ["b-0", "b-1", "b-2"]
    assert (batch.batch_id, batch.completed_tasks, batch.no_verdict_tasks) == ("b", 2, 1)


@pytest.mark.parametrize("end", [hang_up, None])
def test_a_broken_stream_is_taken_up_where_it_was(
    hostile: HostileServer, connect: Connect, end: Behaviour | None
) -> None:
    torn = told(1)[:-20]
    hostile.script(
        hang_up,
        events(told(2), torn, then=end),
        half_a_reply,
        *[reply(503, {"detail": "stopping"}, {"Retry-After": "0.01"})] * QUICK.max_no_verdicts,
        events(told(2), told(0), then=end),
        events(told(0), told(2), told(1), done_event("b", 3)),
    )
    items = connect(hostile.url, options()).iter_batch(requests(3), batch_id="b")
    assert shown(list(items)) == [(2, "b-2"), (0, "b-0"), (1, "b-1")]
    assert [(seen.method, seen.path) for seen in hostile.requests] == [
        ("POST", "/evaluate/batch"),
        ("POST", "/evaluate/batch"),
        *[("GET", "/evaluate/batch/b")] * (3 + QUICK.max_no_verdicts),
    ]
    assert all(seen.headers["accept"] == EVENT_STREAM for seen in hostile.requests)


def test_progress_starts_the_count_of_failures_anew(
    hostile: HostileServer, connect: Connect
) -> None:
    count = 3 * QUICK.max_failures
    hostile.script(
        *[events(told(i), then=hang_up) for i in range(count)], events(done_event("b", count))
    )
    items = list(connect(hostile.url, options()).iter_batch(requests(count), batch_id="b"))
    assert [item.index for item in items] == list(range(count))


def test_a_batch_that_the_server_forgot_is_posted_again(
    hostile: HostileServer, connect: Connect
) -> None:
    hostile.script(
        events(told(0), then=hang_up),
        reply(404, {"detail": "unknown batch"}),
        events(told(0), told(1), done_event("b", 2)),
    )
    items = connect(hostile.url, options()).iter_batch(requests(2), batch_id="b")
    assert shown(list(items)) == [(0, "b-0"), (1, "b-1")]
    assert [seen.method for seen in hostile.requests] == ["POST", "GET", "POST"]
    first, _, again = hostile.requests
    assert first.body == again.body


def test_done_without_all_results_is_not_done(hostile: HostileServer, connect: Connect) -> None:
    hostile.script(
        events(told(0), done_event("b", 2)), events(told(0), told(1), done_event("b", 2))
    )
    items = connect(hostile.url, options()).iter_batch(requests(2), batch_id="b")
    assert len(list(items)) == 2


def test_a_server_that_does_not_stream_will_do(hostile: HostileServer, connect: Connect) -> None:
    body = {
        "batch_id": "b",
        "total_tasks": 2,
        "batch_status": "completed",
        "results": [result_body("b-0"), result_body("b-1")],
    }
    hostile.script(reply(200, body))
    items = connect(hostile.url, options()).iter_batch(requests(2), batch_id="b")
    assert shown(list(items)) == [(0, "b-0"), (1, "b-1")]


@pytest.mark.parametrize(
    ("status", "kind"), [(400, ValidationError), (409, Conflict), (404, NotFound)]
)
def test_a_refused_batch_is_an_error(
    hostile: HostileServer, connect: Connect, status: int, kind: type[Exception]
) -> None:
    hostile.script(reply(status, {"detail": "no"}))
    with pytest.raises(kind):
        list(connect(hostile.url, options()).iter_batch(requests(2)))


def test_what_is_given_up_has_no_verdict(
    hostile: HostileServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    hostile.script(events(told(1), then=hang_up), otherwise=hang_up)
    batch = connect(hostile.url, options()).evaluate_batch(requests(3), batch_id="b")
    assert [result.has_verdict for result in batch.results] == [False, True, False]
    assert {batch.results[i].fault for i in (0, 2)} == {Fault.infra}
    assert [result.task_id for result in batch.results] == ["b-0", "b-1", "b-2"]
    assert batch.no_verdict_tasks == 2
    assert "batch b: 2 without a verdict" in caplog.text


def test_the_deadline_ends_a_batch(hostile: HostileServer, connect: Connect) -> None:
    endless = events(told(0), *[": keep-alive\n\n"] * 100, pause_s=0.1)
    hostile.script(otherwise=endless)
    started = time.monotonic()
    client = connect(hostile.url, options())
    batch = client.evaluate_batch(requests(2), batch_id="b", deadline_s=0.5)
    assert time.monotonic() - started < 0.5 + 2.0 + 1.0  # deadline, grace, slow machine
    assert [result.has_verdict for result in batch.results] == [True, False]
    assert "unfinished when the time was up" in str(batch.results[1].error_message)


def test_a_stream_that_falls_silent_ends_with_the_deadline(
    hostile: HostileServer, connect: Connect
) -> None:
    hostile.script(otherwise=events(told(0), then=silence(60)))
    started = time.monotonic()
    client = connect(hostile.url, options())
    batch = client.evaluate_batch(requests(2), batch_id="b", deadline_s=0.5)
    assert time.monotonic() - started < 0.5 + 2 * 2.0 + 1.0
    assert [result.has_verdict for result in batch.results] == [True, False]


def test_the_oldest_overdue_tasks_are_named_with_their_stage(
    hostile: HostileServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    wait = [": keep-alive\n\n"] * 3

    stream = events(told(0), *wait, told(1), told(2), done_event("b", 3), pause_s=0.15)
    state = reply(200, status_body("b-1", status="processing", stage="compile"))
    hostile.script(stream, state, reply(404, {}), otherwise=state)
    with caplog.at_level(logging.WARNING, "drkernel"):
        client = connect(hostile.url, options(overdue_s=0.2))
        assert len(list(client.iter_batch(requests(3), batch_id="b"))) == 3
    assert "batch b: 2 unfinished" in caplog.text
    assert "waiting for b-1 since 0 s: in stage compile" in caplog.text
    assert "waiting for b-2 since 0 s: its status is not to be had (404)" in caplog.text


def test_a_batch_beyond_the_limit_is_split_and_read_at_once(
    hostile: HostileServer, connect: Connect
) -> None:
    both_there = threading.Barrier(2, timeout=10)

    def part(handler: Handler) -> None:
        seen = handler.seen
        both_there.wait()  # neither part waits for the other's end
        tasks = seen.body["tasks"]
        told_all = [result_event(i, result_body(task["task_id"])) for i, task in enumerate(tasks)]
        stream = events(*told_all, done_event(seen.body["batch_id"], len(tasks)))
        stream(handler)

    hostile.script(otherwise=part)
    client = connect(hostile.url, options(max_batch_tasks=3))
    batch = client.evaluate_batch(requests(5), batch_id="b")
    assert [result.task_id for result in batch.results] == [f"b-{i}" for i in range(5)]
    assert sorted(seen.body["batch_id"] for seen in hostile.requests) == ["b.0", "b.1"]


def test_an_error_of_one_part_ends_all(hostile: HostileServer, connect: Connect) -> None:
    hostile.script(reply(409, {"detail": "other content"}), otherwise=silence(30))
    client = connect(hostile.url, options(max_batch_tasks=1))
    started = time.monotonic()
    with pytest.raises(Conflict):
        list(client.iter_batch(requests(3)))
    assert time.monotonic() - started < 5


def test_candidates_that_no_server_would_take_are_not_sent(
    hostile: HostileServer, connect: Connect
) -> None:
    asked = [EvaluateRequest(kernel_code=code) for code in ("", "kernel code 1", "x" * 100_001)]
    hostile.script(events(result_event(0, result_body("b-1")), done_event("b", 1)))
    batch = connect(hostile.url, options()).evaluate_batch(asked, batch_id="b")
    assert [result.fault for result in batch.results] == [Fault.candidate, None, Fault.candidate]
    assert [result.task_id for result in batch.results] == ["b-0", "b-1", "b-2"]
    assert [task["task_id"] for task in hostile.requests[0].body["tasks"]] == ["b-1"]


def test_a_batch_of_nothing_asks_for_nothing(hostile: HostileServer, connect: Connect) -> None:
    client = connect(hostile.url, options())
    assert client.evaluate_batch([]).results == ()
    assert client.evaluate_batch([EvaluateRequest(kernel_code="")]).results[0].compiled is False
    assert hostile.requests == []


def test_leaving_a_batch_early_closes_its_stream(hostile: HostileServer, connect: Connect) -> None:
    left = threading.Event()

    def notice(handler: Handler) -> None:
        assert handler.connection.recv(1) == b""
        left.set()

    hostile.script(events(told(0), then=notice))
    items = connect(hostile.url, options()).iter_batch(requests(2), batch_id="b")
    iterator = iter(items)
    next(iterator)
    iterator.close()  # type: ignore[attr-defined]
    assert left.wait(5)


def test_attaching_to_a_batch_yields_what_is_there_and_what_comes(
    hostile: HostileServer, connect: Connect
) -> None:
    hostile.script(
        events(told(1), then=hang_up),
        hang_up,
        events(told(1), told(0), done_event("b", 2)),
    )
    items = connect(hostile.url, options()).attach_batch("b")
    assert shown(list(items)) == [(1, "b-1"), (0, "b-0")]
    assert {seen.method for seen in hostile.requests} == {"GET"}


def test_attaching_to_a_batch_that_is_not_there_is_an_error(
    hostile: HostileServer, connect: Connect
) -> None:
    hostile.script(reply(404, {"detail": "unknown batch"}))
    with pytest.raises(NotFound):
        list(connect(hostile.url, options()).attach_batch("b"))


def test_a_batch_can_be_handed_in_and_looked_at(hostile: HostileServer, connect: Connect) -> None:
    state = {
        "batch_id": "b",
        "total_tasks": 2,
        "completed_tasks": 1,
        "failed_tasks": 0,
        "batch_status": "processing",
        "results": [
            result_body("b-0", timeline=[{"name": "time", "start_ms": 0, "duration_ms": 2000}]),
            status_body("b-1", submitted_at="2026-11-30T12:00:00Z"),
        ],
    }
    hostile.script(reply(202, state), reply(200, state), reply(200, state))
    client = connect(hostile.url, options())
    (submitted,) = client.submit_batch(requests(2), batch_id="b")
    looked_at = client.batch("b", wait_s=1.5)
    assert submitted == looked_at
    assert [entry.status for entry in looked_at.entries] == [Status.completed, Status.pending]
    assert [seen.query for seen in hostile.requests] == [{"async": "1"}, {"wait": "1.500"}]
    assert "deadline_s" not in hostile.requests[0].body["tasks"][0]
    slow = client.slowest("b")
    assert [(one.task_id, one.stage) for one in slow] == [("b-1", "queue"), ("b-0", "time")]


def plan_ids(
    count: int, batch_id: str, max_tasks: int = 4096, max_bytes: int = 1 << 30
) -> list[tuple[str, list[str]]]:
    plan = plan_batch(
        requests(count), batch_id, None, max_tasks=max_tasks, max_body_bytes=max_bytes
    )
    return [(part.batch_id, [task.task_id for task in part.tasks]) for part in plan.parts]


def test_the_same_requests_make_the_same_parts() -> None:
    assert plan_ids(3, "b") == [("b", ["b-0", "b-1", "b-2"])]
    assert plan_ids(3, "b", max_tasks=2) == [("b.0", ["b-0", "b-1"]), ("b.1", ["b-2"])]
    assert plan_ids(3, "b", max_tasks=2) == plan_ids(3, "b", max_tasks=2)
    assert plan_ids(3, "b", max_bytes=10) == [(f"b.{i}", [f"b-{i}"]) for i in range(3)]


def test_parts_hold_the_servers_limit() -> None:
    sizes = [len(ids) for _, ids in plan_ids(10_000, "b")]
    assert sizes == [4096, 4096, 1808]


def test_the_ids_of_a_batch_with_a_long_name_are_short_enough() -> None:
    ids = list(itertools.chain(*(ids for _, ids in plan_ids(2, "b" * 100))))
    assert len(set(ids)) == 2 and max(map(len, ids)) <= 100
    assert ids == list(itertools.chain(*(ids for _, ids in plan_ids(2, "b" * 100))))
