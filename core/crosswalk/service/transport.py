"""The HTTP client: one connection pool for all calls of a service.

There are three, which do the same. Most services have a :class:`LoopPool` or a :class:`ThreadPool`: the connections of
``httpcore2``, with nothing between it and the exchange. One that was given an HTTP client of its own, options for one, or a
proxy by its environment, asks through that client: :class:`ClientTransport`.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.service.policy import Timeouts
from crosswalk.service.waits import ThreadWait, Wait

if TYPE_CHECKING:
    import ssl

    import httpcore2
    import httpx2

__all__ = [
    "Answer",
    "ClientTransport",
    "LoopPool",
    "ThreadPool",
    "Transport",
    "check_client",
    "is_plain",
]

_PLAIN: Final = frozenset({"verify", "cert", "trust_env"})
"""The options of a client that a pool has, too."""
_KEPT: Final[Any] = {"max_connections": None, "max_keepalive_connections": 100, "keepalive_expiry": 5.0}
_ACCEPT: Final = {"accept": "*/*", "accept-encoding": "gzip, deflate", "connection": "keep-alive"}


@attrs.frozen
class Answer:
    """An answer that has begun.

    Attributes:
        status: the HTTP status.
        headers: its headers, by their names in lower case.
        chunks: its bytes, decoded, as they come.
        aclose: lets the connection go: back to the pool if the answer was read to its end, else closed.
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]
    aclose: Callable[[], Awaitable[None]]


class Transport(Protocol):
    """Sends requests over connections that it keeps."""

    async def ready(self) -> None:
        """Make what sending needs, when it is first needed: that reads certificates, which takes some time.

        Raises:
            CrosswalkError: the transport is closed.
            ConfigurationError: its options are wrong.
        """

    async def send(
        self,
        url: str,
        method: str,
        headers: Mapping[str, str],
        content: bytes,
        timeouts: Timeouts,
        wait: Wait,
    ) -> Answer:
        """Send a request, once :meth:`ready`; its answer's bytes are still to be read.

        Raises:
            Exception: one of the HTTP library's, which :func:`crosswalk.service.failures.failure_of` explains.
        """

    async def aclose(self) -> None:
        """Close the connections; nothing can be sent afterwards."""


def is_plain(options: Mapping[str, Any]) -> bool:
    """Whether a pool does what a client with *options* would do, in this environment: no proxy, only one kind of HTTP."""
    if not options.keys() <= _PLAIN or sys.platform == "emscripten":  # in a browser there are no sockets
        return False
    if not options.get("trust_env", True):
        return True
    from urllib.request import getproxies  # where the system keeps them, and HTTP clients look

    return not getproxies().keys() & {"http", "https", "all"}


class _Owner:
    """To which process the connections of a transport belong, and whether it has been closed."""

    def __init__(self) -> None:
        self.is_closed = False
        self._process: int | None = None

    def is_new(self) -> bool:
        """Whether this process was forked from the one that used it before.

        Raises:
            CrosswalkError: it is closed.
        """
        if self.is_closed:
            raise CrosswalkError("the service is closed")
        process, before = os.getpid(), self._process
        self._process = process
        return before not in (None, process)


class ClientTransport:
    """A :class:`Transport` of an ``httpx2.AsyncClient``.

    Args:
        client: the application's own HTTP client, which it also closes; ``None`` for one that is made when it is
            needed, and closed here.
        options: for that one: what ``httpx2.AsyncClient`` takes, such as ``proxy``, ``verify``, ``cert``, ``http2``.
    """

    def __init__(self, client: httpx2.AsyncClient | None, options: Mapping[str, Any]) -> None:
        self._given = client
        self._options = options
        self._own: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._owner = _Owner()
        self._left: list[httpx2.AsyncClient] = []  # of the process from which this one was forked

    async def ready(self) -> None:
        """See :class:`Transport`."""
        if self._owner.is_new():
            if self._given is not None:
                raise CrosswalkError(
                    "client= belongs to the process from which this one was forked; make a service here"
                )
            if self._own is not None:
                self._left.append(self._own)  # closing it would end requests of that process
                self._own = None
        loop = asyncio.get_running_loop()
        if self._given is None and (self._own is None or self._loop is not loop):
            # Connections belong to the event loop in which they were made; those of an ended one are gone.
            made = await asyncio.to_thread(_client, self._options)  # it would hold up the event loop
            if self._own is None or self._loop is not loop:
                self._own, self._loop = made, loop

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
        import httpx2

        client = self._given or self._own
        assert client is not None, "it is ready"
        timeout = httpx2.Timeout(None, connect=timeouts.connect, write=timeouts.connect, pool=timeouts.total)
        request = client.build_request(method, url, headers=dict(headers), content=content, timeout=timeout)
        # A redirect would carry the key to wherever it leads.
        response = await client.send(request, stream=True, follow_redirects=False)
        return Answer(response.status_code, response.headers, response.aiter_bytes(), response.aclose)

    async def aclose(self) -> None:
        """See :class:`Transport`; an application's own client stays open."""
        self._owner.is_closed = True
        own, self._own = self._own, None
        if own is not None and self._loop is asyncio.get_running_loop():
            await own.aclose()


