"""The deltas of ``stream``, the text that it never shows twice, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from crosswalk import (
    ChatResponse,
    DeltaAccumulator,
    FinishReason,
    ResponseDelta,
    ResponseValidationError,
    Segment,
    SegmentType,
    StreamEvent,
    ToolCallDelta,
    UnknownEventError,
)
from crosswalk.plugins import hookimpl
from crosswalk.service import (
    ChatRequest,
    Endpoint,
    EventStream,
    HTTPRequest,
    LLMService,
    RetryPolicy,
    Timeouts,
    UnsupportedRequestError,
)
from crosswalk.testing import load_capture
from crosswalk.testing.exchange import Cut, Reset, Slow, Stall
from crosswalk.testing.replay import Answer, ReplayServer
from leaving import collect_garbage
from pages import ROOT
from wires import chunk, registry_of, usage

Make = Callable[..., LLMService]
ASK = ChatRequest("hi")
WORDS = [f"w{number} " for number in range(8)]
ANSWER = Answer.of_events(
    [
        chunk({"role": "assistant", "content": ""}),
        *(chunk({"content": word}) for word in WORDS),
        chunk({}, "stop"),
        chunk(usage=usage(3, 8)),
    ]
)


def kinds(events: list[StreamEvent]) -> list[str]:
    """The types of *events*, without the facts about the answer as a whole."""
    return [
        e.event_type.value.removeprefix("response.") for e in events if e.event_type != "response.in_progress"
    ]


def texts(events: list[StreamEvent]) -> str:
    return "".join(e.delta.content_delta or "" for e in events if e.delta is not None)


async def events_of(stream: EventStream) -> list[StreamEvent]:
    async with stream:
        return [event async for event in stream]


def streamed(
    service: LLMService, request: ChatRequest = ASK, **options: Any
) -> tuple[list[StreamEvent], EventStream]:
    async def run() -> tuple[list[StreamEvent], EventStream]:
        async with service:
            stream = service.stream(request, **options)
            return await events_of(stream), stream

    return asyncio.run(run())


def test_the_events_of_an_answer(server: ReplayServer, service_of: Make) -> None:
    server.add(ANSWER)
    events, stream = streamed(service_of(server))
    assert kinds(events) == ["created", *["output_text.delta"] * 8, "completed"]
    assert texts(events) == "".join(WORDS)
    assert events[-1].response is stream.response
    assert stream.response.usage.total_tokens == 11
    assert stream.response.attempts == events[-1].attempts
    assert stream.response.metadata.time_to_first_token <= stream.response.metadata.request_duration
    assert all(event.raw_event is None for event in events)


def test_what_has_come_so_far_is_told_at_any_time(server: ReplayServer, service_of: Make) -> None:
    server.add(ANSWER)

    async def run() -> list[str]:
        async with service_of(server) as service, service.stream(ASK) as stream:
            with pytest.raises(ResponseValidationError, match="has not been read"):
                _ = stream.partial
            found = []
            async for event in stream:
                before = stream.partial
                assert event.response is None or before is event.response
                found.append(before.text)
            return found

    found = asyncio.run(run())
    assert found[-1] == "".join(WORDS)
    assert all(later.startswith(sooner) for sooner, later in zip(found, found[1:], strict=False))


def test_what_is_known_beside_the_content_is_told_at_any_time(server: ReplayServer, service_of: Make) -> None:
    server.add(ANSWER)

    async def run() -> list[ChatResponse]:
        async with service_of(server) as service, service.stream(ASK) as stream:
            with pytest.raises(ResponseValidationError, match="has not been read"):
                _ = stream.head
            await anext(stream)
            heads = [stream.head async for _ in stream]
            assert heads[-1] is stream.response
            return heads

    *heads, last = asyncio.run(run())
    assert all((head.id, head.model) == (last.id, last.model) for head in heads)
    assert all(head is last or (head.text, head.error_info) == ("", None) for head in heads)


def test_the_deltas_add_up_to_the_response(server: ReplayServer, service_of: Make) -> None:
    server.add(ANSWER)
    events, stream = streamed(service_of(server))
    accumulator = DeltaAccumulator()
    for event in events:
        if event.delta is not None:
            accumulator.append(event.delta)
    built = accumulator.build()
    assert (built.text, built.usage, built.finish_reason) == (
        stream.response.text,
        stream.response.usage,
        stream.response.finish_reason,
    )


def test_events_with_the_providers_own(server: ReplayServer, service_of: Make) -> None:
    server.add(ANSWER, times=None)
    events, _ = streamed(service_of(server), raw_events=True)
    raw = [event.raw_event["choices"][0]["delta"].get("content") for event in events if event.raw_event]
    assert raw == ["", *WORDS]
    events, _ = streamed(service_of(server, keep_raw=False), raw_events=True)
    assert not [event for event in events if event.raw_event is not None]


class TwoThings:
    """A provider that says several things in one delta, and things that are no text."""

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        return HTTPRequest("/ask", {"model": request.model})

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        return [
            ResponseDelta(extensions={"queue": 1}),
            ResponseDelta(content_delta="text", reasoning_delta="thought", extensions={"a": 1}),
            ResponseDelta(refusal_delta="no"),
            ResponseDelta(tool_call_delta=ToolCallDelta(0, "c", "f", "{}")),
            ResponseDelta(segment=Segment(SegmentType.REASONING, "", {"signature": "s"})),
            ResponseDelta(content_delta="it", segment=Segment(SegmentType.CITATION, "c")),
            ResponseDelta(segment=Segment(SegmentType.SAFETY, "")),
            ResponseDelta(segment=Segment(SegmentType.MEDIA, "m")),
            ResponseDelta(segment=Segment(SegmentType.ERROR, "e")),
            ResponseDelta(segment=Segment(SegmentType.TEXT, "t")),
            ResponseDelta(refusal_delta="!", segment=Segment(SegmentType.REFUSAL, "")),
            ResponseDelta(finish_reason=FinishReason.STOP, choice=1),
        ]


def test_every_kind_of_delta_has_its_event(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.of_json({"any": 1}))
    known = registry_of(two=TwoThings())
    endpoint = Endpoint("two", model="m", base_url=server.url)
    events, stream = streamed(service_of(endpoint, registry=known))
    told = [event.event_type.value.removeprefix("response.") for event in events]
    assert told == [
        "created",
        "in_progress",
        "reasoning.delta",
        "output_text.delta",
        "refusal.delta",
        "function_call_arguments.delta",
        "reasoning.delta",
        "output_text.delta",
        "output_text.annotation.added",
        "safety.added",
        "media.added",
        "error.added",
        "output_text.delta",
        "refusal.delta",
        "in_progress",
        "incomplete",  # the model declined
    ]
    assert [event.delta.index for event in events if event.delta is not None] == list(range(15))
    assert events[2].delta.reasoning_delta == "thought"
    assert events[3].delta.content_delta == "text"
    assert events[3].delta.extensions == {"a": 1}
    assert (events[7].segments, events[8].segments) == ((), (Segment(SegmentType.CITATION, "c"),))
    assert stream.response.model == "m"  # nobody says which one answered


def test_an_empty_answer_begins_and_ends(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.of_events([chunk({"role": "assistant", "content": ""}, "length")]))
    events, _ = streamed(service_of(server))
    assert kinds(events) == ["created", "incomplete"]


# ------------------------------------------------------------------------------------ what goes wrong


def test_a_failure_before_the_first_token_is_not_seen(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.failure(503)).add(ANSWER, Reset(after_events=1)).add(ANSWER)
    events, stream = streamed(service_of(server))
    assert kinds(events) == ["created", *["output_text.delta"] * 8, "completed"]
    assert [attempt.outcome for attempt in stream.response.attempts] == ["error", "error", "success"]
    assert len(events[0].attempts) == 2


def test_an_empty_text_is_no_token(server: ReplayServer, service_of: Make) -> None:
    """Cohere says with one that a text will begin: what breaks then has shown nothing yet."""
    answer = load_capture(ROOT / "tests/captures/cohere/cited_stream.response.sse")
    server.add(answer, Reset(after_events=3)).add(answer)
    cohere = Endpoint("cohere", model="c", base_url=server.url, api_key="k")
    events, stream = streamed(service_of(cohere, server, retry=RetryPolicy(initial_seconds=0)))
    assert [attempt.outcome for attempt in stream.response.attempts] == ["error", "success"]
    assert kinds(events)[0] == "created"
    assert texts(events) == stream.response.text != ""


@pytest.mark.sweep
@pytest.mark.parametrize("fault", [Reset(after_events=4), Cut(after_events=4), Stall(after_events=4)])
def test_after_the_first_token_nothing_is_repeated(
    server: ReplayServer, service_of: Make, fault: Any
) -> None:
    server.add(ANSWER, fault, times=None)
    events, stream = streamed(service_of(server, server, timeout=Timeouts(between_tokens=1)))
    assert kinds(events) == ["created", *["output_text.delta"] * 3, "error"]
    assert len(server.requests) == 1
    assert stream.response.text == texts(events) == "w0 w1 w2 "
    assert stream.response.finish_reason is FinishReason.ERROR
    assert [attempt.outcome for attempt in stream.response.attempts] == ["error"]


def test_unless_it_is_asked_for(server: ReplayServer, service_of: Make) -> None:
    server.add(ANSWER, Cut(after_events=3)).add(ANSWER)
    policy = RetryPolicy(initial_seconds=0, after_first_token=True)
    events, stream = streamed(service_of(server, retry=policy))
    text = "output_text.delta"
    assert kinds(events) == ["created", text, text, "retried", *[text] * 8, "completed"]
    assert stream.response.text == "".join(WORDS)
    (restart,) = (event for event in events if event.event_type == "response.retried")
    assert len(restart.attempts) == 1


def test_a_restart_that_fails_says_so(server: ReplayServer, service_of: Make) -> None:
    server.add(ANSWER, Cut(after_events=3)).add(Answer.failure(503))
    policy = RetryPolicy(attempts=2, initial_seconds=0, after_first_token=True)
    events, stream = streamed(service_of(server, retry=policy))
    assert kinds(events) == ["created", *["output_text.delta"] * 2, "retried", "error"]
    assert stream.response.text == ""


def test_an_end_without_the_terminal_signal_is_an_error(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.of_events([chunk({"content": "Hel"})], done=False))
    events, stream = streamed(service_of(server))
    assert kinds(events) == ["created", "output_text.delta", "error"]
    assert stream.response.error_info.code == "incomplete_stream"
    assert stream.response.error_info.retryable


def test_nobody_answers(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.failure(503), times=None)
    events, stream = streamed(service_of(server))
    assert kinds(events) == ["error"]
    assert len(stream.response.attempts) == 3
    with pytest.raises(Exception, match="set to fail"):
        stream.response.raise_for_error()


def test_an_unknown_event_raises_behind_what_came_before(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.of_events([chunk({"content": "Hel"}), {"object": "mystery"}]), times=None)
    seen: list[StreamEvent] = []

    async def run() -> None:
        async with service_of(server, unknown="raise") as service, service.stream(ASK) as stream:
            async for event in stream:
                seen.append(event)

    with pytest.raises(UnknownEventError) as raised:
        asyncio.run(run())
    assert texts(seen) == "Hel"
    assert raised.value.partial.text == "Hel"
    assert [attempt.outcome for attempt in raised.value.partial.attempts] == ["error"]
    assert len(server.requests) == 1


def test_nothing_can_be_sent(server: ReplayServer, service_of: Make) -> None:
    nameless = Endpoint("vllm", base_url=server.url)

    async def run() -> EventStream:
        async with service_of(nameless) as service:
            stream = service.stream(ASK)
            with pytest.raises(UnsupportedRequestError, match="no model"):
                await anext(stream)
            return stream

    with pytest.raises(UnsupportedRequestError, match="no model"):
        _ = asyncio.run(run()).response


# ------------------------------------------------------------------------------------ how it is ended early


def test_leaving_the_block_cancels(server: ReplayServer, service_of: Make) -> None:
    server.add(ANSWER, Stall(after_events=4))

    async def run() -> EventStream:
        async with service_of(server) as service:
            async with service.stream(ASK) as stream:
                async for event in stream:
                    if texts([event]) == "w2 ":
                        break
            await asyncio.to_thread(server.wait_for, lambda it: bool(it.disconnects))
            return stream

    response = asyncio.run(run()).response
    assert response.finish_reason is FinishReason.CANCELLED
    assert response.text == "w0 w1 w2 "
    assert response.refusal is None
    assert response.error_info is None
    assert [attempt.outcome for attempt in response.attempts] == ["cancelled"]


def test_another_task_cancels_what_is_being_waited_for(server: ReplayServer, service_of: Make) -> None:
    server.add(ANSWER, Stall(after_events=3))

    async def run() -> list[StreamEvent]:
        async with service_of(server) as service, service.stream(ASK) as stream:
            events = []
            async for event in stream:
                events.append(event)
                if texts([event]) == "w1 ":
                    asyncio.get_running_loop().call_later(
                        0.01, lambda: tasks.append(asyncio.create_task(stream.cancel()))
                    )
            await asyncio.gather(*tasks)
            await asyncio.to_thread(server.wait_for, lambda it: bool(it.disconnects))
            return events

    tasks: list[asyncio.Task[None]] = []
    events = asyncio.run(run())
    assert kinds(events) == ["created", "output_text.delta", "output_text.delta", "incomplete"]
    assert events[-1].response.finish_reason is FinishReason.CANCELLED
    assert events[-1].response.text == "w0 w1 "


@pytest.mark.parametrize("fault", [Stall(), Stall(after_events=0), Stall(after_events=3)])
def test_a_cancelled_task_closes_the_connection(server: ReplayServer, service_of: Make, fault: Any) -> None:
    server.add(ANSWER, fault)

    async def run() -> EventStream:
        async with service_of(server) as service:
            stream = service.stream(ASK)
            task = asyncio.create_task(events_of(stream))
            await asyncio.to_thread(server.wait_for, lambda it: bool(it.requests))
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(server.wait_for, lambda it: bool(it.disconnects))
            return stream

    response = asyncio.run(run()).response
    assert response.finish_reason is FinishReason.CANCELLED
    assert [attempt.outcome for attempt in response.attempts] == ["cancelled"]


def test_cancelled_between_two_attempts(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.failure(429, retry_after=30), times=None)

    async def run() -> EventStream:
        async with service_of(server) as service:
            stream = service.stream(ASK)
            task = asyncio.create_task(events_of(stream))
            while not stream._attempts:
                await asyncio.sleep(0.001)
            await stream.cancel()
            assert kinds(await task) == ["incomplete"]
            return stream

    response = asyncio.run(run()).response
    assert [attempt.outcome for attempt in response.attempts] == ["error"]
    assert response.finish_reason is FinishReason.CANCELLED


def test_cancelled_before_anything_was_sent(server: ReplayServer, service_of: Make) -> None:
    async def run() -> EventStream:
        async with service_of(server) as service:
            stream = service.stream(ASK)
            with pytest.raises(ResponseValidationError, match="-008"):
                _ = stream.response
            await stream.cancel()
            assert kinds(await events_of(stream)) == ["incomplete"]
            return stream

    assert asyncio.run(run()).response.attempts == ()
    assert server.requests == ()


def test_cancelling_what_cannot_be_sent_does_not_raise(server: ReplayServer, service_of: Make) -> None:
    async def run() -> None:
        async with service_of(Endpoint("vllm", base_url=server.url)) as service, service.stream(ASK):
            pass

    asyncio.run(run())


def test_a_finished_stream_is_not_cancelled(server: ReplayServer, service_of: Make) -> None:
    server.add(ANSWER)

    async def run() -> EventStream:
        async with service_of(server) as service:
            stream = service.stream(ASK)
            await events_of(stream)
            await stream.cancel()
            return stream

    assert asyncio.run(run()).response.finish_reason is FinishReason.STOP


def test_a_forgotten_stream_closes_its_connection(server: ReplayServer, service_of: Make) -> None:
    server.add(ANSWER, Stall(after_events=3))

    async def run() -> None:
        async with service_of(server) as service:
            stream = service.stream(ASK)
            await anext(stream)
            del stream
            collect_garbage()
            await asyncio.to_thread(server.wait_for, lambda it: bool(it.disconnects))

    asyncio.run(run())


# ------------------------------------------------------------------------------------ many at once


@pytest.mark.sweep
def test_200_streams_on_one_event_loop(server: ReplayServer, service_of: Make) -> None:
    """All come back whole, and nothing is left running."""
    server.add(ANSWER, Slow(chunk_bytes=700), times=None)

    async def run() -> list[EventStream]:
        async with service_of(server) as service:
            streams = [service.stream(ASK) for _ in range(200)]
            await asyncio.gather(*(events_of(stream) for stream in streams))
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return streams

    responses = [stream.response for stream in asyncio.run(run())]
    assert {response.text for response in responses} == {"".join(WORDS)}
    assert {len(response.attempts) for response in responses} == {1}
    server.wait_for(lambda it: it.open_connections == 0)


def test_a_failing_server_is_not_stormed(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.failure(503), times=None)

    async def run() -> None:
        async with service_of(server) as service:
            await asyncio.gather(*(events_of(service.stream(ASK)) for _ in range(20)))

    asyncio.run(run())
    assert len(server.requests) == 20 * 3
