"""Watched transports for httpx and httpx2, and the guard that keeps a program from noticing that it is watched."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property, partial, wraps
from inspect import isawaitable
from typing import Any, Concatenate, Final, NamedTuple, ParamSpec, Protocol, TypeVar, cast

import attrs

from crosswalk_observe.exchange import WatchedExchange, WatchedSending

# ----------------------------------------------------------------------------------- guard
# Wraps functions of HTTP libraries so that a watcher sees their exchanges and the program notices nothing.
#
# Every replaced or wrapped method of another library passes on the exact arguments, and returns or raises what the
# original does. An error in the describing or watching code of a :class:`Layer` goes to the watcher's log.


P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E", bound=BaseException)


class Watching(Protocol):
    """A watcher, as HTTP layers see it."""

    def begin(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        content: bytes | None = None,
    ) -> WatchedExchange | None:
        """Begin the exchange of a request that is about to be sent, or return ``None`` if it is not watched."""

    def report(self, doing: str, error: BaseException) -> None:
        """Log *error*, which the program does not see."""


class Request(NamedTuple):
    """A request that is about to be sent."""

    method: str
    url: str
    headers: Mapping[str, str] | Iterable[tuple[str, str]]
    content: bytes | None


@attrs.frozen
class Layer:
    """How to watch a function of a library that sends a request.

    Attributes:
        library: the name of the library, for the log.
        describe: returns the :class:`Request` for the function's arguments, or an awaitable of it, or ``None`` if they
            are not objects of the library.
        watch: called with the exchange, the function's result and its arguments. It reports the answer to the exchange,
            and leaves a result alone that is not an object of the library.
    """

    library: str
    describe: Callable[..., Any]
    watch: Callable[Concatenate[WatchedExchange, Any, ...], None]


def begin(
    watcher: Watching, layer: Layer, arguments: tuple[Any, ...], options: dict[str, Any]
) -> WatchedExchange | None:
    """Begin the exchange of a call to the function of *layer*, or return ``None`` if it is not watched."""
    try:
        request = layer.describe(*arguments, **options)
        return None if request is None else watcher.begin(*request)
    except Exception as error:
        watcher.report(f"watching {layer.library}", error)
        return None


async def _begin_async(
    watcher: Watching, layer: Layer, arguments: tuple[Any, ...], options: dict[str, Any]
) -> WatchedExchange | None:
    try:
        request = layer.describe(*arguments, **options)
        if isawaitable(request):
            request = await request
        return None if request is None else watcher.begin(*request)
    except Exception as error:
        watcher.report(f"watching {layer.library}", error)
        return None


def send(
    exchange: WatchedExchange,
    layer: Layer,
    function: Callable[..., R],
    arguments: tuple[Any, ...],
    options: dict[str, Any],
) -> R:
    """Call *function*, the original, and report its result to *exchange*."""
    try:
        with WatchedSending(exchange):
            result = function(*arguments, **options)
    except BaseException as error:
        exchange.failed(as_builtin_error(error))
        raise
    watch(exchange, layer, result, arguments, options)
    return result


def watch(
    exchange: WatchedExchange, layer: Layer, result: Any, arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    """Report *result* of the function of *layer* to *exchange*."""
    try:
        layer.watch(exchange, result, *arguments, **options)
    except Exception as error:
        exchange.report(f"watching {layer.library}", error)
        exchange.discard()


def replaced(
    layer: Layer, watcher: Callable[[], Watching | None], original: Callable[..., Any]
) -> Callable[..., Any]:
    """Return *original*, watched whenever *watcher* returns a watcher."""

    @wraps(original)
    def call(*arguments: Any, **options: Any) -> Any:
        watching = watcher()
        exchange = None if watching is None else begin(watching, layer, arguments, options)
        if exchange is None:
            return original(*arguments, **options)
        return send(exchange, layer, original, arguments, options)

    return call


def replaced_async(
    layer: Layer, watcher: Callable[[], Watching | None], original: Callable[..., Awaitable[Any]]
) -> Callable[..., Awaitable[Any]]:
    """:func:`replaced` for an asynchronous function."""

    @wraps(original)
    async def call(*arguments: Any, **options: Any) -> Any:
        watching = watcher()
        exchange = None if watching is None else await _begin_async(watching, layer, arguments, options)
        if exchange is None:
            return await original(*arguments, **options)
        try:
            with WatchedSending(exchange):
                result = await original(*arguments, **options)
        except BaseException as error:
            exchange.failed(as_builtin_error(error))
            raise
        watch(exchange, layer, result, arguments, options)
        return result

    return call


_LIBRARIES: Final = frozenset({"aiohttp", "botocore", "requests", "urllib3"})
_UNRELATED_ERRORS: Final = frozenset({"DecodeError", "InvalidURL", "LocationValueError"})
"""Errors of these libraries that do not mean that the connection failed."""


def as_builtin_error(error: E) -> E | TimeoutError | ConnectionError:
    """Return *error*, or a builtin error if it is a library's error about a slow, unreachable or broken connection."""
    classes = [kind for one in (error, getattr(error, "reason", None)) for kind in type(one).__mro__]
    class_names = {kind.__name__ for kind in classes if kind.__module__.partition(".")[0] in _LIBRARIES}
    if not class_names or class_names & _UNRELATED_ERRORS or isinstance(error, OSError):
        return error
    is_late = "NewConnectionError" not in class_names and any("Timeout" in name for name in class_names)
    return TimeoutError() if is_late else ConnectionError()


