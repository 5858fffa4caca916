"""Decompresses answers within bounds: a few bytes can expand to gigabytes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Final

from crosswalk.errors import StreamTooLargeError

if TYPE_CHECKING:
    import httpx2

__all__ = ["body_of", "decoded"]

_FREE: Final = 32 * 2**20
"""The size up to which any ratio is allowed: a model that repeats itself compresses well."""
_RATIO: Final = 100
"""The highest ratio of an answer's size to its compressed size beyond that."""


def decoded(chunks: AsyncIterator[bytes], headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    """Return the decoded bytes of *chunks*, the body of an answer with *headers*. See :func:`body_of`."""
    if not _is_encoded(headers):
        return chunks
    import httpx2

    class Stream(httpx2.AsyncByteStream):
        def __aiter__(self) -> AsyncIterator[bytes]:
            return chunks

    said = {"content-encoding": headers["content-encoding"]}
    return body_of(httpx2.Response(200, headers=said, stream=Stream()))


def body_of(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Yield the bytes of the body of *response*, as they arrive.

    While they are read:

    Raises:
        StreamTooLargeError: they are far more than the server has sent.
        httpx2.DecodingError: they do not match their encoding.
    """
    return _Bounded(response) if _is_encoded(response.headers) else response.aiter_bytes()


def _is_encoded(headers: Mapping[str, str]) -> bool:
    return headers.get("content-encoding", "").strip().lower() not in ("", "identity")


class _Bounded(AsyncIterator[bytes]):
    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._pieces = response.aiter_bytes()  # each of a megabyte at most
        self._given = 0

    async def __anext__(self) -> bytes:
        piece = await self._pieces.__anext__()
        self._given += len(piece)
        if self._given > _FREE and self._given > self._response.num_bytes_downloaded * _RATIO:
            raise StreamTooLargeError(
                f"the answer unpacks to more than {_RATIO} times what was sent", limit=_RATIO
            )
        return piece
