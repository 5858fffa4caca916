"""Mistakes of servers, against a real server that makes them: nothing is lost, and no server is asked too often.

Each fault is met in four ways: whole and streamed, with and without ``await``.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import attrs
import pytest

from crosswalk import (
    ChatResponse,
    CrosswalkError,
    ErrorKind,
    FinishReason,
    MappingError,
    ProviderError,
    RateLimitError,
    UsageInfo,
    normalize,
)
from crosswalk.service import ChatRequest, Endpoint, LLMService, RetryPolicy, SyncLLMService, Timeouts
from crosswalk.testing import load_capture
from crosswalk.testing.exchange import Cut, Delay, Fault, Garbage, Reset, Slow, Stall
from crosswalk.testing.replay import Answer, ReplayServer
from pages import ROOT

# Every chunk of it says how many tokens there were so far.
STREAM = load_capture(ROOT / "tests/captures/vllm/reasoning_chat_hello_stream_usage_continuous.response.sse")
WHOLE = normalize(STREAM.body, "vllm")
ANSWER = Answer.of_capture(STREAM)
AFTER = 4
"""How many events come before a fault: one about the answer, and three tokens."""
PARTIAL = b"".join(ANSWER.chunks[:AFTER])

TRIES = RetryPolicy(attempts=3, initial_seconds=0, max_seconds=0)
Attempts = list[tuple[str, str | None]]


@attrs.frozen
class Told:
    """The caller's result."""

    shown: str
    response: ChatResponse
    error: CrosswalkError | None

    @property
    def attempts(self) -> Attempts:
        return [(attempt.outcome.value, attempt.extra.get("code")) for attempt in self.response.attempts]


# ------------------------------------------------------------------------------------------- the four ways


def shown_in(event: Any) -> str:
    delta = event.delta
    return "" if delta is None else (delta.reasoning_delta or "") + (delta.content_delta or "")


def told_by(error: CrosswalkError) -> Told:
    kept = error.response if isinstance(error, ProviderError) else getattr(error, "partial", None)
    assert isinstance(kept, ChatResponse), error
    return Told("", kept, error)


async def complete(service: LLMService) -> Told:
    try:
        # In parts too, so that the same recording serves.
        return Told("", await service.complete(ChatRequest("Why?", stream=True)), None)
    except (ProviderError, MappingError) as error:
        return told_by(error)


async def stream(service: LLMService) -> Told:
    shown = ""
    async with service.stream(ChatRequest("Why?")) as events:
        try:
            async for event in events:
                shown += shown_in(event)
        except MappingError as error:
            assert error.partial is events.response
            return Told(shown, events.response, error)
    return Told(shown, events.response, None)


def complete_sync(service: SyncLLMService) -> Told:
    try:
        return Told("", service.complete(ChatRequest("Why?", stream=True)), None)
    except (ProviderError, MappingError) as error:
        return told_by(error)


def stream_sync(service: SyncLLMService) -> Told:
    shown = ""
    with service.stream(ChatRequest("Why?")) as events:
        try:
            for event in events:
                shown += shown_in(event)
        except MappingError as error:
            return Told(shown, events.response, error)
    return Told(shown, events.response, None)


PLAIN = {"verify": False}
"""Options of the HTTP client: it need not load certificates, which would take most of a test's time."""

Way = Callable[..., Any]
STREAMS = (stream, stream_sync)
WAYS = (complete, stream, complete_sync, stream_sync)
every_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)


def run(use: Callable[[LLMService], Awaitable[Any]], *endpoints: Endpoint, **options: Any) -> Any:
    """Run *use* with a service. No task may be left of it."""

    async def main() -> Any:
        async with asyncio.timeout(60):
            async with LLMService(*endpoints, **{"client_options": PLAIN, **options}) as service:
                given = await use(service)
            for _ in range(5):
                await asyncio.sleep(0)  # generators that were left are closed by the event loop, in tasks
            assert asyncio.all_tasks() == {asyncio.current_task()}
            return given

    return asyncio.run(main())


def tell(way: Way, *servers: ReplayServer, **options: Any) -> Told:
    """The caller's result when it asks *servers* in that *way*."""
    endpoints = [Endpoint("vllm", model="m", base_url=server.url) for server in servers]
    options = {"retry": TRIES, "client_options": PLAIN, **options}
    if way in (complete, stream):
        told = run(way, *endpoints, **options)
    else:
        with SyncLLMService(*endpoints, **options) as service:
            told = way(service)
    assert isinstance(told, Told)
    return told


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    yield from a_server()