class LoopPool:
    """A :class:`Transport` for an event loop, over connections of ``httpcore2``.

    Args:
        options: of :data:`_PLAIN`, what ``httpx2.AsyncClient`` takes.
        is_secure: whether some server speaks TLS.
    """

    def __init__(self, options: Mapping[str, Any], *, is_secure: bool) -> None:
        self._options = options
        self._is_secure = is_secure
        self._pool: httpcore2.AsyncConnectionPool | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._owner = _Owner()
        self._left: list[httpcore2.AsyncConnectionPool] = []  # of the process from which this one was forked

    async def ready(self) -> None:
        """See :class:`Transport`."""
        if self._owner.is_new() and self._pool is not None:
            self._left.append(self._pool)  # closing it would end requests of that process
            self._pool = None
        loop = asyncio.get_running_loop()
        if self._pool is None or self._loop is not loop:
            # Not in the event loop, which it would hold up. Connections belong to the loop in which they were made.
            context = await asyncio.to_thread(_loaded_for_loop, self._options, is_secure=self._is_secure)
            if self._pool is None or self._loop is not loop:
                import httpcore2

                self._pool, self._loop = httpcore2.AsyncConnectionPool(context, **_KEPT), loop

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
        assert self._pool is not None, "it is ready"
        limits = {"connect": timeouts.connect, "write": timeouts.connect, "pool": timeouts.total}
        request = _request(url, method, headers, content, limits)
        response = await self._pool.handle_async_request(request)
        headers = _headers(response.headers)
        chunks = aiter(response.stream)  # type: ignore[arg-type]  # of an asynchronous pool
        if _is_encoded(headers):
            chunks = _decoded(response, chunks)
        return Answer(response.status, headers, chunks, response.aclose)

    async def aclose(self) -> None:
        """See :class:`Transport`."""
        self._owner.is_closed = True
        pool, self._pool = self._pool, None
        if pool is not None and self._loop is asyncio.get_running_loop():
            await pool.aclose()


class ThreadPool:
    """A :class:`Transport` whose connections block the thread that asks; for several threads.

    Args:
        options: of :data:`_PLAIN`, what ``httpx2.Client`` takes.
        is_secure: whether some server speaks TLS.
    """

    def __init__(self, options: Mapping[str, Any], *, is_secure: bool) -> None:
        self._options = options
        self._is_secure = is_secure
        self._pool: httpcore2.ConnectionPool | None = None
        self._owner = _Owner()
        self._lock = threading.Lock()
        self._left: list[httpcore2.ConnectionPool] = []  # of the process from which this one was forked

    async def ready(self) -> None:
        """See :class:`Transport`."""
        if self._owner.is_new():
            self._lock = threading.Lock()  # who held the other one is not here
            if self._pool is not None:
                self._left.append(self._pool)  # closing it would end requests of that process
                self._pool = None
        if self._pool is None:
            with self._lock:
                if self._pool is None:
                    context = _loaded(self._options, is_secure=self._is_secure)
                    import httpcore2

                    from crosswalk.service.sockets import Backend

                    self._pool = httpcore2.ConnectionPool(context, **_KEPT, network_backend=Backend())

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
        from crosswalk.service.sockets import Limit

        pool = self._pool
        if pool is None:
            raise CrosswalkError("the service is closed")
        assert isinstance(wait, ThreadWait), "it is the transport of a service that has no event loop"
        short, long = Limit(wait, timeouts.connect), Limit(wait, None)
        limits = {"connect": short, "write": short, "read": long}
        response = pool.handle_request(_request(url, method, headers, content, limits))
        headers = _headers(response.headers)
        chunks: Iterator[bytes] = iter(response.stream)  # type: ignore[arg-type]  # of a pool that blocks
        if _is_encoded(headers):
            chunks = _decoded_in_thread(response, chunks)

        async def aclose() -> None:
            wait.let_go()
            response.close()

        return Answer(response.status, headers, _Awaited(chunks), aclose)

    async def aclose(self) -> None:
        """See :class:`Transport`."""
        self._owner.is_closed = True
        pool, self._pool = self._pool, None
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


