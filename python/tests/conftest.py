# SPDX-License-Identifier: Apache-2.0
"""Fixtures of all tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import real_server
from callers import AsyncAsBlocking, Connect
from drkernel import Client, ClientOptions
from hostile_server import HostileServer
from real_server import RealServer


@pytest.fixture
def hostile() -> Iterator[HostileServer]:
    with HostileServer() as server:
        yield server
        server.shutdown()


@pytest.fixture(params=["blocking", "async"])
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    made: list[Any] = []

    def make(url: str, options: ClientOptions | None = None) -> Client:
        kind = Client if request.param == "blocking" else AsyncAsBlocking
        made.append(kind(url, options))
        return cast(Client, made[-1])

    yield make
    for client in made:
        client.close()


@pytest.fixture(scope="session")
def can_serve() -> None:
    reason = real_server.why_not()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def server(can_serve: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    """One server for all tests that do not harm it."""
    running = RealServer(tmp_path_factory.mktemp("server")).start()
    yield running
    assert running.stop() == 0, running.log


@pytest.fixture
def own_server(can_serve: None, tmp_path: Path) -> Iterator[Callable[..., RealServer]]:
    """Makes servers of a test's own, with options."""
    made: list[RealServer] = []

    def make(*options: str) -> RealServer:
        folder = tmp_path / f"server-{len(made)}"
        folder.mkdir()
        made.append(RealServer(folder, *options).start())
        return made[-1]

    yield make
    for running in made:
        running.kill()
