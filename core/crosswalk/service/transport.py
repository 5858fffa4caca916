"""The HTTP client: one connection pool for all calls of a service, and what its failures mean."""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from crosswalk.errors import ConfigurationError, CrosswalkError, ErrorInfo, ErrorKind
from crosswalk.service.policy import Timeouts

if TYPE_CHECKING:
    import httpx2

__all__ = ["Transport", "check_client", "failure_of", "request_id_of", "retry_after_of", "timeout_info"]


class Transport:
    """Sends requests over connections that it keeps.

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
        self._process: int | None = None  # which one uses it
        self._left: list[httpx2.AsyncClient] = []  # of the process from which this one was forked
        self._is_closed = False

    async def send(
        self, url: str, method: str, headers: Mapping[str, str], content: bytes, timeouts: Timeouts
    ) -> httpx2.Response:
        """Send a request; gives the answer's status and headers, its body still to be read and closed.

        Raises:
            httpx2.TransportError: it could not be sent, or was not answered.
            CrosswalkError: this transport is closed.
        """
        import httpx2  # only where something is sent: it takes as long to load as all of Crosswalk

        client = self.client()
        timeout = httpx2.Timeout(None, connect=timeouts.connect, write=timeouts.connect, pool=timeouts.total)
        request = client.build_request(method, url, headers=dict(headers), content=content, timeout=timeout)
        # A redirect would carry the key to wherever it leads.
        return await client.send(request, stream=True, follow_redirects=False)

    async def aclose(self) -> None:
        """Close the connections; nothing can be sent afterwards."""
        self._is_closed = True
        own, self._own = self._own, None
        if own is not None and self._loop is asyncio.get_running_loop():
            await own.aclose()

    def client(self) -> httpx2.AsyncClient:
        """The HTTP client, created on first use: that takes some time, because it reads certificates.

        Raises:
            CrosswalkError: this transport is closed.
            ConfigurationError: the options are wrong.
        """
        if self._is_closed:
            raise CrosswalkError("the service is closed")
        self._settle_in()
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        if self._own is None or self._loop is not loop:
            # Connections belong to the event loop in which they were made; those of an ended one are gone.
            import httpx2

            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=100)
            try:
                self._own = httpx2.AsyncClient(**{"limits": limits, **self._options})
            except (TypeError, ValueError, OSError, httpx2.InvalidURL) as error:
                # The text may quote a proxy's URL with its password.
                raise ConfigurationError(
                    f"client_options: httpx2.AsyncClient refuses them ({type(error).__name__})",
                    key="client_options",
                ) from None
            self._loop = loop
        return self._own

    def _settle_in(self) -> None:
        """See whose connections these are: those of the process from which this one was forked are not its own."""
        process, before = os.getpid(), self._process
        if before not in (None, process):
            if self._given is not None:
                raise CrosswalkError(
                    "client= belongs to the process from which this one was forked; make a service here"
                )
            if self._own is not None:
                self._left.append(self._own)  # closing it would end requests of that process
                self._own = None
        self._process = process


def check_client(client: object, options: Mapping[str, Any]) -> None:
    """Refuse a *client* of another type, and *options* that the client does not have; it checks their values itself.

    Raises:
        ConfigurationError: it is so.
    """
    if client is None and not options:
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


def failure_of(error: Exception, host: tuple[str, int | None]) -> ErrorInfo | None:
    """What a client's *error* means; ``None`` for one that is no failure of the exchange.

    Its own text is not used: it may quote a header.
    """
    import httpx2

    where = host[0] if host[1] is None else f"{host[0]}:{host[1]}"
    if isinstance(error, httpx2.ConnectTimeout):
        return timeout_info("connect", f"no connection to {where}")
    if isinstance(error, httpx2.TimeoutException | TimeoutError):
        return timeout_info("transport", f"{where} took too long")
    if isinstance(error, httpx2.ConnectError | httpx2.ProxyError):
        via = "the proxy refused a connection" if isinstance(error, httpx2.ProxyError) else "cannot connect"
        return ErrorInfo(ErrorKind.SERVER, f"{via} to {where}", retryable=True, code="connect_error")
    if isinstance(error, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError | httpx2.InvalidURL):
        name = type(error).__name__
        return ErrorInfo(ErrorKind.INVALID_REQUEST, f"the request to {where} is no HTTP ({name})", code=name)
    if isinstance(error, httpx2.DecodingError):
        return ErrorInfo(
            ErrorKind.SERVER,
            f"the content encoding of {where} is broken",
            retryable=True,
            code="decoding_error",
        )
    if isinstance(error, httpx2.TransportError | httpx2.StreamError | OSError):
        return ErrorInfo(
            ErrorKind.SERVER, f"the connection to {where} broke", retryable=True, code="connection_lost"
        )
    return None


def timeout_info(name: str, message: str) -> ErrorInfo:
    """What it means that the time limit *name* has passed."""
    return ErrorInfo(ErrorKind.TIMEOUT, message, retryable=True, code=f"{name}_timeout")


def retry_after_of(headers: Mapping[str, str]) -> float | None:
    """The seconds that ``Retry-After`` asks to wait; ``None`` without one, or where it is unreadable."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if not text:
            continue
        if text.isascii() and text.replace(".", "", 1).isdigit() and len(text) < 20:
            return float(text) / unit
        try:
            return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
        except (ValueError, TypeError, OverflowError):
            continue
    return None


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """The server's own id of the request, to find it in its logs; ``None`` when it sends none."""
    for name in ("x-request-id", "request-id", "x-amzn-requestid", "x-goog-request-id"):
        if headers.get(name):
            return headers[name][:200]
    return None