# What a pool needs, and what it is given.


def _client(options: Mapping[str, Any]) -> httpx2.AsyncClient:
    import httpx2  # only where something is sent: it takes as long to load as all of Crosswalk

    _load_anyio()
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
    with _Refused(httpx2.InvalidURL):
        return httpx2.AsyncClient(**{"limits": limits, **options})


def _loaded(options: Mapping[str, Any], *, is_secure: bool) -> ssl.SSLContext:
    """The HTTP library, loaded, and what it is to trust.

    Certificates are read only where some server is spoken to in TLS; what is given otherwise trusts nobody.
    """
    import ssl

    import httpcore2  # noqa: F401  # only where something is sent: it takes as long to load as all of Crosswalk
    import httpx2

    if not is_secure:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if options.get("verify", True) is True and options.get("cert") is None:
        return _trusted(
            options.get("trust_env", True), *map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR"))
        )
    with _Refused():
        return httpx2.create_ssl_context(**options)


def _loaded_for_loop(options: Mapping[str, Any], *, is_secure: bool) -> ssl.SSLContext:
    """As :func:`_loaded`, with what an event loop needs."""
    _load_anyio()
    return _loaded(options, is_secure=is_secure)


def _load_anyio() -> None:
    """Load what the HTTP library waits with; it would do so itself in the middle of the first request."""
    import anyio

    anyio.run(anyio.sleep, 0)


@lru_cache(maxsize=4)
def _trusted(trust_env: bool, *_: str | None) -> ssl.SSLContext:
    """What all pools of the process share: the certificates of the system, or of the environment that is told."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=trust_env)


class _Refused:
    """Makes a :class:`ConfigurationError` of what options raise; its text may quote a proxy's URL with its password."""

    def __init__(self, *more: type[Exception]) -> None:
        self._kinds: tuple[type[Exception], ...] = (TypeError, ValueError, OSError, *more)

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, self._kinds):
            raise ConfigurationError(
                f"client_options: httpx2.AsyncClient refuses them ({type(error).__name__})",
                key="client_options",
            ) from None


@lru_cache(maxsize=256)
def _target(url: str) -> tuple[httpcore2.URL, bytes]:
    """*url* for the pool, and the ``Host`` header."""
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
    said = {**_ACCEPT, **{name.lower(): value for name, value in headers.items()}}
    sent = [(name.encode("ascii"), value.encode("ascii")) for name, value in said.items()]
    if "host" not in said:
        sent.insert(0, (b"Host", host))
    sent.append((b"Content-Length", b"%d" % len(content)))
    return httpcore2.Request(method, target, headers=sent, content=content, extensions={"timeout": limits})


def _headers(raw: list[tuple[bytes, bytes]]) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def _is_encoded(headers: Mapping[str, str]) -> bool:
    return headers.get("content-encoding", "identity").strip().lower() not in ("", "identity")


def _decoded(response: httpcore2.Response, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    import httpx2

    class Stream(httpx2.AsyncByteStream):
        def __aiter__(self) -> AsyncIterator[bytes]:
            return chunks

    return httpx2.Response(response.status, headers=response.headers, stream=Stream()).aiter_bytes()


def _decoded_in_thread(response: httpcore2.Response, chunks: Iterator[bytes]) -> Iterator[bytes]:
    import httpx2

    class Stream(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            return chunks

    return httpx2.Response(response.status, headers=response.headers, stream=Stream()).iter_bytes()


def check_client(client: object, options: Mapping[str, Any]) -> None:
    """Refuse a *client* of another type, and *options* that the client does not have; it checks their values itself.

    Raises:
        ConfigurationError: it is so.
    """
    if client is None and options.keys() <= _PLAIN:
        return
    import httpx2  # whoever gives one of them needs it

    if client is not None and not isinstance(client, httpx2.AsyncClient):
        raise ConfigurationError(
            f"client must be an httpx2.AsyncClient, not {type(client).__name__}", key="client"
        )
    wrong = sorted(set(options) - set(inspect.signature(httpx2.AsyncClient).parameters))
    if wrong:
        raise ConfigurationError(
            f"client_options: httpx2.AsyncClient has no option {wrong[0]!r:.60}", key="client_options"
        )
