"""Newline-delimited JSON: only a line feed ends a line, and a printed document stays whole."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from crosswalk.errors import LineTooLongError
from crosswalk.wire import Limits, NDJSONDecoder
from frames import frame_of


def frames_of(*chunks: bytes) -> list[bytes]:
    """The data of all frames of *chunks*, the end of the input included."""
    decoder = NDJSONDecoder()
    frames = [frame for chunk in chunks for frame in decoder.decode(chunk)] + decoder.flush()
    assert all(name is None for _, name in frames)
    return [data for data, _ in frames]


@pytest.mark.parametrize(
    ("stream", "frames"),
    [
        (b'{"a":1}\n{"a":2}\n', [b'{"a":1}', b'{"a":2}']),
        (b'{"a":1}\r\n{"a":2}\r\n', [b'{"a":1}', b'{"a":2}']),
        (b'{"a":1}\n{"a":2}', [b'{"a":1}', b'{"a":2}']),
        (b'{"a":1}\n{"a":2}\r', [b'{"a":1}', b'{"a":2}']),
        (b"\n \r\n\t\n{}\n\n\n{}\n \n", [b"{}", b"{}"]),
        (b"  {} \n\t[1]\t\n", [b"{}", b"[1]"]),
        (b"{}\nnull\n[DONE]\nx", [b"{}", b"null", b"[DONE]", b"x"]),
        (b'{}\n{"a', [b"{}", b'{"a']),
        (b"{}\r{}\n", [b"{}\r{}"]),
        ('{"a":"\u2028\x85\u2029"}\n'.encode(), ['{"a":"\u2028\x85\u2029"}'.encode()]),
    ],
)
def test_lines_are_frames(stream: bytes, frames: list[bytes]) -> None:
    """Each line that is not blank is a frame. \\r alone, U+2028 and U+0085 end no line."""
    assert frames_of(stream) == frames


@pytest.mark.parametrize(
    "document",
    [
        b'{\n  "error": "no such model"\n}',
        b'{\n  "error": {}\n}\n',
        b"[\n  {},\n  {}\n]\n",
        b"<html>\r\n<body>502 Bad Gateway</body>\r\n</html>\r\n",
        b"Internal Server Error\n",
        b'"a"\n\n{}\n',
    ],
)
def test_a_printed_document_is_one_frame(document: bytes) -> None:
    """A first line that ends in no bracket makes all that follows one frame, in any cut."""
    assert frames_of(document) == [document]
    assert frames_of(b"\n  \n" + document) == [document]
    assert frames_of(*(bytes([byte]) for byte in document)) == [document]


def test_a_line_comes_out_when_it_ends() -> None:
    """A live event is not held back, also when its line feed comes late."""
    decoder = NDJSONDecoder()
    assert decoder.decode(b'{"a":1}') == []
    assert decoder.decode(b"\n{") == [frame_of(b'{"a":1}')]
    assert decoder.decode(b"}\n") == [frame_of(b"{}")]


def test_a_printed_document_is_bounded_as_a_whole() -> None:
    """Short lines of one document pass line_bytes together."""
    decoder = NDJSONDecoder(Limits(line_bytes=10))
    assert decoder.decode(b"{\n1234\n") == []
    with pytest.raises(LineTooLongError, match="the body is longer than 10 bytes"):
        decoder.decode(b"78\n0")


@given(
    values=st.lists(st.sampled_from([b"{}", b'{"a":"\xe2\x80\xa8"}', b"[1]", b"", b"  "]), max_size=9),
    end=st.sampled_from([b"\n", b"\r\n"]),
)
def test_line_endings_do_not_matter(values: list[bytes], end: bytes) -> None:
    """\\n and \\r\\n give the same frames, with or without the last of them."""
    expected = [value for value in values if value.strip()]
    assert frames_of(end.join(values)) == expected
    assert frames_of(end.join([*values, b""])) == expected
