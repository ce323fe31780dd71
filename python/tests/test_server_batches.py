# SPDX-License-Identifier: Apache-2.0
"""Batches on the real server, also through its sudden death."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

import pytest

from bundled import candidate, fresh, good, needs_gpu, sleeper
from callers import Connect
from drkernel import (
    ClientOptions,
    Conflict,
    EvaluateRequest,
    Fault,
    NotFound,
    RetryPolicy,
    Status,
    calculate_reward_like_kernel,
)
from real_server import RealServer

OwnServer = Callable[..., RealServer]
PATIENT = RetryPolicy(base_s=0.05, cap_s=0.5, max_failures=60)


def options(**changes: object) -> ClientOptions:
    return ClientOptions(**{"deadline_s": 180.0, **changes})  # type: ignore[arg-type]


def new_id() -> str:
    return f"b-{uuid4().hex[:12]}"


def mixed() -> list[EvaluateRequest]:
    names = ["good", "tail_dropped", "unused_kernel", "sigmoid_form"]
    return [fresh(candidate("level1/gelu_tanh", name)) for name in names]


def test_a_batch_is_judged_in_order(server: RealServer, connect: Connect) -> None:
    asked = [*mixed(), replace(good(), kernel_code="pass"), needs_gpu()]
    batch = connect(server.url, options()).evaluate_batch(asked, batch_id=new_id())
    rewards = [calculate_reward_like_kernel(result) for result in batch.results]
    assert rewards[:5] == [-0.1, -0.3, -1.0, -0.3, -0.5]
    assert [result.task_id for result in batch.results] == [
        f"{batch.batch_id}-{i}" for i in range(6)
    ]
    if batch.results[5].fault is Fault.infra:  # no GPU here
        assert rewards[5] is None and batch.no_verdict_tasks == 1


def test_results_stream_in_the_order_of_completion(server: RealServer, connect: Connect) -> None:
    asked = [sleeper(6), *mixed()]
    items = []
    moments = []
    for item in connect(server.url, options()).iter_batch(asked):
        items.append(item)
        moments.append(time.monotonic())
    assert sorted(item.index for item in items) == list(range(5))
    assert items[-1].index == 0
    assert moments[-1] - moments[0] > 1


def test_the_deadline_of_a_batch_costs_no_candidate_anything(
    server: RealServer, connect: Connect
) -> None:
    started = time.monotonic()
    asked = [fresh(good()), sleeper(100)]
    batch = connect(server.url, options()).evaluate_batch(asked, deadline_s=6)
    assert time.monotonic() - started < 6 + 2 + 1
    assert [calculate_reward_like_kernel(result) for result in batch.results] == [-0.1, None]
    assert "deadline passed during load" in str(batch.results[1].error_message)


def test_a_batch_of_the_same_id_is_joined(server: RealServer, connect: Connect) -> None:
    client, batch_id, asked = connect(server.url, options()), new_id(), mixed()
    first = client.evaluate_batch(asked, batch_id=batch_id)
    assert client.evaluate_batch(asked, batch_id=batch_id) == first
    with pytest.raises(Conflict):
        client.evaluate_batch([*asked[1:], fresh(good())], batch_id=batch_id)


def test_a_submitted_batch_is_looked_at_and_attached_to(
    server: RealServer, connect: Connect
) -> None:
    client, batch_id = connect(server.url, options()), new_id()
    (state,) = client.submit_batch([sleeper(3), *mixed()], batch_id=batch_id)
    assert (state.batch_id, state.total_tasks) == (batch_id, 5)
    slow = client.slowest(batch_id, limit=2)
    assert len(slow) == 2 and all(one.stage for one in slow)
    items = list(client.attach_batch(batch_id))
    assert sorted(item.index for item in items) == list(range(5))
    final = client.batch(batch_id, wait_s=1)
    assert final.batch_status is Status.completed
    assert {item.index: item.result for item in items} == dict(enumerate(final.entries))
    with pytest.raises(NotFound):
        list(client.attach_batch(new_id()))


def test_a_batch_beyond_the_limit_is_split(server: RealServer, connect: Connect) -> None:
    client = connect(server.url, options(max_batch_tasks=3))
    batch = client.evaluate_batch([fresh(good()) for _ in range(7)], batch_id=new_id())
    assert all(result.is_accepted for result in batch.results)
    assert client.batch(f"{batch.batch_id}.2").total_tasks == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_batch_outlives_its_server(
    own_server: OwnServer, connect: Connect, number: signal.Signals
) -> None:
    running = own_server()
    asked = [fresh(good()) for _ in range(12)]
    back = threading.Event()

    def bring_back() -> None:
        running.kill() if number is signal.SIGKILL else running.stop()
        time.sleep(0.5)
        running.start()
        back.set()

    indices = []
    for item in connect(running.url, options(retry=PATIENT)).iter_batch(asked, batch_id="b"):
        assert item.result.is_accepted, item
        indices.append(item.index)
        if len(indices) == 3:
            threading.Thread(target=bring_back, daemon=True).start()
    assert sorted(indices) == list(range(12))  # each once
    assert back.wait(60)


def test_a_submitted_task_outlives_its_server(own_server: OwnServer, connect: Connect) -> None:
    running = own_server()
    client = connect(running.url, options(retry=PATIENT))
    task_id = client.submit(sleeper(2)).task_id
    client.status(task_id, wait_s=30, since=Status.pending)
    running.kill()
    running.start()
    assert client.wait(task_id).is_accepted


def test_a_held_evaluation_outlives_its_server(own_server: OwnServer, connect: Connect) -> None:
    running = own_server()
    client = connect(running.url, options(retry=PATIENT))
    request = sleeper(4, task_id="held")

    def interrupt() -> None:
        time.sleep(2)
        running.kill()
        running.start()

    thread = threading.Thread(target=interrupt)
    thread.start()
    assert client.evaluate(request).is_accepted
    thread.join()


def test_another_process_takes_a_batch_up(own_server: OwnServer, connect: Connect) -> None:
    running = own_server()
    asked = [fresh(good()) for _ in range(6)]
    client = connect(running.url, options(retry=PATIENT))
    items = iter(client.iter_batch(asked, batch_id="b"))
    first = next(items)
    items.close()  # type: ignore[attr-defined]
    running.kill()
    running.start()
    batch = connect(running.url, options(retry=PATIENT)).evaluate_batch(asked, batch_id="b")
    assert all(result.is_accepted for result in batch.results)
    assert batch.results[first.index] == first.result


def test_many_clients_at_once(server: RealServer, connect: Connect) -> None:
    client = connect(server.url, options())
    requests = [*mixed(), *mixed(), *mixed()]
    results = client.evaluate_many(requests, max_concurrent=6)
    rewards = [calculate_reward_like_kernel(result) for result in results]
    assert rewards == [-0.1, -0.3, -1.0, -0.3] * 3


def test_what_a_client_leaves_behind_is_ended(own_server: OwnServer, connect: Connect) -> None:
    client = connect(own_server("--abandon-after", "1").url, options())
    items = iter(client.iter_batch([fresh(good()), sleeper(100)], batch_id="b"))
    assert next(items).index == 0
    items.close()  # type: ignore[attr-defined]
    time.sleep(5)  # asking how it is would show interest
    assert client.status("b-1").status is Status.cancelled
