# SPDX-License-Identifier: Apache-2.0
"""Single calls of both clients against a server that misbehaves."""

from __future__ import annotations

import logging
import time
from urllib.parse import unquote

import pytest

from callers import Connect
from drkernel import (
    Client,
    ClientOptions,
    Conflict,
    DeadlineExceeded,
    EvaluateRequest,
    Fault,
    NotFound,
    NoVerdict,
    ProtocolError,
    QueueFull,
    RetryPolicy,
    ServerUnreachable,
    Status,
    Unauthorized,
    ValidationError,
)
from hostile_server import (
    HostileServer,
    Seen,
    answer,
    half_a_reply,
    hang_up,
    no_http,
    raw_reply,
    reply,
    result_body,
    silence,
    status_body,
)

QUICK = RetryPolicy(base_s=0.01, cap_s=0.05, max_failures=4, max_no_verdicts=3)
REQUEST = EvaluateRequest(kernel_code="class ModelNew: pass", reference_code="class Model: pass")


def options(**changes: object) -> ClientOptions:
    return ClientOptions(**{"retry": QUICK, "deadline_s": 20.0, **changes})  # type: ignore[arg-type]


def judge(seen: Seen) -> tuple[int, object]:
    return 200, result_body(seen.body["task_id"])


@pytest.mark.parametrize(
    "failure", [hang_up, half_a_reply, no_http, reply(502, {}), reply(408, {})]
)
def test_a_broken_answer_is_asked_for_again_with_the_same_id(
    hostile: HostileServer, connect: Connect, failure: object
) -> None:
    hostile.script(failure, failure, answer(judge))  # type: ignore[arg-type]
    result = connect(hostile.url, options()).evaluate(REQUEST)
    assert result.is_accepted and result.speedup == 1.5
    sent = {seen.body["task_id"] for seen in hostile.requests}
    assert len(hostile.requests) == 3 and sent == {result.task_id}


def test_a_task_id_of_ones_own_is_kept(hostile: HostileServer, connect: Connect) -> None:
    hostile.script(hang_up, answer(judge))
    request = EvaluateRequest(task_id="mine", kernel_code="class ModelNew: pass")
    assert connect(hostile.url, options()).evaluate(request).task_id == "mine"
    assert [seen.body["task_id"] for seen in hostile.requests] == ["mine", "mine"]


def test_a_server_that_is_not_there_is_given_up(connect: Connect) -> None:
    client = connect("http://127.0.0.1:9", options())
    with pytest.raises(ServerUnreachable, match="ConnectError"):
        client.evaluate(REQUEST)


def test_a_503_is_retried_after_the_time_it_names(hostile: HostileServer, connect: Connect) -> None:
    busy = reply(503, {"detail": "stopping"}, {"Retry-After": "0.3"})
    hostile.script(busy, answer(judge))
    started = time.monotonic()
    assert connect(hostile.url, options()).evaluate(REQUEST).is_accepted
    assert time.monotonic() - started >= 0.3


def test_a_503_that_stays_is_no_verdict(hostile: HostileServer, connect: Connect) -> None:
    hostile.script(otherwise=reply(503, {"detail": "no GPU here"}, {"Retry-After": "0.01"}))
    with pytest.raises(NoVerdict, match="no GPU here") as caught:
        connect(hostile.url, options()).evaluate(REQUEST)
    assert type(caught.value) is NoVerdict
    assert len(hostile.requests) == 3


