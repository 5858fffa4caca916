"""An HTTP client between the service and its connections, and the trusted certificates, which take long to load."""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.service.deadlines import RESEND_SECONDS, Wait
from crosswalk.service.policy import Timeouts
from crosswalk.service.transport import Answer, Kept, body_of

if TYPE_CHECKING:
    import ssl

    import httpx2

__all__ = [
    "PLAIN",
    "ClientTransport",
    "check_client",
    "is_plain",
    "load_for_loop",
    "refused",
    "trusted",
    "with_context",
]


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

    def _make(self) -> httpx2.AsyncClient:
        import httpx2  # only when something is sent: it takes as long to load as all of Crosswalk

        load_for_loop()
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
        with refused(httpx2.InvalidURL):
            return httpx2.AsyncClient(**{"limits": limits, **with_context(self._options)})

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

        async def sent() -> httpx2.Response:
            request = client.build_request(
                method, url, headers=headers, content=content, timeout=timeout, extensions={"trace": trace}
            )
            # A redirect would carry the key to an unknown address.
            return await client.send(request, stream=True, follow_redirects=False)

        trace = _Trace()
        try:
            response = await sent()
        except (httpx2.NetworkError, httpx2.RemoteProtocolError):
            if not trace.was_kept or time.monotonic() - trace.sent_at > RESEND_SECONDS:
                raise
            wait.resent += 1
            response = await sent()  # once more: see Tap.look_at_end
        return Answer(response.status_code, response.headers, body_of(response), response.aclose)


class _Trace:
    """The trace of a request from an HTTP library while it is being sent. Some libraries give no trace.

    Attributes:
        sent_at: the time at which sending began.
        was_kept: whether it was sent over a reused connection, and no head of an answer has arrived.
    """

    was_kept = False
    sent_at = 0.0
    _is_new = False

    async def __call__(self, event: str, _: Any) -> None:
        if event.startswith("connection."):
            self._is_new = True
        elif event == "http11.send_request_headers.started":
            self.was_kept, self.sent_at = not self._is_new, time.monotonic()
        elif event == "http11.receive_response_headers.complete":
            self.was_kept = False


def is_plain(options: Mapping[str, Any]) -> bool:
    """Whether a pool can replace a client with *options* in this environment: no proxy, only one kind of HTTP."""
    if not options.keys() <= PLAIN or sys.platform == "emscripten":  # in a browser there are no sockets
        return False
    if not options.get("trust_env", True):
        return True
    from urllib.request import getproxies  # the system's own settings, which HTTP clients read as well

    return not getproxies().keys() & {"http", "https", "all"}


def check_client(client: object, options: Mapping[str, Any]) -> None:
    """Refuse a *client* of another type, and *options* that the client does not have. The client checks their values itself.

    Raises:
        ConfigurationError: one of them is refused.
    """
    if client is None and options.keys() <= PLAIN:
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


PLAIN: Final = frozenset({"verify", "cert", "trust_env"})
"""The options of an HTTP client that set the trusted certificates."""


def load_for_loop() -> None:
    """Load the HTTP library's means of waiting, which it would load in the middle of the first request."""
    import anyio

    anyio.run(anyio.sleep, 0)


def trusted(options: Mapping[str, Any], *, is_secure: bool) -> ssl.SSLContext:
    """Return the trusted certificates of *options*, those of :data:`PLAIN`. Loads the HTTP library.

    Certificates are read only if some server *is_secure*, that is, uses TLS. Otherwise the result trusts no server.

    Raises:
        ConfigurationError: the options are wrong.
    """
    import ssl

    import httpcore2  # noqa: F401  # only where something is sent: it takes as long to load as all of Crosswalk
    import httpx2

    if not is_secure:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if options.get("verify", True) is True and options.get("cert") is None:
        return _by_default(
            options.get("trust_env", True), *map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR"))
        )
    with refused():
        return httpx2.create_ssl_context(**with_context(options))


def with_context(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return *options* with the certificates of a ``verify=PATH``, from a file or a folder.

    Raises:
        OSError: they cannot be read.
    """
    import ssl

    path = options.get("verify")
    if not isinstance(path, str | os.PathLike):
        return dict(options)
    file, folder = (None, path) if os.path.isdir(path) else (path, None)
    return {**options, "verify": ssl.create_default_context(cafile=file, capath=folder)}


@lru_cache(maxsize=4)
def _by_default(trust_env: bool, *_: str | None) -> ssl.SSLContext:
    """The certificates that all pools of the process share: the system's, or those that the environment names."""
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