@pytest.fixture
def other() -> Iterator[ReplayServer]:
    yield from a_server()


def a_server() -> Iterator[ReplayServer]:
    """A server. After the test neither a connection to it nor a thread is left."""
    before = set(threading.enumerate())
    with ReplayServer() as server:
        yield server
        server.wait_for(lambda server: not server.open_connections)
    assert set(threading.enumerate()) <= before


# ----------------------------------------------------------------------- faults before anything could be shown


@pytest.mark.sweep
@every_way
@pytest.mark.parametrize(
    ("answer", "faults", "code"),
    [
        (ANSWER, (Reset(),), "connection_lost"),
        (ANSWER, (Reset(after_events=1),), "connection_lost"),
        (ANSWER, (Cut(),), "connection_lost"),
        (ANSWER, (Cut(after_events=1),), "connection_lost"),
        (ANSWER, (Cut(after_events=1, clean=True),), "incomplete_stream"),
        (ANSWER, (Garbage(),), "connection_lost"),
        (Answer.failure(429, retry_after=0), (), "replay"),
        (Answer.failure(429, retry_after="0.001"), (), "replay"),
        (Answer.failure(500), (), "replay"),
        (Answer.failure(503, retry_after="Thu, 01 Jan 2026 00:00:00 GMT"), (), "replay"),
        (Answer.failure(529), (), "replay"),
        (Answer((b"<html>Bad gateway</html>",), 502, {"Content-Type": "text/html"}), (), None),
    ],
    ids=lambda value: repr(value)[:40] if isinstance(value, tuple) else getattr(value, "case", None),
)
def test_what_nobody_has_seen_is_tried_again(
    server: ReplayServer, way: Way, answer: Answer, faults: tuple[Fault, ...], code: str | None
) -> None:
    """And it comes out whole: a fault that passes costs an attempt, never a token."""
    server.add(answer, *faults).add(answer, *faults).add(ANSWER)
    told = tell(way, server)
    assert told.error is None
    assert told.response.text == WHOLE.text
    assert told.response.reasoning == WHOLE.reasoning
    assert told.response.usage == WHOLE.usage
    assert told.shown == ("" if way not in STREAMS else WHOLE.reasoning + WHOLE.text)
    outcomes = [(outcome, None) for outcome, _ in told.attempts]
    assert outcomes == [("error", None), ("error", None), ("success", None)]
    if code in ("replay", None):
        assert [attempt.extra["status"] for attempt in told.response.attempts] == [
            answer.status,
            answer.status,
            200,
        ]
    else:
        assert [found for _, found in told.attempts] == [code, code, None]
    assert len(server.requests) == 3


@pytest.mark.sweep
@every_way
@pytest.mark.parametrize("fault", [Stall(), Stall(after_events=0), Stall(after_events=1)], ids=repr)
def test_silence_is_given_up_and_tried_again(server: ReplayServer, way: Way, fault: Stall) -> None:
    server.add(ANSWER, fault).add(ANSWER, times=None)
    # A busy machine may be silent for a while too: that may cost further attempts.
    patient = attrs.evolve(TRIES, attempts=20)
    told = tell(way, server, timeout=Timeouts(first_token=0.3, total=60), retry=patient)
    assert (told.attempts[0], told.attempts[-1]) == (("error", "first_token_timeout"), ("success", None))
    assert told.response.text == WHOLE.text
    server.wait_for(lambda server: server.requests[0] in server.disconnects)


@pytest.mark.sweep
@every_way
@pytest.mark.parametrize(
    ("answer", "faults", "kind"),
    [
        (ANSWER, (Stall(),), ErrorKind.TIMEOUT),
        (ANSWER, (Reset(),), ErrorKind.SERVER),
        (ANSWER, (Cut(after_events=1),), ErrorKind.SERVER),
        (Answer.failure(429), (), ErrorKind.RATE_LIMIT),
        (Answer.failure(503), (), ErrorKind.SERVER),
    ],
    ids=["stall", "reset", "cut", "429", "503"],
)
def test_a_fault_that_stays_ends_after_the_last_attempt(
    server: ReplayServer, way: Way, answer: Answer, faults: tuple[Fault, ...], kind: ErrorKind
) -> None:
    server.add(answer, *faults, times=None)
    # A busy machine may be silent for a while too: only silence itself is given up soon.
    first_token = 0.1 if kind is ErrorKind.TIMEOUT else 60
    told = tell(way, server, timeout=Timeouts(first_token=first_token, total=60))
    assert len(server.requests) == TRIES.attempts
    assert [outcome for outcome, _ in told.attempts] == ["error"] * TRIES.attempts
    info = told.response.error_info
    assert info is not None
    assert info.kind is kind
    assert (told.error is None) is (way in STREAMS)  # a stream's last event tells, a call raises
    with pytest.raises(ProviderError.of_kind(kind)):
        told.response.raise_for_error()


