# SPDX-License-Identifier: Apache-2.0
"""Code out of replies."""

import pytest

from drkernel import extract_code

MODEL = "class ModelNew:\n    pass\n"


def block(language: str, code: str, fence: str = "```") -> str:
    return f"{fence}{language}\n{code}{fence}\n"


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("x = 1\n", "x = 1\n"),
        ("say `x`, or ```x```\n", "say `x`, or ```x```\n"),
        ("Here:\n" + block("python", "x = 1\n") + "Good luck.\n", "x = 1\n"),
        (block("python", "x = 1\n") + block("python", "x = 2\n"), "x = 2\n"),
        (block("python", "x = 1\n") + block("bash", "ls\n"), "x = 1\n"),
        (block("Python3", "x = 1\n") + block("", "out\n"), "x = 1\n"),
        (block("", "x = 1\n") + block("text", "out\n"), "out\n"),
        (block("python", "x = 1\n") + block("python", " \n"), "x = 1\n"),
        (block("python", 's = """\n```\n"""\n', fence="````"), 's = """\n```\n"""\n'),
        (block("python", "x = 1\n", fence="~~~"), "x = 1\n"),
        (block("python", "x = '\f'\r\ny = 1\r\n"), "x = '\f'\ny = 1\n"),
        (block("python title=a.py", "x = 1\n"), "x = 1\n"),
        (block("python", "x = 1\n") + "```python\nx = ", "x = 1\n"),
        ("```python\nx = 1\ny =", "x = 1\ny =\n"),
        ("", ""),
    ],
)
def test_the_last_block_preferably_python(reply: str, code: str) -> None:
    assert extract_code(reply) == code


@pytest.mark.parametrize("usage", ["print(ModelNew())\n", "# class ModelNew\n", "ModelNewer = 1\n"])
def test_with_an_entry_point_the_block_that_defines_it(usage: str) -> None:
    reply = block("python", MODEL) + block("python", usage)
    assert extract_code(reply) == usage
    assert extract_code(reply, "ModelNew") == MODEL


def test_without_a_block_that_defines_it_the_rule_is_as_without_an_entry_point() -> None:
    assert extract_code(block("python", "x = 1\n"), "ModelNew") == "x = 1\n"