def test_a_full_queue_is_waited_for(
    hostile: HostileServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    full = reply(429, {"detail": "queue is full"}, {"Retry-After": "0.02"})
    hostile.script(*[full] * 10, answer(judge))
    with caplog.at_level(logging.WARNING, "drkernel"):
        assert connect(hostile.url, options()).evaluate(REQUEST).is_accepted
    assert "queue is full; next try in" in caplog.text


def test_a_queue_that_stays_full_beyond_the_deadline_is_told_at_once(
    hostile: HostileServer, connect: Connect
) -> None:
    hostile.script(otherwise=reply(429, {"detail": "queue is full"}, {"Retry-After": "60"}))
    started = time.monotonic()
    with pytest.raises(QueueFull):
        connect(hostile.url, options()).evaluate(REQUEST, deadline_s=10)
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"error": "x", "message": "timeout: 5", "error_code": "V"}, ValidationError),
        (401, {"detail": "no token"}, Unauthorized),
        (404, {"detail": "unknown"}, NotFound),
        (409, {"detail": "other content"}, Conflict),
    ],
)
def test_a_refusal_is_not_asked_for_again(
    hostile: HostileServer, connect: Connect, status: int, body: object, kind: type[Exception]
) -> None:
    hostile.script(reply(status, body))
    with pytest.raises(kind):
        connect(hostile.url, options()).evaluate(REQUEST)
    assert len(hostile.requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[1]",
        b'{"task_id": "t"}',
        b'{"task_id": "t", "status": "levitating"}',
        b'{"task_id": "t", "status": "completed", "speedup": NaN}',
        b'{"task_id": "t", "status": "completed", "speedup": 1e999}',
        b'{"task_id": "t", "status": "completed", "correctness": "yes"}',
    ],
)
def test_an_answer_that_is_no_result_is_said_to_be_none(
    hostile: HostileServer, connect: Connect, body: bytes
) -> None:
    hostile.script(raw_reply(200, body, "application/json"))
    with pytest.raises(ProtocolError):
        connect(hostile.url, options()).evaluate(REQUEST)


def test_unknown_fields_are_kept_and_absent_ones_are_no_fault(
    hostile: HostileServer, connect: Connect
) -> None:
    hostile.script(reply(200, {"task_id": "t", "status": "completed", "novelty": [1]}))
    result = connect(hostile.url, options()).evaluate(REQUEST)
    assert result.raw["novelty"] == [1]
    assert (result.correctness, result.reference_runtime, result.timeline) == (None, None, ())
    assert not result.is_accepted


def test_the_deadline_ends_a_call_and_the_server_is_told_it(
    hostile: HostileServer, connect: Connect
) -> None:
    hostile.script(otherwise=silence(60))
    started = time.monotonic()
    with pytest.raises(DeadlineExceeded):
        connect(hostile.url, options()).evaluate(REQUEST, deadline_s=0.5)
    assert time.monotonic() - started < 0.5 + 2.0 + 1.0  # deadline, grace, slow machine
    assert 0 < hostile.requests[0].body["deadline_s"] <= 0.5


def test_a_deadline_of_the_request_is_the_calls_too(
    hostile: HostileServer, connect: Connect
) -> None:
    hostile.script(otherwise=reply(503, {}, {"Retry-After": "5"}))
    request = EvaluateRequest(kernel_code="class ModelNew: pass", deadline_s=2)
    started = time.monotonic()
    with pytest.raises(DeadlineExceeded):
        connect(hostile.url, options()).evaluate(request)
    assert time.monotonic() - started < 1


