"""One body, and finding out by the first bytes which framing an input has."""

from __future__ import annotations

import pytest

from crosswalk.wire import BodyDecoder, SniffingDecoder
from frames import Frame, frame_of

BOM = b"\xef\xbb\xbf"

SSE = [
    b"data: {}\n\n",
    b"data:{}\n\n",
    b"event: ping\ndata: {}\n\n",
    b"id: 1\ndata: {}\n\n",
    b"retry: 1\ndata: {}\n\n",
    b": ping\n\ndata: {}\n\n",
    b":\r\n\r\ndata: {}\r\n\r\n",
    b"event\ndata: {}\n\n",
    b"retry\rdata: {}\r\r",
    b"id\r\ndata: {}\n\n",
    b"\n\r\n \t\n\r\rdata: {}\n\n",
    BOM + b"data: {}\n\n",
    BOM + b"\ndata: {}\n\n",
]
BODIES = [
    b"[\n1]\n",
    b"<html>data: {}</html>\n",
    b"Bad Gateway",
    b"data ",
    b"data",
    b"d",
    b"retr",
    b"retry",
    b"events: none",
    b"identity\n",
    b"database: down\n\n",
    b"Data: {}\n\n",
    b'"data: "',
    b"\xff\xfe",
    b"\0",
]


def sniffed(*chunks: bytes) -> tuple[str | None, list[Frame]]:
    """The framing that is found and all frames."""
    decoder = SniffingDecoder()
    frames = [frame for chunk in chunks for frame in decoder.decode(chunk)] + decoder.flush()
    return decoder.framing, frames


def cuts_of(stream: bytes) -> list[list[bytes]]:
    """The *stream* cut once at each place, and byte by byte."""
    halves = [[stream[:place], stream[place:]] for place in range(len(stream) + 1)]
    return [*halves, [bytes([byte]) for byte in stream]]


@pytest.mark.parametrize("stream", SSE)
def test_what_begins_with_a_field_is_sse(stream: bytes) -> None:
    """Each field, a comment and a bare field name are SSE, after blank lines too, in any cut."""
    for chunks in cuts_of(stream):
        framing, frames = sniffed(*chunks)
        assert framing == "sse"
        assert [data for data, _ in frames] == [b"{}"]


@pytest.mark.parametrize("stream", [b'{"a":1}\n{"a":2}', b'\n\n  {"a":1}\r\n\r\n{"a":2}\n'])
def test_what_begins_with_an_object_is_ndjson(stream: bytes) -> None:
    """A brace begins a stream of lines, after any whitespace."""
    for chunks in cuts_of(stream):
        assert sniffed(*chunks) == ("ndjson", [frame_of(b'{"a":1}'), frame_of(b'{"a":2}')])


@pytest.mark.parametrize("body", [b'{"a":1}', b'{\n  "a": 1\n}'])
def test_an_object_alone_is_one_frame(body: bytes) -> None:
    """A full body comes out as one frame, on one line or printed over many."""
    for chunks in cuts_of(body):
        assert sniffed(*chunks) == ("ndjson", [frame_of(body)])


@pytest.mark.parametrize("body", BODIES)
def test_anything_else_is_one_body(body: bytes) -> None:
    """Arrays, HTML and plain text are one frame, less the whitespace before them, in any cut."""
    for chunks in [*cuts_of(body), *cuts_of(b"\n " + body), *cuts_of(b" \n" + body)]:
        assert sniffed(*chunks) == ("json", [frame_of(body)])


def test_a_field_name_that_is_indented_is_no_sse() -> None:
    """To the standard a field's name begins its line, so this is text."""
    for chunks in cuts_of(b"\n  data: {}\n\n"):
        assert sniffed(*chunks) == ("json", [frame_of(b"data: {}\n\n")])


@pytest.mark.parametrize("stream", [b"", b" \n", b"\r\n\r\n", BOM])
def test_nothing_has_no_framing(stream: bytes) -> None:
    """Whitespace alone decides nothing and gives nothing."""
    for chunks in cuts_of(stream):
        assert sniffed(*chunks) == (None, [])


def test_the_framing_is_known_as_soon_as_it_can_be() -> None:
    """None until the first bytes tell; then it stays."""
    decoder = SniffingDecoder()
    assert decoder.framing is None
    decoder.decode(b"\n\nda")
    assert decoder.framing is None
    decoder.decode(b"ta:")
    assert decoder.framing == "sse"
    assert decoder.decode(b" {}\n\n{") == [frame_of(b"{}")]
    assert decoder.framing == "sse"


@pytest.mark.parametrize("body", [b'{"a": 1}\n', b" [1, 2]", b"<html>", "\u00e9\u2028".encode()])
def test_a_body_is_one_frame_as_it_is(body: bytes) -> None:
    """A body keeps all its bytes and comes at the end alone."""
    decoder = BodyDecoder()
    assert [frame for chunk in (body[:2], b"", body[2:]) for frame in decoder.decode(chunk)] == []
    assert decoder.flush() == [frame_of(body)]
