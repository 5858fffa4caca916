"""Watch every client of the process: httpx, aiohttp and urllib3, if you cannot pass a client to your SDK."""

from __future__ import annotations

import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar
from copy import copy
from functools import cache, partial, wraps
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import attrs

from crosswalk import ConfigurationError
from crosswalk_observe.exchange import WatchedExchange, WatchedSending, by_name
from crosswalk_observe.transports import (
    METHOD,
    Layer,
    Request,
    as_builtin_error,
    begin,
    replaced,
    replaced_async,
    send,
    watch,
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
            self._unread_length = 0
            self._told(b"")

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def _told(self, data: bytes) -> bytes:
            known_length = min(self._unread_length, len(data))
            self._unread_length -= known_length
            self._exchange.chunk(data[known_length:])
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
            if (
                n < 0
            ):  # aiohttp's own, on this object: it loses the pieces from `readany` if the rest does not come
                data: bytes = await self._read(type(self._inner).read(self, n))
                return data
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

        def unread_data(self, data: bytes) -> None:
            self._inner.unread_data(data)
            self._unread_length += len(data)

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
        def __init__(self) -> None:
            super().__init__(**options)
            self.max_retries = copy(self.max_retries)
            kind: Any = type(self.max_retries)
            self.max_retries.__class__ = _watched_retry(kind)

        def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
            super().init_poolmanager(*arguments, **options)
            _watch_pools(watcher, self.poolmanager)

        def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
            is_known = proxy in self.proxy_manager
            manager = super().proxy_manager_for(proxy, **options)
            if not is_known:
                _watch_pools(watcher, manager)
            return manager

    return WatchedAdapter()


def _watch_pools(watcher: Watcher, manager: Any) -> None:
    """Let *manager*, of urllib3, make pools that *watcher* watches."""
    manager.pool_classes_by_scheme = {
        scheme: type(kind.__name__, (kind,), {"urlopen": watched_urlopen(lambda: watcher, kind.urlopen)})
        for scheme, kind in manager.pool_classes_by_scheme.items()
    }


@cache
def _watched_retry(kind: Any) -> Any:
    """Return a subclass of *kind*, urllib3's ``Retry``, that reports attempts."""
    methods = {
        "increment": watched_increment(_installed, kind.increment),
        "sleep": watched_sleep(_installed, kind.sleep),
    }
    return type(kind.__name__, (kind,), {**methods, "__module__": kind.__module__})


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

    @wraps(original)
    def urlopen(*arguments: Any, **options: Any) -> Any:
        watching = watcher()
        exchange = None if watching is None else begin(watching, _URLLIB3, arguments, options)
        if watching is None or exchange is None:
            return original(*arguments, **options)
        attempts = _Attempts(watching, exchange, arguments, options)
        with attempts:
            result = original(*arguments, **options)
        attempts.watch(result)
        return result

    return urlopen


def watched_increment(_: Callable[[], Watcher | None], original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``Retry.increment``, which urllib3 calls after an attempt. It raises if there is no other one."""

    @wraps(original)
    def increment(self: Any, *arguments: Any, **options: Any) -> Any:
        attempts = _attempts.get()
        given = {**dict(zip(("method", "url", "response", "error"), arguments, strict=False)), **options}
        response = given.get("response")
        try:
            retries = original(self, *arguments, **options)
        except Exception:
            if attempts is not None and response is not None:
                attempts.watch(response)
            raise
        if attempts is not None:
            attempts.end_one(response, given.get("error"))
        return retries

    return increment


def watched_sleep(_: Callable[[], Watcher | None], original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``Retry.sleep``, which urllib3 calls before the next attempt."""

    @wraps(original)
    def sleep(self: Any, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **options)
        attempts = _attempts.get()
        if attempts is not None:
            attempts.begin_next()

    return sleep


def watched_read(_: Callable[[], Watcher | None], original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``HTTPResponse.read``, with which urllib3 preloads a body. If that breaks, it keeps nothing of the response."""

    @wraps(original)
    def read(self: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return original(self, *arguments, **options)
        except Exception as error:
            attempts = _attempts.get()
            if attempts is not None:
                attempts.break_off(self, error)
            raise

    return read


class _Attempts:
    """The block in which urllib3 sends a request, several times if it repeats it. Each attempt is an exchange."""

    def __init__(
        self, watcher: Watcher, exchange: WatchedExchange, arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> None:
        self._watcher = watcher
        self._arguments = arguments
        self._options = options
        self._exchange: WatchedExchange | None = exchange
        self._sending: AbstractContextManager[None] = WatchedSending(exchange)

    def __enter__(self) -> None:
        self._token = _attempts.set(self)
        self._sending.__enter__()

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._sending.__exit__(None, None, None)
        _attempts.reset(self._token)
        if error is not None and self._exchange is not None:
            self._exchange.failed(as_builtin_error(error))

    def watch(self, response: Any) -> None:
        """Watch *response* of the current attempt."""
        if self._exchange is not None:
            watch(self._exchange, _URLLIB3, response, self._arguments, self._options)

    def break_off(self, response: Any, error: BaseException) -> None:
        """Report what is known of *response*, of the current attempt, while *error* breaks it off."""
        is_known = hasattr(response, "_crosswalk_exchange")
        if not (self._exchange is None or is_known or response.get_redirect_location()):
            watch(self._exchange, _BROKEN, response, (error,), {})

    def end_one(self, response: Any, error: BaseException | None) -> None:
        """End the current attempt with *response* or *error*, because there is another one. A redirect does not end it."""
        if self._exchange is None:
            return
        if response is not None and response.get_redirect_location():
            self._exchange.hop(_pairs(response.headers))
            return
        self._exchange.repeats()
        if error is None:
            self.watch(response)
        else:
            self._exchange.failed(as_builtin_error(error))
        self._exchange = None

    def begin_next(self) -> None:
        """Begin the next attempt, if the one before has ended."""
        if self._exchange is None:
            self._sending.__exit__(None, None, None)
            self._exchange = begin(self._watcher, _URLLIB3, self._arguments, self._options)
            self._sending = nullcontext() if self._exchange is None else WatchedSending(self._exchange)
            self._sending.__enter__()


_attempts: Final[ContextVar[_Attempts | None]] = ContextVar("crosswalk.observe.attempts", default=None)


def _described(request: Any, *_: Any, **__: Any) -> Request:
    """Describe *request*, of botocore."""
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


def _watch_broken(exchange: WatchedExchange, response: Any, error: BaseException) -> None:
    exchange.answered(response.status, _pairs(response.headers))
    _take_partial(exchange, error)


def _take_partial(exchange: WatchedExchange, error: BaseException) -> None:
    """Report what http.client has read before *error*, an ``IncompleteRead``, if it tells. It is not decoded."""
    partial = getattr(error.__context__, "partial", None)
    if isinstance(partial, bytes) and not (exchange.chunks and "content-encoding" in exchange.headers):
        exchange.chunk(partial)


_BOTOCORE: Final = Layer("botocore", _described, _watch_botocore)
_URLLIB3: Final = Layer("urllib3", _pool_described, _watch_pool)
_BROKEN: Final = Layer("urllib3", _pool_described, _watch_broken)


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
    if getattr(response, "_crosswalk_exchange", None) is exchange:
        return
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

        def drain_conn(self) -> None:
            with suppress(Exception):  # urllib3 reads below these methods here, and hides the errors too
                self.read(decode_content=False)
            super().drain_conn()

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
                _take_partial(self._crosswalk_exchange, error)
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
    Patch("urllib3", (1, 26), "HTTPResponse", "read", watched_read),
    Patch("urllib3", (1, 26), "Retry", "increment", watched_increment),
    Patch("urllib3", (1, 26), "Retry", "sleep", watched_sleep),
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
