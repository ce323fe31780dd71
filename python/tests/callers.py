# SPDX-License-Identifier: Apache-2.0
"""Both clients behind one blocking face, so that each test holds for both."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

from drkernel import AsyncClient, Client, ClientOptions

# Connects to a URL; closed by the fixture that gives it.
Connect = Callable[[str, ClientOptions | None], Client]


class AsyncAsBlocking:
    """An AsyncClient with the methods of a Client."""

    def __init__(self, url: str, options: ClientOptions | None) -> None:
        self._runner = asyncio.Runner()
        self._client = AsyncClient(url, options)

    def close(self) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            made: Any = method(*args, **kwargs)
            return self._runner.run(made) if inspect.iscoroutine(made) else self._iterate(made)

        return call

    def _iterate(self, items: AsyncGenerator[Any, None]) -> Iterator[Any]:
        async def advance() -> Any:
            return await anext(items)

        try:
            while True:
                try:
                    yield self._runner.run(advance())
                except StopAsyncIteration:
                    return
        finally:
            self._runner.run(items.aclose())
