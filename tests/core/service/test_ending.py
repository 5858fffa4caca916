"""The end of an answer: a break after it costs nothing, and closing the service ends it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from crosswalk import CrosswalkError, FinishReason, IncompleteStreamError, ProviderError, ServerError
from crosswalk.service import (
    ChatRequest,
    Endpoint,
    EventStream,
    LLMService,
    RetryPolicy,
    SyncEventStream,
    SyncLLMService,
    Timeouts,
)
from crosswalk.testing.exchange import Cut, Reset, Stall
from crosswalk.testing.replay import Answer, ReplayServer
from wires import chunk, usage

Make = Callable[..., LLMService]
ASK = ChatRequest("hi")
IN_PARTS = ChatRequest("hi", stream=True)
EVENTS = [chunk({"content": "Hel"}), chunk({"content": "lo."}), chunk({}, "stop"), chunk(usage=usage(3, 2))]
ANSWER = Answer.of_events(EVENTS)
SOON = Timeouts(after_end=0.05, total=60)


def complete(service: LLMService, request: ChatRequest = IN_PARTS) -> Any:
    async def run() -> Any:
        async with service:
            return await service.complete(request)

    return asyncio.run(run())


async def events_of(stream: EventStream) -> list[Any]:
    return [event async for event in stream]


# ------------------------------------------------------------------------------------ what breaks behind the end


@pytest.mark.parametrize(
    "fault", [Cut(after_events=5), Reset(after_events=5), Stall(after_events=5)], ids=repr
)
def test_a_complete_answer_is_not_paid_for_twice(server: ReplayServer, service_of: Make, fault: Any) -> None:
    """Everything came, ``[DONE]`` too. HTTP alone was not ended."""
    server.add(ANSWER, fault, times=None)
    response = complete(service_of(server, timeout=Timeouts(total=60)))
    assert (response.text, response.finish_reason) == ("Hello.", FinishReason.STOP)
    assert response.usage.total_tokens == 5
    (attempt,) = response.attempts
    assert attempt.outcome == "success"
    assert attempt.extra["after_end"] in ("connection_lost", "after_end_timeout")
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", [Cut(after_events=3), Stall(after_events=3)], ids=repr)
def test_an_answer_has_ended_with_its_finish_word(server: ReplayServer, service_of: Make, fault: Any) -> None:
    """Further events, such as the usage, are waited for, though not for long."""
    server.add(ANSWER, fault, times=None)
    response = complete(service_of(server, timeout=SOON))
    assert (response.text, response.finish_reason) == ("Hello.", FinishReason.STOP)
    assert len(server.requests) == 1


INSIDE_THE_USAGE = sum(map(len, ANSWER.chunks[:3])) + 20


@pytest.mark.parametrize(
    "fault", [one(after_bytes=INSIDE_THE_USAGE) for one in (Cut, Reset, Stall)], ids=repr
)
def test_half_an_event_behind_the_finish_word_says_nothing(
    server: ReplayServer, service_of: Make, fault: Any
) -> None:
    server.add(ANSWER, fault, times=None)
    response = complete(service_of(server, timeout=SOON))
    assert (response.text, response.finish_reason) == ("Hello.", FinishReason.STOP)
    assert response.metadata.provenance["usage"] == "cut"
    assert response.attempts[0].extra["after_end"] in ("connection_lost", "after_end_timeout")
    assert len(server.requests) == 1


@pytest.mark.parametrize("length", [len("data: ["), len("data: [DONE")])
@pytest.mark.parametrize("is_clean", [False, True])
def test_half_a_sentinel_behind_the_finish_word_says_nothing(
    server: ReplayServer, service_of: Make, length: int, is_clean: bool
) -> None:
    """Whoever ends the connection there."""
    cut = Cut(after_bytes=sum(map(len, ANSWER.chunks[:4])) + length, clean=is_clean)
    server.add(ANSWER, cut, times=None)
    response = complete(service_of(server, timeout=SOON))
    assert (response.text, response.finish_reason) == ("Hello.", FinishReason.STOP)
    assert response.usage.total_tokens == 5
    assert len(server.requests) == 1


def test_half_an_event_that_a_server_itself_ends_is_an_error(server: ReplayServer, service_of: Make) -> None:
    server.add(ANSWER, Cut(after_bytes=INSIDE_THE_USAGE, clean=True), times=None)
    with pytest.raises(ServerError, match="in the middle of an event"):
        complete(service_of(server, retry=0))


def test_an_answer_that_ends_needs_no_limit_for_what_may_follow(
    server: ReplayServer, service_of: Make
) -> None:
    server.add(ANSWER)
    response = complete(service_of(server, timeout=Timeouts(after_end=None, total=None)))
    assert response.text == "Hello."
    assert "after_end" not in response.attempts[0].extra


@pytest.mark.sweep  # it waits
def test_without_a_limit_what_may_follow_has_all_the_time_there_is(
    server: ReplayServer, service_of: Make
) -> None:
    server.add(ANSWER, Stall(after_events=3))
    response = complete(service_of(server, timeout=Timeouts(after_end=None, total=2)))
    assert response.text == "Hello."
    assert response.attempts[0].extra["after_end"] == "total_timeout"


def test_a_sentinel_before_the_finish_word_is_too_early(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.of_events(EVENTS[:2]), Stall(after_events=3), times=None)
    with pytest.raises(CrosswalkError, match="terminal signal") as raised:
        complete(service_of(server, timeout=SOON, retry=1))
    assert not isinstance(raised.value, IncompleteStreamError)  # it was the server's failure, and tried again
    assert len(server.requests) == 2


# ------------------------------------------------------------------------------------ between two attempts


def test_a_task_that_is_cancelled_between_two_attempts_made_one(
    server: ReplayServer, service_of: Make
) -> None:
    server.add(Answer.failure(429, retry_after=30), times=None)

    async def run() -> EventStream:
        async with service_of(server) as service:
            stream = service.stream(ASK)
            task = asyncio.create_task(events_of(stream))
            while not stream._attempts:
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return stream

    response = asyncio.run(run()).response
    assert response.finish_reason is FinishReason.CANCELLED
    (attempt,) = response.attempts
    assert attempt.outcome == "error"
    assert attempt.extra["waited_seconds"] < 30  # as long as was waited, not as long as was meant to be


@pytest.mark.parametrize(
    ("error", "code"),
    [(TimeoutError(), "transport_timeout"), (OSError(), "connection_lost")],
)
def test_a_clients_own_error_is_a_failed_attempt(service_of: Make, error: Exception, code: str) -> None:
    _, attempts = broken(service_of, error, ProviderError)
    assert [attempt.extra["code"] for attempt in attempts] == [code] * 3


def test_a_bug_is_not_taken_for_a_cancellation(service_of: Make) -> None:
    response, (attempt,) = broken(service_of, ZeroDivisionError(), ZeroDivisionError)
    assert response.finish_reason is FinishReason.ERROR
    assert (attempt.outcome, attempt.error) == ("error", "failed with ZeroDivisionError")


def broken(service_of: Make, error: Exception, raised: type[Exception]) -> tuple[Any, tuple[Any, ...]]:
    """The report of a call with an HTTP client that fails with *error*, which is *raised* in the end."""

    def fail(_: httpx2.Request) -> httpx2.Response:
        raise error

    async def run() -> EventStream:
        endpoint = Endpoint("vllm", model="m", base_url="http://127.0.0.1:9")
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(fail)) as client:
            service = service_of(endpoint, client=client, client_options=None, timeout=Timeouts(total=None))
            stream = service.stream(ASK)
            with pytest.raises(raised):
                await events_of(stream)
                stream.response.raise_for_error()
            return stream

    response = asyncio.run(run()).response
    return response, response.attempts


# ------------------------------------------------------------------------------------ the service is closed


def test_closing_the_service_ends_its_streams(server: ReplayServer, service_of: Make) -> None:
    server.add(ANSWER, Stall(after_events=2), times=None)

    async def run() -> None:
        service = service_of(server)
        waiting, idle = service.stream(ASK), service.stream(ASK)
        task = asyncio.create_task(events_of(waiting))
        whole = asyncio.create_task(service.complete(IN_PARTS))
        await anext(idle)
        await asyncio.to_thread(server.wait_for, lambda it: len(it.requests) == 3)
        await service.aclose()
        told = [*(await task), *(await events_of(idle))]
        assert [e.event_type.value for e in told].count("response.incomplete") == 2
        for stream in (waiting, idle):
            assert stream.response.finish_reason is FinishReason.CANCELLED
            assert [attempt.outcome for attempt in stream.response.attempts] == ["cancelled"]
        with pytest.raises(CrosswalkError, match="the service was closed"):
            await whole

    asyncio.run(run())
    assert len(server.requests) == 3


def test_a_stream_of_another_event_loop_is_left_alone(server: ReplayServer, service_of: Make) -> None:
    stream = service_of(server).stream(ASK)
    asyncio.run(stream.end())
    assert not stream.has_ended


@pytest.fixture(params=[{}, {"http2": False}], ids=["connections", "client"])
def sync_service(server: ReplayServer, request: pytest.FixtureRequest) -> SyncLLMService:
    return SyncLLMService(
        Endpoint("vllm", model="m", base_url=server.url),
        client_options={"verify": False, **request.param},
        retry=RetryPolicy(attempts=1),
    )


def test_closing_the_sync_service_in_the_middle_of_a_stream(
    server: ReplayServer, sync_service: SyncLLMService
) -> None:
    server.add(ANSWER, Stall(after_events=2))
    with sync_service.stream(ASK) as events:
        seen = [next(events)]
        sync_service.close()
        seen += events  # what came before is there
    assert seen[-1].event_type == "response.incomplete"
    assert events.response.finish_reason is FinishReason.CANCELLED
    assert list(events) == []


def test_a_stream_that_was_not_begun_cannot_be_after(sync_service: SyncLLMService) -> None:
    with sync_service.stream(ASK) as events:
        sync_service.close()
        with pytest.raises(CrosswalkError, match="the service is closed"):
            next(events)


def test_closing_the_sync_service_while_another_thread_waits(
    server: ReplayServer, sync_service: SyncLLMService
) -> None:
    server.add(ANSWER, Stall(after_events=2), times=None)
    ended: list[BaseException] = []

    def wait(ask: Callable[[], Any]) -> None:
        try:
            ask()
        except BaseException as error:
            ended.append(error)

    streams: list[SyncEventStream] = [sync_service.stream(ASK)]
    asks = (lambda: sync_service.complete(IN_PARTS), lambda: list(streams[0]))
    threads = [threading.Thread(target=wait, args=(ask,)) for ask in asks]
    for thread in threads:
        thread.start()
    server.wait_for(lambda it: len(it.requests) == 2)
    sync_service.close()
    for thread in threads:
        thread.join()
    (error,) = ended  # the stream was ended, and gave what had come
    assert isinstance(error, CrosswalkError)
    assert streams[0].response.finish_reason is FinishReason.CANCELLED
