"""Watch every client of the process: httpx, aiohttp and urllib3, if you cannot pass a client to your SDK."""

from __future__ import annotations

import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import cache, partial, wraps
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import attrs

from crosswalk import ConfigurationError
from crosswalk_observe.exchange import WatchedExchange, by_name
from crosswalk_observe.transports import (
    METHOD,
    Layer,
    Request,
    as_builtin_error,
    begin,
    replaced,
    replaced_async,
    send,
)
from crosswalk_observe.watcher import Watcher

# ------------------------------------------------------------------------ aiohttp sessions
# Watched sessions of aiohttp.


def aiohttp_middleware(watcher: Watcher, *, auto_decompress: bool = True) -> Callable[..., Awaitable[Any]]:
    """Return a middleware for aiohttp 3.12 or newer: ``ClientSession(middlewares=[aiohttp_middleware(watcher)])``.

    Put it last, so that it sees the final request.

    Args:
        watcher: the watcher.
        auto_decompress: the option of the session.
    """
    layer = _UNPACKED_LAYER if auto_decompress else _PACKED_LAYER

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


def _watch_aiohttp_response(encoding: str | None) -> Callable[[WatchedExchange, Any, Any], None]:
    def watch(exchange: WatchedExchange, response: Any, request: Any) -> None:
        from aiohttp import ClientResponse, StreamReader

        if not (isinstance(response, ClientResponse) and isinstance(response.content, StreamReader)):
            exchange.discard()
            return
        exchange.request_headers = by_name(request.headers)  # a connection to a proxy adds its own
        if exchange.answered(response.status, [*response.headers.items()], encoding=encoding):
            response.content = _reader()(response.content, exchange)

    return watch


_UNPACKED_LAYER: Final = Layer("aiohttp", _describe, _watch_aiohttp_response(""))
_PACKED_LAYER: Final = Layer("aiohttp", _describe, _watch_aiohttp_response(None))


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
    is_unpacked = options.get("auto_decompress")
    is_unpacked = session.auto_decompress if is_unpacked is None else is_unpacked
    middlewares = options.get("middlewares")
    middlewares = session._middlewares if middlewares is None else middlewares
    return (*middlewares, aiohttp_middleware(watcher, auto_decompress=is_unpacked))


@cache
def _reader() -> Any:
    from aiohttp import StreamReader

    class WatchedReader:
        """A ``StreamReader`` that reports to an exchange, and otherwise behaves like the one inside."""

        __aiter__ = StreamReader.__aiter__
        iter_any = StreamReader.iter_any
        iter_chunked = StreamReader.iter_chunked
        iter_chunks = StreamReader.iter_chunks

        def __init__(self, inner: Any, exchange: WatchedExchange) -> None:
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


# --------------------------------------------------------------------------- urllib3 pools
# Watched urllib3, which requests and botocore (boto3) use.


def requests_adapter(watcher: Watcher, **options: Any) -> Any:
    """Return a ``requests.adapters.HTTPAdapter`` that *watcher* watches.

    Use it as ``session.mount("https://", requests_adapter(watcher))``.

    Args:
        watcher: the watcher.
        options: the options of the adapter.
    """
    from requests.adapters import HTTPAdapter

    class WatchedAdapter(HTTPAdapter):
        def send(self, *arguments: Any, **options: Any) -> Any:
            return replaced(_REQUESTS, lambda: watcher, super().send)(*arguments, **options)

    return WatchedAdapter(**options)


def watch_bedrock(watcher: Watcher, client: Any) -> None:
    """Watch *client*, a boto3 or botocore client for ``bedrock-runtime``, from now on."""
    session = client._endpoint.http_session

    def before_send(request: Any, **_: Any) -> Any:
        exchange = begin(watcher, _BOTOCORE, (request,), {})
        if exchange is None:
            return None  # botocore sends it itself
        return send(exchange, _BOTOCORE, session.send, (request,), {})

    client.meta.events.register("before-send.bedrock-runtime", before_send, unique_id="crosswalk-observe")


def watched_urlopen(
    watcher: Callable[[], Watcher | None], original: Callable[..., Any]
) -> Callable[..., Any]:
    """Return ``HTTPConnectionPool.urlopen``, watched whenever *watcher* returns a watcher."""
    return replaced(_URLLIB3, watcher, original)


