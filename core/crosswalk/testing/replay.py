"""A server on the loopback interface that answers with captures, over real HTTP, with the faults you choose.

It needs no model, no network and nothing but the standard library. Applications and plugin authors test against it, and
``crosswalk demo`` uses it to show the library.
"""

from __future__ import annotations

import asyncio
import functools
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Self

import attrs

from crosswalk.testing.captures import Capture, load_captures
from crosswalk.testing.exchange import (
    Answer as Answer,
    Outcome as Outcome,
    ReceivedRequest as ReceivedRequest,
    ReplayError as ReplayError,
)
from crosswalk.testing.faults import Fault
from crosswalk.testing.loopback import BadRequestError, ClientLeftError, Connection
from crosswalk.testing.strict.rules import Issued, StrictRules


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
        self._library = [_rule_of(one, tuple(faults)) for one in captures]
        self._strict = rules
        self._issued = Issued(rules.framing if rules else None)
        if rules is not None:
            for rule in self._library:
                self._issued.add(rule.answer)
        self._rules: list[_Rule] = []
        self._changed = threading.Condition()
        self._requests: list[ReceivedRequest] = []
        self._connections = 0
        self._open: dict[Connection, asyncio.Task[None]] = {}
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
        with self._changed:
            self._rules.append(_Rule(answer, faults, path, None, when, times))
            if self._strict is not None:
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
        with self._changed:
            return tuple(self._requests)

    @property
    def disconnects(self) -> tuple[ReceivedRequest, ...]:
        """The requests whose client left before the end of the answer."""
        return tuple(one for one in self.requests if one.outcome is Outcome.DISCONNECTED)

    @property
    def refusals(self) -> tuple[ReceivedRequest, ...]:
        """The requests that broke one of the server's rules; the ``case`` of each names it."""
        return tuple(one for one in self.requests if (one.case or "").startswith("refused: "))

    @property
    def connections(self) -> int:
        """The number of TCP connections that were ever made."""
        return self._connections

    @property
    def open_connections(self) -> int:
        """The number of TCP connections that are open now."""
        with self._changed:
            return len(self._open)

    def wait_for(self, condition: Callable[[ReplayServer], object], *, timeout: float = 120.0) -> None:
        """Wait, in the caller's thread, until *condition* of this server is true.

        The server sees an action of a client, such as leaving, a moment later. So wait for it instead of checking once.

        Raises:
            ReplayError: it did not become true within *timeout* seconds.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            while not condition(self):
                if not self._changed.wait(max(deadline - time.monotonic(), 0)):
                    raise ReplayError(f"what was waited for did not happen within {timeout} seconds")

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
        run = self._serve(listener, ready)
        # A test that forgets to close the server must not keep its process alive.
        self._thread = threading.Thread(target=asyncio.run, args=(run,), name="crosswalk replay", daemon=True)
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
        for connection, task in list(self._open.items()):
            task.cancel()
            connection.abort()
            await connection.closed.wait()
        with self._changed:
            self._open.clear()

    def _accept(self, connection: Connection) -> None:
        with self._changed:
            self._connections += 1
            connection.number = self._connections
            self._open[connection] = asyncio.create_task(self._converse(connection))
            self._changed.notify_all()

    async def _converse(self, connection: Connection) -> None:
        """Answer the requests of a connection, one after the other."""
        try:
            while (request := await connection.read_request()) is not None:
                rule = self._choose(request)
                answer = rule.answer.to(request) if rule else _nothing_for(request)
                request = attrs.evolve(request, case=rule.answer.case if rule else None)
                with self._changed:
                    position = len(self._requests)
                    self._requests.append(request)
                    self._changed.notify_all()
                steps = answer.steps()
                for fault in rule.faults if rule else ():
                    steps = fault.apply(steps)
                try:
                    is_usable = await connection.play(steps)
                    outcome = Outcome.ANSWERED
                except ClientLeftError:
                    is_usable, outcome = False, Outcome.DISCONNECTED
                with self._changed:
                    self._requests[position] = attrs.evolve(request, outcome=outcome)
                    self._changed.notify_all()
                if not is_usable or request.headers.get("connection", "").lower() == "close":
                    break
        except (BadRequestError, ConnectionError):
            pass  # the connection is of no further use, and a client that does not speak HTTP gets no answer
        except Exception as error:  # from the test's code: close() reports it
            self._failure = error
        finally:
            connection.close()
        await connection.closed.wait()
        with self._changed:
            self._open.pop(connection, None)  # a closed server has dropped all connections
            self._changed.notify_all()

    def _choose(self, request: ReceivedRequest) -> _Rule | None:
        with self._changed:
            refused = self._strict.refused(request, self._issued) if self._strict else None
            if refused is not None:
                return _Rule(refused, (), None, None, None, None)
            try:
                rule = next((rule for rule in self._rules if rule.fits(request)), None)
            except Exception as error:  # any exception of a test's function is reported by close()
                self._failure = error
                return None
            if rule is None:
                fitting = [rule for rule in self._library if rule.fits(request)]
                raw = request.wants_stream is not None
                rule = min(fitting, key=lambda one: (not raw and one.stream, one.used), default=None)
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
