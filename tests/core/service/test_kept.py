"""Connections that are kept, and that the server has closed meanwhile."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import httpx2
import orjson
import pytest

from crosswalk import ServerError
from crosswalk.config import Settings
from crosswalk.service import (
    Call,
    ChatRequest,
    Endpoint,
    LLMService,
    Observation,
    RetryPolicy,
    SyncLLMService,
    Timeouts,
)
from crosswalk.service.http import RESEND_SECONDS
from crosswalk.service.setup import LogObserver
from wires import body, chunk

WHOLE = orjson.dumps(body({"content": "Hello."}))
EVENTS = [chunk({"content": "Hel"}), chunk({"content": "lo."}), chunk({}, "stop")]
STREAMED = b"".join(b"data: %s\n\n" % orjson.dumps(event) for event in EVENTS) + b"data: [DONE]\n\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"


def reset(connection: socket.socket) -> None:
    """Close it so that the other side gets an error."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Closing:
    """A server that answers so many requests over each connection, and ends it when the next one comes.

    Attributes:
        requests: the number of the connection over which each request came, from 0.
        ended: whether an idle connection has ended.

    Args:
        answers: how many, on the first connection, the second and so on; the last number holds for all others.
        last: is done to a connection before it is closed.
        behind: is sent behind each answer, in the same packet.
        together: so many connections get their first answer once a request has come over each of them.
        idle: end connections behind the last answer, and wait for no request.
    """

    def __init__(
        self,
        *answers: int,
        last: Callable[[socket.socket], object] = lambda _: None,
        behind: bytes = b"",
        together: int = 1,
        idle: bool = False,
    ) -> None:
        self.requests: list[int] = []
        self.ended = threading.Event()
        self._is_idle = idle
        self._answers = answers
        self._last = last
        self._behind = behind
        self._together = threading.Barrier(together)
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._begin(self._accept)

    def _begin(self, work: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        number = 0
        while True:
            connection, _ = self._listener.accept()
            if number < 0 or not self.port:
                connection.close()
                return
            self._begin(self._serve, connection, number)
            number += 1

    def _serve(self, connection: socket.socket, number: int) -> None:
        answers = self._answers[min(number, len(self._answers) - 1)]
        with connection, suppress(OSError):
            for count in range(answers + 1):
                asked = b""
                while not asked.endswith(b"}"):
                    more = connection.recv(65536)
                    if not more:
                        return
                    asked += more
                self.requests.append(number)
                if count == answers:
                    self._last(connection)
                    return
                if count == 0 and number < self._together.parties:
                    self._together.wait(60)
                is_stream = b'"stream":true' in asked
                answer, kind = (STREAMED, b"text/event-stream") if is_stream else (WHOLE, b"application/json")
                connection.sendall(HEAD % (kind, len(answer)) + answer + self._behind)
                if self._is_idle and count + 1 == answers:
                    break
        self.ended.set()

    def close(self) -> None:
        port, self.port = self.port, 0
        socket.create_connection(("127.0.0.1", port)).close()
        for thread in self._threads:
            thread.join()
        self._listener.close()


@pytest.fixture
def closing() -> Iterator[Callable[..., Closing]]:
    servers: list[Closing] = []

    def make(*answers: int, **options: Any) -> Closing:
        servers.append(Closing(*answers, **options))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


def options_for(server: Closing) -> tuple[Endpoint, dict[str, Any]]:
    endpoint = Endpoint("vllm", model="m", base_url=f"http://127.0.0.1:{server.port}")
    timeouts = Timeouts(total=60, connect=60)
    return endpoint, {"settings": Settings(), "retry": RetryPolicy(attempts=1), "timeout": timeouts}


def in_a_loop(server: Closing, *streamed: bool, **more: Any) -> list[Any]:
    """The answers to requests one after the other, streamed or not."""

    async def main() -> list[Any]:
        endpoint, options = options_for(server)
        found = []
        async with LLMService(endpoint, **{**options, **more}) as service:
            for is_stream in streamed:
                if is_stream:
                    async with service.stream(ChatRequest("hi")) as events:
                        async for _ in events:
                            pass
                    found.append(events.response)
                else:
                    found.append(await service.complete(ChatRequest("hi")))
        return found

    return asyncio.run(main())


def in_a_thread(server: Closing, *streamed: bool, **more: Any) -> list[Any]:
    """The same without an event loop."""
    endpoint, options = options_for(server)
    found = []
    with SyncLLMService(endpoint, **{**options, **more}) as service:
        for is_stream in streamed:
            if is_stream:
                with service.stream(ChatRequest("hi")) as events:
                    for _ in events:
                        pass
                found.append(events.response)
            else:
                found.append(service.complete(ChatRequest("hi")))
    return found


def through_a_client(server: Closing, *streamed: bool, **more: Any) -> list[Any]:
    """The same through a client of the application."""
    with httpx2.Client() as client:
        return in_a_thread(server, *streamed, client=client, **more)


def through_aiohttp(server: Closing, *streamed: bool, **more: Any) -> list[Any]:
    """The same by the other HTTP library."""
    return in_a_loop(server, *streamed, transport="aiohttp", **more)


Way = Callable[..., list[Any]]
all_ways = pytest.mark.parametrize("way", [in_a_loop, in_a_thread, through_a_client, through_aiohttp])
IS_STREAM = pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "streamed"])


