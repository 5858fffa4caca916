"""The bodies of answers, read past the HTTP library: whatever a server sends, what comes out is what the library would give."""

from __future__ import annotations

import asyncio
import gzip
import random
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import h11
import httpcore2
import httpx2
import pytest
from hypothesis import given, settings, strategies as st

from crosswalk import StreamTooLargeError
from crosswalk.service.chunks import HEAD_BYTES, Address, Chunked, Tap, UntilClosed, past
from crosswalk.service.decoding import body_of, decoded
from tries import tries

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
Pieces = list[bytes]


def by_the_library(pieces: Pieces, head: bytes) -> tuple[bytes, str]:
    """The body that ``h11`` reads, as ``httpcore2`` uses it, and how it ends."""
    connection = asked()
    body, left = b"", iter([head, *pieces, b""])
    try:
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(next(left))
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return body, "end"
    except h11.RemoteProtocolError:
        return body, "broken"


def asked() -> h11.Connection:
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="POST", target="/", headers=[("Host", "h")]))
    connection.send(h11.EndOfMessage())
    return connection


def past_the_library(pieces: Pieces, head: bytes) -> tuple[bytes, str]:
    """The same through :class:`Chunked`, or :class:`UntilClosed`, with the library behind it."""
    tap, connection, left = Tap(Address()), asked(), iter([head, *pieces])

    async def receive() -> bytes:
        return next(left, b"")

    async def events() -> AsyncIterator[Any]:
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(tap.give(tap.take() or await receive()))
            else:
                yield event

    async def rest() -> AsyncIterator[bytes]:
        async for event in told:
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return

    async def main() -> tuple[bytes, str]:
        body = b""
        assert tap.send(b"request") == b""
        assert tap.send(b"") == b"request"
        try:
            async for event in told:
                if isinstance(event, h11.Response):
                    break
            headers = {name.decode(): value.decode() for name, value in event.headers}
            async for data in past(event.status_code, headers, tap, receive, rest()):
                assert data
                body += data
        except (h11.RemoteProtocolError, httpcore2.RemoteProtocolError):
            return body, "broken"
        assert connection.their_state is h11.DONE or head is not HEAD
        return body, "end"

    told = events()
    return asyncio.run(main())


def cut(data: bytes, sizes: list[int]) -> Pieces:
    """*data* in pieces of *sizes*, the rest at once."""
    pieces, at = [], 0
    for size in sizes:
        pieces.append(data[at : at + size])
        at += size
    return [piece for piece in (*pieces, data[at:]) if piece]


def chunk(data: bytes, extension: bytes = b"") -> bytes:
    return b"%x%s\r\n%s\r\n" % (len(data), extension, data)


WHOLE = chunk(b"a" * 20) + chunk(b"\r\n") + chunk(b"0\r\n\r\n") + b"0\r\n\r\n"
BODIES = {
    "plain": WHOLE,
    "empty": b"0\r\n\r\n",
    "upper case": b"A\r\n0123456789\r\n0\r\n\r\n",
    "trailers": chunk(b"text") + b"0\r\nX-Checksum: 1\r\n\r\n",
    "an extension": chunk(b"one") + chunk(b"two", b";name=value") + chunk(b"three") + b"0\r\n\r\n",
    "blanks": chunk(b"one") + b"3 \r\ntwo\r\n" + b"0\r\n\r\n",
    "leading zeros": b"000000000003\r\none\r\n0\r\n\r\n",
    "a long last chunk": b"00\r\n\r\n",
    "no size": b"\r\n\r\n",
    "no number": chunk(b"one") + b"xyz\r\none\r\n0\r\n\r\n",
    "a chunk too long": b"3\r\nfour\r\n0\r\n\r\n",
    "a chunk too short": b"5\r\nfour\r\n0\r\n\r\n",
    "cut in a chunk": WHOLE[:10],
    "cut behind a chunk": chunk(b"one"),
    "cut in a size": chunk(b"one") + b"1",
    "cut in a line end": chunk(b"one")[:-1],
    "cut before the end": WHOLE[:-2],
    "nothing": b"",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_chunks_are_read_as_the_library_reads_them(body: bytes, size: int) -> None:
    pieces = cut(body, [size] * (len(body) // size))
    assert past_the_library(pieces, HEAD) == by_the_library(pieces, HEAD)


@settings(max_examples=tries(200))
@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=6),
    st.lists(st.integers(1, 30), max_size=30),
    st.integers(-1, 200),
    st.binary(max_size=2),
)
def test_any_chunks_however_they_are_cut(
    texts: list[bytes], sizes: list[int], place: int, noise: bytes
) -> None:
    body = b"".join(map(chunk, texts)) + b"0\r\n\r\n"
    if place >= 0:
        body = body[:place] + noise + body[place + len(noise) :]
    pieces = cut(HEAD + body, [len(HEAD), *sizes])[1:]
    assert past_the_library(pieces, HEAD) == by_the_library(pieces, HEAD)


def test_interim_answers_have_an_end() -> None:
    """For each request anew: what came before an earlier answer does not count."""
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    tap, most = Tap(Address()), HEAD_BYTES // len(interim)
    for _ in range(2):
        tap.send(b"request")
        tap.send(b"")
        assert all(tap.give(interim) == interim for _ in range(most))
    with pytest.raises(httpcore2.RemoteProtocolError):
        tap.give(interim)


@pytest.mark.parametrize(
    "head",
    [
        HEAD,
        HEAD.replace(b"\r\n", b"\n"),
        b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD,
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + HEAD,
    ],
    ids=["plain", "bare line ends", "continue", "hints"],
)
def test_a_head_ends_where_it_does(head: bytes) -> None:
    """However it is cut, the library sees nothing of the body."""
    for at in range(1, len(head) + len(WHOLE)):
        first, *rest = cut(head + WHOLE, [at])
        assert past_the_library(rest, first) == (b"a" * 20 + b"\r\n" + b"0\r\n\r\n", "end")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", b"abc"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b"abcdef"),
        (b"HTTP/1.0 200 OK\r\n\r\n", b"abcdef"),
        (b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", b""),
    ],
)
def test_other_bodies_are_read_too(head: bytes, expected: bytes) -> None:
    pieces = [b"abc", b"def"]
    assert past_the_library(pieces, head) == (expected, "end") == by_the_library(pieces, head)


