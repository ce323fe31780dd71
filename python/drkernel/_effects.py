# SPDX-License-Identifier: Apache-2.0
"""What a flow asks its driver to do, and what the driver answers.

A flow is a generator that decides and does no I/O, so one flow serves the blocking client, the
asynchronous one and a test. A driver performs each effect that the flow yields, and sends in what
came of it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from drkernel.types import BatchItem


@dataclass(frozen=True)
class Request:
    """An HTTP request; `timeout_s` is how long the server may be silent."""

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    accept: str = "application/json"
    timeout_s: float = 30.0


@dataclass(frozen=True)
class Reply:
    """An answer with its whole body; `headers` in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Broken:
    """No answer, or half of one. Silent: the connection stood, and nothing came for `timeout_s`."""

    what: str
    is_silent: bool = False


@dataclass(frozen=True)
class Opened:
    """A stream of events has begun."""


@dataclass(frozen=True)
class Piece:
    """Some bytes of a stream; none when it has ended."""

    data: bytes


@dataclass(frozen=True)
class Send:
    """Answered by Reply or Broken."""

    request: Request


@dataclass(frozen=True)
class Open:
    """Answered by Opened, by Reply when it is no stream of events, or by Broken."""

    request: Request


@dataclass(frozen=True)
class Read:
    """The next of the stream opened last. Answered by Piece or Broken."""


@dataclass(frozen=True)
class Sleep:
    """Answered by None."""

    seconds: float


@dataclass(frozen=True)
class Emit:
    """Something for the caller who iterates. Answered by None."""

    item: BatchItem


T = TypeVar("T")
Action: TypeAlias = Send | Open | Read | Sleep
Effect: TypeAlias = Action | Emit
Outcome: TypeAlias = Reply | Broken | Opened | Piece | None
Flow: TypeAlias = Generator[Effect, Outcome, T]


def send(request: Request) -> Flow[Reply | Broken]:
    outcome = yield Send(request)
    assert isinstance(outcome, Reply | Broken)
    return outcome


def open_stream(request: Request) -> Flow[Opened | Reply | Broken]:
    outcome = yield Open(request)
    assert isinstance(outcome, Opened | Reply | Broken)
    return outcome


def read() -> Flow[Piece | Broken]:
    outcome = yield Read()
    assert isinstance(outcome, Piece | Broken)
    return outcome
