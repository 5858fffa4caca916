"""Server-sent events after the WHATWG standard, on bytes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from crosswalk.errors import LineTooLongError
from crosswalk.wire import Limits
from crosswalk.wire.framing import SSEDecoder
from frames import Frame, frame_of


def frames_of(*chunks: bytes) -> list[Frame]:
    """All frames of *chunks*, the end of the input included."""
    decoder = SSEDecoder()
    return [frame for chunk in chunks for frame in decoder.decode(chunk)] + decoder.flush()


@pytest.mark.parametrize(
    ("stream", "frames"),
    [
        # The examples of the standard's section 9.2.6.
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", [frame_of(b"YHOO\n+2\n10")]),
        (
            b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
            [frame_of(b"first event"), frame_of(b"second event"), frame_of(b" third event")],
        ),
        (b"data\n\ndata\ndata\n\n", [frame_of(b""), frame_of(b"\n")]),
        (b"data:test\n\ndata: test\n\n", [frame_of(b"test"), frame_of(b"test")]),
        # What servers send.
        (b'data: {"a":1}\n\ndata: [DONE]\n\n', [frame_of(b'{"a":1}'), frame_of(b"[DONE]")]),
        (b"event: ping\ndata: {}\n\ndata: 1\n\n", [frame_of(b"{}", "ping"), frame_of(b"1")]),
        (b"event: a\ndata: 1\n\nevent: b\ndata: 2\n\n", [frame_of(b"1", "a"), frame_of(b"2", "b")]),
        (b"event: a\ndata: 1\n\nevent: a\ndata: 2\n\n", [frame_of(b"1", "a"), frame_of(b"2", "a")]),
        (b"data: {}\nevent:ping\n\n", [frame_of(b"{}", "ping")]),
        (b": OPENROUTER PROCESSING\n\ndata: 1\n\n", [frame_of(b"1")]),
        (b"\n\n\ndata: 1\n\n\n\ndata: 2\n\n", [frame_of(b"1"), frame_of(b"2")]),
        (b"data: 1\n\ndata: 2\n: ping\n\n", [frame_of(b"1"), frame_of(b"2")]),
        (b"data: 1\n\ndata: 2\ndata: 3\n\n", [frame_of(b"1"), frame_of(b"2\n3")]),
        # Odd, and ruled by the standard.
        (b"event: ping\n\ndata: 1\n\n", [frame_of(b"1")]),
        (b"event: ping\nevent\ndata: 1\n\n", [frame_of(b"1")]),
        (b"event: \ndata: 1\n\n", [frame_of(b"1")]),
        (b"Data: 1\n data: 2\nfoo: 3\nfoo\n\n", []),
        (b"data: a:b: c\n\n", [frame_of(b"a:b: c")]),
        (b"event: \xff\xc3\xa4\ndata: \xff\n\n", [frame_of(b"\xff", "\ufffd\u00e4")]),
        ("data: \u2028\x85\x0b\x0c\n\n".encode(), [frame_of("\u2028\x85\x0b\x0c".encode())]),
    ],
)
def test_events_are_read_by_the_standard(stream: bytes, frames: list[Frame]) -> None:
    """Fields, comments, blank lines and names mean what the standard says."""
    assert frames_of(stream) == frames


@pytest.mark.parametrize(
    ("stream", "frames"),
    [
        (b'data: {"a":1}', [frame_of(b'{"a":1}')]),
        (b"data: 1\n", [frame_of(b"1")]),
        (b"data: 1\r", [frame_of(b"1")]),
        (b"event: end\ndata: 1\ndata: 2", [frame_of(b"1\n2", "end")]),
        (b"data: 1\n\ndata:2", [frame_of(b"1"), frame_of(b"2")]),
        (b"data: 1\nevent: messa", [frame_of(b"1")]),
        (b"data: 1\ndat", [frame_of(b"1")]),
        (b"event: end\n", []),
        (b": bye", []),
    ],
)
def test_the_last_event_needs_no_blank_line(stream: bytes, frames: list[Frame]) -> None:
    """At the end of the input an event with data is dispatched. Half a name or field is not used."""
    assert frames_of(stream) == frames


def test_an_event_is_dispatched_at_its_blank_line() -> None:
    """A live event is not held back, not even when a \\r might yet be followed by a \\n."""
    decoder = SSEDecoder()
    assert decoder.decode(b"data: 1\n") == []
    assert decoder.decode(b"\n") == [frame_of(b"1")]
    assert decoder.decode(b"data: 2\r\n\r") == [frame_of(b"2")]
    assert decoder.decode(b"\ndata: 3\r\r") == [frame_of(b"3")]
    assert decoder.decode(b"\n") == []
    assert decoder.flush() == []


@pytest.mark.parametrize(
    "stream",
    [
        b"id: 7\ndata: 1\n\ndata: 2\n\n",
        b"data: 1\nid\n\nid: \xff\n\ndata: 2\n\n",
        b"retry: 3000\n\ndata: 1\n\nretry: " + b"9" * 5000 + b"\ndata: 2\n\n",
    ],
)
def test_what_is_for_clients_that_connect_again_is_ignored(stream: bytes) -> None:
    """In whatever pieces it comes."""
    for size in (1, 7, len(stream)):
        decoder = SSEDecoder()
        chunks = [stream[start : start + size] for start in range(0, len(stream), size)]
        frames = [frame for chunk in chunks for frame in decoder.decode(chunk)]
        assert frames == [frame_of(b"1"), frame_of(b"2")]


def test_the_data_of_one_event_is_bounded() -> None:
    """Data lines without end pass the limit together, the line breaks between them counted."""
    decoder = SSEDecoder(Limits(line_bytes=9))
    event = b"data: 123\ndata: 56\ndata:89\n"
    assert decoder.decode((event + b"\n") * 2) == [frame_of(b"123\n56\n89")] * 2
    assert decoder.decode(event) == []
    with pytest.raises(LineTooLongError, match="the data of one event is longer than 9 bytes"):
        decoder.decode(b"data\n")


def test_comments_without_end_are_no_event() -> None:
    """Keep-alives and other lines without data do not add up to a limit."""
    decoder = SSEDecoder(Limits(line_bytes=8))
    for _ in range(10):
        assert decoder.decode(b": ping\nid: 1\n") == []


LINES = [
    *(
        b"data: 1",
        b"data:2",
        b"data",
        b"data: ",
        b'data: {"a":[]}',
        b"event: x",
        b"event",
        b"id: 1",
    ),
    *(
        b"",
        b"",
        b"",
        b":",
        b": ping",
        b"retry: 5",
        b"other: 1",
        b" data: 3",
        b"event:\xff",
        b"data:  4",
    ),
]
lines = st.lists(st.sampled_from(LINES), max_size=25)
line_ends = st.sampled_from([b"\n", b"\r", b"\r\n"])


@given(lines=lines, ends=st.lists(line_ends, min_size=25, max_size=25), data=st.data())
def test_line_endings_do_not_matter(lines: list[bytes], ends: list[bytes], data: st.DataObject) -> None:
    """Any mix of the three line endings, cut anywhere, gives the frames that line feeds give."""
    # A line that ends in \r and an empty one that ends in \n would make one line end of two.
    joined = [
        b"\r\n" if end == b"\r" and after == b"" and next_end == b"\n" else end
        for end, after, next_end in zip(ends, [*lines[1:], b"."], [*ends[1:], b""], strict=False)
    ]
    mixed = b"".join(line + end for line, end in zip(lines, joined, strict=False))
    place = data.draw(st.integers(min_value=0, max_value=len(mixed)))
    expected = frames_of(b"".join(line + b"\n" for line in lines))
    assert frames_of(mixed[:place], mixed[place:]) == expected


def reference_frames(stream: bytes) -> list[Frame]:
    """The standard's algorithm on the whole input, one step after the other, with our rule for the end."""
    *complete, rest = re.split(rb"\r\n|\r|\n", stream.removeprefix(b"\xef\xbb\xbf"))
    if rest.startswith(b"data:"):
        complete.append(rest)
    frames, data, name = [], b"", b""
    for line in [*complete, b""]:
        if line == b"":
            if data != b"":
                frames.append(frame_of(data[:-1], name.decode(errors="replace") or None))
            data, name = b"", b""
        elif not line.startswith(b":"):
            field, value = line.split(b":", 1) if b":" in line else (line, b"")
            if value.startswith(b" "):
                value = value[1:]
            if field == b"data":
                data += value + b"\n"
            elif field == b"event":
                name = value
    return frames


