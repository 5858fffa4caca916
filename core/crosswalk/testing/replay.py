"""A server on the loopback interface that answers with captures, over real HTTP, with the faults you choose."""

from __future__ import annotations

import asyncio
import functools
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Self

import attrs

from crosswalk.testing.captures import Capture, load_captures
from crosswalk.testing.exchange import (
    Abort,
    Answer as Answer,
    AnswerOutcome as AnswerOutcome,
    Close,
    Fault,
    Hang,
    Head,
    Pause,
    Raw,
    ReceivedRequest as ReceivedRequest,
    ReplayError as ReplayError,
    SentChunk,
    SentEnd,
    Step,
)
from crosswalk.testing.strict.rules import Issued, StrictRules

# -------------------------------------------------------------------------------- loopback
# One connection of the replay server: the HTTP/1.1 that it needs, and invalid HTTP if a fault requires it.


class ClientLeftError(Exception):
    """The client closed the connection."""


class NotHTTPError(Exception):
    """The received bytes are not an HTTP request."""


class Connection(asyncio.StreamReaderProtocol):
    """A TCP connection that reads requests and sends answers.

    Attributes:
        number: its number among the server's connections, from 1.
        closed: set when the connection is closed.
    """

    def __init__(self, accept: Callable[[Connection], None]) -> None:
        self._reader = asyncio.StreamReader()
        super().__init__(self._reader)
        self._accept = accept
        self._left = asyncio.Event()
        self._is_chunked = False
        self.closed = asyncio.Event()
        self.number = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        super().connection_made(transport)
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(
            high=0
        )  # so that drain() waits until the system has taken everything
        self._tcp = transport
        loop = asyncio.get_running_loop()
        self._writer = asyncio.StreamWriter(transport, self, self._reader, loop)
        self._accept(self)

    def eof_received(self) -> bool | None:
        """Treat the end of the client's data as the client having left, as HTTP does."""
        self._left.set()
        return super().eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        """Note that the connection is closed."""
        self._left.set()
        self.closed.set()
        super().connection_lost(error)

    def close(self) -> None:
        """Close it, once everything that was written has been sent."""
        self._tcp.close()

    def abort(self) -> None:
        """Close it at once."""
        self._tcp.abort()

    async def read_request(self) -> ReceivedRequest | None:
        """Return the next request, or ``None`` if the client has closed the connection.

        Raises:
            BadRequestError: the received bytes are not an HTTP request.
        """
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
            request_line, *header_lines = head.decode("latin-1").split("\r\n")[:-2]
            method, target, _ = request_line.split(" ")
            headers = {}
            for header_line in header_lines:
                name, _, value = header_line.partition(":")
                headers[name.strip().lower()] = value.strip()
            body = await self._read_body(headers)
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise NotHTTPError from None
            return None
        except (asyncio.LimitOverrunError, ValueError):
            raise NotHTTPError from None
        return ReceivedRequest(method, target, MappingProxyType(headers), body, self.number)

    async def _read_body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() != "chunked":
            return await self._reader.readexactly(int(headers.get("content-length", "0")))
        pieces = []
        while size := int((await self._reader.readuntil(b"\r\n")).partition(b";")[0], 16):
            pieces.append(await self._reader.readexactly(size))
            await self._reader.readexactly(2)
        await self._reader.readuntil(b"\r\n")
        return b"".join(pieces)

    async def play(self, steps: Sequence[Step]) -> bool:
        """Do *steps*. Return whether the connection can be used again.

        Raises:
            ClientLeftError: the client closed the connection before the end.
        """
        for step in steps:
            match step:
                case Head(status, headers, length):
                    self._is_chunked = length is None
                    await self._send(_head(status, headers, length))
                case SentChunk(data) if data:  # an empty HTTP chunk would be the end
                    await self._send(b"%x\r\n%s\r\n" % (len(data), data) if self._is_chunked else data)
                case Raw(data):
                    await self._send(data)
                case Pause(seconds):
                    await self._wait(seconds)
                case Hang():
                    await self._wait(None)
                case SentEnd():
                    await self._send(b"0\r\n\r\n" if self._is_chunked else b"")
                case Abort():
                    tcp_socket = self._tcp.get_extra_info("socket")
                    # A reset throws away unsent bytes, but all bytes before a fault must reach the client.
                    while _on_its_way(tcp_socket) and not self._left.is_set():
                        await asyncio.sleep(0.001)
                    tcp_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self._tcp.abort()
                    return False
                case Close():
                    return False
        return True

    async def _send(self, data: bytes) -> None:
        self._check_client()
        try:
            self._writer.write(data)
            await self._writer.drain()
        except ConnectionError:
            raise ClientLeftError from None

    async def _wait(self, seconds: float | None) -> None:
        """Wait, forever if ``None``, unless the client leaves."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._left.wait(), seconds)
        self._check_client()

    def _check_client(self) -> None:
        if self._left.is_set():
            raise ClientLeftError


def _on_its_way(sock: socket.socket) -> int:
    """Return the number of bytes that the peer's system has not confirmed, or 0 if this system does not report it."""
    if sys.platform != "linux":
        return 0
    import fcntl
    import termios

    return int.from_bytes(fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)