def test_a_silent_server_is_joined_again_and_the_wait_is_logged(
    hostile: HostileServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    where = status_body("t", status="processing", stage="correctness", assigned_device="cuda:1")
    hostile.script(silence(2), reply(200, where), answer(judge))
    with caplog.at_level(logging.WARNING, "drkernel"):
        result = connect(hostile.url, options(overdue_s=0.2)).evaluate(REQUEST)
    assert result.is_accepted
    posts = [seen for seen in hostile.requests if seen.method == "POST"]
    assert [post.body["task_id"] for post in posts] == [result.task_id] * 2
    assert f"waiting for {result.task_id} since 0 s: in stage correctness on cuda:1" in caplog.text


def test_many_silences_are_no_failure(hostile: HostileServer, connect: Connect) -> None:
    rounds = [silence(1), reply(404, {})] * (QUICK.max_failures + 2)
    hostile.script(*rounds, answer(judge))
    assert connect(hostile.url, options(overdue_s=0.1)).evaluate(REQUEST).is_accepted


def test_a_server_that_does_not_even_tell_where_a_task_is_is_given_up(
    hostile: HostileServer, connect: Connect
) -> None:
    rounds = [silence(1), hang_up] * QUICK.max_failures
    hostile.script(*rounds, answer(judge))
    with pytest.raises(ServerUnreachable, match="ReadTimeout"):
        connect(hostile.url, options(overdue_s=0.1)).evaluate(REQUEST)


def test_text_that_is_no_unicode_is_not_sent(hostile: HostileServer, connect: Connect) -> None:
    with pytest.raises(ValidationError, match="surrogates not allowed"):
        connect(hostile.url, options()).evaluate(EvaluateRequest(kernel_code="lone \ud800 code"))
    assert hostile.requests == []


def test_a_forced_refresh_is_asked_for_once(hostile: HostileServer, connect: Connect) -> None:
    request = EvaluateRequest(task_id="t", kernel_code="class ModelNew: pass", force_refresh=True)
    hostile.script(reply(202, status_body("t")), hang_up, answer(judge))
    connect(hostile.url, options()).evaluate(request)
    assert [seen.query.get("async") for seen in hostile.requests] == ["1", None, None]
    assert [seen.body.get("force_refresh") for seen in hostile.requests] == [True, None, None]


def test_submitting_answers_with_a_status(hostile: HostileServer, connect: Connect) -> None:
    body = status_body("t", queue_position=3, queue_ahead=2, why_waiting="2 ahead", attempts=0)
    hostile.script(hang_up, reply(202, body))
    status = connect(hostile.url, options()).submit(REQUEST)
    assert (status.status, status.queue_position, status.why_waiting) == ("pending", 3, "2 ahead")
    assert hostile.requests[1].query == {"async": "1"}
    assert "deadline_s" not in hostile.requests[1].body  # the call's deadline is not the task's


def test_waiting_follows_a_task_to_its_end(
    hostile: HostileServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    hostile.script(
        reply(200, status_body("t", queue_position=7, why_waiting="6 ahead")),
        hang_up,
        reply(200, status_body("t", status="processing", stage="time")),
        reply(200, status_body("t", status="completed")),
        reply(200, result_body("t")),
    )
    with caplog.at_level(logging.WARNING, "drkernel"):
        assert connect(hostile.url, options(overdue_s=0.0)).wait("t").is_accepted
    paths = [(seen.path, seen.query.get("since")) for seen in hostile.requests]
    assert paths == [
        ("/status/t", None),
        ("/status/t", "pending"),
        ("/status/t", "pending"),
        ("/status/t", "processing"),
        ("/results/t", None),
    ]
    assert "in the queue, number 7: 6 ahead" in caplog.text
    assert "in stage time" in caplog.text


def test_waiting_ends_at_the_deadline_and_says_where_the_task_is(
    hostile: HostileServer, connect: Connect
) -> None:
    hostile.script(otherwise=reply(200, status_body("t", status="processing", stage="load")))
    with pytest.raises(DeadlineExceeded, match="in stage load after 0.3 s"):
        connect(hostile.url, options()).wait("t", deadline_s=0.3)


def test_a_result_without_a_verdict_is_a_result_when_it_is_fetched(
    hostile: HostileServer, connect: Connect
) -> None:
    stored = result_body("t", status="failed", compiled=False, fault="infra")
    hostile.script(reply(200, stored))
    result = connect(hostile.url, options()).results("t")
    assert result.fault is Fault.infra and not result.has_verdict


@pytest.mark.parametrize("task_id", ["a/b c", "../x?y=1#z", "50%", "%2F", "Ünïcode", ".", ".."])
def test_any_task_id_reaches_the_server_as_it_is(
    hostile: HostileServer, connect: Connect, task_id: str
) -> None:
    hostile.script(reply(200, status_body(task_id)))
    connect(hostile.url, options()).status(task_id)
    assert unquote(hostile.requests[0].path) == f"/status/{task_id}"
    assert hostile.requests[0].query == {}


def test_cancelling_survives_a_lost_answer(hostile: HostileServer, connect: Connect) -> None:
    gone, state = reply(404, {"detail": "final"}), status_body("t", status="cancelled")
    hostile.script(half_a_reply, gone, reply(200, state))
    assert connect(hostile.url, options()).cancel("t").status is Status.cancelled


def test_what_is_final_is_not_cancelled(hostile: HostileServer, connect: Connect) -> None:
    hostile.script(reply(404, {"detail": "x"}), reply(200, status_body("t", status="completed")))
    with pytest.raises(NotFound):
        connect(hostile.url, options()).cancel("t")


def test_who_asks_is_in_the_headers(hostile: HostileServer, connect: Connect) -> None:
    hostile.script(otherwise=answer(judge))
    connect(hostile.url + "/", options(token="secret", client_name="me")).evaluate(REQUEST)
    headers = hostile.requests[0].headers
    assert headers["authorization"] == "Bearer secret"
    assert headers["x-drk-client"] == "me"
    assert headers["user-agent"].startswith("drkernel-python/")
    assert headers["content-type"] == "application/json"
    assert "secret" not in repr(options(token="secret"))


def test_only_what_was_set_is_sent(hostile: HostileServer, connect: Connect) -> None:
    hostile.script(otherwise=answer(judge))
    request = EvaluateRequest(
        task_id="t", kernel_code="klass ModelNew ü", timeout=30, run_performance=False
    )
    connect(hostile.url, options(deadline_s=None)).evaluate(request)
    assert hostile.requests[0].body == {
        "task_id": "t",
        "kernel_code": "klass ModelNew ü",
        "timeout": 30,
        "run_performance": False,
    }


@pytest.mark.parametrize("url", ["127.0.0.1:10907", "ftp://x", ""])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="http://"):
        Client(url)


def test_many_are_judged_each_on_its_own_and_in_order(
    hostile: HostileServer, connect: Connect
) -> None:
    def judge_by_code(seen: Seen) -> tuple[int, object]:
        if "infra" in seen.body["kernel_code"]:
            return 503, {"detail": "lost a worker"}
        return 200, result_body(seen.body["task_id"], speedup=float(seen.body["kernel_code"][-1]))

    hostile.script(hang_up, otherwise=answer(judge_by_code))
    codes = ["kernel code 0", "infra code 1", "short", "kernel code 3", "lone \ud800 code"]
    requests = [EvaluateRequest(kernel_code=code, task_id=f"t{i}") for i, code in enumerate(codes)]
    results = connect(hostile.url, options()).evaluate_many(requests, max_concurrent=3)

    assert [result.task_id for result in results] == ["t0", "t1", "t2", "t3", "t4"]
    assert [result.has_verdict for result in results] == [True, False, True, True, True]
    assert [result.speedup for result in results] == [0, 0, 0, 3, 0]
    assert results[1].error_message is not None and "lost a worker" in results[1].error_message
    # What the policy wrote and no server would look at is its own fault.
    assert [results[i].fault for i in (2, 4)] == [Fault.candidate] * 2
    assert "5 characters" in str(results[2].error_message)


def test_no_more_than_so_many_run_at_a_time(hostile: HostileServer, connect: Connect) -> None:
    running, most = [0], [0]

    def slow(seen: Seen) -> tuple[int, object]:
        running[0] += 1
        most[0] = max(most[0], running[0])
        time.sleep(0.05)
        running[0] -= 1
        return judge(seen)

    hostile.script(otherwise=answer(slow))
    client = connect(hostile.url, options())
    assert len(client.evaluate_many([REQUEST] * 20, max_concurrent=4)) == 20
    assert 2 <= most[0] <= 4
    assert client.evaluate_many([]) == []


def test_what_is_wrong_with_the_request_itself_ends_all(
    hostile: HostileServer, connect: Connect
) -> None:
    hostile.script(otherwise=reply(400, {"message": "timeout: 1 is not in 10 to 3600"}))
    with pytest.raises(ValidationError):
        connect(hostile.url, options()).evaluate_many([REQUEST] * 5, max_concurrent=2)
