# SPDX-License-Identifier: Apache-2.0
"""The parser of server-sent events."""

import pytest

from drkernel._sse import EventParser, ServerEvent

STREAM = (
    b": keep-alive\n\n"
    b'event: result\ndata: {"index": 0}\n\n'
    b"data:first\ndata:  second\nid: 7\nretry: 10\n\n"
    b"event: lost\n\n"
    b"event: done\r\ndata: \xc3\xa9\r\n\r\n"
    b"event: cut off\ndata: 1\n"
)


def parse(*pieces: bytes) -> list[ServerEvent]:
    parser = EventParser()
    return [event for piece in pieces for event in parser.feed(piece)]


def test_events_have_names_and_data_and_a_half_one_is_none() -> None:
    assert parse(STREAM) == [
        ServerEvent("result", '{"index": 0}'),
        ServerEvent("message", "first\n second"),
        ServerEvent("done", "é"),
    ]


@pytest.mark.parametrize("size", range(1, 20))
def test_pieces_may_be_cut_anywhere(size: int) -> None:
    pieces = [STREAM[i : i + size] for i in range(0, len(STREAM), size)]
    assert parse(*pieces) == parse(STREAM)


def test_every_line_ending_will_do() -> None:
    text = b"event: a\ndata: 1\n\ndata: 2\n\n"
    for ending in (b"\r\n", b"\r"):
        other = text.replace(b"\n", ending) + b": more\n"
        assert parse(*(bytes([byte]) for byte in other)) == parse(text)


def test_a_byte_order_mark_is_no_part_of_the_first_name() -> None:
    assert parse(b"\xef\xbb\xbfdata: 1\n\n") == [ServerEvent("message", "1")]


def test_the_name_of_an_event_without_data_is_not_the_next_ones() -> None:
    assert parse(b"event: a\n\ndata: 1\n\n") == [ServerEvent("message", "1")]
