# SPDX-License-Identifier: Apache-2.0
"""Server-sent events out of a stream of bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True)
class ServerEvent:
    name: str
    data: str


class EventParser:
    """Takes pieces cut anywhere; an event is complete at its blank line, a half one never is."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        text = self._rest + piece
        # A CR at the end may be half of a CRLF: it waits for what follows.
        held = b"\r" if text.endswith(b"\r") else b""
        *lines, rest = _LINE_END.split(text.removesuffix(held))
        self._rest = rest + held
        for line in lines:
            if line:
                self._take_field(line.decode(errors="replace"))
                continue
            if self._data:
                yield ServerEvent(self._name or "message", "\n".join(self._data))
            self._name, self._data = "", []

    def _take_field(self, line: str) -> None:
        name, _, value = line.removeprefix("\ufeff").partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
