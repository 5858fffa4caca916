"""The connections of a service, directly below the exchange: Crosswalk's own in an event loop, else ``httpcore2``."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from crosswalk.service.chunks import past
from crosswalk.service.decoding import decoded
from crosswalk.service.loading import trusted
from crosswalk.service.policy import Timeouts
from crosswalk.service.transport import Answer, Kept, KeptInLoop
from crosswalk.service.waits import ThreadWait, Wait

if TYPE_CHECKING:
    import httpcore2

    from crosswalk.service.loops import Connections

__all__ = ["LoopPool", "ThreadPool"]

_KEPT: Final[Any] = {"max_connections": None, "max_keepalive_connections": 100, "keepalive_expiry": 5.0}
_ACCEPT: Final = {"accept": "*/*", "accept-encoding": "gzip, deflate", "connection": "keep-alive"}


class LoopPool(KeptInLoop["Connections"]):
    """A :class:`Transport` for an event loop.

    Args:
        options: the options of an HTTP client that :func:`trusted` takes.
        is_secure: whether some server speaks TLS.
    """

    def __init__(self, options: Mapping[str, Any], *, is_secure: bool) -> None:
        super().__init__()
        self._options = options
        self._is_secure = is_secure

    def _make(self) -> Connections:
        context = trusted(self._options, is_secure=self._is_secure)
        from crosswalk.service.loops import Connections

        return Connections(context)

    async def send(
        self,
        url: str,
        method: str,
        headers: Mapping[str, str],
        content: bytes,
        timeouts: Timeouts,
        wait: Wait,
    ) -> Answer:
        """See :class:`Transport`."""
        connections = self.client
        target, host = _target(url)
        head = connections.head(method, target.target, tuple(_said(headers, host).items()))
        request = b"%sContent-Length: %d\r\n\r\n%s" % (head, len(content), content)
        connection = await connections.ask(target.origin, request, timeouts.connect, wait)

        async def aclose() -> None:
            await connections.let_go(connection)

        said = _headers(connection.headers)
        return Answer(connection.status, said, decoded(connection, said), aclose)


class ThreadPool(Kept["httpcore2.ConnectionPool"]):
    """A :class:`Transport` with connections that block the calling thread, for several threads.

    Args:
        options: the options of an HTTP client that :func:`trusted` takes.
        is_secure: whether some server speaks TLS.
    """

    def __init__(self, options: Mapping[str, Any], *, is_secure: bool) -> None:
        super().__init__()
        self._options = options
        self._is_secure = is_secure
        self._lock = threading.Lock()

    async def ready(self) -> None:
        """See :class:`Transport`."""
        if self._is_forked():
            self._lock = threading.Lock()  # the old lock may be held by a thread that does not exist here
        if self._is_wanted():
            with self._lock:
                if self._is_wanted():
                    self._client = self._make()

    def _make(self) -> httpcore2.ConnectionPool:
        context = trusted(self._options, is_secure=self._is_secure)
        import httpcore2

        from crosswalk.service.sockets import Backend

        return httpcore2.ConnectionPool(context, **_KEPT, network_backend=Backend())

    async def send(
        self,
        url: str,
        method: str,
        headers: Mapping[str, str],
        content: bytes,
        timeouts: Timeouts,
        wait: Wait,
    ) -> Answer:
        """See :class:`Transport`."""
        import httpcore2

        from crosswalk.service.sockets import Limit

        assert isinstance(wait, ThreadWait), "it is the transport of a service that has no event loop"
        short, long = Limit(wait, timeouts.connect), Limit(wait, None)
        limits = {"connect": short, "write": short, "read": long}
        response = self.client.handle_request(_request(url, method, headers, content, limits))
        stream: Any = response.extensions["network_stream"]
        if (
            not stream.tap.is_answered
        ):  # the library had it before: it was left behind another request's answer
            response.close()
            raise httpcore2.RemoteProtocolError("an answer came before its request")

        async def receive() -> bytes:
            data: bytes = stream.receive(wait)
            return data

        async def aclose() -> None:
            wait.let_go()
            response.close()

        chunks: Iterator[bytes] = iter(response.stream)  # type: ignore[arg-type]  # of a pool that blocks
        return _answer(response, _Awaited(chunks), receive, aclose)

    async def aclose(self) -> None:
        """See :class:`Transport`."""
        pool = self._closed()
        if pool is not None:
            pool.close()


class _Awaited(AsyncIterator[bytes]):
    """An iterator for code with ``await``."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks

    async def __anext__(self) -> bytes:
        for chunk in self._chunks:
            return chunk
        raise StopAsyncIteration


def _answer(
    response: httpcore2.Response,
    chunks: AsyncIterator[bytes],
    receive: Callable[[], Awaitable[bytes]],
    aclose: Callable[[], Awaitable[None]],
) -> Answer:
    headers = _headers(response.headers)
    chunks = past(response.status, headers, response.extensions["network_stream"].tap, receive, chunks)
    return Answer(response.status, headers, decoded(chunks, headers), aclose)


def _said(headers: Mapping[str, str], host: bytes) -> dict[str, str]:
    """Return all headers of a request to *host*, by their names in lower case, except for its length."""
    return {
        "host": host.decode("ascii"),
        **_ACCEPT,
        **{name.lower(): value for name, value in headers.items()},
    }


@lru_cache(maxsize=256)
def _target(url: str) -> tuple[httpcore2.URL, bytes]:
    """Return *url* for the pool, and the ``Host`` header."""
    import httpcore2
    import httpx2

    parsed = httpx2.URL(url)
    target = httpcore2.URL(
        scheme=parsed.raw_scheme, host=parsed.raw_host, port=parsed.port, target=parsed.raw_path
    )
    return target, parsed.netloc


def _request(
    url: str, method: str, headers: Mapping[str, str], content: bytes, limits: Mapping[str, Any]
) -> httpcore2.Request:
    import httpcore2

    target, host = _target(url)
    sent = [(name.encode("ascii"), value.encode("ascii")) for name, value in _said(headers, host).items()]
    sent.append((b"Content-Length", b"%d" % len(content)))
    return httpcore2.Request(method, target, headers=sent, content=content, extensions={"timeout": limits})


def _headers(raw: list[tuple[bytes, bytes]]) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers
