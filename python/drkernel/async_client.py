# SPDX-License-Identifier: Apache-2.0
"""The asynchronous client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
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
from drkernel._fan_in import async_fan_in
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


class AsyncClient:
    """`Client` for asyncio: the same calls, the same promises. One event loop; `async with`."""

    def __init__(self, url: str = DEFAULT_URL, options: ClientOptions | None = None) -> None:
        self._options = options or ClientOptions()
        self._ctx = self._options.context()
        self._http = httpx.AsyncClient(**_config.http_settings(url, self._options))

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def evaluate(
        self, request: EvaluateRequest, *, deadline_s: float | None = None
    ) -> Result:
        return await self._run(_flows.evaluate(self._ctx, request, self._ctx.deadline(deadline_s)))

    async def submit(
        self, request: EvaluateRequest, *, deadline_s: float | None = None
    ) -> TaskStatus:
        return await self._run(_flows.submit(self._ctx, request, self._ctx.deadline(deadline_s)))

    async def status(
        self, task_id: str, *, wait_s: float = 0, since: Status | None = None
    ) -> TaskStatus:
        flow = _flows.status(
            self._ctx, task_id, self._ctx.deadline(None), wait_s=wait_s, since=since
        )
        return await self._run(flow)

    async def results(self, task_id: str, *, wait_s: float = 0) -> Result:
        deadline = self._ctx.deadline(None)
        return await self._run(_flows.results(self._ctx, task_id, deadline, wait_s=wait_s))

    async def wait(self, task_id: str, *, deadline_s: float | None = None) -> Result:
        return await self._run(_flows.wait(self._ctx, task_id, self._ctx.deadline(deadline_s)))

    async def cancel(self, task_id: str) -> Cancellation:
        return await self._run(_flows.cancel(self._ctx, task_id, self._ctx.deadline(None)))

    async def validate(self, request: EvaluateRequest) -> Validation:
        return await self._run(_flows.validate(self._ctx, request, self._ctx.deadline(None)))

    async def health(self) -> Health:
        return await self._run(_flows.health(self._ctx, self._ctx.deadline(None)))

    async def evaluate_many(
        self,
        requests: Sequence[EvaluateRequest],
        *,
        max_concurrent: int = 32,
        deadline_s: float | None = None,
    ) -> list[Result]:
        deadline = self._ctx.deadline(deadline_s)
        sources = [
            partial(self._once, _flows.judged(self._ctx, index, request, deadline))
            for index, request in enumerate(requests)
        ]
        items = [item async for item in async_fan_in(sources, max_concurrent)]
        return [item.result for item in sorted(items, key=lambda item: item.index)]

    def iter_batch(
        self,
        requests: Sequence[EvaluateRequest],
        *,
        batch_id: str | None = None,
        deadline_s: float | None = None,
    ) -> AsyncGenerator[BatchItem, None]:
        deadline = self._ctx.deadline(deadline_s)
        return self._iter_plan(self._plan(requests, batch_id, deadline), deadline)

    async def evaluate_batch(
        self,
        requests: Sequence[EvaluateRequest],
        *,
        batch_id: str | None = None,
        deadline_s: float | None = None,
    ) -> BatchResult:
        deadline = self._ctx.deadline(deadline_s)
        plan = self._plan(requests, batch_id, deadline)
        return _batches.collect(plan, [item async for item in self._iter_plan(plan, deadline)])

    async def submit_batch(
        self,
        requests: Sequence[EvaluateRequest],
        *,
        batch_id: str | None = None,
        deadline_s: float | None = None,
    ) -> list[BatchState]:
        deadline = self._ctx.deadline(deadline_s)
        plan = self._plan(requests, batch_id, None)
        return [await self._run(_batches.post_batch(self._ctx, p, deadline)) for p in plan.parts]

    async def batch(self, batch_id: str, *, wait_s: float = 0) -> BatchState:
        deadline = self._ctx.deadline(None)
        return await self._run(_batches.get_batch(self._ctx, batch_id, deadline, wait_s=wait_s))

    def attach_batch(
        self, batch_id: str, *, deadline_s: float | None = None
    ) -> AsyncGenerator[BatchItem, None]:
        deadline = self._ctx.deadline(deadline_s)
        return self._drive(_batches.stream_known(self._ctx, batch_id, deadline), [])

    async def slowest(self, batch_id: str, limit: int = 5) -> tuple[Slow, ...]:
        return slowest((await self.batch(batch_id)).entries, limit)

    def _plan(
        self,
        requests: Sequence[EvaluateRequest],
        batch_id: str | None,
        deadline: _flows.Deadline | None,
    ) -> _batches.Plan:
        limit = self._options.max_batch_tasks
        return _batches.plan_batch(requests, batch_id, deadline, max_tasks=limit)

    async def _iter_plan(
        self, plan: _batches.Plan, deadline: _flows.Deadline
    ) -> AsyncGenerator[BatchItem, None]:
        for item in plan.refused:
            yield item
        flows = [_batches.stream_part(self._ctx, part, deadline) for part in plan.parts]
        sources = [partial(self._drive, flow, []) for flow in flows]
        async with aclosing(async_fan_in(sources, len(flows))) as items:
            async for item in items:
                yield item

    async def _once(self, flow: Flow[T]) -> AsyncGenerator[T, None]:
        yield await self._run(flow)

    async def _run(self, flow: Flow[T]) -> T:
        """Performs a flow that emits nothing."""
        ended: list[T] = []
        async for item in self._drive(flow, ended):
            raise AssertionError(f"emitted {item}")
        return ended[0]

    async def _drive(self, flow: Flow[T], ended: list[T]) -> AsyncGenerator[BatchItem, None]:
        """Performs a flow; yields what it emits, and puts what it returns into `ended`."""
        performer = _Performer(self._http)
        outcome: Outcome = None
        try:
            while True:
                effect = flow.send(outcome)
                outcome = None
                if isinstance(effect, Emit):
                    yield effect.item
                else:
                    outcome = await performer.perform(effect)
        except StopIteration as end:
            ended.append(end.value)
        finally:
            flow.close()
            await performer.close()


class _Performer:
    """Performs actions, one after the other; has at most one stream open."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self._stream: httpx.Response | None = None
        self._pieces: AsyncIterator[bytes] | None = None

    async def perform(self, action: Action) -> Outcome:
        match action:
            case Send(request):
                return await self._send(request)
            case Open(request):
                return await self._open(request)
            case Read():
                return await self._read()
            case Sleep(seconds):
                await asyncio.sleep(seconds)
        return None

    async def close(self) -> None:
        if self._stream is not None:
            await self._stream.aclose()
            self._stream = self._pieces = None

    def _build(self, request: Request) -> httpx.Request:
        return self._http.build_request(**_config.request_settings(request))

    async def _send(self, request: Request) -> Reply | Broken:
        try:
            return _config.reply_of(await self._http.send(self._build(request)))
        except httpx.RequestError as error:
            return _config.broken_by(error)

    async def _open(self, request: Request) -> Opened | Reply | Broken:
        await self.close()
        try:
            self._stream = await self._http.send(self._build(request), stream=True)
            if _config.is_event_stream(self._stream):
                self._pieces = self._stream.aiter_bytes()
                return Opened()
            await self._stream.aread()
            return _config.reply_of(self._stream)
        except httpx.RequestError as error:
            return _config.broken_by(error)

    async def _read(self) -> Piece | Broken:
        assert self._pieces is not None
        try:
            return Piece(await anext(self._pieces, b""))
        except httpx.RequestError as error:
            return _config.broken_by(error)
