"""What passes through urllib3, on which requests and botocore (boto3) stand: watched, and passed on as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, wraps
from typing import Any

from crosswalk_observe.exchange import Exchange
from crosswalk_observe.failures import plain
from crosswalk_observe.passing import unwatched
from crosswalk_observe.watcher import Watcher

__all__ = ["requests_adapter", "watch_bedrock"]


def requests_adapter(watcher: Watcher, **options: Any) -> Any:
    """A ``requests.adapters.HTTPAdapter`` that *watcher* watches: ``session.mount("https://", requests_adapter(watcher))``.

    Args:
        watcher: what is told.
        options: what the adapter is made with.
    """
    from requests.adapters import HTTPAdapter

    class WatchedAdapter(HTTPAdapter):
        def send(self, request: Any, *given: Any, **more: Any) -> Any:
            exchange = _begin(watcher, request)
            if exchange is None:
                return super().send(request, *given, **more)
            response = _sent(exchange, super().send, request, *given, **more)
            _watch(exchange, response.raw)
            return response

    return WatchedAdapter(**options)


def watch_bedrock(watcher: Watcher, client: Any) -> None:
    """Let *watcher* see what *client*, boto3's or botocore's for ``bedrock-runtime``, sends and receives from now on."""
    session = client._endpoint.http_session

    def before_send(request: Any, **_: Any) -> Any:
        exchange = _begin(watcher, request)
        if exchange is None:
            return None  # botocore sends it itself
        response = _sent(exchange, session.send, request)
        if request.stream_output:
            _watch(exchange, response.raw)
        else:
            _whole(exchange, response.status_code, response.headers, response.content, encoding=None)
        return response

    client.meta.events.register("before-send.bedrock-runtime", before_send, unique_id="crosswalk-observe")


def watched_urlopen(
    watcher: Callable[[], Watcher | None], original: Callable[..., Any]
) -> Callable[..., Any]:
    """``HTTPConnectionPool.urlopen``, watched while there is a watcher."""

    @wraps(original)
    def urlopen(
        self: Any, method: str, url: str, body: Any = None, headers: Any = None, *given: Any, **more: Any
    ) -> Any:
        watching, exchange = watcher(), None
        if watching is not None:
            port = f":{self.port}" if self.port else ""
            host = f"[{self.host}]" if ":" in self.host else self.host
            address = url if "://" in url else f"{self.scheme}://{host}{port}{url}"
            said = self.headers if headers is None else headers
            exchange = watching.begin(method, address, _pairs(said), _content(body))
        if exchange is None:
            return original(self, method, url, body, headers, *given, **more)
        response = _sent(exchange, original, self, method, url, body, headers, *given, **more)
        if more.get("preload_content", True):
            encoding = "" if more.get("decode_content", True) else None
            _whole(exchange, response.status, response.headers, response.data, encoding=encoding)
        else:
            _watch(exchange, response)
        return response

    return urlopen


def _begin(watcher: Watcher, request: Any) -> Exchange | None:
    """*request* is one of requests or of botocore, which have the same attributes."""
    return watcher.begin(request.method, request.url, _pairs(request.headers), _content(request.body))


def _pairs(headers: Any) -> list[tuple[str, str]]:
    return [(_text(name), _text(value)) for name, value in headers.items()]


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _content(body: Any) -> bytes | None:
    if isinstance(body, str):
        return body.encode()
    return bytes(body) if isinstance(body, bytes | bytearray) else None  # a file is sent as it is read


def _sent(exchange: Exchange, send: Callable[..., Any], *given: Any, **more: Any) -> Any:
    try:
        with unwatched():
            return send(*given, **more)
    except BaseException as error:
        exchange.failed(plain(error))
        raise


def _whole(exchange: Exchange, status: int, headers: Any, body: bytes, *, encoding: str | None) -> None:
    if exchange.answered(status, _pairs(headers), encoding=encoding):
        exchange.chunk(body)
        exchange.ended()


def _watch(exchange: Exchange, response: Any) -> None:
    """Watch what is read of *response*, urllib3's own; it stays what it is, for whoever asks for its type."""
    if exchange.answered(response.status, _pairs(response.headers)):
        kind: Any = type(response)
        response.__class__ = _watched(kind)
        response._crosswalk_exchange = exchange


@cache
def _watched(kind: Any) -> Any:
    """*kind*, a class of responses, watched where urllib3 itself reads: below ``stream``, ``data`` and iteration."""

    class Watched(kind):  # type: ignore[misc]
        _crosswalk_exchange: Exchange

        _crosswalk_is_reading = False

        def read(
            self, amt: int | None = None, decode_content: bool | None = None, *given: Any, **more: Any
        ) -> bytes:
            data: bytes = self._crosswalk_read(super().read, amt, decode_content, *given, **more)
            return self._crosswalk_told(data, decode_content)

        def read1(self, amt: int | None = None, decode_content: bool | None = None) -> bytes:
            data: bytes = self._crosswalk_read(super().read1, amt, decode_content)
            return self._crosswalk_told(data, decode_content)

        def read_chunked(self, amt: int | None = None, decode_content: bool | None = None) -> Iterator[bytes]:
            pieces = super().read_chunked(amt, decode_content)
            while (data := self._crosswalk_read(next, pieces, None)) is not None:
                yield self._crosswalk_told(data, decode_content)
            self._crosswalk_exchange.ended()

        def close(self) -> None:
            try:
                super().close()
            finally:
                if not self._crosswalk_is_reading:  # urllib3 itself closes what is broken
                    self._crosswalk_exchange.left()

        def _crosswalk_read(self, reading: Callable[..., Any], *given: Any, **more: Any) -> Any:
            self._crosswalk_is_reading = True
            try:
                return reading(*given, **more)
            except Exception as error:
                self._crosswalk_exchange.failed(plain(error))
                raise
            finally:
                self._crosswalk_is_reading = False

        def _crosswalk_told(self, data: bytes, decode_content: bool | None) -> bytes:
            exchange = self._crosswalk_exchange
            if data and (self.decode_content if decode_content is None else decode_content):
                exchange.encoding = ""  # it comes unpacked
            exchange.chunk(data)
            is_packed = getattr(getattr(self, "_decoder", None), "has_unconsumed_tail", False)
            if self.isclosed() and not is_packed and not len(getattr(self, "_decoded_buffer", ())):
                exchange.ended()
            return data

    Watched.__name__, Watched.__qualname__, Watched.__module__ = (
        kind.__name__,
        kind.__qualname__,
        kind.__module__,
    )
    return Watched
