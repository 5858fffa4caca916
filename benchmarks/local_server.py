"""A server in a separate process that answers every request with the same bytes, so that clients can be compared."""

from __future__ import annotations

import multiprocessing
import socket
import socketserver
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

LIVE = 0.0003
"""Seconds between two events of a live stream: long enough for each to be read before the next one is sent."""


@attrs.frozen
class Served:
    """The answer of one path.

    Attributes:
        pieces: the body, in the pieces in which a server flushes it.
        content_type: its media type.
        pause: the seconds between two pieces, such as :data:`LIVE`, or ``None`` to send all at once.
    """

    pieces: Sequence[bytes]
    content_type: str
    pause: float | None = None

    def packets(self) -> list[bytes]:
        """Return the pieces to write, one after the other."""
        head = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n" % self.content_type.encode()
        if len(self.pieces) == 1:
            return [head + b"Content-Length: %d\r\n\r\n" % len(self.pieces[0]) + self.pieces[0]]
        written = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in self.pieces]
        written = [head + b"Transfer-Encoding: chunked\r\n\r\n" + written[0], *written[1:], b"0\r\n\r\n"]
        return [b"".join(written)] if self.pause is None else written


class _Handler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def handle(self) -> None:
        packets: dict[str, tuple[float, list[bytes]]] = self.server.packets  # type: ignore[attr-defined]  # set below
        while line := self.rfile.readline():
            first = line.split(b" ")[1].decode().split("/")[1]
            length = 0
            while header := self.rfile.readline().strip():
                name, _, value = header.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            self.rfile.read(length)
            pause, written = packets[first]
            for number, packet in enumerate(written):
                if number and pause:
                    time.sleep(pause)
                self.connection.sendall(packet)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


def _run(listener: socket.socket, served: dict[str, Served]) -> None:
    server: Any = _Server(("", 0), _Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    server.packets = {name: (one.pause or 0.0, one.packets()) for name, one in served.items()}
    server.serve_forever()


@contextmanager
def running(served: dict[str, Served]) -> Iterator[str]:
    """Yield a server's URL. Below ``URL/NAME`` any path is answered with *served* under that name."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        process = multiprocessing.get_context("fork").Process(
            target=_run, args=(listener, served), daemon=True
        )
        process.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            process.terminate()
            process.join()
