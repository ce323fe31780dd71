# SPDX-License-Identifier: Apache-2.0
"""The blocking client."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import TypeVar

import httpx

from drkernel import _batches, _config, _flows
from drkernel._config import DEFAULT_URL, ClientOptions
from drkernel._effects import (
    Action,
    Broken,
    Emit,
    Flow,
    Open,
    Opened,
    Outcome,
    Piece,
    Read,
    Reply,
    Request,
    Send,
    Sleep,
)
from drkernel._fan_in import fan_in
from drkernel.types import (
    BatchItem,
    BatchResult,
    BatchState,
    Cancellation,
    EvaluateRequest,
    Health,
    Result,
    Status,
    TaskStatus,
    Validation,
)
from drkernel.waits import Slow, slowest

T = TypeVar("T")


class Client:
    """Asks a server for verdicts. Thread-safe; close it, or use it in a `with`.

    Every call retries what passes, with pauses that grow and vary, and ends by its deadline
    (`deadline_s`, else the options' own). It raises a `RequestError` where asking again is no use,
    and a `NoVerdict` where nothing was found out: that is no reward, and never a penalty. Calls for
    many candidates do not raise `NoVerdict`: they give a Result whose `has_verdict` is false.
    """

    def __init__(self, url: str = DEFAULT_URL, options: ClientOptions | None = None) -> None:
        self._options = options or ClientOptions()
        self._ctx = self._options.context()
        self._http = httpx.Client(**_config.http_settings(url, self._options))

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def evaluate(self, request: EvaluateRequest, *, deadline_s: float | None = None) -> Result:
        """Judges one candidate."""
        return self._run(_flows.evaluate(self._ctx, request, self._ctx.deadline(deadline_s)))

    def submit(self, request: EvaluateRequest, *, deadline_s: float | None = None) -> TaskStatus:
        """Hands one candidate in and does not wait; the server keeps it until it is judged."""
        return self._run(_flows.submit(self._ctx, request, self._ctx.deadline(deadline_s)))

    def status(self, task_id: str, *, wait_s: float = 0, since: Status | None = None) -> TaskStatus:
        """Where a task is; with `wait_s`, once that is no longer `since` (else: the present)."""
        deadline = self._ctx.deadline(None)
        return self._run(_flows.status(self._ctx, task_id, deadline, wait_s=wait_s, since=since))

    def results(self, task_id: str, *, wait_s: float = 0) -> Result:
        """The result; raises NotFound when there is none (within `wait_s`)."""
        deadline = self._ctx.deadline(None)
        return self._run(_flows.results(self._ctx, task_id, deadline, wait_s=wait_s))

    def wait(self, task_id: str, *, deadline_s: float | None = None) -> Result:
        """The result, once there is one."""
        return self._run(_flows.wait(self._ctx, task_id, self._ctx.deadline(deadline_s)))

    def cancel(self, task_id: str) -> Cancellation:
        """Stops a task; raises NotFound when it is unknown or final."""
        return self._run(_flows.cancel(self._ctx, task_id, self._ctx.deadline(None)))

    def validate(self, request: EvaluateRequest) -> Validation:
        """Checks a request; nothing runs."""
        return self._run(_flows.validate(self._ctx, request, self._ctx.deadline(None)))

    def health(self) -> Health:
        return self._run(_flows.health(self._ctx, self._ctx.deadline(None)))

    def evaluate_many(
        self,
        requests: Sequence[EvaluateRequest],
        *,
        max_concurrent: int = 32,
        deadline_s: float | None = None,
    ) -> list[Result]:
        """Judges each by a request of its own, so many at a time; results in their order."""
        deadline = self._ctx.deadline(deadline_s)
        sources = [
            partial(self._once, _flows.judged(self._ctx, index, request, deadline))
            for index, request in enumerate(requests)
        ]
        items = list(fan_in(sources, max_concurrent))
        return [item.result for item in sorted(items, key=lambda item: item.index)]

    def iter_batch(
        self,
        requests: Sequence[EvaluateRequest],
        *,
        batch_id: str | None = None,
        deadline_s: float | None = None,
    ) -> Iterator[BatchItem]:
        """Judges all as a batch, and yields each result when it is there.

        With a `batch_id` of your own the same requests may be posted again later, by another
        process too: that joins what is there, and yields all results anew.
        """
        deadline = self._ctx.deadline(deadline_s)
        return self._iter_plan(self._plan(requests, batch_id, deadline), deadline)

    def evaluate_batch(
        self,
        requests: Sequence[EvaluateRequest],
        *,
        batch_id: str | None = None,
        deadline_s: float | None = None,
    ) -> BatchResult:
        """As `iter_batch`, with all results at the end, in the order of the requests."""
        deadline = self._ctx.deadline(deadline_s)
        plan = self._plan(requests, batch_id, deadline)
        return _batches.collect(plan, list(self._iter_plan(plan, deadline)))

    def submit_batch(
        self,
        requests: Sequence[EvaluateRequest],
        *,
        batch_id: str | None = None,
        deadline_s: float | None = None,
    ) -> list[BatchState]:
        """Hands a batch in and does not wait; more than one state if it had to be split."""
        deadline = self._ctx.deadline(deadline_s)
        plan = self._plan(requests, batch_id, None)
        return [self._run(_batches.post_batch(self._ctx, p, deadline)) for p in plan.parts]

    def batch(self, batch_id: str, *, wait_s: float = 0) -> BatchState:
        """A batch that the server has, as it stands (or is when all is final, within `wait_s`)."""
        deadline = self._ctx.deadline(None)
        return self._run(_batches.get_batch(self._ctx, batch_id, deadline, wait_s=wait_s))

    def attach_batch(
        self, batch_id: str, *, deadline_s: float | None = None
    ) -> Iterator[BatchItem]:
        """The results of a batch that the server has: those that are there, then the others."""
        deadline = self._ctx.deadline(deadline_s)
        return self._drive(_batches.stream_known(self._ctx, batch_id, deadline))

    def slowest(self, batch_id: str, limit: int = 5) -> tuple[Slow, ...]:
        """Which tasks of a batch take or took the longest, and in which stage."""
        return slowest(self.batch(batch_id).entries, limit)

    def _plan(
        self,
        requests: Sequence[EvaluateRequest],
        batch_id: str | None,
        deadline: _flows.Deadline | None,
    ) -> _batches.Plan:
        limit = self._options.max_batch_tasks
        return _batches.plan_batch(requests, batch_id, deadline, max_tasks=limit)

    def _iter_plan(self, plan: _batches.Plan, deadline: _flows.Deadline) -> Iterator[BatchItem]:
        yield from plan.refused
        flows = [_batches.stream_part(self._ctx, part, deadline) for part in plan.parts]
        if len(flows) == 1:  # needs no thread
            yield from self._drive(flows[0])
        else:
            yield from fan_in([partial(self._drive, flow) for flow in flows], len(flows))

    def _once(self, flow: Flow[T]) -> Generator[T, None, None]:
        yield self._run(flow)

    def _run(self, flow: Flow[T]) -> T:
        """Performs a flow that emits nothing."""
        items = self._drive(flow)
        try:
            item = next(items)
        except StopIteration as end:
            result: T = end.value
            return result
        raise AssertionError(f"emitted {item}")

    def _drive(self, flow: Flow[T]) -> Generator[BatchItem, None, T]:
        """Performs a flow; yields what it emits."""
        performer = _Performer(self._http)
        outcome: Outcome = None
        try:
            while True:
                effect = flow.send(outcome)
                outcome = None
                if isinstance(effect, Emit):
                    yield effect.item
                else:
                    outcome = performer.perform(effect)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            flow.close()
            performer.close()


class _Performer:
    """Performs effects, one after the other; has at most one stream open."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self._stream: httpx.Response | None = None
        self._pieces: Iterator[bytes] = iter(())

    def perform(self, action: Action) -> Outcome:
        match action:
            case Send(request):
                return self._send(request)
            case Open(request):
                return self._open(request)
            case Read():
                return self._read()
            case Sleep(seconds):
                time.sleep(seconds)
        return None

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _build(self, request: Request) -> httpx.Request:
        return self._http.build_request(**_config.request_settings(request))

    def _send(self, request: Request) -> Reply | Broken:
        try:
            return _config.reply_of(self._http.send(self._build(request)))
        except httpx.RequestError as error:
            return _config.broken_by(error)

    def _open(self, request: Request) -> Opened | Reply | Broken:
        self.close()
        try:
            self._stream = self._http.send(self._build(request), stream=True)
            if _config.is_event_stream(self._stream):
                self._pieces = self._stream.iter_bytes()
                return Opened()
            self._stream.read()
            return _config.reply_of(self._stream)
        except httpx.RequestError as error:
            return _config.broken_by(error)

    def _read(self) -> Piece | Broken:
        try:
            return Piece(next(self._pieces, b""))
        except httpx.RequestError as error:
            return _config.broken_by(error)
