"""Connections of uvicorn's with the limits that it has not: slow heads, clients that take nothing, a gentle end."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["GuardedProtocol", "ServerConfig"]

_HEAD_BYTES = 65536


class ServerConfig(uvicorn.Config):
    """uvicorn's settings, and what :class:`GuardedProtocol` needs beside.

    Args:
        app: the application, or what makes it.
        head_seconds: until the head of a request is there.
        send_seconds: until a client that has enough takes more.
        options: uvicorn's own.
    """

    def __init__(self, app: Any, *, head_seconds: float, send_seconds: float, **options: Any) -> None:
        super().__init__(
            app, http=GuardedProtocol, h11_max_incomplete_event_size=_HEAD_BYTES, ws="none", **options
        )
        self.head_seconds = head_seconds
        self.send_seconds = send_seconds


class GuardedProtocol(H11Protocol):
    """A connection: HTTP/1.1 by h11, which is strict about where messages end."""

    config: ServerConfig
    _head_timer: asyncio.TimerHandle | None = None
    _send_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected: its first request has to come soon."""
        super().connection_made(transport)
        # asyncio does this only for sockets that say they are TCP's, which those of a listener need not. Without it the
        # client's system, which acknowledges late, holds up the body behind the head.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head_timer = self.loop.call_later(self.config.head_seconds, self._abort)

    def data_received(self, data: bytes) -> None:
        """Something came: of a head that has begun, the rest has to come soon."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            _stop(self._head_timer)
            self._head_timer = None
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.config.head_seconds, self._abort)

    def pause_writing(self) -> None:
        """The client takes less than it is sent."""
        super().pause_writing()
        self._send_timer = self.loop.call_later(self.config.send_seconds, self._abort)

    def resume_writing(self) -> None:
        """It has taken most of it."""
        super().resume_writing()
        _stop(self._send_timer)

    def timeout_keep_alive_handler(self) -> None:
        """Nothing more came: it is closed, at once where the client does not take what it was sent."""
        super().timeout_keep_alive_handler()
        _stop(self._send_timer)
        self._send_timer = self.loop.call_later(self.config.send_seconds, self._abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is no more."""
        _stop(self._head_timer)
        super().connection_lost(exc)
        _stop(self._send_timer)

    def shutdown(self) -> None:
        """The server is to end: so are, in a while, the answers."""
        super().shutdown()
        self.app_state["gateway"].drain()

    def _abort(self) -> None:
        self.transport.abort()


def _stop(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
