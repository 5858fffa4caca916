"""Sends requests through httpx2: the application's own client, or one with its options."""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.service.http.deadlines import Wait
from crosswalk.service.http.transport import Answer, Kept, Sending, decoded
from crosswalk.service.policy import Timeouts

if TYPE_CHECKING:
    import asyncio
    import ssl

    import httpx2


class ClientTransport(Kept["httpx2.AsyncClient"]):
    """A :class:`Transport` over an ``httpx2.AsyncClient``.

    Args:
        client: the application's own HTTP client, which the application closes, or ``None`` for one that is created when it
            is needed, and closed here.
        options: arguments for that one, as for ``httpx2.AsyncClient``: ``proxy``, ``verify``, ``cert``, ``http2``.
    """

    def __init__(self, client: httpx2.AsyncClient | None, options: Mapping[str, Any]) -> None:
        super().__init__()
        self._given = client
        self._options = options

    async def ready(self) -> None:
        """See :class:`Transport`."""
        if self._given is None:
            await super().ready()
        elif self._is_forked():
            raise CrosswalkError(
                "client= belongs to the process from which this one was forked; make a service here"
            )

    def _make(self, _: asyncio.AbstractEventLoop) -> httpx2.AsyncClient:
        import anyio
        import httpx2  # only when something is sent: it takes as long to load as all of Crosswalk

        anyio.run(anyio.sleep, 0)  # loads what the first request would load in the event loop
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
        with refused(httpx2.InvalidURL):
            return httpx2.AsyncClient(**{"limits": limits, **with_context(self._options)})

    async def _close(self, client: httpx2.AsyncClient) -> None:
        await client.aclose()

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

        client = self._given or self.client
        timeout = httpx2.Timeout(None, connect=timeouts.connect, write=timeouts.connect, pool=timeouts.total)
        while True:
            trace = _Trace()
            request = client.build_request(
                method, url, headers=headers, content=content, timeout=timeout, extensions={"trace": trace}
            )
            try:
                # A redirect would carry the key to an unknown address.
                response = await client.send(request, stream=True, follow_redirects=False)
            except (httpx2.NetworkError, httpx2.RemoteProtocolError):
                if not trace.may_repeat:
                    raise
                wait.resent += 1
            else:
                body = _Body(response)
                return Answer(response.status_code, response.headers, body, body.aclose)


_open: set[_Body] = set()
"""The answers that are being read.

httpx2 reads through generators that wait while they are closed. If nobody held them, the garbage collector would end them
before the stream that was forgotten can close its answer.
"""


class _Body(AsyncIterator[bytes]):
    """The bytes of an answer as they arrive."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        is_read = response.is_stream_consumed  # by a hook or a transport of the application
        self._steps = response.aiter_bytes() if is_read else response.aiter_raw()
        self._chunks = self._steps if is_read else decoded(self._steps, response.headers)
        _open.add(self)

    async def __anext__(self) -> bytes:
        return await self._chunks.__anext__()

    async def aclose(self) -> None:
        _open.discard(self)
        await self._response.aclose()
        await self._steps.aclose()  # or they would end outside the event loop, which they cannot


class _Trace(Sending):
    """The trace of a request from httpx2. Some of its transports give no trace."""

    _is_new = False

    async def __call__(self, event: str, _: Any) -> None:
        if event.startswith("connection."):
            self._is_new = True
        elif event == "http11.send_request_headers.started" and not self._is_new:
            self.begin()
        elif event == "http11.receive_response_headers.complete":
            self.was_kept = False


def check_client(client: object, options: Mapping[str, Any]) -> None:
    """Refuse a *client* of another type, and *options* that the client does not have. The client checks their values itself.

    Raises:
        ConfigurationError: one of them is refused.
    """
    if client is None and not options:
        return
    import httpx2  # needed only by callers that pass one of them

    if client is not None and not isinstance(client, httpx2.AsyncClient):
        raise ConfigurationError(
            f"client must be an httpx2.AsyncClient, not {type(client).__name__}", key="client"
        )
    wrong = sorted(set(options) - set(inspect.signature(httpx2.AsyncClient).parameters))
    if wrong:
        raise ConfigurationError(
            f"client_options: httpx2.AsyncClient has no option {wrong[0]!r:.60}", key="client_options"
        )


def with_context(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return *options* with the certificates of a ``verify=PATH``, a file or a folder, or else the shared ones.

    Raises:
        OSError: they cannot be read.
    """
    import ssl

    path = options.get("verify", True)
    if path is True and options.get("cert") is None:
        names = map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR"))
        return {
            **options,
            "verify": _by_default(options.get("trust_env", True), options.get("http2"), *names),
        }
    if not isinstance(path, str | os.PathLike):
        return dict(options)
    file, folder = (None, path) if os.path.isdir(path) else (path, None)
    return {**options, "verify": ssl.create_default_context(cafile=file, capath=folder)}


@lru_cache(maxsize=4)
def _by_default(trust_env: bool, *_: str | bool | None) -> ssl.SSLContext:
    """The certificates that all clients of the process share: the system's, or those that the environment names.

    They take long to load. A client with HTTP/2 has its own, since it changes them.
    """
    import httpx2

    return httpx2.create_ssl_context(trust_env=trust_env)


@contextmanager
def refused(*more: type[Exception]) -> Iterator[None]:
    """Turns exceptions of wrong options into a :class:`ConfigurationError`, without their text.

    The text may quote a proxy's URL with its password.
    """
    kinds: tuple[type[Exception], ...] = (TypeError, ValueError, OSError, *more)
    try:
        yield
    except ImportError as error:
        # For HTTP/2, or a SOCKS proxy, which the environment may name. That text quotes nothing.
        raise ConfigurationError(f"client_options: {error}", key="client_options") from None
    except kinds as error:
        raise ConfigurationError(
            f"client_options: httpx2.AsyncClient refuses them ({type(error).__name__})", key="client_options"
        ) from None
