"""The connections of a service, directly below the exchange."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from crosswalk.service.client import trusted
from crosswalk.service.deadlines import Wait
from crosswalk.service.policy import Timeouts
from crosswalk.service.transport import Answer, Kept, decoded

if TYPE_CHECKING:
    import httpcore2

    from crosswalk.service.loops import Connections

__all__ = ["LoopPool"]

_ACCEPT: Final = {"accept": "*/*", "accept-encoding": "gzip, deflate", "connection": "keep-alive"}


class LoopPool(Kept["Connections"]):
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

        raw = _headers(connection.headers)
        return Answer(connection.status, raw, decoded(connection, raw), aclose)


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


def _headers(raw: list[tuple[bytes, bytes]]) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers
