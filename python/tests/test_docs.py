# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/python-client.md, against the real server."""

from __future__ import annotations

import doctest

import pytest

from drkernel import DEFAULT_URL
from drkernel.replies import fenced_blocks
from real_server import REPOSITORY, RealServer

PAGE = REPOSITORY / "docs" / "python-client.md"


def test_every_example_does_what_the_page_says(
    server: RealServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    text = PAGE.read_text().replace(DEFAULT_URL, server.url)
    examples = [block.code for block in fenced_blocks(text) if block.language == "python"]
    assert len(examples) == text.count("```python\n>>>") > 5
    page = "\n".join(examples)
    told: list[str] = []
    test = doctest.DocTestParser().get_doctest(page, {}, PAGE.name, str(PAGE), 0)
    doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(test, out=told.append)
    assert test.examples and not told, "".join(told)
