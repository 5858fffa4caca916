"""Connections that block, each wait as long as its call may wait: what ``httpcore2`` asks of a network backend.

It hands the limit of a request, whatever it is, to the connection that serves it. Here that is a :class:`Limit`, which knows
the call: so a call's limits are those of an event loop, to the letter, and another thread can end it.
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
"""How many bytes are read at once at most."""
_STEP = 1.0
"""For how many seconds a read blocks at most before it looks whether it may wait on."""


@attrs.frozen
class Limit:
    """How long a connection may wait.

    Attributes:
        wait: the call's.
        most: for this step alone, in seconds; ``None`` for as long as the call.
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
        """What *work* gives, for which *sock* blocks; *late* or *broken* where it raises.

        Where *work* is one of several ways, it has its *share* of the time.
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
        tap: parts what comes over it.
    """

    def __init__(self, sock: socket.socket, tap: Tap) -> None:
        self.tap = tap
        self._socket = sock

    def read(self, max_bytes: int, timeout: Any = None) -> bytes:
        """What the HTTP library is to see next; where the connection is lost, it is told to take another one."""
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
        """The next bytes from the network; none at the end."""
        sock = self._socket
        try:
            while True:
                left = wait.hold(sock)
                # In steps: to tell the socket another time would take as long as reading does.
                step = _STEP if left is None or left > _STEP else left
                if sock.gettimeout() != step:
                    sock.settimeout(step)
                try:
                    data = sock.recv(_PIECE)
                    break
                except TimeoutError:
                    pass  # holding it once more tells whether the time is over
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
        """The same connection, encrypted from now on."""
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
        """What ``httpcore2`` wants to know: whether an idle connection is not to be used again, and the protocol."""
        if info == "is_readable":
            return self.tap.is_doubtful or is_readable(self._socket)
        if info == "ssl_object":
            return self._socket if isinstance(self._socket, ssl.SSLSocket) else None
        return None


def is_readable(sock: socket.socket) -> bool:
    """Whether something, or the end, can be read from *sock* without waiting."""
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
        """A connection to the first of the host's addresses that answers; they share the time that there is."""
        limit: Limit = timeout
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:  # nobody knows the host; its name is none
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
