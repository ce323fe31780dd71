# SPDX-License-Identifier: Apache-2.0
"""The code in a model's reply, by the rule of KernelGYM's clients.

`drk extract` reads replies more thoroughly: it leaves out reasoning and copes with broken fences.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$")
_LINE_END = re.compile(r"\r\n|\r|\n")  # no others: a form feed is text
_PYTHON = re.compile(r"(python[\d.]*|py3?|triton)", re.IGNORECASE)


@dataclass(frozen=True)
class Block:
    """A fenced block; the last one of a reply that was cut off is not closed."""

    language: str
    code: str
    is_closed: bool


def extract_code(reply: str, entry_point: str | None = None) -> str:
    """The last fenced block, preferably one marked as Python; a reply without any is code.

    With `entry_point` ("ModelNew") the last block that defines it goes before all others. A block
    that is not closed is taken only when no closed one will do.
    """
    blocks = [block for block in fenced_blocks(reply) if block.code.strip()]
    closed = [block for block in blocks if block.is_closed]
    python = [block for block in closed if _PYTHON.fullmatch(block.language)]
    defining = [block for block in closed if entry_point and defines(block.code, entry_point)]
    for choice in (defining, python, closed, blocks):
        if choice:
            return choice[-1].code
    return reply


def fenced_blocks(reply: str) -> list[Block]:
    blocks: list[Block] = []
    opening: re.Match[str] | None = None
    lines: list[str] = []
    for line in _LINE_END.split(reply):
        fence = _FENCE.match(line)
        if opening is None:
            opening, lines = fence, []
        elif fence is not None and _closes(fence, opening):
            blocks.append(_block(opening, lines, is_closed=True))
            opening = None
        else:
            lines.append(line)
    if opening is not None:
        blocks.append(_block(opening, lines, is_closed=False))
    return blocks


def defines(code: str, name: str) -> bool:
    """By class, def or assignment at top level."""
    return bool(
        re.search(rf"^(?:(?:class|def)\s+{re.escape(name)}\b|{re.escape(name)}\s*=)", code, re.M)
    )


def _closes(fence: re.Match[str], opening: re.Match[str]) -> bool:
    marks = fence.group(1)
    return (
        not fence.group(2)
        and marks[0] == opening.group(1)[0]
        and len(marks) >= len(opening.group(1))
    )


def _block(opening: re.Match[str], lines: list[str], *, is_closed: bool) -> Block:
    return Block(opening.group(2), "".join(line + "\n" for line in lines), is_closed)