# ------------------------------------------------------------------------- faults in the middle of an answer


@pytest.mark.sweep
@every_way
@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [
        (Reset(after_events=AFTER), ErrorKind.SERVER, "connection_lost"),
        (Cut(after_events=AFTER), ErrorKind.SERVER, "connection_lost"),
        (Cut(after_bytes=len(PARTIAL) + 7), ErrorKind.SERVER, "connection_lost"),
        (Cut(after_events=AFTER, clean=True), ErrorKind.SERVER, "incomplete_stream"),
        (Cut(after_bytes=len(PARTIAL) + 7, clean=True), ErrorKind.SERVER, "incomplete_stream"),
        (Garbage(after_events=AFTER), None, None),
    ],
    ids=["reset", "cut", "cut inside", "clean cut", "clean cut inside", "garbage"],
)
def test_what_came_before_a_fault_is_kept(
    server: ReplayServer, way: Way, fault: Fault, kind: ErrorKind | None, code: str | None
) -> None:
    """Text, reasoning, usage and attempts. A shown text is never begun again."""
    server.add(ANSWER, fault, times=None)
    told = tell(way, server)
    response = told.response
    assert_kept(way, told)
    if kind is None:
        assert isinstance(told.error, MappingError)
        assert len(server.requests) == 1  # a server that talks nonsense will not talk sense
        assert response.attempts[-1].extra["code"] == "unreadable_answer"
    else:
        info = response.error_info
        assert info is not None
        assert (info.kind, info.code) == (kind, code)
        assert len(response.attempts) == len(server.requests) == (1 if way in STREAMS else TRIES.attempts)
        assert {found for _, found in told.attempts} == {code}


def assert_kept(way: Way, told: Told) -> None:
    """The part before the fault is there: three tokens, their count, their provider, and how long it took."""
    response = told.response
    so_far = response.reasoning + response.text
    assert response.finish_reason is FinishReason.ERROR
    assert so_far
    assert (WHOLE.reasoning + WHOLE.text).startswith(so_far)
    assert told.shown == (so_far if way in STREAMS else "")
    assert response.usage == UsageInfo(26, 3, reasoning_tokens=response.usage.reasoning_tokens)
    assert (response.metadata.provider_id, response.id, response.model) == ("vllm", WHOLE.id, WHOLE.model)
    assert response.metadata.request_duration.total_seconds() > 0
    assert response.attempts


@pytest.mark.sweep
@pytest.mark.parametrize("way", [complete, stream])
@pytest.mark.parametrize(
    ("limits", "code"),
    [(Timeouts(between_tokens=1), "between_tokens_timeout"), (Timeouts(total=2), "total_timeout")],
    ids=["between tokens", "total"],
)
def test_a_time_limit_keeps_what_came(server: ReplayServer, way: Way, limits: Timeouts, code: str) -> None:
    server.add(ANSWER, Stall(after_events=AFTER), times=None)
    told = tell(way, server, timeout=limits, retry=RetryPolicy(attempts=1))
    assert_kept(way, told)
    assert told.attempts == [("error", code)]
    assert len(server.requests) == 1


@pytest.mark.sweep
@every_way
@pytest.mark.parametrize("fault", [Delay(0.01), Slow(0.0, chunk_bytes=50), Slow(0.001)], ids=repr)
def test_slowness_alone_harms_nothing(server: ReplayServer, way: Way, fault: Fault) -> None:
    server.add(ANSWER, fault)
    told = tell(way, server)
    assert attrs.evolve(told.response, attempts=()).same_content(WHOLE)
    assert told.attempts == [("success", None)]
    assert told.response.metadata.time_to_first_token is not None


# ------------------------------------------------------------------------------- what is not, or later, retried


@pytest.mark.parametrize("way", [complete, stream])
@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_request_that_is_wrong_stays_wrong(server: ReplayServer, way: Way, status: int) -> None:
    server.add(Answer.failure(status), times=None)
    told = tell(way, server)
    assert len(server.requests) == 1
    assert told.response.finish_reason is FinishReason.ERROR
    assert told.response.attempts[0].extra["status"] == status


