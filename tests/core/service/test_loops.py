"""Single connections of an event loop, over a pair of sockets."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpcore2
import pytest

from crosswalk.service.chunks import Address, Tap
from crosswalk.service.loops import LoopBackend, LoopStream, _Pipe

PEM = Path(__file__).with_name("localhost.pem")
Use = Callable[[LoopStream, socket.socket], Awaitable[None]]


def connected(use: Use) -> None:
    """Run *use* with a connection and its other end, which blocks."""

    async def main() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            theirs.settimeout(20)
            _, pipe = await asyncio.get_running_loop().create_connection(_Pipe, sock=ours)
            stream = LoopStream(pipe, Tap(Address()))
            await use(stream, theirs)
            await stream.aclose()

    asyncio.run(asyncio.wait_for(main(), 60))


async def settled() -> None:
    """The loop has seen what is there."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_what_came_is_read_and_then_the_end() -> None:
    async def use(stream: LoopStream, theirs: socket.socket) -> None:
        reading = asyncio.create_task(stream.read(10))
        await settled()
        theirs.sendall(b"one")
        assert await reading == b"one"
        theirs.sendall(b"two")
        theirs.close()
        await settled()
        assert await stream.read(10) == b"two"
        assert [await stream.read(10), await stream.read(10)] == [b"", b""]

    connected(use)


def test_nothing_is_taken_from_the_system_that_nobody_reads() -> None:
    async def use(stream: LoopStream, theirs: socket.socket) -> None:
        theirs.sendall(b"first")
        await settled()
        theirs.sendall(b"second")
        await settled()
        assert list(stream._pipe._data) == [b"first"]
        assert not stream._pipe.transport.is_reading()
        assert [await stream.read(10), await stream.read(10)] == [b"first", b"second"]
        assert stream._pipe.transport.is_reading()

    connected(use)


def test_what_came_before_a_break_is_read() -> None:
    async def use(stream: LoopStream, theirs: socket.socket) -> None:
        pipe = stream._pipe
        pipe.data_received(b"came")
        pipe.connection_lost(ConnectionResetError("reset"))
        assert await stream.read(10) == b"came"
        with pytest.raises(httpcore2.ReadError, match="reset"):
            await stream.read(10)
        with pytest.raises(httpcore2.WriteError, match="reset"):
            await send(stream, b"x")

    connected(use)


def test_a_read_that_is_cancelled_loses_nothing() -> None:
    async def use(stream: LoopStream, theirs: socket.socket) -> None:
        reading = asyncio.create_task(stream.read(10))
        await settled()
        reading.cancel()
        stream._pipe.data_received(b"came")  # in the same turn of the loop
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert await stream.read(10) == b"came"

    connected(use)


async def send(stream: LoopStream, data: bytes, timeout: float | None = None) -> None:
    """As the HTTP library sends a request."""
    await stream.write(data, timeout)
    await stream.write(b"", timeout)


def test_a_request_is_sent_at_once() -> None:
    async def use(stream: LoopStream, theirs: socket.socket) -> None:
        await stream.write(b"head ")
        await settled()
        theirs.setblocking(False)
        with pytest.raises(BlockingIOError):
            theirs.recv(10)
        await send(stream, b"body")
        assert theirs.recv(20) == b"head body"

    connected(use)


def test_writing_waits_until_the_system_has_all() -> None:
    much = bytes(5_000_000)

    async def use(stream: LoopStream, theirs: socket.socket) -> None:
        with pytest.raises(httpcore2.WriteTimeout):
            await send(stream, much, 0.001)
        writing = asyncio.create_task(send(stream, b"end"))
        got = b""
        while not got.endswith(b"end"):
            got += await asyncio.to_thread(theirs.recv, 2**20)
        await writing
        assert got == much + b"end"
        writing = asyncio.create_task(send(stream, much))
        await settled()
        theirs.close()
        with pytest.raises(httpcore2.WriteError):
            await writing

    connected(use)


def test_writing_to_a_closed_connection_fails() -> None:
    async def use(stream: LoopStream, theirs: socket.socket) -> None:
        theirs.close()
        await stream.read(10)
        await settled()
        with pytest.raises(httpcore2.WriteError, match="closed"):
            await send(stream, b"x")

    connected(use)


def test_whether_an_idle_connection_was_closed() -> None:
    async def use(stream: LoopStream, theirs: socket.socket) -> None:
        assert not stream.get_extra_info("is_readable")
        assert stream.get_extra_info("ssl_object") is stream.get_extra_info("other") is None
        theirs.close()
        assert stream.get_extra_info("is_readable")  # before the loop has seen it
        await settled()
        assert stream.get_extra_info("is_readable")

    connected(use)


def refusing(error: BaseException) -> Any:
    class Loop(asyncio.SelectorEventLoop):
        async def create_connection(self, *_: Any, **options: Any) -> Any:
            raise error

        async def start_tls(self, *_: Any, **__: Any) -> Any:
            raise error

    return Loop


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TimeoutError(), httpcore2.ConnectTimeout),
        (OSError("nobody"), httpcore2.ConnectError),
        (UnicodeError("no name"), httpcore2.ConnectError),
    ],
)
def test_a_connection_that_is_not_made(error: Exception, kind: type[Exception]) -> None:
    async def main() -> None:
        with pytest.raises(kind):
            await LoopBackend().connect_tcp("host", 1, 1.0)

    with asyncio.Runner(loop_factory=refusing(error)) as runner:
        runner.run(main())


@pytest.mark.parametrize("is_pythons", [True, False])
def test_addresses_race_where_the_event_loop_can(monkeypatch: pytest.MonkeyPatch, is_pythons: bool) -> None:
    asked: list[dict[str, Any]] = []

    class Loop(asyncio.SelectorEventLoop):
        async def create_connection(self, *_: Any, **options: Any) -> Any:
            asked.append(options)
            return None, _Pipe()

    async def main() -> None:
        if not is_pythons:  # those of other makers try one address after the other
            monkeypatch.setattr(asyncio, "BaseEventLoop", type("Other", (), {}))
        await LoopBackend().connect_tcp("host", 1)

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(main())
    assert asked == [{"happy_eyeballs_delay": 0.25} if is_pythons else {}]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TimeoutError(), httpcore2.ConnectTimeout),
        (ssl.SSLError("no trust"), httpcore2.ConnectError),
        (asyncio.CancelledError(), asyncio.CancelledError),
    ],
)
def test_an_encryption_that_fails_closes_the_connection(
    error: BaseException, kind: type[BaseException]
) -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            _, pipe = await asyncio.SelectorEventLoop.create_connection.__get__(asyncio.get_running_loop())(
                _Pipe, sock=ours
            )
            with pytest.raises(kind):
                await LoopStream(pipe, Tap(Address())).start_tls(ssl.create_default_context(), "host", 1.0)
            assert theirs.recv(10) == b""

    Loop = refusing(error)
    del Loop.create_connection
    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(main())


def test_a_connection_that_ends_before_it_is_encrypted() -> None:
    class Loop(asyncio.SelectorEventLoop):
        async def start_tls(self, *_: Any, **__: Any) -> Any:
            return None  # the server was faster

    async def main() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            _, pipe = await asyncio.get_running_loop().create_connection(_Pipe, sock=ours)
            with pytest.raises(httpcore2.ConnectError, match="closed"):
                await LoopStream(pipe, Tap(Address())).start_tls(ssl.create_default_context(), "host")

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(main())
