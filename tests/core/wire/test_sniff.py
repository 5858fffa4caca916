"""One body, and finding out by the first bytes which framing an input has."""

from __future__ import annotations

import orjson
import pytest

from crosswalk.errors import FramingError, StreamTooLargeError
from crosswalk.wire import BodyDecoder, Limits, NDJSONDecoder, SniffingDecoder
from crosswalk.wire.framing import NEED_MORE, NeedMore
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
    """None until the first bytes tell it. Then it stays."""
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


def numbered(start: bytes, limits: Limits, content_type: str) -> NDJSONDecoder | NeedMore | None:
    """Lines after the word "lines:"."""
    if content_type == "application/x-lines":
        return NDJSONDecoder(limits)
    if len(start) < 6 and b"lines:".startswith(start):
        return NEED_MORE
    return Numbered(limits) if start.startswith(b"lines:") else None


class Numbered(NDJSONDecoder):
    def decode(self, chunk: bytes) -> list[Frame]:
        return super().decode(chunk.removeprefix(b"lines:"))


@pytest.mark.parametrize(
    ("stream", "frames"),
    [
        (b"lines:[1]\n[2]\n", [frame_of(b"[1]"), frame_of(b"[2]")]),
        (b"\n lines:[1]\n", [frame_of(b"[1]")]),
        (b"line [1]", [frame_of(b"line [1]")]),
        (b"line", [frame_of(b"line")]),
        (b"[1]", [frame_of(b"[1]")]),
        (b"data: [1]\n\n", [frame_of(b"[1]")]),
    ],
)
def test_a_framing_of_ones_own_may_ask_for_more(stream: bytes, frames: list[Frame]) -> None:
    """It is asked again until it knows, so that it does not matter how the bytes are cut."""
    for chunks in cuts_of(stream):
        decoder = SniffingDecoder(own=numbered)
        assert [frame for chunk in chunks for frame in decoder.decode(chunk)] + decoder.flush() == frames


def test_a_framing_of_ones_own_sees_the_content_type() -> None:
    """Also where the bytes alone would be taken for something else."""
    decoder = SniffingDecoder(own=numbered, content_type="application/x-lines")
    assert decoder.decode(b"[1]\n[2]\n") == [frame_of(b"[1]"), frame_of(b"[2]")]


@pytest.mark.parametrize(("size", "asked"), [(4095, 4095), (4096, 4096), (4097, 4096)])
def test_asking_for_more_has_an_end(size: int, asked: int) -> None:
    """With 4,096 bytes the general rules decide."""
    seen = []

    def never(start: bytes, limits: Limits, _: str) -> NeedMore:
        seen.append(len(start))
        return NEED_MORE

    decoder = SniffingDecoder(own=never)
    for _ in range(size):
        decoder.decode(b"x")
    assert max(seen) == asked
    assert decoder.flush() == [frame_of(b"x" * size)]


TEXTS = (
    b'event: output\ndata: Once\n\nevent: output\ndata:  upon\ndata: a time\n\nevent: output\ndata: {"data": 1}\n\n'
    b"event: output\ndata: [DONE]\n\nevent: done\ndata: {}\n\ndata: {}\n\nevent: output\ndata: end\n"
)


def test_events_of_text_come_out_as_text() -> None:
    """The declared ones, whatever their text looks like. All others stay as they are."""
    texts = ["Once", " upon\na time", '{"data": 1}', "[DONE]", None, None, "end"]
    found = [frame_of(b"{}", "done"), frame_of(b"{}")]
    wanted = [
        found.pop(0) if text is None else frame_of(orjson.dumps({"data": text}), "output") for text in texts
    ]
    for chunks in cuts_of(TEXTS):
        decoder = SniffingDecoder(text_events=("output",))
        assert [frame for chunk in chunks for frame in decoder.decode(chunk)] + decoder.flush() == wanted


def test_a_text_that_is_not_utf8_is_an_error() -> None:
    """The events before it come out first, and a limit is one too."""
    decoder = SniffingDecoder(text_events=("t",))
    good = b"event: t\ndata: a\n\n"
    assert decoder.decode(good + b"event: t\ndata: \xff\n\n") == [frame_of(b'{"data":"a"}', "t")]
    with pytest.raises(FramingError, match="the text of an event is not UTF-8"):
        decoder.flush()
    small = SniffingDecoder(Limits(total_bytes=len(good)), text_events=("t",))
    assert small.decode(good + b"event") == [frame_of(b'{"data":"a"}', "t")]
    with pytest.raises(StreamTooLargeError):
        small.decode(b"")
