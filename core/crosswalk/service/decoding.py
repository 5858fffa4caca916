"""Decompresses answers within bounds, because a few bytes can expand to gigabytes."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Mapping
from typing import Final

from crosswalk.errors import StreamTooLargeError

__all__ = ["decoded"]

_FREE: Final = 32 * 2**20
"""The size up to which any ratio is allowed: a model that repeats itself compresses well."""
_RATIO: Final = 100
"""The highest ratio of an answer's size to its compressed size beyond that."""
_PIECE: Final = 2**20


def decoded(chunks: AsyncIterator[bytes], headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    """Return the decoded bytes of *chunks*, the body of an answer with *headers*, as they arrive.

    While they are read:

    Raises:
        StreamTooLargeError: they are far more than the server has sent.
        httpx2.DecodingError: they do not match their encoding.
    """
    encoding = headers.get("content-encoding", "").strip().lower()
    return chunks if encoding in ("", "identity") else _Bounded(chunks, encoding)


class _Counted(AsyncIterator[bytes]):
    """Bytes, and their number so far."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self.number = 0

    async def __anext__(self) -> bytes:
        chunk = await self._chunks.__anext__()
        self.number += len(chunk)
        return chunk


class _Bounded(AsyncIterator[bytes]):
    def __init__(self, chunks: AsyncIterator[bytes], encoding: str) -> None:
        self._received = _Counted(chunks)
        is_gzip = encoding in ("gzip", "x-gzip")
        pieces = _unpacked(self._received) if is_gzip else _by_httpx2(self._received, encoding)
        self._decoded = _Counted(pieces)

    async def __anext__(self) -> bytes:
        piece = await self._decoded.__anext__()
        if self._decoded.number > _FREE and self._decoded.number > self._received.number * _RATIO:
            raise StreamTooLargeError(
                f"the answer unpacks to more than {_RATIO} times what was sent", limit=_RATIO
            )
        return piece


async def _unpacked(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the content of gzip data, which may have several members. HTTP clients read the first one alone."""
    import httpx2

    unpack = zlib.decompressobj(31)
    try:
        async for chunk in chunks:
            unread = chunk
            while unread:
                if unpack.eof:
                    if not unread.startswith(b"\x1f"):
                        break  # padding behind the last member
                    unpack = zlib.decompressobj(31)
                yield unpack.decompress(unread, _PIECE)
                unread = unpack.unconsumed_tail or unpack.unused_data
        yield unpack.flush()
    except zlib.error as error:
        raise httpx2.DecodingError(str(error)) from error


def _by_httpx2(chunks: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    import httpx2

    class Stream(httpx2.AsyncByteStream):
        def __aiter__(self) -> AsyncIterator[bytes]:
            return chunks

    return httpx2.Response(200, headers={"content-encoding": encoding}, stream=Stream()).aiter_bytes()