def _described(request: Any, *_: Any, **__: Any) -> Request:
    """Describe *request*, of requests or of botocore, which have the same attributes."""
    return Request(request.method, request.url, _pairs(request.headers), _content(request.body))


def _pool_described(
    pool: Any, method: str, url: str, body: Any = None, headers: Any = None, *_: Any, **__: Any
) -> Request:
    port = f":{pool.port}" if pool.port else ""
    host = f"[{pool.host}]" if ":" in pool.host else pool.host
    address = url if "://" in url else f"{pool.scheme}://{host}{port}{url}"
    sent_headers = _pairs(pool.headers if headers is None else headers) + _pairs(pool.proxy_headers)
    return Request(method, address, sent_headers, _content(body))


def _pairs(headers: Any) -> list[tuple[str, str]]:
    return [(_text(name), _text(value)) for name, value in headers.items()]


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _content(body: Any) -> bytes | None:
    if isinstance(body, str):
        return body.encode()
    return bytes(body) if isinstance(body, bytes | bytearray) else None  # a file is not read here


def _watch_requests(exchange: WatchedExchange, response: Any, *_: Any, **__: Any) -> None:
    _watch_urllib3_response(exchange, response.raw)


def _watch_botocore(exchange: WatchedExchange, response: Any, request: Any) -> None:
    if request.stream_output:
        _watch_urllib3_response(exchange, response.raw)
    else:
        _whole(exchange, response.status_code, response.headers, response.content, encoding=None)


def _watch_pool(exchange: WatchedExchange, response: Any, *_: Any, **options: Any) -> None:
    if options.get("preload_content", True):
        encoding = "" if options.get("decode_content", True) else None
        _whole(exchange, response.status, response.headers, response.data, encoding=encoding)
    else:
        _watch_urllib3_response(exchange, response)


_REQUESTS: Final = Layer("requests", _described, _watch_requests)
_BOTOCORE: Final = Layer("botocore", _described, _watch_botocore)
_URLLIB3: Final = Layer("urllib3", _pool_described, _watch_pool)


def _whole(
    exchange: WatchedExchange, status: int, headers: Any, body: bytes, *, encoding: str | None
) -> None:
    if exchange.answered(status, _pairs(headers), encoding=encoding):
        exchange.chunk(body)
        exchange.ended()


def _watch_urllib3_response(exchange: WatchedExchange, response: Any) -> None:
    """Watch *response* while it is read, if it is urllib3's own. It stays an instance of its class."""
    from urllib3 import HTTPResponse

    response_class: Any = HTTPResponse
    if not isinstance(response, response_class):
        exchange.discard()
    elif exchange.answered(response.status, _pairs(response.headers)):
        kind: Any = type(response)
        response.__class__ = _watched(kind)
        response._crosswalk_exchange = exchange


