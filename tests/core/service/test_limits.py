"""The total limits of a call, the servers that it asks meanwhile, and the answers it accepts: over a network and a clock that are made up."""

from __future__ import annotations

import asyncio
import selectors
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import nullcontext
from typing import Any, TypeAlias, TypeVar

import attrs
import httpx2
import orjson
import pytest

from crosswalk import ChatResponse, ProviderError, ProviderTimeoutError, ServerError, StreamTooLargeError
from crosswalk.config import Settings
from crosswalk.service import ChatRequest, Endpoint, LLMService, RetryPolicy, SyncLLMService, Timeouts
from crosswalk.service.endpoint import OpeningTimeout
from crosswalk.service.http import HTTPAnswer, TimedWait
from crosswalk.testing import replay
from crosswalk.wire.framing import Limits
from leaving import WAYS, left_open
from wires import body, chunk

T = TypeVar("T")
ASK = ChatRequest("hi")
HELLO = orjson.dumps(body({"content": "Hello."}))
AT_ONCE: dict[str, Any] = {"initial_seconds": 0, "max_seconds": 0}


class Loop(asyncio.SelectorEventLoop):
    """An event loop in which waiting takes no time: its clock goes on by as much as it would have waited."""

    def __init__(self) -> None:
        self.now = 1000.0
        loop = self

        class Selector(selectors.DefaultSelector):
            def select(self, timeout: float | None = None) -> Any:
                assert timeout is not None, "nobody will ever wake it"
                loop.now += max(timeout, 0)
                return super().select(0)

        super().__init__(Selector())

    def time(self) -> float:
        return self.now


def within(use: Callable[[Loop], Awaitable[T]]) -> T:
    """The result of *use*, in such a loop."""

    async def main() -> T:
        loop: Any = asyncio.get_running_loop()
        return await use(loop)

    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(main())


@attrs.frozen
class Said:
    """An answer of a server."""

    status: int = 200
    headers: dict[str, str] = attrs.field(factory=dict)
    pieces: tuple[bytes | float, ...] = (HELLO,)
    """Bytes, and seconds to wait."""


Script: TypeAlias = dict[str, list[Said | Exception]]


class Network:
    """A transport to servers that say, by the name of their host, what is written down. The last thing again and again."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.asked: list[str] = []

    async def ready(self) -> None:
        pass

    async def aclose(self) -> None:
        pass

    async def send(self, url: str, *_: Any) -> HTTPAnswer:
        host = url.split("/")[2]
        self.asked.append(host)
        said, *rest = self._script[host]
        self._script[host] = rest or [said]
        if isinstance(said, Exception):
            raise said

        async def chunks() -> AsyncIterator[bytes]:
            for piece in said.pieces:
                if isinstance(piece, bytes):
                    yield piece
                else:
                    await asyncio.sleep(piece)

        async def aclose() -> None:
            pass

        return HTTPAnswer(said.status, said.headers, chunks(), aclose)


def service_of(script: Script, **options: Any) -> tuple[LLMService, Network]:
    endpoints = [Endpoint("vllm", model="m", base_url=f"http://{host}") for host in script]
    service = LLMService(*endpoints, settings=Settings(), **options)
    network = Network(script)
    service._setup = attrs.evolve(service._setup, transport=network)
    return service, network


async def failure_of(service: LLMService) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        await service.complete(ASK)
    return raised.value


BUSY = Said(503, {"retry-after": "10"}, (b'{"error": {"message": "busy"}}',))
UNPAID = Said(402, {}, (b'{"error": {"message": "no money"}}',))
SILENT = Said(pieces=(1e6,))
DOWN = httpx2.ConnectError("nobody is there")


# ------------------------------------------------------------------------------------ a limit for the whole call


def test_no_attempt_begins_when_the_time_of_the_call_is_over() -> None:
    """The last error is reported: that is better to know than that time is over."""

    async def use(loop: Loop) -> None:
        policy = RetryPolicy(attempts=9, **AT_ONCE)
        service, network = service_of(
            {"one": [BUSY], "two": [Said()]}, timeout=Timeouts(call=25), retry=policy, timer=loop.time
        )
        begin = loop.now
        error = await failure_of(service)
        assert isinstance(error, ServerError)
        assert [one.extra["waited_seconds"] >= 10 for one in error.response.attempts[:-1]] == [True, True]
        assert network.asked == ["one"] * 3
        assert loop.now - begin == 20

    within(use)


def test_a_server_decides_whether_and_when_it_is_asked_again() -> None:
    """``x-should-retry: false`` ends it. Google's error body has the delay that is waited for."""
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "12s"}
    quota = {"error": {"code": 429, "message": "Wait", "status": "RESOURCE_EXHAUSTED", "details": [delay]}}

    async def use(loop: Loop) -> None:
        never = Said(503, {"x-should-retry": "false"}, (b'{"error": {"message": "busy"}}',))
        service, network = service_of({"one": [never, Said()]}, retry=RetryPolicy(**AT_ONCE), timer=loop.time)
        await failure_of(service)
        assert network.asked == ["one"]
        waits = Said(429, {}, (orjson.dumps(quota),))
        service, network = service_of({"one": [waits, Said()]}, retry=RetryPolicy(**AT_ONCE), timer=loop.time)
        response = await service.complete(ASK)
        assert response.attempts[0].extra["retry_after"] == 12
        assert response.attempts[0].extra["waited_seconds"] >= 12

    within(use)


