"""The connections of an event loop: single ones, over a pair of sockets, and those that are kept."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import h11
import httpcore2
import pytest
from hypothesis import given, settings, strategies as st

from crosswalk.service import loops
from crosswalk.service.deadlines import Wait
from crosswalk.service.loops import Connection, Connections, _Pipe, head_of
from tries import tries

HERE = httpcore2.Origin(b"http", b"127.0.0.1", 1)
Use = Callable[[Connection, socket.socket], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def connected(use: Use) -> None:
    """Run *use* with a connection and its other end, which blocks."""

    async def main() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            theirs.settimeout(20)
            _, pipe = await asyncio.get_running_loop().create_connection(_Pipe, sock=ours)
            connection = Connection(pipe, HERE)
            await use(connection, theirs)
            connection.abort()
            await settled()

    asyncio.run(asyncio.wait_for(main(), 60))


async def settled() -> None:
    """The loop has seen what is there."""
    for _ in range(5):
        await asyncio.sleep(0)


async def body_of(connection: Connection) -> bytes:
    return b"".join([piece async for piece in connection])


# ------------------------------------------------------------------------------------ answers


def by_h11(sent: bytes, *, closes: bool) -> tuple[int, bytes, str]:
    """The status and body that ``h11`` reads, and how it ends."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="POST", target="/", headers=[("Host", "h")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(sent)
    if closes:
        connection.receive_data(b"")
    status, body = 0, b""
    try:
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return status, body, "end"
            elif not isinstance(event, h11.InformationalResponse):
                return status, body, "broken"
    except h11.RemoteProtocolError:
        return status, body, "broken"


def by_us(pieces: list[bytes]) -> tuple[int, bytes, str]:
    status, body, ending = 0, b"", "end"

    async def use(connection: Connection, theirs: socket.socket) -> None:
        nonlocal status, body, ending
        asking = asyncio.create_task(connection.ask(b"request", None))
        await settled()
        assert theirs.recv(100) == b"request"
        for piece in pieces:
            theirs.sendall(piece)
            await settled()
        theirs.close()
        try:
            await asking
            status = connection.status
            async for piece in connection:
                body += piece
        except httpcore2.RemoteProtocolError:
            ending = "broken"

    connected(use)
    return status, body, ending


ANSWERS = {
    "a length": OK,
    "no body": b"HTTP/1.1 204 No Content\r\n\r\n",
    "an empty body": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "to the end of the connection": b"HTTP/1.1 200 OK\r\nX: y\r\n\r\nall of it",
    "the old protocol": b"HTTP/1.0 200 OK\r\n\r\nall of it",
    "an error": OK.replace(b"200 OK", b"503 Not now"),
    "no reason": OK.replace(b"200 OK", b"200"),
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
    "trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nContent-Length: 9\r\n\r\n",
    "one after 100": b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\n" + OK,
    "line feeds": OK.replace(b"\r\n", b"\n"),
    "a length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    "blanks behind a size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2  \r\nab\r\n0\r\n\r\n",
    "an odd header": OK.replace(b"Content", b"X: \x1b[31m\xff\r\nContent", 1),
    "an upgrade that is offered": OK.replace(
        b"Content", b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent", 1
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
@settings(max_examples=tries(15))
@given(data=st.data())
def test_an_answer_is_what_h11_reads_however_it_comes(name: str, data: st.DataObject) -> None:
    answer = ANSWERS[name]
    end = data.draw(st.one_of(st.just(len(answer)), st.integers(0, len(answer))))
    cut = sorted({0, end, *data.draw(st.lists(st.integers(0, end), max_size=3))})
    pieces = [answer[a:b] for a, b in zip(cut, cut[1:], strict=False)]
    assert by_us(pieces) == by_h11(answer[:end], closes=True)


def test_an_answer_may_end_with_its_connection() -> None:
    assert by_us([ANSWERS["to the end of the connection"]]) == (200, b"all of it", "end")


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01 nothing of the kind",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx",
        b"",
        b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 8_000,
    ],
)
def test_what_is_no_answer_is_an_error(sent: bytes) -> None:
    assert by_us([sent])[1:] == (b"", "broken")


@pytest.mark.parametrize("broken", [b"x\r\n", b"2\r\ncde\r\n", b"0\r\n\0"])
def test_what_came_before_a_fault_is_read(broken: bytes) -> None:
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n" + broken
    got = by_us([answer])
    assert (got[0], got[1][:2], got[2]) == (200, b"ab", "broken")