def test_which_way_a_body_is_read() -> None:
    def way(status: int, **headers: str) -> type:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return type(past(status, named, Tap(Address()), None, None))  # type: ignore[arg-type]  # nothing is read

    assert way(200, transfer_encoding="Chunked ") is Chunked
    assert way(200, transfer_encoding="gzip, chunked") is type(None)
    assert way(304, transfer_encoding="chunked") is type(None)
    assert way(200, content_length="1") is type(None)
    assert way(200) is UntilClosed


# ------------------------------------------------------------------------------------ what is compressed


async def in_pieces(data: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def length_of(chunks: AsyncIterator[bytes]) -> int:
    return sum([len(chunk) async for chunk in chunks])


MEGABYTE = bytes(2**20)


def packed(megabytes: int) -> bytes:
    """So many megabytes of zeros, a thousand times smaller."""
    packer = zlib.compressobj(9, wbits=31)
    return b"".join([*(packer.compress(MEGABYTE) for _ in range(megabytes)), packer.flush()])


@pytest.mark.sweep
def test_far_more_than_was_sent_is_refused() -> None:
    data = packed(200)

    def through_the_pool() -> AsyncIterator[bytes]:
        return decoded(in_pieces(data), {"content-encoding": "gzip"})

    def through_a_client() -> AsyncIterator[bytes]:
        class Body(httpx2.AsyncByteStream):
            def __aiter__(self) -> AsyncIterator[bytes]:
                return in_pieces(data)

        return body_of(httpx2.Response(200, headers={"content-encoding": "gzip"}, stream=Body()))

    def refused(way: Callable[[], AsyncIterator[bytes]]) -> tuple[int, int]:
        async def main() -> tuple[int, int]:
            given = 0
            with pytest.raises(StreamTooLargeError, match="100 times") as raised:
                async for piece in way():
                    given += len(piece)
            return given, raised.value.limit

        return asyncio.run(main())

    assert len(data) < 300_000
    for way in (through_the_pool, through_a_client):
        given, limit = refused(way)
        assert limit == 100
        assert given <= 33 * 2**20  # what had come by then, and not the rest


def test_what_compresses_well_is_read() -> None:
    data = packed(30)
    assert asyncio.run(length_of(decoded(in_pieces(data), {"content-encoding": "gzip"}))) == 30 * 2**20


def test_a_long_answer_is_read_whose_bytes_were_sent() -> None:
    noise = random.Random(1).randbytes(2**21)
    data = gzip.compress((noise + MEGABYTE) * 12, 1)
    length = 36 * 2**20
    assert len(data) * 100 > length
    assert asyncio.run(length_of(decoded(in_pieces(data, 65536), {"content-encoding": "gzip"}))) == length


@pytest.mark.parametrize("encoding", ["", "identity", "Identity "])
def test_what_is_not_compressed_stays_as_it_is(encoding: str) -> None:
    chunks: Any = object()
    assert decoded(chunks, {"content-encoding": encoding}) is chunks
