# SPDX-License-Identifier: Apache-2.0
"""When a request is tried again, and what it means when it is not. Pure.

Every request may be repeated: a task or batch keeps its id, so a second POST joins the first.
"""

from __future__ import annotations

from dataclasses import dataclass

from drkernel._effects import Broken, Reply
from drkernel._json import Fields, decode
from drkernel.errors import (
    Conflict,
    DrkernelError,
    NotFound,
    NoVerdict,
    ProtocolError,
    QueueFull,
    RequestError,
    ServerError,
    ServerUnreachable,
    Unauthorized,
    ValidationError,
)

_REFUSALS: dict[int, type[RequestError]] = {
    400: ValidationError,
    401: Unauthorized,
    404: NotFound,
    409: Conflict,
}
_PASSING_ERRORS = (408, 500, 502, 504)


@dataclass(frozen=True)
class RetryPolicy:
    """How patient a client is; the deadline of a call bounds all of it.

    A full queue (429) is waited for until the deadline. Anything else is given up when it has
    happened `max_failures` times in a row; a 503 to an evaluation, which may have cost the server
    all its attempts, after `max_no_verdicts`.
    """

    base_s: float = 0.5
    cap_s: float = 30.0
    max_failures: int = 10
    max_no_verdicts: int = 4

    def delay_s(self, failures: int, retry_after_s: float | None, chance: float) -> float:
        """The pause after the `failures`-th failure in a row; `chance` is from 0 to 1.

        Doubles from `base_s` up to `cap_s`, and half of it is left to chance, so that clients that
        failed together do not come back together. Never below what the server asked for.
        """
        doubled_s = min(self.cap_s, self.base_s * 2.0 ** min(failures - 1, 60))
        jittered_s = doubled_s * (0.5 + 0.5 * chance)
        if retry_after_s is None:
            return jittered_s
        return max(jittered_s, retry_after_s * (1 + 0.25 * chance))


@dataclass(frozen=True)
class Tally:
    """What went wrong in a row."""

    failures: int = 0
    no_verdicts: int = 0
    queue_fulls: int = 0

    @property
    def total(self) -> int:
        return self.failures + self.no_verdicts + self.queue_fulls


@dataclass(frozen=True)
class TryAgain:
    tally: Tally
    delay_s: float
    cause: DrkernelError


def next_step(
    policy: RetryPolicy,
    tally: Tally,
    outcome: Reply | Broken,
    *,
    what: str,
    chance: float,
    is_evaluation: bool = False,
) -> TryAgain:
    """What to do about an outcome that is no success; raises when that is to give up."""
    error = error_of(outcome, what)
    match error:
        case QueueFull():
            tally = Tally(tally.failures, tally.no_verdicts, tally.queue_fulls + 1)
            is_last = False
        case ServerError() | ServerUnreachable():
            tally = Tally(tally.failures + 1, tally.no_verdicts, tally.queue_fulls)
            is_last = tally.failures >= policy.max_failures
        case NoVerdict():
            tally = Tally(tally.failures, tally.no_verdicts + 1, tally.queue_fulls)
            limit = policy.max_no_verdicts if is_evaluation else policy.max_failures
            is_last = tally.no_verdicts >= limit
        case _:
            raise error
    if is_last:
        raise error
    return TryAgain(tally, policy.delay_s(tally.total, retry_after_s(outcome), chance), error)


def error_of(outcome: Reply | Broken, what: str) -> DrkernelError:
    """The error that an outcome stands for; `what` was asked for."""
    if isinstance(outcome, Broken):
        return ServerUnreachable(f"{what}: {outcome.what}")
    text = f"{what}: {outcome.status}, {detail_of(outcome)}"
    if outcome.status in _REFUSALS:
        return _REFUSALS[outcome.status](text, outcome.status)
    if outcome.status == 429:
        return QueueFull(text)
    if outcome.status == 503:
        return NoVerdict(text)
    if outcome.status in _PASSING_ERRORS or outcome.status > 504:
        return ServerError(text)
    return RequestError(text, outcome.status)


def detail_of(reply: Reply) -> str:
    """The server's words for what is wrong."""
    try:
        of = Fields(decode(reply.body), "error")
        told = of.text("message") or of.text("detail")
    except ProtocolError:  # a proxy's page
        told = None
    return told or reply.body[:200].decode(errors="replace") or "no text"


def retry_after_s(outcome: Reply | Broken) -> float | None:
    """In seconds; the form with a date is not read."""
    if isinstance(outcome, Broken):
        return None
    try:
        seconds = float(outcome.headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