@pytest.mark.parametrize("last", [lambda _: None, reset], ids=["ended", "reset"])
@IS_STREAM
@all_ways
def test_a_kept_connection_that_was_closed_costs_no_attempt(
    closing: Callable[..., Closing], way: Way, is_stream: bool, last: Any
) -> None:
    """The request was on its way when the server closed what was idle: it is sent again, once, on a new connection."""
    server = closing(1, last=last)
    found = way(server, is_stream, is_stream, is_stream)
    assert [response.text for response in found] == ["Hello."] * 3
    assert [[attempt.outcome for attempt in response.attempts] for response in found] == [["success"]] * 3
    assert [response.attempts[0].extra.get("resent") for response in found] == [None, 1, 1]
    assert server.requests == [0, 0, 1, 1, 2]


@pytest.mark.parametrize("last", [lambda _: None, reset], ids=["ended", "reset"])
@all_ways
def test_what_may_not_be_paid_twice_is_not_sent_again(
    closing: Callable[..., Closing], way: Way, last: Any
) -> None:
    """Nobody knows whether the server has read the request."""
    server = closing(1, last=last)
    with pytest.raises(ServerError) as raised:
        way(server, False, False, retry=RetryPolicy(repeat_started=False))
    (attempt,) = raised.value.response.attempts
    assert (attempt.extra["code"], attempt.extra.get("resent")) == ("connection_lost", None)
    assert server.requests == [0, 0]


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
def test_what_changes_nothing_is_sent_again(closing: Callable[..., Closing], transport: Any) -> None:
    server = closing(1)

    async def main() -> None:
        endpoint, options = options_for(server)
        options["retry"] = RetryPolicy(repeat_started=False)
        async with LLMService(endpoint, transport=transport, **options) as service:
            for _ in range(2):
                await service.request("PUT", "/x", {})

    asyncio.run(main())
    assert server.requests == [0, 0, 1]


@all_ways
def test_a_connection_that_has_ended_is_not_written_to(closing: Callable[..., Closing], way: Way) -> None:
    """Even if the event loop has had no time to see its end."""
    server = closing(1, idle=True)

    class Busy(LogObserver):
        def started(self, call: Call) -> Observation:
            assert not server.requests or server.ended.wait(60)
            return super().started(call)

    found = way(server, False, False, retry=RetryPolicy(repeat_started=False), observers=[Busy()])
    assert [response.text for response in found] == ["Hello."] * 2
    assert [response.attempts[0].extra.get("resent") for response in found] == [None, None]
    assert server.requests == [0, 1]


@all_ways
def test_a_request_that_the_server_worked_on_is_not_sent_again(
    closing: Callable[..., Closing], way: Way
) -> None:
    """A request that the server received long ago is paid for: whether to repeat it is for the retry policy to say."""
    server = closing(1, last=lambda _: threading.Event().wait(RESEND_SECONDS * 1.2))
    with pytest.raises(ServerError) as raised:
        way(server, False, False)
    (attempt,) = raised.value.response.attempts
    assert (attempt.outcome, attempt.extra["code"]) == ("error", "connection_lost")
    assert "resent" not in attempt.extra
    assert server.requests == [0, 0]


@pytest.mark.parametrize(
    "part",
    [
        b"H",
        b"HTTP/1.1 200 OK\r\n",
        b"no HTTP\r\n\r\n",
        HEAD % (b"text/plain", 5) + b"Content-Length: 6\r\n\r\n",
    ],
    ids=["a letter", "a line", "garbage", "two lengths"],
)
@all_ways
def test_a_request_is_not_sent_again_after_any_byte(
    closing: Callable[..., Closing], way: Way, part: bytes
) -> None:
    server = closing(1, last=lambda connection: connection.sendall(part))
    with pytest.raises(ServerError) as raised:
        way(server, False, False)
    assert "resent" not in raised.value.response.attempts[0].extra
    assert server.requests == [0, 0]


@pytest.mark.parametrize("way", [in_a_loop, in_a_thread, through_a_client])
def test_an_answer_that_came_before_its_request_is_not_delivered(
    closing: Callable[..., Closing], way: Way
) -> None:
    """A server has sent two answers to one request. The second one is not the answer to the next request."""
    stale = orjson.dumps(body({"content": "Of another call."}))
    server = closing(2, behind=HEAD % (b"application/json", len(stale)) + stale)
    with pytest.raises(ServerError) as raised:
        way(server, False, False)
    (attempt,) = raised.value.response.attempts
    assert (attempt.extra["code"], attempt.extra.get("resent")) == ("connection_lost", None)


