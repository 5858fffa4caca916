"""What passes through aiohttp's sessions: watched, and passed on as it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache, wraps
from typing import Any

from crosswalk_observe.exchange import Exchange
from crosswalk_observe.failures import plain
from crosswalk_observe.passing import unwatched
from crosswalk_observe.watcher import Watcher

__all__ = ["aiohttp_middleware"]


def aiohttp_middleware(watcher: Watcher, *, auto_decompress: bool = True) -> Callable[..., Awaitable[Any]]:
    """A middleware of aiohttp, 3.12 or newer: ``ClientSession(middlewares=[aiohttp_middleware(watcher)])``.

    Where there are others it is the last, so that it sees what is sent.

    Args:
        watcher: what is told.
        auto_decompress: what the session was made with.
    """
    from aiohttp.payload import BytesPayload

    async def middleware(request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        body = request.body
        content = await body.as_bytes() if isinstance(body, BytesPayload) else body
        content = content if isinstance(content, bytes) else None  # others are sent as they are read
        exchange = watcher.begin(request.method, str(request.url), [*request.headers.items()], content)
        if exchange is None:
            return await handler(request)
        try:
            with unwatched():
                response = await handler(request)
        except BaseException as error:
            exchange.failed(plain(error))
            raise
        if exchange.answered(
            response.status, [*response.headers.items()], encoding="" if auto_decompress else None
        ):
            response.content = _reader()(response.content, exchange)
        return response

    return middleware


def watched_request(
    watcher: Callable[[], Watcher | None], original: Callable[..., Awaitable[Any]]
) -> Callable[..., Awaitable[Any]]:
    """``ClientSession._request``, through which all requests go, watched while there is a watcher."""

    @wraps(original)
    async def _request(self: Any, *given: Any, **more: Any) -> Any:
        watching = watcher()
        if watching is not None:
            unpacks = more.get("auto_decompress")
            last = aiohttp_middleware(
                watching, auto_decompress=self.auto_decompress if unpacks is None else unpacks
            )
            others = more.get("middlewares")
            more["middlewares"] = (*(self._middlewares if others is None else others), last)
        return await original(self, *given, **more)

    return _request


@cache
def _reader() -> Any:
    from aiohttp import StreamReader

    class WatchedReader:
        """A ``StreamReader``, told of to an exchange; for what is not said here it is the one inside."""

        __aiter__ = StreamReader.__aiter__
        iter_any = StreamReader.iter_any
        iter_chunked = StreamReader.iter_chunked
        iter_chunks = StreamReader.iter_chunks

        def __init__(self, inner: Any, exchange: Exchange) -> None:
            self._inner = inner
            self._exchange = exchange
            self._told(b"")

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def _told(self, data: bytes) -> bytes:
            self._exchange.chunk(data)
            if self._inner.at_eof():
                self._exchange.ended()
            return data

        async def _read(self, reading: Awaitable[Any]) -> Any:
            try:
                return await reading
            except Exception as error:  # who is cancelled may read on
                partial = getattr(error, "partial", None)  # of asyncio's IncompleteReadError
                if isinstance(partial, bytes):
                    self._told(partial)
                self._exchange.failed(plain(error))
                raise

        async def read(self, n: int = -1) -> bytes:
            return self._told(await self._read(self._inner.read(n)))

        async def readany(self) -> bytes:
            return self._told(await self._read(self._inner.readany()))

        async def readline(self, **more: Any) -> bytes:
            return self._told(await self._read(self._inner.readline(**more)))

        async def readuntil(self, *given: Any, **more: Any) -> bytes:
            return self._told(await self._read(self._inner.readuntil(*given, **more)))

        async def readexactly(self, n: int) -> bytes:
            return self._told(await self._read(self._inner.readexactly(n)))

        async def readchunk(self) -> tuple[bytes, bool]:
            data, is_end = await self._read(self._inner.readchunk())
            return self._told(data), is_end

        def read_nowait(self, n: int = -1) -> bytes:
            return self._told(self._inner.read_nowait(n))

        def set_exception(self, error: BaseException, *cause: BaseException) -> None:
            self._exchange.left()  # the response is closed, or given back
            self._inner.set_exception(error, *cause)

    return WatchedReader