def test_headers_are_given_as_they_came_without_those_behind_the_body() -> None:
    async def use(connection: Connection, theirs: socket.socket) -> None:
        theirs.sendall(b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\n" + ANSWERS["trailers"])
        await connection.ask(b"request", None)
        assert await body_of(connection) == b"ab"
        assert connection.headers == [(b"Transfer-Encoding", b"chunked")]
        assert connection.is_kept

    connected(use)


@pytest.mark.parametrize(
    "sent",
    [
        OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
        OK + b"HTTP/1.1 200 OK\r\n",
        OK + OK,
        OK + b"\0",
    ],
)
def test_a_connection_is_not_kept_where_it_is_to_end_or_more_comes(sent: bytes) -> None:
    async def use(connection: Connection, theirs: socket.socket) -> None:
        theirs.sendall(sent)
        await connection.ask(b"request", None)
        assert await body_of(connection) == b"ok"
        assert not connection.is_kept

    connected(use)


# ------------------------------------------------------------------------------------ one connection


def test_nothing_is_taken_from_the_system_that_nobody_reads() -> None:
    async def use(connection: Connection, theirs: socket.socket) -> None:
        pipe = connection._pipe
        theirs.sendall(b"first")
        await settled()
        theirs.sendall(b"second")
        await settled()
        assert list(pipe._data) == [b"first"]
        assert not pipe.transport.is_reading()
        assert [await pipe.read(), await pipe.read()] == [b"first", b"second"]
        assert pipe.transport.is_reading()

    connected(use)


def test_what_came_before_a_break_is_read() -> None:
    async def use(connection: Connection, theirs: socket.socket) -> None:
        connection._pipe.data_received(OK[:-1])
        connection._pipe.connection_lost(ConnectionResetError("reset"))
        await connection.ask(b"request", None)
        assert await connection.__anext__() == b"o"
        with pytest.raises(httpcore2.ReadError, match="reset"):
            await connection.__anext__()

    connected(use)


def test_a_read_that_is_cancelled_loses_nothing() -> None:
    async def use(connection: Connection, theirs: socket.socket) -> None:
        pipe = connection._pipe
        reading = asyncio.create_task(pipe.read())
        await settled()
        reading.cancel()
        pipe.data_received(b"came")  # in the same turn of the loop
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert await pipe.read() == b"came"

    connected(use)


def test_writing_waits_until_the_system_has_all() -> None:
    much = bytes(5_000_000)

    async def use(connection: Connection, theirs: socket.socket) -> None:
        with pytest.raises(httpcore2.WriteTimeout):
            await connection.ask(much, 0.001)
        asking = asyncio.create_task(connection.ask(b"end", None))
        got = b""
        while not got.endswith(b"end"):
            got += await asyncio.to_thread(theirs.recv, 2**20)
        assert got == much + b"end"
        theirs.sendall(OK)
        await asking

    connected(use)


def test_an_answer_that_comes_before_all_is_sent_is_read() -> None:
    async def use(connection: Connection, theirs: socket.socket) -> None:
        asking = asyncio.create_task(connection.ask(bytes(5_000_000), None))
        await settled()
        connection._pipe.data_received(OK.replace(b"200 OK", b"413 Too long"))
        connection._pipe.connection_lost(ConnectionResetError("reset"))
        await asking
        assert connection.status == 413

    connected(use)


# ------------------------------------------------------------------------------------ those that are kept


class Server:
    """Answers requests with what it is told, and counts its connections; ``None`` closes one."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = list(answers)
        self.connections: list[asyncio.StreamWriter] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(writer)
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                answer = self.answers.pop(0)
                if answer is None:
                    return
                writer.write(answer)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


def kept(
    server: Server, use: Callable[[Connections, Callable[[], Awaitable[Connection]]], Awaitable[None]]
) -> None:
    """Run *use* with connections to *server*, and what asks it."""

    async def main() -> None:
        listening = await asyncio.start_server(server.handle, "127.0.0.1", 0)
        origin = httpcore2.Origin(b"http", b"127.0.0.1", listening.sockets[0].getsockname()[1])
        connections = Connections(None)  # type: ignore[arg-type]  # there is no TLS

        async def ask() -> Connection:
            return await connections.ask(origin, b"GET / HTTP/1.1\r\n\r\n", 5, Wait())

        await use(connections, ask)
        await connections.aclose()
        listening.close()
        await settled()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_connection_is_used_again_once_its_answer_was_read() -> None:
    server = Server(OK, OK, OK)

    async def use(connections: Connections, ask: Callable[[], Awaitable[Connection]]) -> None:
        first = await ask()
        other = await ask()
        assert await body_of(first) == b"ok"
        await connections.let_go(first)
        assert await ask() is first
        assert other is not first

    kept(server, use)
    assert len(server.connections) == 2


def test_one_whose_answer_was_not_read_is_closed() -> None:
    server = Server(OK[:-1], OK)

    async def use(connections: Connections, ask: Callable[[], Awaitable[Connection]]) -> None:
        await connections.let_go(await ask())
        await ask()

    kept(server, use)
    assert len(server.connections) == 2


def test_what_a_server_has_closed_meanwhile_is_asked_anew() -> None:
    """Of those that are kept, the others may be closed as well."""
    server = Server(OK, OK, None, OK)

    async def use(connections: Connections, ask: Callable[[], Awaitable[Connection]]) -> None:
        before = [await ask(), await ask()]
        for one in before:
            await body_of(one)
            await connections.let_go(one)
        assert await body_of(await ask()) == b"ok"
        assert connections._idle == []

    kept(server, use)
    assert len(server.connections) == 3


def test_what_breaks_at_its_first_request_is_an_error() -> None:
    async def use(connections: Connections, ask: Callable[[], Awaitable[Connection]]) -> None:
        with pytest.raises(httpcore2.RemoteProtocolError):
            await ask()
        assert not connections._open

    kept(Server(None), use)


@pytest.mark.parametrize("error", [None, ConnectionResetError("reset")])
def test_a_connection_that_is_lost_says_so(error: Exception | None) -> None:
    async def use(connection: Connection, theirs: socket.socket) -> None:
        theirs.sendall(OK)
        await connection.ask(b"request", None)
        connection._pipe.connection_lost(error)
        with pytest.raises(loops._LostError):
            await connection.ask(b"request", None)

    connected(use)


def test_an_idle_connection_that_the_server_closes_is_not_used() -> None:
    server = Server(OK, OK)

    async def use(connections: Connections, ask: Callable[[], Awaitable[Connection]]) -> None:
        first = await ask()
        await connections.let_go(first)
        server.connections[0].transport.abort()
        while not first._pipe.has_news:
            await asyncio.sleep(0)
        assert await ask() is not first

    kept(server, use)


def test_connections_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_KEPT_SECONDS", 0.0)

    async def use(connections: Connections, ask: Callable[[], Awaitable[Connection]]) -> None:
        await connections.let_go(await ask())
        assert connections._idle == []

    kept(Server(OK), use)


def test_what_was_kept_too_long_is_not_used() -> None:
    async def use(connections: Connections, ask: Callable[[], Awaitable[Connection]]) -> None:
        first = await ask()
        await connections.let_go(first)
        first.idle_since -= 6
        assert await ask() is not first

    kept(Server(OK, OK), use)


def test_what_leads_elsewhere_is_not_used() -> None:
    async def use(connections: Connections, ask: Callable[[], Awaitable[Connection]]) -> None:
        first = await ask()
        await connections.let_go(first)
        first.origin = HERE
        assert await ask() is not first

    kept(Server(OK, OK), use)


def test_what_is_let_go_after_the_end_is_closed() -> None:
    async def use(connections: Connections, ask: Callable[[], Awaitable[Connection]]) -> None:
        first = await ask()
        await connections.aclose()
        await connections.let_go(first)
        assert connections._idle == []

    kept(Server(OK), use)


# ------------------------------------------------------------------------------------ connecting


def refusing(error: BaseException) -> Any:
    class Loop(asyncio.SelectorEventLoop):
        async def create_connection(self, *_: Any, **options: Any) -> Any:
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
            await Connections(None).ask(HERE, b"", 1.0, Wait())  # type: ignore[arg-type]

    with asyncio.Runner(loop_factory=refusing(error)) as runner:
        runner.run(main())


@pytest.mark.parametrize("is_pythons", [True, False])
def test_addresses_race_where_the_event_loop_can(monkeypatch: pytest.MonkeyPatch, is_pythons: bool) -> None:
    asked: list[dict[str, Any]] = []

    class Loop(asyncio.SelectorEventLoop):
        async def create_connection(self, *_: Any, **options: Any) -> Any:
            asked.append(options)
            raise OSError("enough")

    async def main() -> None:
        if not is_pythons:  # those of other makers try one address after the other
            monkeypatch.setattr(asyncio, "BaseEventLoop", type("Other", (), {}))
        with pytest.raises(httpcore2.ConnectError):
            await Connections(None).ask(HERE, b"", 1.0, Wait())  # type: ignore[arg-type]

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(main())
    assert asked == [{"happy_eyeballs_delay": 0.25} if is_pythons else {}]


# ------------------------------------------------------------------------------------ requests


def test_a_head_says_what_it_is_told() -> None:
    assert head_of("POST", b"/v1", (("host", "x"), ("a", ""))) == b"POST /v1 HTTP/1.1\r\nhost: x\r\na: \r\n"


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [
        ("POST", "a", "b\r\nc: d"),
        ("POST", "a", "b\0"),
        ("POST", "a b", "c"),
        ("POST", "a\n", "c"),
        ("POST /", "a", "b"),
        ("POST", "Content-Length", "5"),
        ("POST", "transfer-encoding", "chunked"),
    ],
)
def test_a_head_says_nothing_else(method: str, name: str, value: str) -> None:
    with pytest.raises(httpcore2.LocalProtocolError):
        head_of(method, b"/", ((name, value),))
