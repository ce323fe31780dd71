# SPDX-License-Identifier: Apache-2.0
"""A real HTTP server that misbehaves as it is told, request by request."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


Behaviour = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HostileServer
    seen: Seen

    def _serve(self) -> None:
        url = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.seen = Seen(
            method=self.command,
            path=url.path,
            query={name: values[-1] for name, values in parse_qs(url.query).items()},
            headers={name.lower(): value for name, value in self.headers.items()},
            body=json.loads(raw) if raw else None,
        )
        self.server.next_behaviour(self.seen)(self)

    do_GET = do_POST = do_DELETE = _serve

    def log_message(self, format: str, *args: object) -> None:
        pass


class HostileServer(ThreadingHTTPServer):
    """Each request gets the next behaviour; when there is none left, `otherwise`."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self._lock = threading.Lock()
        self._script: list[Behaviour] = []
        self.otherwise: Behaviour = reply(500, {"detail": "the script has ended"})
        self.requests: list[Seen] = []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def script(self, *behaviours: Behaviour, otherwise: Behaviour | None = None) -> None:
        self._script = list(behaviours)
        if otherwise is not None:
            self.otherwise = otherwise

    def next_behaviour(self, seen: Seen) -> Behaviour:
        with self._lock:
            self.requests.append(seen)
            return self._script.pop(0) if self._script else self.otherwise

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # clients leave in the middle of things here


def reply(status: int, body: object, headers: Mapping[str, str] | None = None) -> Behaviour:
    return raw_reply(status, json.dumps(body).encode(), "application/json", headers)


def raw_reply(
    status: int, body: bytes, content_type: str, headers: Mapping[str, str] | None = None
) -> Behaviour:
    def behave(handler: Handler) -> None:
        handler.send_response(status)
        for name, value in {**(headers or {}), "Content-Type": content_type}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return behave


def answer(make: Callable[[Seen], tuple[int, object]]) -> Behaviour:
    """A reply that depends on the request."""

    def behave(handler: Handler) -> None:
        reply(*make(handler.seen))(handler)

    return behave


def hang_up(handler: Handler) -> None:
    """Ends the connection without a word, by a reset."""
    linger = struct.pack("ii", 1, 0)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.close_connection = True
    handler.connection.close()


def half_a_reply(handler: Handler) -> None:
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"task_id": "t')
    handler.wfile.flush()
    hang_up(handler)


def no_http(handler: Handler) -> None:
    handler.wfile.write(b"220 mail.example.org ESMTP\r\n")
    handler.close_connection = True


def silence(seconds: float) -> Behaviour:
    def behave(handler: Handler) -> None:
        time.sleep(seconds)
        handler.close_connection = True

    return behave


def events(*pieces: str, then: Behaviour | None = None, pause_s: float = 0) -> Behaviour:
    """A stream of events in these pieces; after them it ends, or `then` happens."""

    def behave(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for piece in pieces:
            data = piece.encode()
            handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            handler.wfile.flush()
            time.sleep(pause_s)
        if then is None:
            handler.wfile.write(b"0\r\n\r\n")
        else:
            then(handler)

    return behave


def event(name: str, data: object) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


def result_event(index: int, result: Mapping[str, object]) -> str:
    return event("result", {"index": index, "result": result})


def done_event(batch_id: str, total: int) -> str:
    done = {"batch_id": batch_id, "total_tasks": total, "batch_status": "completed"}
    return event("done", done)


def result_body(task_id: str, **changes: object) -> dict[str, object]:
    body: dict[str, object] = {
        "task_id": task_id,
        "status": "completed",
        "compiled": True,
        "correctness": True,
        "decoy_kernel": False,
        "reference_runtime": 3.0,
        "kernel_runtime": 2.0,
        "speedup": 1.5,
        "metadata": {},
        "error_message": None,
        "error_code": None,
    }
    return {**body, **changes}


def status_body(task_id: str, **changes: object) -> dict[str, object]:
    return {"task_id": task_id, "status": "pending", **changes}