@cache
def _watched(kind: Any) -> Any:
    """Return a subclass of *kind*, a response class, that reports reads below ``stream``, ``data`` and iteration."""

    class Watched(kind):  # type: ignore[misc]
        _crosswalk_exchange: WatchedExchange

        _crosswalk_is_reading = False

        def read(self, *arguments: Any, **options: Any) -> bytes:
            data: bytes = self._crosswalk_read(super().read, *arguments, **options)
            return self._crosswalk_told(data, *arguments, **options)

        def read1(self, *arguments: Any, **options: Any) -> bytes:
            data: bytes = self._crosswalk_read(super().read1, *arguments, **options)
            return self._crosswalk_told(data, *arguments, **options)

        def read_chunked(self, *arguments: Any, **options: Any) -> Iterator[bytes]:
            pieces = super().read_chunked(*arguments, **options)
            while (data := self._crosswalk_read(next, pieces, None)) is not None:
                yield self._crosswalk_told(data, *arguments, **options)
            self._crosswalk_exchange.ended()

        def close(self) -> None:
            try:
                super().close()
            finally:
                if not self._crosswalk_is_reading:  # urllib3 closes a broken response itself
                    self._crosswalk_exchange.abandoned()

        def _crosswalk_read(self, reading: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
            self._crosswalk_is_reading = True
            try:
                return reading(*arguments, **options)
            except Exception as error:
                self._crosswalk_exchange.failed(as_builtin_error(error))
                raise
            finally:
                self._crosswalk_is_reading = False

        def _crosswalk_told(self, data: bytes, *arguments: Any, **options: Any) -> bytes:
            exchange = self._crosswalk_exchange
            try:
                is_decoded = arguments[1] if len(arguments) > 1 else options.get("decode_content")
                if data and (self.decode_content if is_decoded is None else is_decoded):
                    exchange.encoding = ""  # urllib3 decodes it
                exchange.chunk(data)
                is_packed = getattr(getattr(self, "_decoder", None), "has_unconsumed_tail", False)
                if self.isclosed() and not is_packed and not len(getattr(self, "_decoded_buffer", ())):
                    exchange.ended()
            except Exception as error:
                exchange.report("watching urllib3", error)
            return data

    Watched.__name__, Watched.__qualname__, Watched.__module__ = (
        kind.__name__,
        kind.__qualname__,
        kind.__module__,
    )
    return Watched


# --------------------------------------------------------------------------------- patches
# Watch every client of the process, including existing ones, if you cannot pass a client to your SDK.


@attrs.frozen
class Patch:
    """A method that is replaced while a watcher is installed.

    Attributes:
        library: the module, if it is installed.
        oldest: the first supported version. Older versions are left alone.
        owner: the name of the class in *library*.
        method: the name of the method.
        watched: makes the replacement, from a function that returns the watcher (``None``) and the original
            method.
    """

    library: str
    oldest: tuple[int, ...]
    owner: str
    method: str
    watched: Callable[[Callable[[], Watcher | None], Callable[..., Any]], Callable[..., Any]]

    def why_not(self, module: Any) -> str | None:
        """Return why the library cannot be watched, or ``None`` if it can."""
        version = str(getattr(module, "__version__", ""))
        if tuple(map(int, re.findall(r"\d+", version)[:2])) < self.oldest:
            oldest = ".".join(map(str, self.oldest))
            return f"version {version or 'unknown'} is older than {oldest}"
        if not hasattr(getattr(module, self.owner, None), self.method):
            return f"it has no {self.owner}.{self.method}"
        return None


PATCHES: Final = [
    *(
        Patch(library, oldest, owner, method, partial(make, METHOD))
        for library, oldest in (("httpx", (0, 20)), ("httpx2", ()))
        for owner, method, make in (
            ("HTTPTransport", "handle_request", replaced),
            ("AsyncHTTPTransport", "handle_async_request", replaced_async),
        )
    ),
    Patch("aiohttp", (3, 12), "ClientSession", "_request", watched_request),
    Patch("urllib3", (1, 26), "HTTPConnectionPool", "urlopen", watched_urlopen),
]

_lock = threading.Lock()
_watcher: Watcher | None = None
_replaced: list[tuple[type, str, Callable[..., Any], Callable[..., Any]]] = []


def install(watcher: Watcher) -> None:
    """Let *watcher* see the traffic of every client in this process, including existing ones.

    This covers httpx, httpx2, aiohttp and urllib3, which requests and botocore use. A library in an unsupported version
    is left alone, and the log says so. A second call replaces the first watcher, and the log says that too. Traffic of a
    transport that is watched already is not seen twice.

    Raises:
        ConfigurationError: *watcher* is not a watcher.
    """
    global _watcher
    watcher_object: object = watcher
    if not isinstance(watcher_object, Watcher):
        raise ConfigurationError(
            f"install() takes a Watcher, not {type(watcher_object).__name__}: Watcher(your_sink)"
        )
    with _lock:
        if _watcher is not None and _watcher is not watcher:
            watcher.note("another watcher was installed; this one takes its place")
        _watcher = watcher
        if _replaced:
            return
        for patch in PATCHES:
            if find_spec(patch.library) is None:
                continue
            try:
                module = import_module(patch.library)
            except Exception as error:
                watcher.report(f"importing {patch.library}", error)
                continue
            if (reason := patch.why_not(module)) is not None:
                watcher.note(f"{patch.library} is not watched: {reason}")
                continue
            owner = getattr(module, patch.owner)
            original = getattr(owner, patch.method)
            replacement = patch.watched(_installed, original)
            setattr(owner, patch.method, replacement)
            _replaced.append((owner, patch.method, original, replacement))


def uninstall() -> None:
    """Undo :func:`install`, if it was called. Active exchanges are watched to their end."""
    global _watcher
    with _lock:
        _watcher = None
        for owner, method, original, replacement in _replaced:
            if getattr(owner, method) is replacement:  # otherwise another wrapper stays, without a watcher
                setattr(owner, method, original)
        _replaced.clear()


def _installed() -> Watcher | None:
    return _watcher