def test_a_stream_may_take_as_long_as_its_bytes_come() -> None:
    async def use(loop: Loop) -> None:
        words = [b"data: %s\n\n" % orjson.dumps(chunk({"content": "word "}))] * 40
        pieces = [piece for word in words for piece in (word, 500.0)]
        service, _ = service_of({"one": [Said(pieces=(*pieces, 1e6))]}, retry=RetryPolicy(attempts=1))
        begin = loop.now
        async with service.stream(ASK) as events:
            async for _ in events:
                pass
        assert loop.now - begin == 39 * 500 + 600
        assert events.response.text == "word " * 40
        assert events.response.attempts[0].extra["code"] == "between_bytes_timeout"

    within(use)


@pytest.mark.parametrize("timeout", [None, 30])
def test_a_whole_answer_has_ten_minutes_and_is_asked_for_once(timeout: float | None) -> None:
    async def use(loop: Loop) -> None:
        service, _ = service_of(
            {"one": [Said(pieces=(orjson.dumps({}), 1e6))]}, timeout=timeout, retry=RetryPolicy(attempts=3)
        )
        begin = loop.now
        error = await failure_of(service)
        assert isinstance(error, ProviderTimeoutError)
        assert loop.now - begin == (timeout or 600)
        assert error.info.code == "whole_timeout"
        assert error.response is not None
        assert len(error.response.attempts) == 1

    within(use)


@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize(
    ("limits", "code", "seconds"),
    [
        ({"call": 25}, "call_timeout", 25),
        ({"call": 25, "total": None}, "call_timeout", 25),
        ({"call": 200, "total": 120}, "total_timeout", 120),
    ],
)
def test_the_time_of_a_call_ends_an_attempt(
    limits: dict[str, Any], code: str, seconds: float, is_stream: bool
) -> None:
    async def use(loop: Loop) -> tuple[ChatResponse, float]:
        script: Script = {"one": [Said(pieces=(orjson.dumps({}), 1e6))]}
        service, _ = service_of(script, timeout=Timeouts(**limits), retry=RetryPolicy(attempts=1))
        begin = loop.now
        if not is_stream:
            error = await failure_of(service)
            assert isinstance(error, ProviderTimeoutError)
            return error.response, loop.now - begin  # type: ignore[return-value]
        async with service.stream(ASK) as events:
            async for _ in events:
                pass
        return events.response, loop.now - begin

    response, took = within(use)
    assert took == seconds
    assert [attempt.extra["code"] for attempt in response.attempts] == [code]
    assert response.error_info is not None
    assert f"{seconds} seconds" in response.error_info.message


def test_a_call_whose_time_is_over_asks_nobody_else() -> None:
    """But it counts as a failure of the asked server, so that the next call does not wait there as well."""

    async def use(loop: Loop) -> list[str]:
        service, network = service_of(
            {"one": [SILENT], "two": [Said()]},
            timeout=Timeouts(call=5),
            retry=RetryPolicy(attempts=1),
            timer=loop.time,
        )
        await failure_of(service)
        assert (await service.complete(ASK)).text == "Hello."
        return network.asked

    assert within(use) == ["one", "two"]


def test_the_wait_for_a_token_may_end_with_the_call() -> None:
    async def use(loop: Loop) -> Any:
        pieces = (b"data: %s\n\n" % orjson.dumps(chunk({"content": "Hel"})), 1e6)
        service, _ = service_of(
            {"one": [Said(pieces=pieces)]}, timeout=Timeouts(call=5, between_tokens=10, first_token=10)
        )
        async with service.stream(ASK) as events:
            async for _ in events:
                pass
        return events.response

    response = within(use)
    assert response.text == "Hel"
    assert response.error_info.code == "call_timeout"


