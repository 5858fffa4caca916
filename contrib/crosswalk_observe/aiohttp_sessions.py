"""Watched sessions of aiohttp."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache, wraps
from typing import Any, Final

from crosswalk_observe.exchange import Exchange
from crosswalk_observe.guard import Layer, Request, as_builtin_error, replaced_async
from crosswalk_observe.watcher import Watcher


def aiohttp_middleware(watcher: Watcher, *, auto_decompress: bool = True) -> Callable[..., Awaitable[Any]]:
    """Return a middleware for aiohttp 3.12 or newer: ``ClientSession(middlewares=[aiohttp_middleware(watcher)])``.

    Put it last, so that it sees the final request.

    Args:
        watcher: the watcher.
        auto_decompress: the option of the session.
    """
    layer = _UNPACKED if auto_decompress else _PACKED

    async def middleware(request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        return await replaced_async(layer, lambda: watcher, handler)(request)

    return middleware


async def _describe(request: Any) -> Request:
    from aiohttp.payload import BytesPayload

    body = request.body
    content = body
    if isinstance(body, BytesPayload):  # before aiohttp 3.13 its bytes are private
        content = await body.as_bytes() if hasattr(body, "as_bytes") else body._value
    content = content if isinstance(content, bytes) else None  # a stream is not read here
    return Request(request.method, str(request.url), [*request.headers.items()], content)


def _watch(encoding: str | None) -> Callable[[Exchange, Any, Any], None]:
    def watch(exchange: Exchange, response: Any, request: Any) -> None:
        from aiohttp import ClientResponse, StreamReader

        if not (isinstance(response, ClientResponse) and isinstance(response.content, StreamReader)):
            exchange.discard()
        elif exchange.answered(response.status, [*response.headers.items()], encoding=encoding):
            response.content = _reader()(response.content, exchange)

    return watch


_UNPACKED: Final = Layer("aiohttp", _describe, _watch(""))
_PACKED: Final = Layer("aiohttp", _describe, _watch(None))


def watched_request(
    watcher: Callable[[], Watcher | None], original: Callable[..., Awaitable[Any]]
) -> Callable[..., Awaitable[Any]]:
    """Return ``ClientSession._request``, through which all requests pass, watched whenever *watcher* returns a watcher."""

    @wraps(original)
    async def _request(self: Any, *arguments: Any, **options: Any) -> Any:
        watching = watcher()
        if watching is not None:
            try:
                options = {**options, "middlewares": _middlewares(watching, self, options)}
            except Exception as error:
                watching.report("watching aiohttp", error)
        return await original(self, *arguments, **options)

    return _request


def _middlewares(watcher: Watcher, session: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    """Return the middlewares of a request with *options*, or of its *session*, followed by the watcher's."""
    unpacks = options.get("auto_decompress")
    unpacks = session.auto_decompress if unpacks is None else unpacks
    others = options.get("middlewares")
    others = session._middlewares if others is None else others
    return (*others, aiohttp_middleware(watcher, auto_decompress=unpacks))


@cache
def _reader() -> Any:
    from aiohttp import StreamReader

    class WatchedReader:
        """A ``StreamReader`` that reports to an exchange, and otherwise behaves like the one inside."""

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
            except Exception as error:  # not CancelledError: the application may read on after it
                partial = getattr(error, "partial", None)  # of asyncio's IncompleteReadError
                if isinstance(partial, bytes):
                    self._told(partial)
                self._exchange.failed(as_builtin_error(error))
                raise

        async def read(self, n: int = -1) -> bytes:
            return self._told(await self._read(self._inner.read(n)))

        async def readany(self) -> bytes:
            return self._told(await self._read(self._inner.readany()))

        async def readline(self, **more: Any) -> bytes:
            return self._told(await self._read(self._inner.readline(**more)))

        async def readuntil(self, *arguments: Any, **more: Any) -> bytes:
            return self._told(await self._read(self._inner.readuntil(*arguments, **more)))

        async def readexactly(self, n: int) -> bytes:
            return self._told(await self._read(self._inner.readexactly(n)))

        async def readchunk(self) -> tuple[bytes, bool]:
            data, is_end = await self._read(self._inner.readchunk())
            return self._told(data), is_end

        def read_nowait(self, n: int = -1) -> bytes:
            return self._told(self._inner.read_nowait(n))

        def set_exception(self, error: BaseException, *cause: BaseException) -> None:
            self._exchange.abandoned()  # the response is closed or released
            self._inner.set_exception(error, *cause)

    return WatchedReader
