# SPDX-License-Identifier: Apache-2.0
"""Several iterators at once as one: in threads, and in tasks of an event loop."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")
Source: TypeAlias = Callable[[], Generator[T, None, object]]
AsyncSource: TypeAlias = Callable[[], AsyncGenerator[T, None]]


@dataclass(frozen=True)
class _Item(Generic[T]):
    value: T


@dataclass(frozen=True)
class _Failed:
    error: BaseException


@dataclass(frozen=True)
class _Ended:
    """One worker has no more to do."""


def fan_in(sources: Sequence[Source[T]], workers: int) -> Iterator[T]:
    """All that the sources yield, as it comes; the first error is raised here.

    At most `workers` run at a time. When the caller stops iterating, each ends at its next item;
    none keeps the process from ending.
    """
    out: queue.SimpleQueue[_Item[T] | _Failed | _Ended] = queue.SimpleQueue()
    waiting: queue.SimpleQueue[Source[T]] = queue.SimpleQueue()
    for source in sources:
        waiting.put(source)
    stop = threading.Event()
    running = min(workers, len(sources))
    for _ in range(running):
        threading.Thread(target=_work, args=(waiting, out, stop), daemon=True).start()
    try:
        while running:
            match out.get():
                case _Item(value):
                    yield value
                case _Failed(error):
                    raise error
                case _Ended():
                    running -= 1
    finally:
        stop.set()


def _work(
    waiting: queue.SimpleQueue[Source[T]],
    out: queue.SimpleQueue[_Item[T] | _Failed | _Ended],
    stop: threading.Event,
) -> None:
    try:
        while not stop.is_set():
            with closing(waiting.get_nowait()()) as items:
                for item in items:
                    out.put(_Item(item))
                    if stop.is_set():
                        return
    except queue.Empty:
        out.put(_Ended())
    except BaseException as error:  # the thread's border: it is raised in fan_in
        out.put(_Failed(error))


async def async_fan_in(sources: Sequence[AsyncSource[T]], workers: int) -> AsyncGenerator[T, None]:
    """As `fan_in`; when the caller stops iterating, all are cancelled."""
    out: asyncio.Queue[_Item[T] | _Failed | _Ended] = asyncio.Queue()
    waiting = iter(sources)
    running = min(workers, len(sources))
    tasks = [asyncio.create_task(_async_work(waiting, out)) for _ in range(running)]
    try:
        while running:
            match await out.get():
                case _Item(value):
                    yield value
                case _Failed(error):
                    raise error
                case _Ended():
                    running -= 1
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _async_work(
    waiting: Iterator[AsyncSource[T]], out: asyncio.Queue[_Item[T] | _Failed | _Ended]
) -> None:
    try:
        for source in waiting:
            async with aclosing(source()) as items:
                async for item in items:
                    out.put_nowait(_Item(item))
        out.put_nowait(_Ended())
    except Exception as error:  # the task's border: it is raised in async_fan_in
        out.put_nowait(_Failed(error))
