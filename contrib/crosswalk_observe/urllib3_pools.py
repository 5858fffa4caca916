"""Watched urllib3, which requests and botocore (boto3) use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from crosswalk_observe.exchange import Exchange
from crosswalk_observe.guard import Layer, Request, as_builtin_error, begin, replaced, send
from crosswalk_observe.watcher import Watcher


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
    return Request(method, address, _pairs(pool.headers if headers is None else headers), _content(body))


def _pairs(headers: Any) -> list[tuple[str, str]]:
    return [(_text(name), _text(value)) for name, value in headers.items()]


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _content(body: Any) -> bytes | None:
    if isinstance(body, str):
        return body.encode()
    return bytes(body) if isinstance(body, bytes | bytearray) else None  # a file is not read here


def _watch_requests(exchange: Exchange, response: Any, *_: Any, **__: Any) -> None:
    _watch(exchange, response.raw)


def _watch_botocore(exchange: Exchange, response: Any, request: Any) -> None:
    if request.stream_output:
        _watch(exchange, response.raw)
    else:
        _whole(exchange, response.status_code, response.headers, response.content, encoding=None)


def _watch_pool(exchange: Exchange, response: Any, *_: Any, **options: Any) -> None:
    if options.get("preload_content", True):
        encoding = "" if options.get("decode_content", True) else None
        _whole(exchange, response.status, response.headers, response.data, encoding=encoding)
    else:
        _watch(exchange, response)


_REQUESTS: Final = Layer("requests", _described, _watch_requests)
_BOTOCORE: Final = Layer("botocore", _described, _watch_botocore)
_URLLIB3: Final = Layer("urllib3", _pool_described, _watch_pool)


def _whole(exchange: Exchange, status: int, headers: Any, body: bytes, *, encoding: str | None) -> None:
    if exchange.answered(status, _pairs(headers), encoding=encoding):
        exchange.chunk(body)
        exchange.ended()


def _watch(exchange: Exchange, response: Any) -> None:
    """Watch *response* while it is read, if it is urllib3's own. It stays an instance of its class."""
    from urllib3 import HTTPResponse

    own: Any = HTTPResponse
    if not isinstance(response, own):
        exchange.discard()
    elif exchange.answered(response.status, _pairs(response.headers)):
        kind: Any = type(response)
        response.__class__ = _watched(kind)
        response._crosswalk_exchange = exchange


@cache
def _watched(kind: Any) -> Any:
    """Return a subclass of *kind*, a response class, that reports reads below ``stream``, ``data`` and iteration."""

    class Watched(kind):  # type: ignore[misc]
        _crosswalk_exchange: Exchange

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
                decodes = arguments[1] if len(arguments) > 1 else options.get("decode_content")
                if data and (self.decode_content if decodes is None else decodes):
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