pieces = st.sampled_from([*LINES, b"\n", b"\r", b"\r\n", b"\n\n", b"data: {}\n\n", b"\xef\xbb\xbf", b"d"])
streams = st.lists(pieces, max_size=25).map(b"".join) | st.binary(max_size=60)


@given(stream=streams, place=st.integers(min_value=0, max_value=150))
def test_the_standard_read_naively_agrees(stream: bytes, place: int) -> None:
    """A reference that follows the standard over the whole input gives the same frames."""
    assert frames_of(stream) == reference_frames(stream)
    assert frames_of(stream[:place], stream[place:]) == reference_frames(stream)


@pytest.mark.parametrize(
    "end", [b"", b"\n", b"data: more", b"data: more\n", b"\ndata: x\n\n: y\n", b"id: 5\n\n"]
)
@pytest.mark.parametrize("name", [b"", b"event: say\n"])
def test_an_end_in_the_middle_of_an_event_after_many(name: bytes, end: bytes) -> None:
    """Many events are cut out at once. The rest of the last one is read with later bytes, or at the end."""
    stream = (name + b"data: one\n\n") * 3 + name + b"data: two\n" + end
    whole, bytewise = SSEDecoder(), SSEDecoder()
    first = [*whole.decode(stream), *whole.flush()]
    assert first == [frame for byte in stream for frame in bytewise.decode(bytes([byte]))] + bytewise.flush()
    for cut in range(len(stream)):
        decoder = SSEDecoder()
        frames = decoder.decode(stream[:cut]) + decoder.decode(stream[cut:]) + decoder.flush()
        assert frames == first


