"""Transports for httpx and httpx2, which have the same API: what passes through is watched, and passed on as it is."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from functools import cache
from types import ModuleType
from typing import Any, Protocol, TypeVar, cast

from crosswalk_observe.exchange import Exchange
from crosswalk_observe.passing import unwatched

__all__ = ["send", "send_async", "watched"]

T = TypeVar("T")


class Watching(Protocol):
    """Watches exchanges: a watcher, as its transports see it."""

    def begin(
        self, method: str, url: str, headers: Iterable[tuple[str, str]], content: bytes | None
    ) -> Exchange | None:
        """A request is about to be sent; ``None`` where it is to pass untouched."""


def watched(watcher: Watching, inner: T) -> T:
    """*inner*, sync or async, watched."""
    return cast("T", _Transport(watcher, inner))


class _Transport:
    """A transport like the one inside, for whatever is asked of it."""

    def __init__(self, watcher: Watching, inner: Any) -> None:
        self._watcher = watcher
        self._inner = inner

    def handle_request(self, request: Any) -> Any:
        return send(self._watcher, self._inner.handle_request, request)

    async def handle_async_request(self, request: Any) -> Any:
        return await send_async(self._watcher, self._inner.handle_async_request, request)

    def __enter__(self) -> Any:
        self._inner.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._inner.__exit__(*error)

    async def __aenter__(self) -> Any:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._inner.__aexit__(*error)

    def __getattr__(self, name: str) -> Any:  # close, aclose, and what a transport has of its own
        if name == "_inner":  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self._inner, name)


def send(watcher: Watching, handle: Callable[[Any], Any], request: Any) -> Any:
    """The answer that *handle*, a transport's own, gives to *request*; watched where somebody wants that."""
    exchange = _begin(watcher, request)
    if exchange is None:
        return handle(request)
    try:
        with unwatched():
            response = handle(request)
    except BaseException as error:
        exchange.failed(error)
        raise
    _watch_answer(exchange, request, response)
    return response


async def send_async(watcher: Watching, handle: Callable[[Any], Awaitable[Any]], request: Any) -> Any:
    """As :func:`send`."""
    exchange = _begin(watcher, request)
    if exchange is None:
        return await handle(request)
    try:
        with unwatched():
            response = await handle(request)
    except BaseException as error:
        exchange.failed(error)
        raise
    _watch_answer(exchange, request, response)
    return response


def _begin(watcher: Watching, request: Any) -> Exchange | None:
    try:
        content = request.content
    except RuntimeError:  # a stream, or files: they are sent as they are read, and are no request to a model
        content = None
    return watcher.begin(request.method, str(request.url), request.headers.multi_items(), content)


def _watch_answer(exchange: Exchange, request: Any, response: Any) -> None:
    headers = response.headers.multi_items()
    try:
        body = response.content
    except RuntimeError:  # it is still to be read
        if exchange.answered(response.status_code, headers):
            response.stream = _streams(_library(request))(response.stream, exchange)
    else:
        exchange.answered(response.status_code, headers, encoding="")
        exchange.chunk(body)
        exchange.ended()


def _library(request: Any) -> ModuleType:
    """httpx or httpx2, whichever *request* is of."""
    return sys.modules[type(request).__module__.partition(".")[0]]


@cache
def _streams(library: Any) -> Callable[[Any, Exchange], Any]:
    """What makes, of a stream of *library*, one that is watched; sync or async, as it is used."""

    class WatchedStream(library.SyncByteStream, library.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, inner: Any, exchange: Exchange) -> None:
            self._inner = inner
            self._exchange = exchange

        def __iter__(self) -> Iterator[bytes]:
            exchange = self._exchange
            try:
                for chunk in self._inner:
                    exchange.chunk(chunk)
                    yield chunk
            except BaseException as error:
                exchange.failed(error)
                raise
            exchange.ended()

        async def __aiter__(self) -> AsyncIterator[bytes]:
            exchange = self._exchange
            try:
                async for chunk in self._inner:
                    exchange.chunk(chunk)
                    yield chunk
            except BaseException as error:
                exchange.failed(error)
                raise
            exchange.ended()

        def close(self) -> None:
            try:
                self._inner.close()
            finally:
                self._exchange.left()

        async def aclose(self) -> None:
            try:
                await self._inner.aclose()
            finally:
                self._exchange.left()

    return WatchedStream