@every_way
def test_nobody_waits_for_a_retry_after_beyond_its_limit(server: ReplayServer, way: Way) -> None:
    server.add(Answer.failure(429, retry_after=3600), times=None)
    told = tell(way, server)
    assert len(server.requests) == 1
    assert told.response.attempts[0].extra["retry_after"] == 3600
    with pytest.raises(RateLimitError):
        told.response.raise_for_error()


@every_way
def test_retry_after_is_waited_for(server: ReplayServer, way: Way) -> None:
    server.add(Answer.failure(429, retry_after=0.05)).add(ANSWER)
    told = tell(way, server)
    first, second = told.response.attempts
    assert first.extra["waited_seconds"] >= 0.05
    assert "waited_seconds" not in second.extra


@every_way
def test_the_next_server_is_asked(server: ReplayServer, other: ReplayServer, way: Way) -> None:
    server.add(Answer.failure(503), times=None)
    other.add(ANSWER)
    told = tell(way, server, other)
    assert [outcome for outcome, _ in told.attempts] == ["error", "error", "error", "success"]
    assert (len(server.requests), len(other.requests)) == (3, 1)
    assert told.response.text == WHOLE.text


@every_way
def test_a_server_that_is_not_there(server: ReplayServer, other: ReplayServer, way: Way) -> None:
    other.add(ANSWER)
    gone = Endpoint("vllm", model="m", base_url=server.url)
    server.close()
    options = {"retry": RetryPolicy(attempts=1), "client_options": PLAIN}
    endpoints = (gone, Endpoint("vllm", model="m", base_url=other.url))
    if way in (complete, stream):
        told = run(way, *endpoints, **options)
    else:
        with SyncLLMService(*endpoints, **options) as service:
            told = way(service)
    assert told.attempts == [("error", "connect_error"), ("success", None)]


def test_a_retry_storm_does_not_happen(server: ReplayServer) -> None:
    """Many callers of a server that is down: each asks as often as it may, and not once more."""
    callers = 25
    server.add(Answer.failure(503), times=None)

    async def use(service: LLMService) -> list[Told]:
        return await asyncio.gather(*(stream(service) for _ in range(callers)))

    everyone = run(use, Endpoint("vllm", model="m", base_url=server.url), retry=TRIES)
    assert len(server.requests) == callers * TRIES.attempts
    assert all(len(told.attempts) == TRIES.attempts for told in everyone)


# ------------------------------------------------------------------------------------------------ cancellation


def test_a_cancelled_stream_is_seen_by_the_server(server: ReplayServer) -> None:
    server.add(ANSWER, Stall(after_events=AFTER))

    async def use(service: LLMService) -> ChatResponse:
        async with service.stream(ChatRequest("Why?")) as events:
            shown = ""
            async for event in events:
                shown += shown_in(event)
                if shown:
                    break
        return events.response

    response = run(use, Endpoint("vllm", model="m", base_url=server.url), retry=TRIES)
    server.wait_for(lambda server: server.disconnects)
    assert response.finish_reason is FinishReason.CANCELLED
    assert response.reasoning + response.text
    assert [attempt.outcome.value for attempt in response.attempts] == ["cancelled"]
    assert len(server.requests) == 1


def test_a_cancelled_task_closes_its_connection(server: ReplayServer) -> None:
    server.add(ANSWER, Stall(), times=None)

    async def use(service: LLMService) -> None:
        tasks = [asyncio.create_task(way(service)) for way in (complete, stream) for _ in range(5)]
        while len(server.requests) < len(tasks):
            await asyncio.sleep(0.001)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(error, asyncio.CancelledError) for error in ended)

    run(use, Endpoint("vllm", model="m", base_url=server.url))
    server.wait_for(lambda server: len(server.disconnects) == 10)


def test_a_sync_stream_that_is_left_is_closed(server: ReplayServer) -> None:
    server.add(ANSWER, Stall(after_events=AFTER))
    endpoint = Endpoint("vllm", model="m", base_url=server.url)
    with SyncLLMService(endpoint, client_options=PLAIN) as service:
        with service.stream(ChatRequest("Why?")) as events:
            next(events)
        server.wait_for(lambda server: server.disconnects)
    assert events.response.finish_reason is FinishReason.CANCELLED


def test_connections_are_used_again_unless_something_broke(server: ReplayServer) -> None:
    server.add(ANSWER).add(Answer.failure(503)).add(ANSWER).add(ANSWER, Cut(after_events=AFTER)).add(ANSWER)

    async def use(service: LLMService) -> None:
        for _ in range(4):
            await stream(service)

    run(use, Endpoint("vllm", model="m", base_url=server.url), retry=TRIES)
    assert [request.connection for request in server.requests] == [1, 1, 1, 1, 2]
