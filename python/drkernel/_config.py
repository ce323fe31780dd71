# SPDX-License-Identifier: Apache-2.0
"""How a client is set up, the same for both kinds."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TypedDict

import httpx

from drkernel._batches import MAX_TASKS
from drkernel._effects import Broken, Reply, Request
from drkernel._flows import Context
from drkernel._version import __version__
from drkernel.retry import RetryPolicy

DEFAULT_URL = "http://127.0.0.1:10907"
_CONNECT_TIMEOUT_S = 10.0
_WRITE_TIMEOUT_S = 60.0


@dataclass(frozen=True, kw_only=True)
class ClientOptions:
    """`deadline_s` bounds each call, retries and queue included; None: as long as it takes.

    A wait longer than `overdue_s` is logged as a warning, with the task and its stage.
    `client_name` is who asks, on a server without tokens.
    """

    token: str | None = field(default=None, repr=False)
    client_name: str | None = None
    deadline_s: float | None = 3600.0
    overdue_s: float = 60.0
    retry: RetryPolicy = RetryPolicy()
    max_batch_tasks: int = MAX_TASKS
    proxy: str | None = None

    def context(self) -> Context:
        return Context(self.retry, time.monotonic, random.random, self.overdue_s, self.deadline_s)


class HttpSettings(TypedDict):
    base_url: str
    headers: dict[str, str]
    limits: httpx.Limits
    trust_env: bool
    verify: bool
    proxy: str | None


def checked(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"a server's URL starts with http:// or https://, got {url!r}")
    return url.rstrip("/")


def http_settings(url: str, options: ClientOptions) -> HttpSettings:
    headers = {"User-Agent": f"drkernel-python/{__version__}"}
    if options.token is not None:
        headers["Authorization"] = f"Bearer {options.token}"
    if options.client_name is not None:
        headers["X-Drk-Client"] = options.client_name
    return {
        "base_url": checked(url),
        "headers": headers,
        # How many there are is the caller's to say: one for each call at a time.
        "limits": httpx.Limits(max_connections=None, max_keepalive_connections=64),
        # A proxy for the outer world that the environment names is rarely meant for this server.
        "trust_env": False,
        # Reading the authorities takes 0.1 s, of every client.
        "verify": checked(url).startswith("https://"),
        "proxy": options.proxy,
    }


class RequestSettings(TypedDict):
    method: str
    url: str
    params: dict[str, str]
    content: bytes | None
    headers: dict[str, str]
    timeout: httpx.Timeout


def request_settings(request: Request) -> RequestSettings:
    headers = {"Accept": request.accept}
    if request.body is not None:
        headers["Content-Type"] = "application/json"
    limit_s = max(request.timeout_s, 0.001)
    return {
        "method": request.method,
        "url": request.path,
        "params": dict(request.params),
        "content": request.body,
        "headers": headers,
        "timeout": httpx.Timeout(
            limit_s, connect=min(_CONNECT_TIMEOUT_S, limit_s), write=_WRITE_TIMEOUT_S
        ),
    }


def broken_by(error: httpx.RequestError) -> Broken:
    text = str(error) or "no more is known"
    return Broken(f"{type(error).__name__}: {text}", isinstance(error, httpx.ReadTimeout))


def reply_of(response: httpx.Response) -> Reply:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Reply(response.status_code, headers, response.content)


def is_event_stream(response: httpx.Response) -> bool:
    kind = response.headers.get("content-type", "")
    return response.status_code == 200 and kind.startswith("text/event-stream")