def _head(status: int, headers: Mapping[str, str], length: int | None) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"  # 529, which Anthropic sends, has no name
    framing_header = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    lines = [
        f"HTTP/1.1 {status} {phrase}",
        *(f"{name}: {value}" for name, value in headers.items()),
        framing_header,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


# ---------------------------------------------------------------------------------- replay
# A server on the loopback interface that answers with captures, over real HTTP, with the faults you choose.
#
# It needs no model, no network and nothing but the standard library. Applications and plugin authors test against it,
# and
# ``crosswalk demo`` uses it to show the library.


@attrs.define
class _Rule:
    """An answer, and the requests that it is for."""

    answer: Answer
    faults: tuple[Fault, ...]
    path: str | None
    stream: bool | None
    when: Callable[[ReceivedRequest], bool] | None
    left: int | None
    used: int = 0

    def fits(self, request: ReceivedRequest) -> bool:
        if self.left == 0 or (self.path is not None and self.path != request.path):
            return False
        if self.stream is not None and request.wants_stream is (not self.stream):
            return False
        return self.when is None or bool(self.when(request))


class ReplayServer:
    """Serves captures over HTTP/1.1 on the loopback interface, in a separate thread.

    Use it with ``with`` or ``async with``. It serves sync and async clients. Its answers come from two sources, in this
    order:

    - :meth:`add`: answers in order, each once by default, for all requests or for some;
    - *captures*: the one that was recorded for the request's path, streamed if a stream is requested. If several
      fit they take turns. If the request does not say whether it wants a stream, whole ones come first.

    A request without a matching answer gets 404 and is recorded with ``case=None``.

    With *rules* it first checks the conversation in each request, and refuses it with the provider's own error if it
    breaks a rule. A refused request takes no answer, and its case is ``refused: NAME OF THE RULE``. All answers that the
    server was given count as issued by the provider: a signature or id from anywhere else is foreign.

    Args:
        captures: recorded answers, or the folder that holds them.
        faults: the faults of each of *captures*.
        rules: a provider's API rules, from :func:`~crosswalk.testing.strict_rules`. ``None`` accepts any request.

    Raises:
        ConfigurationError: the folder cannot be read.
    """

    def __init__(
        self,
        captures: Path | str | Iterable[Capture] = (),
        *,
        faults: Sequence[Fault] = (),
        rules: StrictRules | None = None,
    ) -> None:
        if isinstance(captures, Path | str):
            captures = load_captures(captures)
        self._capture_rules = [_rule_of(one, tuple(faults)) for one in captures]
        self._strict_rules = rules
        self._issued = Issued(rules.framing if rules else None)
        if rules is not None:
            for rule in self._capture_rules:
                self._issued.add(rule.answer)
        self._rules: list[_Rule] = []
        self._state_condition = threading.Condition()
        self._requests: list[ReceivedRequest] = []
        self._connection_count = 0
        self._open_tasks: dict[Connection, asyncio.Task[None]] = {}
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], object]
        self._port = 0

    def add(
        self,
        answer: Answer | Capture,
        *faults: Fault,
        path: str | None = None,
        when: Callable[[ReceivedRequest], bool] | None = None,
        times: int | None = 1,
    ) -> Self:
        """Give *answer* to a later request.

        Args:
            answer: the answer to send.
            faults: its faults, applied one after the other.
            path: only for requests of this path; ``None`` for any.
            when: only for requests for which this returns true. It is called in the server's thread.
            times: the number of requests that get it; ``None`` for all of them.
        """
        if isinstance(answer, Capture):
            answer = Answer.of_capture(answer)
        with self._state_condition:
            self._rules.append(_Rule(answer, faults, path, None, when, times))
            if self._strict_rules is not None:
                self._issued.add(answer)
        return self

    # ------------------------------------------------------------------------------- what happened

    @property
    def url(self) -> str:
        """The server's address, such as ``http://127.0.0.1:40123``.

        Raises:
            ReplayError: the server is not running.
        """
        if self._thread is None:
            raise ReplayError("the replay server does not run: use it with `with`")
        return f"http://127.0.0.1:{self._port}"

    @property
    def requests(self) -> tuple[ReceivedRequest, ...]:
        """The requests that it received, in order, with everything known about them by now."""
        with self._state_condition:
            return tuple(self._requests)

    @property
    def disconnects(self) -> tuple[ReceivedRequest, ...]:
        """The requests whose client left before the end of the answer."""
        return tuple(one for one in self.requests if one.outcome is AnswerOutcome.DISCONNECTED)

    @property
    def refusals(self) -> tuple[ReceivedRequest, ...]:
        """The requests that broke one of the server's rules; the ``case`` of each names it."""
        return tuple(one for one in self.requests if (one.case or "").startswith("refused: "))

    @property
    def connections(self) -> int:
        """The number of TCP connections that were ever made."""
        return self._connection_count

    @property
    def open_connections(self) -> int:
        """The number of TCP connections that are open now."""
        with self._state_condition:
            return len(self._open_tasks)

    def wait_for(self, condition: Callable[[ReplayServer], object], *, timeout: float = 120.0) -> None:
        """Wait, in the caller's thread, until *condition* of this server is true.

        The server sees an action of a client, such as leaving, a moment later. So wait for it instead of checking once.

        Raises:
            ReplayError: it did not become true within *timeout* seconds.
        """
        deadline = time.monotonic() + timeout
        with self._state_condition:
            while not condition(self):
                if not self._state_condition.wait(max(deadline - time.monotonic(), 0)):
                    raise ReplayError(f"the awaited condition was not met within {timeout} seconds")

    # --------------------------------------------------------------------------------- running it

    def start(self) -> Self:
        """Listen on a port that the system chooses.

        Raises:
            ReplayError: the server is already running.
        """
        if self._thread is not None:
            raise ReplayError("the replay server runs already")
        listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._port = listener.getsockname()[1]
        ready = threading.Event()
        serving = self._serve(listener, ready)
        # A test that forgets to close the server must not keep its process alive.
        self._thread = threading.Thread(
            target=asyncio.run, args=(serving,), name="crosswalk replay", daemon=True
        )
        self._thread.start()
        ready.wait()
        return self

    def close(self) -> None:
        """Drop all connections, stop listening and end the thread. Closing twice does nothing.

        Raises:
            ReplayError: a ``when`` or a fault raised an exception, which is its cause.
        """
        if self._thread is None:
            return
        self._stop()
        self._thread.join()
        self._thread = None
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise ReplayError(f"answering failed with {type(failure).__name__}") from failure

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(self, *_: object) -> None:
        self.close()

    # ----------------------------------------------------------------- in the server's thread

    async def _serve(self, listener: socket.socket, ready: threading.Event) -> None:
        loop = asyncio.get_running_loop()
        stopping = asyncio.Event()
        self._stop = functools.partial(loop.call_soon_threadsafe, stopping.set)
        server = await loop.create_server(lambda: Connection(self._accept), sock=listener)
        ready.set()
        await stopping.wait()
        server.close()
        for connection, task in list(self._open_tasks.items()):
            task.cancel()
            connection.abort()
            await connection.closed.wait()
        with self._state_condition:
            self._open_tasks.clear()

    def _accept(self, connection: Connection) -> None:
        with self._state_condition:
            self._connection_count += 1
            connection.number = self._connection_count
            self._open_tasks[connection] = asyncio.create_task(self._converse(connection))
            self._state_condition.notify_all()

    async def _converse(self, connection: Connection) -> None:
        """Answer the requests of a connection, one after the other."""
        try:
            while (request := await connection.read_request()) is not None:
                rule = self._choose(request)
                answer = rule.answer.to(request) if rule else _nothing_for(request)
                request = attrs.evolve(request, case=rule.answer.case if rule else None)
                with self._state_condition:
                    position = len(self._requests)
                    self._requests.append(request)
                    self._state_condition.notify_all()
                steps = answer.steps()
                for fault in rule.faults if rule else ():
                    steps = fault.apply(steps)
                try:
                    is_usable = await connection.play(steps)
                    outcome = AnswerOutcome.ANSWERED
                except ClientLeftError:
                    is_usable, outcome = False, AnswerOutcome.DISCONNECTED
                with self._state_condition:
                    self._requests[position] = attrs.evolve(request, outcome=outcome)
                    self._state_condition.notify_all()
                if not is_usable or request.headers.get("connection", "").lower() == "close":
                    break
        except (NotHTTPError, ConnectionError):
            pass  # the connection is of no further use, and a client that does not speak HTTP gets no answer
        except Exception as error:  # from the test's code: close() reports it
            self._failure = error
        finally:
            connection.close()
        await connection.closed.wait()
        with self._state_condition:
            self._open_tasks.pop(connection, None)  # a closed server has dropped all connections
            self._state_condition.notify_all()

    def _choose(self, request: ReceivedRequest) -> _Rule | None:
        with self._state_condition:
            refusal = self._strict_rules.refused(request, self._issued) if self._strict_rules else None
            if refusal is not None:
                return _Rule(refusal, (), None, None, None, None)
            try:
                rule = next((rule for rule in self._rules if rule.fits(request)), None)
            except Exception as error:  # any exception of a test's function is reported by close()
                self._failure = error
                return None
            if rule is None:
                fitting_rules = [rule for rule in self._capture_rules if rule.fits(request)]
                is_stream_stated = request.wants_stream is not None
                rule = min(
                    fitting_rules,
                    key=lambda one: (not is_stream_stated and one.stream, one.used),
                    default=None,
                )
            if rule is not None:
                rule.used += 1
                rule.left = None if rule.left is None else rule.left - 1
            return rule


def _rule_of(capture: Capture, faults: tuple[Fault, ...]) -> _Rule:
    """Return the rule that gives *capture* to the requests that it was recorded for."""
    answer = Answer.of_capture(capture)
    path = None if capture.path is None else capture.path.partition("?")[0]
    return _Rule(answer, faults, path, answer.stream or capture.stream, None, None)


def _nothing_for(request: ReceivedRequest) -> Answer:
    message = f"the replay server has no answer for {request.method} {request.path[:100]}"
    return Answer.failure(404, message=message)
