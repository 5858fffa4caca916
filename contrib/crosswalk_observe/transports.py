"""Watched transports for httpx and httpx2, which have the same API."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import cache, cached_property
from typing import Any, TypeVar, cast

from crosswalk_observe.exchange import Exchange
from crosswalk_observe.guard import Layer, Request, Watching, replaced, replaced_async

T = TypeVar("T")


def watched(watcher: Watching, inner: T) -> T:
    """Wrap *inner*, a sync or async transport."""
    return cast("T", _Transport(watcher, inner))


class _Transport:
    """A transport that watches the one inside and otherwise behaves like it."""

    def __init__(self, watcher: Watching, inner: Any) -> None:
        self._watcher = watcher
        self._inner = inner

    @cached_property
    def handle_request(self) -> Callable[[Any], Any]:
        watcher = self._watcher
        return replaced(FUNCTION, lambda: watcher, self._inner.handle_request)

    @cached_property
    def handle_async_request(self) -> Callable[[Any], Awaitable[Any]]:
        watcher = self._watcher
        return replaced_async(FUNCTION, lambda: watcher, self._inner.handle_async_request)

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

    def __getattr__(self, name: str) -> Any:  # close, aclose, and custom attributes of a transport
        if name == "_inner":  # while it is being copied
            raise AttributeError(name)
        return getattr(self._inner, name)


def _describe(request: Any) -> Request | None:
    if _library(request) is None:
        return None
    try:
        content = request.content
    except RuntimeError:  # a stream, or files, which are not a request to a model
        content = None
    return Request(request.method, str(request.url), request.headers.multi_items(), content)


def _watch_answer(exchange: Exchange, response: Any, request: Any) -> None:
    library = _library(request)
    if not isinstance(response, library.Response):
        exchange.discard()
        return
    headers = response.headers.multi_items()
    try:
        body = response.content
    except RuntimeError:  # not read yet
        if exchange.answered(response.status_code, headers):
            response.stream = _streams(library)(response.stream, exchange)
    else:
        exchange.answered(response.status_code, headers, encoding="")
        exchange.chunk(body)
        exchange.ended()


def _watch_method(exchange: Exchange, response: Any, _transport: Any, request: Any) -> None:
    _watch_answer(exchange, response, request)


FUNCTION = Layer("httpx", _describe, _watch_answer)
"""The layer for a bound method of a transport."""
METHOD = Layer("httpx", lambda _, request: _describe(request), _watch_method)
"""The layer for the method of a transport class."""


def _library(request: Any) -> Any:
    """Return httpx or httpx2, the library of *request*, or ``None`` for neither."""
    loaded = (sys.modules.get(name) for name in ("httpx", "httpx2"))
    return next((one for one in loaded if one is not None and isinstance(request, one.Request)), None)


@cache
def _streams(library: Any) -> Callable[[Any, Exchange], Any]:
    """Return the class of watched streams of *library*, both sync and async."""

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
                self._exchange.abandoned()

        async def aclose(self) -> None:
            try:
                await self._inner.aclose()
            finally:
                self._exchange.abandoned()

    return WatchedStream