def test_the_time_of_a_slow_consumer_counts_though_everything_has_arrived() -> None:
    async def use(_: Loop) -> Any:
        word = b"data: %s\n\n" % orjson.dumps(chunk({"content": "word "}))
        service, _network = service_of({"one": [Said(pieces=(word,) * 9)]}, timeout=Timeouts(total=2.5))
        async with service.stream(ASK) as events:
            async for event in events:
                if event.delta is not None:
                    await asyncio.sleep(1)
        return events.response

    response = within(use)
    assert response.text == "word " * 3
    assert response.error_info.code == "total_timeout"


# ------------------------------------------------------------------------------------ endpoints that cool down


def test_calls_pass_over_an_endpoint_that_is_down() -> None:
    async def use(loop: Loop) -> None:
        service, network = service_of(
            {"one": [DOWN, DOWN, DOWN, DOWN, Said()], "two": [Said()]},
            retry=RetryPolicy(attempts=3, cool_down_seconds=30, **AT_ONCE),
            timer=loop.time,
        )

        async def asked() -> tuple[list[str], list[Any], list[Any]]:
            network.asked.clear()
            attempts = (await service.complete(ASK)).attempts
            passed_over = [one.extra.get("passed_over") for one in attempts]
            return network.asked.copy(), passed_over, [one.extra.get("cool_down") for one in attempts]

        assert await asked() == (["one", "one", "one", "two"], [None] * 4, [None, None, 30, None])
        assert await asked() == (["two"], [("one",)], [None])
        loop.now += 30
        assert await asked() == (["one", "two"], [None, None], [None, None])
        assert await asked() == (["two"], [("one",)], [None])
        loop.now += 30
        assert await asked() == (["one"], [None], [0])
        assert await asked() == (["one"], [None], [None])

    within(use)


def test_calls_pass_over_an_account_without_money() -> None:
    async def use(loop: Loop) -> list[str]:
        service, network = service_of(
            {"one": [UNPAID], "two": [Said()]},
            retry=RetryPolicy(attempts=2, cool_down_seconds=30, **AT_ONCE),
            timer=loop.time,
        )
        told = [(await service.complete(ASK)).attempts for _ in range(3)]
        assert [attempts[0].extra.get("cool_down") for attempts in told] == [None, 30, None]
        assert [attempts[0].extra.get("kind") for attempts in told] == ["quota", "quota", None]
        return network.asked

    assert within(use) == ["one", "two", "one", "two", "two"]


@pytest.mark.parametrize("failure", [DOWN, UNPAID])
def test_a_stream_passes_over_it_too(failure: Said | Exception) -> None:
    async def use(loop: Loop) -> list[str]:
        service, network = service_of(
            {"one": [failure], "two": [Said()]}, retry=RetryPolicy(attempts=1), timer=loop.time
        )
        for _ in range(2):
            async with service.stream(ASK) as events:
                kinds = [event.event_type.value async for event in events]
            assert kinds[-1] == "response.completed"
        return network.asked

    assert within(use) == ["one", "two", "two"]


# ------------------------------------------------------------------------------------ how much is accepted


def test_a_few_bytes_that_unpack_to_gigabytes_end_the_call() -> None:
    """Both ways, with what came before them."""
    packer = zlib.compressobj(9, wbits=31)
    first = b"data: %s\n\n" % orjson.dumps(chunk({"content": "Hel"}))
    line = b"x" * 2**21
    pieces = [packer.compress(first), packer.flush(zlib.Z_SYNC_FLUSH)]
    pieces += [packer.compress(line) for _ in range(20)]
    headers = {"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}
    answer = replay.Answer(tuple(piece for piece in pieces if piece), headers=headers, stream=True)
    options: dict[str, Any] = {"settings": Settings(), "client_options": {"verify": False}}

    async def ask(url: str) -> None:
        async with LLMService(Endpoint("vllm", model="m", base_url=url), **options) as service:
            await service.complete(ASK)

    with replay.ReplayServer() as server:
        server.add(answer, times=None)
        for way in (lambda: asyncio.run(ask(server.url)), lambda: ask_sync(server.url, options)):
            with pytest.raises(StreamTooLargeError, match="100 times") as raised:
                way()
            partial = raised.value.partial
            assert partial is not None
            assert partial.text == "Hel"
            assert [one.extra["code"] for one in partial.attempts] == ["unreadable_answer"]
        assert len(server.requests) == 2  # not asked again


def ask_sync(url: str, options: dict[str, Any]) -> None:
    with SyncLLMService(Endpoint("vllm", model="m", base_url=url), **options) as service:
        service.complete(ASK)


# ------------------------------------------------------------------------------------ streams that nobody closes

STREAM = replay.Answer.of_events([chunk({"content": "Hel"}), chunk({"content": "lo."}), chunk({}, "stop")])
UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: %s\n\n" % orjson.dumps(
    chunk({"content": "Hel"})
)


def around(request: ChatRequest) -> Any:
    """A middleware with a generator around that of the stream."""
    yield (yield request)


@pytest.mark.untraced
@pytest.mark.parametrize("middleware", [[], [around]], ids=["plain", "middleware"])
@pytest.mark.parametrize("way", WAYS)
def test_a_stream_that_nobody_closes_ends_quietly_with_its_loop(
    caplog: pytest.LogCaptureFixture, way: str, middleware: list[Any]
) -> None:
    events = left_open(way, lambda service: service.stream(ASK), STREAM, 1, caplog, middleware=middleware)
    if events is not None:
        assert events.response.finish_reason == "cancelled"
        assert events.response.text == "Hel"


# ------------------------------------------------------------------------------------ a limit for opening a connection


def test_the_limit_of_opening_a_connection_holds_until_it_is_open() -> None:
    async def use(loop: Loop) -> float:
        async def slow(seconds: float) -> None:
            wait.begin_step(1, OpeningTimeout)
            await asyncio.sleep(0.5)
            wait.end_step()
            wait.end_step()  # a body is written behind the head
            await asyncio.sleep(seconds)

        wait = TimedWait()
        wait.begin()
        await wait.within(None, slow(100))
        await wait.within(loop.now + 200, slow(100))
        with pytest.raises(TimeoutError):
            await wait.within(loop.now + 2, slow(100))
        wait.end()
        return loop.now

    assert within(use) == 1000 + 2 * 100.5 + 2


@pytest.mark.parametrize(("seconds", "later"), [(1, None), (1, 100), (None, 1), (None, None)])
def test_the_earlier_limit_ends_the_opening_of_a_connection(
    seconds: float | None, later: float | None
) -> None:
    async def use(loop: Loop) -> float:
        async def endless() -> None:
            wait.begin_step(seconds, OpeningTimeout)
            await asyncio.sleep(1000)

        wait = TimedWait()
        wait.begin()
        deadline = None if later is None else loop.now + later
        is_ended = seconds is not None or later is not None
        with pytest.raises(OpeningTimeout if seconds else TimeoutError) if is_ended else nullcontext():
            await wait.within(deadline, endless())
        wait.end()
        return loop.now

    assert within(use) == (2000 if seconds is None and later is None else 1001)


# ------------------------------------------------------------------------------------ many events at once


@pytest.mark.parametrize(
    ("limits", "code"),
    [(Timeouts(first_token=0.05), "first_token_timeout"), (Timeouts(first_token=60), None)],
)
def test_the_clock_is_asked_between_the_events_of_one_chunk(limits: Timeouts, code: str | None) -> None:
    """A server's events without content, all at once. The clock goes on whenever it is asked."""
    deltas = [{}] * 5_000 + [{"content": "Hello."}]
    events = [chunk(delta) for delta in deltas] + [chunk({}, "stop")]
    at_once = b"".join(b"data: %s\n\n" % orjson.dumps(event) for event in events)
    said = Said(headers={"content-type": "text/event-stream"}, pieces=(at_once,))

    class Ticking(Loop):
        def time(self) -> float:
            self.now += 0.01
            return self.now

    async def main() -> ChatResponse:
        service, _ = service_of({"one": [said]}, timeout=limits, retry=0)
        async with service, service.stream(ASK) as stream:
            async for _ in stream:
                pass
        return stream.response

    with asyncio.Runner(loop_factory=Ticking) as runner:
        response = runner.run(main())
    assert response.text == ("Hello." if code is None else "")
    assert (None if response.error_info is None else response.error_info.code) == code


@pytest.mark.parametrize("limits", [Limits(line_bytes=100), Limits(total_bytes=100), Limits()])
def test_a_long_error_is_read_for_its_first_part(limits: Limits) -> None:
    long_error = b'{"error": {"message": "it broke", "code": "broken"}}' + b" " * 3_000_000
    said = Said(500, {"content-length": str(len(long_error))}, (long_error,))

    async def use(_: Loop) -> ProviderError:
        service, _network = service_of({"one": [said]}, limits=limits, retry=0)
        return await failure_of(service)

    info = within(use).info
    assert (info.code, info.status) == ("broken", 500)
