"""Blocking connections, with each wait as long as its call may wait: the network backend of ``httpcore2``.

The library passes the limit of a request, of any type, to the connection that serves it. Here that is a :class:`Limit`,
which holds the call. So a call's limits are exactly those of an event loop, and another thread can end it.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import attrs
import httpcore2

from crosswalk.service.chunks import Address, Tap
from crosswalk.service.waits import ThreadWait

__all__ = ["Backend", "Limit", "is_readable"]

T = TypeVar("T")

_PIECE = 65536
"""The most bytes to read at once."""
_STEP = 1.0
"""The most seconds for which a read blocks before it checks whether it may go on waiting."""


@attrs.frozen
class Limit:
    """How long a connection may wait.

    Attributes:
        wait: the call's.
        most: the limit of this step alone, in seconds, or ``None`` for the call's.
    """

    wait: ThreadWait
    most: float | None

    def run(
        self,
        sock: socket.socket,
        work: Callable[[], T],
        late: type[Exception],
        broken: type[Exception],
        share: int = 1,
    ) -> T:
        """Return the result of *work*, for which *sock* blocks. Raises *late* or *broken* if it fails.

        If *work* is one of several attempts, it has its *share* of the time.
        """
        most = None if self.most is None else self.most / share
        try:
            left = self.wait.hold(sock)
            sock.settimeout(left if most is None or (left is not None and left < most) else most)
            done = work()
        except TimeoutError as error:
            self.wait.look()
            raise late("too late") from error
        except OSError as error:
            raise broken(str(error)) from error
        if self.wait.is_cancelled:
            raise broken("the caller has ended it")
        return done


class Stream(httpcore2.NetworkStream):
    """One connection.

    Attributes:
        tap: divides the received bytes.
    """

    def __init__(self, sock: socket.socket, tap: Tap) -> None:
        self.tap = tap
        self._socket = sock

    def read(self, max_bytes: int, timeout: Any = None) -> bytes:
        """Return the bytes that the HTTP library sees next. If the connection is lost, make it take another one."""
        try:
            try:
                data = self.tap.take() or self.receive(timeout.wait)
            except httpcore2.ReadError:
                if not timeout.wait.is_cancelled:
                    self.tap.look_at_end()
                raise
            return self.tap.give(data)
        except httpcore2.ConnectionNotAvailable:
            timeout.wait.resent += 1
            raise

    def receive(self, wait: ThreadWait) -> bytes:
        """Return the next bytes from the network, empty at the end."""
        sock = self._socket
        try:
            while True:
                left = wait.hold(sock)
                # In steps: to set the socket's limit again would take as long as reading does.
                step = _STEP if left is None or left > _STEP else left
                if sock.gettimeout() != step:
                    sock.settimeout(step)
                try:
                    data = sock.recv(_PIECE)
                    break
                except TimeoutError:
                    pass  # limiting it once more shows whether the time is over
        except TimeoutError as error:
            raise httpcore2.ReadTimeout("too late") from error
        except OSError as error:
            raise httpcore2.ReadError(str(error)) from error
        if wait.is_cancelled:
            raise httpcore2.ReadError("the caller has ended it")
        return data

    def write(self, buffer: bytes, timeout: Any = None) -> None:
        """Send the request that ends with *buffer*."""
        limit: Limit = timeout
        if data := self.tap.send(buffer):
            limit.run(
                self._socket,
                lambda: self._socket.sendall(data),
                httpcore2.WriteTimeout,
                httpcore2.WriteError,
            )

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: Any = None
    ) -> Stream:
        """Return the same connection, encrypted from now on."""
        limit: Limit = timeout
        plain = self._socket
        try:
            encrypted = ssl_context.wrap_socket(
                plain, server_hostname=server_hostname, do_handshake_on_connect=False
            )
            self._socket = encrypted
            limit.run(encrypted, encrypted.do_handshake, httpcore2.ConnectTimeout, httpcore2.ConnectError)
        except BaseException:
            self.close()
            raise
        return Stream(encrypted, self.tap)

    def get_extra_info(self, info: str) -> Any:
        """Answer the queries of ``httpcore2``: whether an idle connection cannot be reused, and the protocol."""
        if info == "is_readable":
            return self.tap.is_doubtful or is_readable(self._socket)
        if info == "ssl_object":
            return self._socket if isinstance(self._socket, ssl.SSLSocket) else None
        return None


def is_readable(sock: socket.socket) -> bool:
    """Whether data, or the end, can be read from *sock* without waiting."""
    number = sock.fileno()
    if number < 0:
        return True
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([number], [], [], 0)[0])
    poll = select.poll()
    poll.register(number, select.POLLIN)
    return bool(poll.poll(0))


class Backend(httpcore2.NetworkBackend):
    """Makes connections."""

    def __init__(self) -> None:
        self._addresses: defaultdict[tuple[str, int], Address] = defaultdict(Address)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: Any = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> Stream:
        """Connect to the first of the host's addresses that answers. They share the available time."""
        limit: Limit = timeout
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:  # the host's name is unknown or invalid
            raise httpcore2.ConnectError(str(error)) from error
        failure: Exception | None = None
        for number, (family, kind, protocol, _, address) in enumerate(addresses):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                limit.run(
                    sock,
                    lambda sock=sock, address=address: sock.connect(address),  # type: ignore[misc]
                    httpcore2.ConnectTimeout,
                    httpcore2.ConnectError,
                    share=len(addresses) - number,
                )
            except (httpcore2.ConnectTimeout, httpcore2.ConnectError) as error:
                sock.close()
                if limit.wait.is_late:
                    raise
                failure = error
            except BaseException:
                sock.close()
                raise
            else:
                return Stream(sock, Tap(self._addresses[host, port]))
        raise failure or httpcore2.ConnectError("the host has no address")
