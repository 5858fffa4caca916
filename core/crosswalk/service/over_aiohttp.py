"""HTTP over aiohttp, which costs programs with many concurrent calls less than httpx2. Needs ``crosswalk-llm[aiohttp]``.

Failures are raised as errors of httpx2.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from crosswalk.errors import ConfigurationError
from crosswalk.plain_errors import interruption_of
from crosswalk.service.endpoint import Timeouts
from crosswalk.service.http import (
    KEPT_SECONDS,
    CallWait,
    HTTPAnswer,
    Kept,
    Sending,
    decoded,
    proxy_for,
    refused,
    sending_wait,
    with_context,
)

if TYPE_CHECKING:
    import ssl

    import aiohttp
    import yarl


_HEADERS = {"Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
_MAX_LINE_BYTES = 100 * 1024
_MAX_HEADERS = 1000


class AiohttpTransport(Kept["aiohttp.ClientSession"]):
    """A :class:`Transport` over an ``aiohttp.ClientSession``. Writing a request has no limit of its own.

    Args:
        options: ``proxy``, ``verify``, ``cert`` and ``trust_env``, as for ``httpx2.AsyncClient``.

    Raises:
        ConfigurationError: there is another option, or aiohttp is not installed.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__()
        unknown_options = sorted(set(options) - {"proxy", "verify", "cert", "trust_env"})
        if unknown_options:
            raise ConfigurationError(
                f"client_options: aiohttp has no option {unknown_options[0]!r:.60}", key="client_options"
            )
        try:
            import aiohttp  # noqa: F401
        except ImportError:
            raise ConfigurationError(
                "this needs the package aiohttp: pip install 'crosswalk-llm[aiohttp]'", key="transport"
            ) from None
        self._options = options
        self._cached_target = lru_cache(maxsize=64)(self._target)

    def _make(self, loop: asyncio.AbstractEventLoop) -> aiohttp.ClientSession:
        import aiohttp
        import httpx2

        with refused():
            options = with_context(self._options)
            names = ("verify", "cert", "trust_env")
            context = httpx2.create_ssl_context(**{name: options[name] for name in names if name in options})
        return aiohttp.ClientSession(
            connector=_connector(context, loop),
            cookie_jar=aiohttp.DummyCookieJar(loop=loop),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
            max_line_size=_MAX_LINE_BYTES,
            max_field_size=_MAX_LINE_BYTES,
            max_headers=_MAX_HEADERS,
        )

    async def _close(self, client: aiohttp.ClientSession) -> None:
        await client.close()

    def _drop(self, client: aiohttp.ClientSession) -> None:
        client.detach()  # or it would complain that nobody has closed it

    async def send(
        self,
        url: str,
        method: str,
        headers: Mapping[str, str],
        content: bytes,
        timeouts: Timeouts,
        wait: CallWait,
    ) -> HTTPAnswer:
        """See :class:`Transport`."""
        import aiohttp
        import httpx2

        client = self.client
        target, proxy = self._cached_target(url)
        timeout = aiohttp.ClientTimeout(total=None, connect=timeouts.connect)
        # It would send what may be sent twice once more by itself, such as a GET.
        middlewares = () if method == "POST" else (_once,)
        while True:
            sending = Sending()
            sending.begin()
            wait.is_new = True  # until a known connection is found
            outer_wait = sending_wait.set(wait)
            try:
                response = await client.request(
                    method,
                    target,
                    headers={**_HEADERS, **headers},
                    # It warns of longer bytes, which it would write without a pause.
                    data=content if len(content) <= 2**20 else BytesIO(content),
                    allow_redirects=False,  # a redirect would carry the key to an unknown address
                    proxy=proxy,
                    timeout=timeout,
                    middlewares=middlewares,
                )
            except (aiohttp.ClientError, OSError, ValueError, httpx2.NetworkError) as error:
                failure = _as_httpx2(error)
                # With a part of an answer it has that as its message. After a reset nobody knows.
                is_unanswered = isinstance(failure, httpx2.NetworkError) and isinstance(
                    getattr(failure.__cause__, "message", ""), str
                )
                may_repeat = is_unanswered and not wait.is_new and sending.may_repeat
                if not may_repeat or interruption_of(error) is not None:
                    raise failure  # noqa: B904  # it has its cause
                wait.resent += 1
            else:
                break
            finally:
                sending_wait.reset(outer_wait)
        answer = _answer(response)
        # aiohttp reads these, and leaves it to the application to decode them.
        if response.status < 200 or answer.headers.get("transfer-encoding", "chunked").lower() != "chunked":
            await answer.aclose()
            raise httpx2.RemoteProtocolError("the answer is in another protocol or encoding")
        return answer

    def _target(self, address: str) -> tuple[yarl.URL, str | None]:
        """Return the URL of *address* and the address of its proxy: that of the options, or of the environment.

        Raises:
            ConfigurationError: aiohttp cannot speak to the proxy.
        """
        import yarl

        url = yarl.URL(address, encoded=True)
        proxy = proxy_for(url.scheme, url.host or "", url.port, self._options)
        if proxy is not None and not proxy.startswith(("http://", "https://")):
            scheme = proxy.partition(":")[0]
            raise ConfigurationError(f"aiohttp cannot use a proxy of the kind {scheme!r:.40}", key="proxy")
        return url, proxy


def _answer(response: aiohttp.ClientResponse) -> HTTPAnswer:
    headers: dict[str, str] = {}
    for name, value in response.raw_headers:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text

    async def aclose() -> None:
        if response.connection is not None:  # it was not read to its end
            response.close()
            await asyncio.sleep(0)  # it is closed behind this

    return HTTPAnswer(response.status, headers, decoded(_Chunks(response.content), headers), aclose)


class _Chunks(AsyncIterator[bytes]):
    """The bytes of a body as they arrive."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content

    async def __anext__(self) -> bytes:
        import aiohttp

        try:
            piece = await self._content.readany()
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _as_httpx2(error)  # noqa: B904  # it has its cause
        if not piece:
            raise StopAsyncIteration
        return piece


def _connector(context: ssl.SSLContext, loop: asyncio.AbstractEventLoop) -> aiohttp.TCPConnector:
    """Return connections that let the waits of a call know whether its request has opened one."""
    import aiohttp

    class Connector(aiohttp.TCPConnector):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self._known: WeakSet[Any] = WeakSet()

        async def connect(self, *request: Any, **limits: Any) -> aiohttp.connector.Connection:
            connection = await super().connect(*request, **limits)
            wait = sending_wait.get()
            assert wait is not None, "a call sends"
            wait.is_new = connection.protocol not in self._known
            if wait.is_new:
                self._known.add(connection.protocol)
            return connection

    return Connector(
        ssl=context,
        limit=0,
        keepalive_timeout=KEPT_SECONDS,
        resolver=aiohttp.ThreadedResolver(loop=loop),  # the system's, even if aiodns is installed
        loop=loop,
    )


async def _once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send *request*. Raises the loss of its connection as an error that aiohttp does not know."""
    import aiohttp

    try:
        return await send(request)
    except aiohttp.ClientConnectionError as error:
        raise _as_httpx2(error)  # noqa: B904  # it has its cause


def _as_httpx2(error: Exception) -> Exception:
    """Return the error of httpx2 for *error*, with its cause."""
    import aiohttp
    import httpx2

    if isinstance(error, httpx2.HTTPError):
        return error
    httpx2_error: Exception
    match error:
        case aiohttp.ConnectionTimeoutError():
            httpx2_error = httpx2.ConnectTimeout("too late")
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            httpx2_error = httpx2.ProxyError("the proxy failed")
        case aiohttp.ClientConnectorError():
            httpx2_error = httpx2.ConnectError("no connection")
        case aiohttp.ClientConnectionError() | OSError():
            httpx2_error = httpx2.ReadError("the connection broke")
        case aiohttp.InvalidURL() | ValueError():
            httpx2_error = httpx2.LocalProtocolError("the request is not HTTP")
        case _:
            httpx2_error = httpx2.RemoteProtocolError("the answer is not HTTP")
    httpx2_error.__cause__ = getattr(error, "certificate_error", error)
    return httpx2_error