ALONE = {
    "data": b"data: {}\n\n",
    "no data": b"data: \n\n",
    "a name": b"event: say\ndata: {}\n\n",
    "an empty name": b"event: \ndata: {}\n\n",
    "a name that is no text": b"event: \xff\ndata: {}\n\n",
    "a name alone": b"event: say\n\n",
    "a name and an id": b"event: say\nid: 5\ndata: {}\n\n",
    "a name behind": b"data: {}\nevent: say\n\n",
    "two lines": b"data: {}\ndata: {}\n\n",
    "two events": b"data: {}\n\ndata: {}\n\n",
    "an empty line more": b"data: {}\n\n\n",
    "a comment": b": still here\n\n",
    "another end of a line": b"data: {}\r\n\r\n",
    "another end of a line, and a name": b"event: say\r\ndata: {}\r\n\r\n",
    "another end of a line, and a comment": b": still here\r\n\r\n",
    "another end of a line, and an empty line more": b"data: {}\r\n\r\n\r\n",
    "another end of a line, and two events": b"data: {}\r\n\r\ndata: {}\r\n\r\n",
    "another end of a line, and two lines": b"data: {}\r\ndata: {}\r\n\r\n",
    "another end of a line in part": b"data: {}\n\r\n",
    "another end of a line in the other part": b"data: {}\r\n\n",
    "another end of a line, and an end within": b"data: {\n}\r\n\r\n",
    "another end of a line, and another within": b"data: {\r}\r\n\r\n",
    "half of another end of a line": b"data: {}\r\n\r",
    "an end of a line within": b"data: {\r}\n\n",
    "no end": b"data: {}\n",
}


@pytest.mark.parametrize("chunk", ALONE.values(), ids=ALONE)
def test_what_comes_in_one_read_is_what_comes_byte_by_byte(chunk: bytes) -> None:
    whole, bytewise = SSEDecoder(), SSEDecoder()
    for piece in (b"data: first\n\n", chunk, b"event: last\ndata: last\n\n"):
        assert whole.decode(piece) == [frame for byte in piece for frame in bytewise.decode(bytes([byte]))]
        assert whole.room == bytewise.room
    assert whole.flush() == bytewise.flush()
