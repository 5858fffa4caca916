"""Laws for every decoder: cuts do not matter, limits are typed errors, junk raises nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import example, given, strategies as st

from crosswalk.errors import LimitError, LineTooLongError, StreamTooLargeError
from crosswalk.wire import (
    BodyDecoder,
    Decoder,
    Limits,
    NDJSONDecoder,
    SniffingDecoder,
    is_done,
)
from crosswalk.wire.framing import LineDecoder, PushDecoder, SSEDecoder
from frames import Frame, frame_of

BOM = b"\xef\xbb\xbf"
MAKERS: list[Callable[[Limits], Decoder]] = [
    SSEDecoder,
    NDJSONDecoder,
    BodyDecoder,
    SniffingDecoder,
]
every_decoder = pytest.mark.parametrize("maker", MAKERS)

# What the decoders look at, so that random streams meet every rule and every cut through it.
TOKENS = [
    *(b"data: ", b"data:", b"data", b"event: ", b"event:", b"id: 1", b"retry: 10", b":", b" "),
    *(b"\n", b"\n", b"\r", b"\r\n", b"\n\n", b"\r\n\r\n", b"data: {}\n\n", b"data: [1]\n\n"),
    *(b'{"a":1}', b"{", b"}", b"[", b"]", b"[DONE]", b"x", b"<html>", b'{"a":1}\n', b"\t", b"\x0b"),
    *(BOM, BOM[:1], BOM[1:], "\u2028".encode(), "\x85".encode(), b"\xff", b"\0"),
]
streams = st.lists(st.sampled_from(TOKENS), max_size=25).map(b"".join) | st.binary(max_size=60)
cuts = st.lists(st.integers(min_value=0, max_value=200), max_size=12)
small_limits = st.builds(
    Limits,
    line_bytes=st.integers(min_value=1, max_value=30),
    total_bytes=st.integers(min_value=1, max_value=80),
)


def cut(stream: bytes, places: Iterable[int]) -> list[bytes]:
    """The *stream* in chunks, some of them empty."""
    ends = [*sorted(min(place, len(stream)) for place in places), len(stream)]
    return [stream[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def outcome(decoder: Decoder, chunks: Iterable[bytes]) -> tuple[list[Frame], type | None]:
    """All frames that come out, and the type of the error that ends them."""
    frames: list[Frame] = []
    try:
        for chunk in chunks:
            frames += decoder.decode(chunk)
        frames += decoder.flush()
    except LimitError as error:
        return frames, type(error)
    return frames, None


@every_decoder
@given(stream=streams, places=cuts)
def test_frames_do_not_depend_on_the_cuts(
    maker: Callable[[Limits], Decoder], stream: bytes, places: list[int]
) -> None:
    """Any cut of any bytes gives the same frames as the bytes whole, and as one byte at a time."""
    whole = outcome(maker(Limits()), [stream])
    assert whole[1] is None
    assert outcome(maker(Limits()), cut(stream, places)) == whole
    assert outcome(maker(Limits()), cut(stream, range(len(stream)))) == whole


@every_decoder
@given(stream=streams, places=cuts, limits=small_limits)
@example(stream=b"data: a\n\n" * 3, places=[4], limits=Limits(line_bytes=7, total_bytes=20))
@example(stream=b"data: 1\n\ndata: 1234\n\n", places=[], limits=Limits(line_bytes=9))
def test_limits_do_not_depend_on_the_cuts(
    maker: Callable[[Limits], Decoder], stream: bytes, places: list[int], limits: Limits
) -> None:
    """Any cut gives the same frames and then the same error. Nothing but limits is ever raised."""
    whole = outcome(maker(limits), [stream])
    assert outcome(maker(limits), cut(stream, places)) == whole
    assert outcome(maker(limits), cut(stream, range(len(stream)))) == whole
    assert all(len(data) <= limits.line_bytes for data, _ in whole[0])


@every_decoder
@pytest.mark.parametrize("places", [[], [1], [2], [1, 2], [3]])
def test_a_leading_byte_order_mark_is_skipped(maker: Callable[[Limits], Decoder], places: list[int]) -> None:
    """The byte order mark is not part of the first frame, wherever it was cut."""
    line = b"data: {}" if maker is SSEDecoder else b"{}"
    assert outcome(maker(Limits()), cut(BOM + line, places)) == ([frame_of(b"{}")], None)


@pytest.mark.parametrize("maker", [NDJSONDecoder, BodyDecoder, SniffingDecoder])
def test_half_a_byte_order_mark_is_content(maker: Callable[[Limits], Decoder]) -> None:
    """An input that ends within a byte order mark is not lost."""
    assert outcome(maker(Limits()), [BOM[:2]]) == ([frame_of(BOM[:2])], None)


@every_decoder
def test_no_input_gives_no_frame(maker: Callable[[Limits], Decoder]) -> None:
    """No input, and only whitespace, gives no frame."""
    assert outcome(maker(Limits()), []) == ([], None)
    assert outcome(maker(Limits()), [b"", b""]) == ([], None)
    assert outcome(maker(Limits()), [b" \r\n", b"\n\t "]) == ([], None)


@every_decoder
def test_flushing_again_gives_nothing(maker: Callable[[Limits], Decoder]) -> None:
    """Frames of flush() are not given twice."""
    decoder = maker(Limits())
    stream = b'data: {"a":1}' if maker is SSEDecoder else b'{"a":1}'
    assert [*decoder.decode(stream), *decoder.flush()] == [frame_of(b'{"a":1}')]
    assert decoder.flush() == []


@every_decoder
def test_a_line_without_end_is_refused_while_it_is_buffered(
    maker: Callable[[Limits], Decoder],
) -> None:
    """The error comes with the first chunk that passes the limit, and names the limit."""
    decoder = maker(Limits(line_bytes=20))
    assert decoder.decode(b'{"' + b"a" * 18) == []
    with pytest.raises(LineTooLongError, match="longer than 20 bytes") as caught:
        decoder.decode(b"a")
    assert caught.value.limit == 20


@every_decoder
def test_a_stream_of_just_the_limit_passes(maker: Callable[[Limits], Decoder]) -> None:
    """total_bytes itself is allowed. One byte more is refused, with the limit."""
    stream = b"data: {}\n\n" if maker is SSEDecoder else b'{"a":12}\n\n'
    decoder = maker(Limits(total_bytes=10))
    assert outcome(decoder, [stream])[1] is None
    decoder = maker(Limits(total_bytes=9))
    with pytest.raises(StreamTooLargeError, match="longer than 9 bytes") as caught:
        raise_from(decoder, stream)
    assert caught.value.limit == 9


def raise_from(decoder: Decoder, stream: bytes) -> None:
    """Decode and flush, whichever of the two raises."""
    decoder.decode(stream)
    decoder.flush()


@pytest.mark.parametrize(("maker", "unit"), [(SSEDecoder, b"data: {}\n\n"), (NDJSONDecoder, b"{}\n")])
def test_frames_before_a_limit_come_out_first(maker: Callable[[Limits], Decoder], unit: bytes) -> None:
    """A chunk with good frames and then a line that is too long gives the frames and then raises."""
    decoder = maker(Limits(line_bytes=10))
    assert decoder.decode(unit * 2 + b"x" * 11 + b"\n" + unit) == [frame_of(b"{}")] * 2
    for _ in range(2):
        with pytest.raises(LineTooLongError):
            decoder.decode(unit)
    with pytest.raises(LineTooLongError):
        decoder.flush()


@pytest.mark.parametrize(("maker", "unit"), [(SSEDecoder, b"data: {}\n\n"), (NDJSONDecoder, b"{}\n")])
def test_only_a_line_is_bounded_by_line_bytes(maker: Callable[[Limits], Decoder], unit: bytes) -> None:
    """A chunk longer than line_bytes with short lines passes whole."""
    assert outcome(maker(Limits(line_bytes=8)), [unit * 5]) == ([frame_of(b"{}")] * 5, None)


@pytest.mark.sweep
@every_decoder
def test_a_long_line_in_small_chunks_is_one_frame(maker: Callable[[Limits], Decoder]) -> None:
    """16 MiB in 65,536 chunks come out whole. Work that grew with the square would take minutes."""
    prefix = b"data: " if maker is SSEDecoder else b""
    chunks = [prefix, *[b"x" * 256] * 65_536]
    assert outcome(maker(Limits()), chunks) == ([frame_of(b"x" * 2**24)], None)


@pytest.mark.parametrize(
    ("data", "done"),
    [
        (b"[DONE]", True),
        (b" [DONE]\t", True),
        (b"[DONE] ", True),
        (b"[DONE]x", True),
        (b"", False),
        (b"[]", False),
        (b'["[DONE]"]', False),
        (b'{"a":"[DONE]"}', False),
        (b"[done]", False),
    ],
)
def test_the_sentinel_is_told_from_json(data: bytes, done: bool) -> None:
    """Only data that starts with [DONE], after whitespace, is the sentinel."""
    assert is_done(data) is done


def test_a_framing_must_say_how_it_reads() -> None:
    """The bases decode nothing by themselves."""
    with pytest.raises(NotImplementedError):
        PushDecoder().decode(b"x")
    with pytest.raises(NotImplementedError):
        PushDecoder().flush()
    with pytest.raises(NotImplementedError):
        LineDecoder().decode(b"x\n")


def test_the_last_line_needs_no_end() -> None:
    """It comes out at the end, and an input that ends with a line has no other one."""

    class Upper(LineDecoder):
        def read_lines(self, lines: list[bytes], frames: list[Frame]) -> None:
            frames += [(line.upper(), None) for line in lines]

    for sent, last in ((b"a\nb", [(b"B", None)]), (b"a\n", [])):
        decoder = Upper()
        assert decoder.decode(sent) == [(b"A", None)]
        assert decoder.flush() == last