def test_an_application_may_use_the_connections_of_its_client(closing: Callable[..., Closing]) -> None:
    server = closing(3)

    async def main() -> list[str]:
        endpoint, options = options_for(server)
        async with (
            httpx2.AsyncClient() as client,
            LLMService(endpoint, client=client, **options) as service,
        ):
            first = await service.complete(ChatRequest("hi"))
            own = await client.post(endpoint.base_url or "", json={})
            return [first.text, own.text, (await service.complete(ChatRequest("hi"))).text]

    assert asyncio.run(main()) == ["Hello.", WHOLE.decode(), "Hello."]
    assert server.requests == [0, 0, 0]


@pytest.mark.parametrize(
    ("answers", "last", "requests"),
    [
        (1, lambda _: None, [0, 0, 1]),
        (1, lambda _: threading.Event().wait(RESEND_SECONDS * 1.2), [0, 0]),
        (0, lambda _: None, [0]),
    ],
    ids=["kept and idle", "kept and at work", "new"],
)
def test_aiohttp_sends_no_request_again_by_itself(
    closing: Callable[..., Closing], answers: int, last: Any, requests: list[int]
) -> None:
    """It would send again what HTTP allows to send twice, such as a ``PUT``, whatever the server has done meanwhile."""
    server = closing(answers, 1, last=last)

    async def main() -> None:
        endpoint, options = options_for(server)
        async with LLMService(endpoint, transport="aiohttp", **options) as service:
            await service.request("PUT", "/x", {})
            await service.request("PUT", "/x", {})

    if requests[-1]:
        asyncio.run(main())
    else:
        with pytest.raises(ServerError):
            asyncio.run(main())
    assert server.requests == requests


def test_a_call_that_ends_while_it_is_sent_waits_no_longer(closing: Callable[..., Closing]) -> None:
    """Its first step may begin a task that ends it, where tasks begin at once."""
    server = closing(1)
    events: Any = None

    async def end(_: httpx2.Request) -> None:
        beginning = events.cancel()
        beginning.send(None)
        beginning.close()

    async def main() -> str:
        nonlocal events
        endpoint, options = options_for(server)
        async with (
            httpx2.AsyncClient(event_hooks={"request": [end]}) as client,
            LLMService(endpoint, client=client, **options) as service,
        ):
            events = service.stream(ChatRequest("hi"))
            return [event.event_type async for event in events][-1]

    assert asyncio.run(main()) == "response.incomplete"
    assert events.response.finish_reason == "cancelled"
    assert server.requests == []


def test_aiohttp_opens_another_connection_after_two_answers(closing: Callable[..., Closing]) -> None:
    server = closing(1, behind=HEAD % (b"application/json", 2) + b"{}")
    assert [response.text for response in through_aiohttp(server, False, False)] == ["Hello."] * 2
    assert server.requests == [0, 1]


@all_ways
def test_a_new_connection_that_is_closed_is_the_servers_failure(
    closing: Callable[..., Closing], way: Way
) -> None:
    server = closing(1, 0)
    with pytest.raises(ServerError) as raised:
        way(server, False, False)
    assert [attempt.outcome for attempt in raised.value.response.attempts] == ["error"]
    assert server.requests == [0, 0, 1]


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
def test_each_kept_connection_may_be_lost(closing: Callable[..., Closing], transport: Any) -> None:
    """Two connections are idle, and the server closes both."""
    server = closing(1, together=2)

    async def main() -> list[str]:
        endpoint, options = options_for(server)
        async with LLMService(endpoint, transport=transport, **options) as service:
            both = await asyncio.gather(*(service.complete(ChatRequest("hi")) for _ in range(2)))
            return [*(one.text for one in both), (await service.complete(ChatRequest("hi"))).text]

    assert asyncio.run(main()) == ["Hello."] * 3
    assert sorted(server.requests[2:]) == [0, 1, 2]


def test_a_client_whose_requests_tell_nothing_is_asked_once() -> None:
    """A transport of the application's own says nothing about its connections."""
    asked = []

    def lose(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        raise httpx2.ReadError("lost")

    async def main() -> None:
        endpoint = Endpoint("vllm", model="m", base_url="http://127.0.0.1:1")
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(lose))
        async with (
            client,
            LLMService(
                endpoint, client=client, settings=Settings(), retry=RetryPolicy(attempts=1)
            ) as service,
        ):
            await service.complete(ChatRequest("hi"))

    with pytest.raises(ServerError):
        asyncio.run(main())
    assert len(asked) == 1