# ------------------------------------------------------------------------------ transports
# Watched transports for httpx and httpx2, which have the same API.


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
        return replaced(_layer_of(self._inner), lambda: watcher, self._inner.handle_request)

    @cached_property
    def handle_async_request(self) -> Callable[[Any], Awaitable[Any]]:
        watcher = self._watcher
        return replaced_async(_layer_of(self._inner), lambda: watcher, self._inner.handle_async_request)

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


def _describe(transport: Any, request: Any) -> Request | None:
    kind: Any = type(request)
    library = _library_of(kind)
    if library is None:
        return None
    try:
        content = request.content
    except (
        RuntimeError
    ):  # a redirected request has its bytes as a stream; other streams and files are not read here
        content = b"".join(request.stream) if isinstance(request.stream, library.ByteStream) else None
    headers = _pairs(request.headers)
    for name, value in getattr(getattr(transport, "_pool", None), "_proxy_headers", ()):
        headers.append((name.decode(), value.decode()))  # the pool adds them to the request
    return Request(request.method, str(request.url), headers, content)


def _pairs(headers: Any) -> list[tuple[str, str]]:
    """Return the *headers*. The library works out their encoding again for each name and value that it is asked for."""
    encoding = headers.encoding
    return [(name.decode(encoding), value.decode(encoding)) for name, value in headers.raw]


def _watch_answer(exchange: WatchedExchange, response: Any, *_arguments: Any, **_options: Any) -> None:
    kind: Any = type(response)
    library = _library_of(kind)
    if library is None:
        exchange.discard()
        return
    headers = _pairs(response.headers)
    try:
        body = response.content
    except RuntimeError:  # not read yet
        if exchange.answered(response.status_code, headers):
            response.stream = _streams(library)(response.stream, exchange)
    else:
        exchange.answered(response.status_code, headers, encoding="")
        exchange.chunk(body)
        exchange.ended()


METHOD = Layer("httpx", _describe, _watch_answer)
"""The layer for the method of a transport class."""


def _layer_of(transport: Any) -> Layer:
    """Return the layer for a bound method of *transport*."""

    return Layer("httpx", partial(_describe, transport), _watch_answer)


@cache
def _library_of(kind: Any) -> Any:
    """Return httpx or httpx2, the library of requests or answers of this *kind*, or ``None`` for neither."""
    libraries = [sys.modules[name] for name in ("httpx", "httpx2") if name in sys.modules]
    return next((one for one in libraries if issubclass(kind, (one.Request, one.Response))), None)


@cache
def _streams(library: Any) -> Callable[[Any, WatchedExchange], Any]:
    """Return the class of watched streams of *library*, both sync and async."""

    class WatchedStream(library.SyncByteStream, library.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, inner: Any, exchange: WatchedExchange) -> None:
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
