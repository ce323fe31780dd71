# SPDX-License-Identifier: Apache-2.0
"""Single tasks, on the real server with real candidates."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

import drkernel
from bundled import candidate, fresh, good, needs_gpu, sleeper
from callers import Connect
from drkernel import (
    Client,
    ClientOptions,
    Conflict,
    Fault,
    NotFound,
    NoVerdict,
    Priority,
    QueueFull,
    RetryPolicy,
    Status,
    Unauthorized,
    ValidationError,
    calculate_reward_like_kernel,
    calculate_reward_speedup,
)
from real_server import RealServer

QUICK = RetryPolicy(base_s=0.05, cap_s=0.5, max_no_verdicts=1)
OwnServer = Callable[..., RealServer]


def options(**changes: object) -> ClientOptions:
    return ClientOptions(**{"deadline_s": 120.0, **changes})  # type: ignore[arg-type]


def new_id() -> str:
    return f"t-{uuid4().hex[:12]}"


def test_the_server_says_how_it_is(server: RealServer, connect: Connect) -> None:
    health = connect(server.url, options()).health()
    assert health.status in ("healthy", "starting")
    assert health.uptime > 0
    assert health.raw["version"] == drkernel.__version__


@pytest.mark.parametrize(
    ("problem", "name", "like_kernel", "code"),
    [
        ("level1/gelu_tanh", "good", -0.1, None),  # right, and not timed without a GPU
        ("level1/gelu_tanh", "tail_dropped", -0.3, "CORRECTNESS_ERROR"),
        ("level1/gelu_tanh", "unused_kernel", -1.0, "CORRECTNESS_ERROR"),
        ("level1/exceeds_threshold", "syntax_error", -0.5, "SYNTAX_ERROR"),
        ("level1/label_counts", "raises", -0.3, "RUNTIME_ERROR"),
        ("level1/polar_to_complex", "no_model_new", -0.5, "INSTANTIATION_ERROR"),
    ],
)
def test_candidates_get_their_verdicts_and_rewards(
    server: RealServer,
    connect: Connect,
    problem: str,
    name: str,
    like_kernel: float,
    code: str | None,
) -> None:
    result = connect(server.url, options()).evaluate(candidate(problem, name))
    assert result.has_verdict
    assert (calculate_reward_like_kernel(result), result.error_code) == (like_kernel, code)
    assert result.is_accepted == (name == "good")
    assert calculate_reward_speedup(result) == (0.5 if name == "good" else 0.0)
    assert result.fault in (None, Fault.candidate)
    assert result.timeline[0].name == "queue"


def test_a_task_is_joined_by_its_id_and_guarded_against_other_content(
    server: RealServer, connect: Connect
) -> None:
    client = connect(server.url, options())
    request = fresh(good(task_id=new_id()))
    first = client.evaluate(request)
    again = client.evaluate(request)
    assert again == first and not first.cached
    with pytest.raises(Conflict, match=str(request.task_id)):
        client.evaluate(fresh(request))
    replaced = client.evaluate(replace(fresh(request), force_refresh=True))
    assert replaced.task_id == first.task_id
    assert replaced.completed_at != first.completed_at


def test_the_same_content_is_not_judged_twice(server: RealServer, connect: Connect) -> None:
    client = connect(server.url, options())
    request = fresh(good())
    assert [client.evaluate(request).cached for _ in range(2)] == [False, True]
    assert client.evaluate(replace(request, force_refresh=True)).cached is False


def test_a_submitted_task_can_be_followed(server: RealServer, connect: Connect) -> None:
    client = connect(server.url, options())
    request = sleeper(0.5, task_id=new_id(), priority=Priority.high)
    submitted = client.submit(request)
    assert (submitted.task_id, submitted.priority) == (request.task_id, Priority.high)
    changed = client.status(submitted.task_id, wait_s=30, since=Status.pending)
    assert changed.status is not Status.pending
    result = client.wait(submitted.task_id)
    assert result.is_accepted
    assert client.results(submitted.task_id) == result
    assert client.status(submitted.task_id).progress == 1


def test_an_unfinished_result_is_not_found(server: RealServer, connect: Connect) -> None:
    client = connect(server.url, options())
    task_id = client.submit(sleeper(1)).task_id
    with pytest.raises(NotFound):
        client.results(task_id)
    assert client.results(task_id, wait_s=60).is_accepted


def test_an_unknown_task_is_not_found(server: RealServer, connect: Connect) -> None:
    client = connect(server.url, options())
    for ask in (client.status, client.results, client.wait, client.cancel, client.batch):
        with pytest.raises(NotFound):
            ask(f"no/such task {uuid4().hex}")


def test_any_id_works(server: RealServer, connect: Connect) -> None:
    client = connect(server.url, options())
    task_id = f"a/b?c=1#ü %2F{uuid4().hex}"
    assert client.evaluate(good(task_id=task_id)).task_id == task_id
    assert client.status(task_id).task_id == task_id
    assert client.results(task_id).task_id == task_id


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"num_correct_trials": 21}, "num_correct_trials"),
        ({"timeout": 5}, "timeout"),
        ({"backend": "opencl"}, "backend"),
        ({"task_id": "t" * 101}, "task_id"),
        ({"kernel_code": "short"}, "kernel_code"),
        ({"use_reference_cache": True}, "use_reference_cache"),
    ],
)
def test_a_field_that_breaks_a_rule_is_named(
    server: RealServer, connect: Connect, changes: dict[str, object], field: str
) -> None:
    client = connect(server.url, options())
    with pytest.raises(ValidationError, match=field):
        client.evaluate(good(**changes))
    validation = client.validate(good(**changes))
    assert not validation.valid and field in str(validation.errors)


def test_a_good_request_is_valid(server: RealServer, connect: Connect) -> None:
    validation = connect(server.url, options()).validate(good())
    assert validation.valid and validation.errors == ()
    assert validation.kernel["entry_point"] == "ModelNew"


def test_a_running_task_is_stopped(server: RealServer, connect: Connect) -> None:
    client = connect(server.url, options())
    task_id = client.submit(sleeper(100)).task_id
    client.status(task_id, wait_s=60, since=Status.pending)
    started = time.monotonic()
    assert client.cancel(task_id).status is Status.cancelled
    result = client.wait(task_id)
    assert time.monotonic() - started < 5
    assert result.status is Status.cancelled
    assert calculate_reward_like_kernel(result) is None
    with pytest.raises(NotFound):
        connect(server.url, options()).cancel(client.submit(good(task_id=new_id())).task_id + "-")


def test_a_candidate_that_takes_too_long_is_at_fault(server: RealServer) -> None:
    with Client(server.url, options()) as client:
        result = client.evaluate(sleeper(100, timeout=10))
    assert (result.status, result.error_code) == (Status.timeout, "TIMEOUT_ERROR")
    assert result.has_verdict and calculate_reward_speedup(result) == 0


def test_a_deadline_names_the_stage_and_costs_nothing(server: RealServer, connect: Connect) -> None:
    client = connect(server.url, options(retry=QUICK))
    started = time.monotonic()
    with pytest.raises(NoVerdict, match="deadline passed during"):
        client.evaluate(sleeper(100), deadline_s=3)
    assert time.monotonic() - started < 3 + 2 + 1
    (result,) = client.evaluate_many([sleeper(100)], deadline_s=3)
    assert calculate_reward_like_kernel(result) is None


def test_a_fault_of_the_machine_is_no_verdict(server: RealServer, connect: Connect) -> None:
    if connect(server.url, options()).health().gpu_status:
        pytest.skip("has a GPU")
    client = connect(server.url, options(retry=QUICK))
    with pytest.raises(NoVerdict, match="GPU"):
        client.evaluate(needs_gpu())
    lost, fine = client.evaluate_many([needs_gpu(), good()])
    assert calculate_reward_speedup(lost) is None
    assert calculate_reward_speedup(fine) == 0.5


def test_tokens_are_asked_for(own_server: OwnServer, connect: Connect, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("trainer s3cret-token-of-the-trainer\n")
    tokens.chmod(0o600)
    url = own_server("--tokens", str(tokens)).url
    assert connect(url, options()).health().status
    for token in (None, "wrong-token"):
        with pytest.raises(Unauthorized):
            connect(url, options(token=token)).evaluate(good())
    client = connect(url, options(token="s3cret-token-of-the-trainer"))
    assert client.submit(good(task_id="mine")).client == "trainer"
    assert client.wait("mine").is_accepted


def test_a_full_queue_is_told_and_waited_for(own_server: OwnServer, connect: Connect) -> None:
    url = own_server("--max-pending", "2", "--jobs", "1").url
    client = connect(url, options(retry=RetryPolicy(base_s=0.05, cap_s=0.5)))
    tasks = [client.submit(sleeper(100)).task_id]
    client.status(tasks[0], wait_s=30, since=Status.pending)
    with pytest.raises(QueueFull):
        for _ in range(4):
            tasks.append(client.submit(sleeper(100), deadline_s=0.3).task_id)
    assert len(tasks) == 3  # one runs, two are in the queue
    for task_id in tasks:
        client.cancel(task_id)
    results = client.evaluate_many([fresh(good()) for _ in range(12)], max_concurrent=12)
    assert all(result.is_accepted for result in results)
