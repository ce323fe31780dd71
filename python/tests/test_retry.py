# SPDX-License-Identifier: Apache-2.0
"""When a request is tried again: the schedule, and what each answer means."""

import json
from collections.abc import Mapping

import pytest

from drkernel import errors
from drkernel._effects import Broken, Reply
from drkernel.retry import RetryPolicy, Tally, error_of, next_step

POLICY = RetryPolicy(base_s=0.5, cap_s=30, max_failures=3, max_no_verdicts=2)


def answered(status: int, body: object = None, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(status, headers or {}, json.dumps(body or {}).encode())


def test_pauses_double_up_to_the_cap() -> None:
    latest = [POLICY.delay_s(n, None, chance=1) for n in range(1, 10)]
    assert latest == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


def test_half_of_a_pause_is_left_to_chance() -> None:
    assert [POLICY.delay_s(3, None, chance) for chance in (0, 0.5, 1)] == [1, 1.5, 2]


def test_a_pause_is_never_shorter_than_the_server_asks() -> None:
    assert POLICY.delay_s(1, 10, chance=0) == 10
    assert POLICY.delay_s(1, 10, chance=1) == 12.5  # spread, so that not all come at once
    assert POLICY.delay_s(6, 10, chance=1) == 16


def test_after_very_many_failures_the_pause_is_the_cap() -> None:
    assert POLICY.delay_s(100_000, None, chance=1) == 30


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.ValidationError),
        (401, errors.Unauthorized),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (405, errors.RequestError),
        (413, errors.RequestError),
        (302, errors.RequestError),
    ],
)
def test_refusals_are_final(status: int, kind: type[errors.RequestError]) -> None:
    with pytest.raises(kind) as caught:
        next_step(POLICY, Tally(), answered(status), what="x", chance=0)
    assert type(caught.value) is kind
    assert caught.value.status == status


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (Broken("reset"), errors.ServerUnreachable),
        (answered(408), errors.ServerError),
        (answered(500), errors.ServerError),
        (answered(502), errors.ServerError),
        (answered(504), errors.ServerError),
        (answered(599), errors.ServerError),
    ],
)
def test_failures_are_given_up_after_so_many_in_a_row(
    outcome: Reply | Broken, kind: type[errors.DrkernelError]
) -> None:
    tally = Tally()
    for expected_s in (0.25, 0.5):
        step = next_step(POLICY, tally, outcome, what="x", chance=0)
        assert step.delay_s == expected_s
        tally = step.tally
    with pytest.raises(kind):
        next_step(POLICY, tally, outcome, what="x", chance=0)


def test_a_503_to_an_evaluation_has_a_limit_of_its_own() -> None:
    outcome = answered(503, {"detail": "no GPU"}, {"retry-after": "7"})
    step = next_step(
        POLICY, Tally(failures=1), outcome, what="evaluate t", chance=0, is_evaluation=True
    )
    assert step.delay_s == 7
    assert step.tally == Tally(failures=1, no_verdicts=1)
    with pytest.raises(errors.NoVerdict, match="evaluate t: 503, no GPU"):
        next_step(POLICY, step.tally, outcome, what="evaluate t", chance=0, is_evaluation=True)
    assert next_step(POLICY, step.tally, outcome, what="status t", chance=0).tally.no_verdicts == 2


def test_a_full_queue_is_not_given_up() -> None:
    step = next_step(POLICY, Tally(queue_fulls=500), answered(429), what="x", chance=1)
    assert step.delay_s == 30
    assert isinstance(step.cause, errors.QueueFull)


@pytest.mark.parametrize("value", ["", "soon", "-1", "nan", "inf", "Mon, 30 Nov 2026 12:00:00 GMT"])
def test_a_retry_after_that_is_no_number_of_seconds_is_ignored(value: str) -> None:
    step = next_step(
        POLICY, Tally(), answered(429, headers={"retry-after": value}), what="x", chance=0
    )
    assert step.delay_s == 0.25


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"message": "timeout: 5 is not in 10 to 3600", "detail": "x"}', "timeout: 5 is not"),
        (b'{"detail": "queue is full"}', "queue is full"),
        (b'{"detail": {"odd": 1}}', '{"detail": {"odd"'),
        (b"<html>Bad gateway</html>", "<html>Bad gateway"),
        (b"", "no text"),
        (b"\xff\xfe", "\ufffd"),
    ],
)
def test_the_error_tells_the_servers_words(body: bytes, told: str) -> None:
    assert told in str(error_of(Reply(400, {}, body), "validate"))


def test_all_that_gives_no_reward_is_a_no_verdict() -> None:
    for kind in (
        errors.QueueFull,
        errors.ServerError,
        errors.ServerUnreachable,
        errors.DeadlineExceeded,
    ):
        assert issubclass(kind, errors.NoVerdict)
