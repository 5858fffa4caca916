"""Wrappers around a call, and the cache that is one."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

from crosswalk import (
    ChatMessage,
    ChatResponse,
    ConfigurationError,
    CrosswalkError,
    MappingError,
    ResponseMetadata,
    StreamEvent,
    ToolCall,
    UsageInfo,
    normalize,
)
from crosswalk.service import ChatRequest, Endpoint, EventStream, LLMService, SyncLLMService, Timeouts
from crosswalk.service.setup import replayed
from crosswalk.structured import MemoryCache
from crosswalk.testing import load_capture
from crosswalk.testing.exchange import Stall
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk.wire import Limits
from leaving import collect_garbage
from pages import ROOT
from wires import body, chunk, usage

Make = Callable[..., LLMService]
Steps = Generator[ChatRequest | ChatResponse, ChatResponse, None]
ASK = ChatRequest("Why?")
HELLO = Answer.of_json(body({"content": "Hello."}, usage=usage(3, 2)))
HELLO_STREAM = Answer.of_events(
    [chunk({"content": "Hel"}), chunk({"content": "lo."}), chunk({}, "stop"), chunk(usage=usage(3, 2))]
)


def called(arguments: str) -> dict[str, Any]:
    return {"id": "k", "type": "function", "function": {"name": "go", "arguments": arguments}}


def made(text: str) -> ChatResponse:
    return ChatResponse.success(ChatMessage.assistant(text), UsageInfo.EMPTY, "m", ResponseMetadata("p", "m"))


def tagged(name: str, log: list[str]) -> Callable[[ChatRequest], Steps]:
    """Puts its name at the end of the question and of the answer."""

    def middleware(request: ChatRequest) -> Steps:
        log.append(f"> {name}")
        response = yield request.with_turns(ChatMessage.user(name))
        log.append(f"< {name}")
        yield attrs.evolve(response, message=ChatMessage.assistant(response.text + name))

    return middleware


async def whole(service: LLMService, request: ChatRequest = ASK) -> ChatResponse:
    return await service.complete(request)


async def streamed(service: LLMService, request: ChatRequest = ASK) -> ChatResponse:
    async with service.stream(request) as stream:
        events = [event async for event in stream]
    if stream.response.error_info is None:
        assert_right(events)
    assert events[-1].response is stream.response
    return stream.response


def assert_right(events: list[StreamEvent]) -> None:
    """The first event begins, the last one ends, and the deltas are numbered."""
    assert [event.event_type for event in events].count("response.created") == 1
    assert events[0].event_type == "response.created"
    indices = [event.delta.index for event in events if event.delta is not None]
    assert indices == list(range(len(indices)))


def run(service: LLMService, use: Callable[[LLMService], Any]) -> Any:
    async def main() -> Any:
        async with asyncio.timeout(60), service:
            given = await use(service)
        for _ in range(5):
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return given

    return asyncio.run(main())


ways = pytest.mark.parametrize(
    ("way", "answer"), [(whole, HELLO), (streamed, HELLO_STREAM)], ids=["whole", "streamed"]
)
Way = Callable[..., Any]


@ways
def test_the_first_one_is_the_outermost(
    server: ReplayServer, service_of: Make, way: Way, answer: Answer
) -> None:
    log: list[str] = []
    server.add(answer)
    response = run(service_of(server, middleware=[tagged("a", log), tagged("b", log)]), way)
    assert log == ["> a", "> b", "< b", "< a"]
    assert response.text == "Hello.ba"
    assert [said["content"] for said in server.requests[0].json()["messages"]] == ["Why?", "a", "b"]
    assert [attempt.outcome for attempt in response.attempts] == ["success"]


@ways
def test_an_asynchronous_one(server: ReplayServer, service_of: Make, way: Way, answer: Answer) -> None:
    seen: list[str] = []

    async def middleware(request: ChatRequest) -> AsyncGenerator[ChatRequest | ChatResponse, ChatResponse]:
        await asyncio.sleep(0)
        try:
            response = yield attrs.evolve(request, stream=False, temperature=0.5)
            seen.append(response.text)
        finally:
            seen.append("closed")

    server.add(answer)
    assert run(service_of(server, middleware=[middleware]), way).text == "Hello."
    assert seen == ["Hello.", "closed"]
    assert server.requests[0].json()["temperature"] == 0.5
    assert server.requests[0].json().get("stream", False) is (way is streamed)  # what is shown is streamed


@ways
def test_one_that_answers_itself(server: ReplayServer, service_of: Make, way: Way, answer: Answer) -> None:
    """No server is asked. Wrappers outside of it see the answer, those inside see nothing."""
    log: list[str] = []

    def middleware(_: ChatRequest) -> Steps:
        yield made("Mine.")
        raise AssertionError("it is not asked to go on")

    service = service_of(server, middleware=[tagged("a", log), middleware, tagged("b", log)])
    response = run(service, way)
    assert (response.text, response.attempts, log) == ("Mine.a", (), ["> a", "< a"])
    assert not server.requests


def test_its_own_answer_has_no_events_of_a_server(server: ReplayServer, service_of: Make) -> None:
    def middleware(_: ChatRequest) -> Steps:
        yield made("Mine.")

    async def use(service: LLMService) -> EventStream:
        stream = service.stream(ASK)
        async for _ in stream:
            assert stream.take_frames() == []
        return stream

    stream = run(service_of(server, middleware=[middleware]), use)
    assert (stream.response.text, stream.sent, stream.take_frames()) == ("Mine.", None, [])


@ways
def test_one_that_answers_with_an_error(
    server: ReplayServer, service_of: Make, way: Way, answer: Answer
) -> None:
    def middleware(_: ChatRequest) -> Steps:
        yield ChatResponse.error("not today", model="m")

    service = service_of(server, middleware=[middleware])
    if way is whole:
        with pytest.raises(CrosswalkError, match="not today"):
            run(service, way)
    else:
        assert run(service, way).finish_reason == "error"


@ways
def test_it_sees_what_failed(server: ReplayServer, service_of: Make, way: Way, answer: Answer) -> None:
    """And may answer in its place."""
    server.add(Answer.failure(400), times=2)
    seen: list[Any] = []

    def looks(request: ChatRequest) -> Steps:
        response = yield request
        seen.append(response.error_info)

    def mends(request: ChatRequest) -> Steps:
        response = yield request
        yield made("Sorry.") if response.error_info else response

    response = run(service_of(server, middleware=[mends, looks]), way)
    assert response.text == "Sorry."
    assert seen[0].status == 400


@ways
@pytest.mark.parametrize("moment", ["at once", "then"])
def test_what_it_raises_is_raised(
    server: ReplayServer, service_of: Make, way: Way, answer: Answer, moment: str
) -> None:
    server.add(answer)
    closed: list[str] = []

    def outer(request: ChatRequest) -> Steps:
        try:
            yield request
        finally:
            closed.append("outer")

    def raises(request: ChatRequest) -> Steps:
        if moment == "then":
            yield request
        raise CrosswalkError("not in this house")

    async def use(service: LLMService) -> None:
        with pytest.raises(CrosswalkError, match="not in this house"):
            await way(service)

    run(service_of(server, middleware=[outer, raises]), use)
    assert closed == ["outer"]
    assert len(server.requests) == (moment == "then")


@pytest.mark.parametrize("error", [CrosswalkError("no"), ZeroDivisionError()])
def test_a_stream_that_it_forbade_tells_so(service_of: Make, server: ReplayServer, error: Exception) -> None:
    def raises(_: ChatRequest) -> Steps:
        raise error
        yield

    async def use(service: LLMService) -> EventStream:
        stream = service.stream(ASK)
        with pytest.raises(type(error)):
            await anext(stream)
        assert stream.has_ended
        return stream

    stream = run(service_of(server, middleware=[raises]), use)
    with pytest.raises(CrosswalkError):
        _ = stream.response


@ways
def test_it_is_closed_where_the_call_raises(
    server: ReplayServer, service_of: Make, way: Way, answer: Answer
) -> None:
    server.add(Answer.of_json({"choices": 3}))
    closed: list[str] = []

    def plain(request: ChatRequest) -> Steps:
        try:
            yield request
        finally:
            closed.append("plain")

    async def asynchronous(request: ChatRequest) -> AsyncGenerator[ChatRequest | ChatResponse, ChatResponse]:
        try:
            yield request
        finally:
            closed.append("asynchronous")

    async def use(service: LLMService) -> None:
        with pytest.raises(MappingError):
            await way(service)

    run(service_of(server, middleware=[plain, asynchronous]), use)
    assert closed == ["asynchronous", "plain"]


def test_it_sees_what_was_cancelled(server: ReplayServer, service_of: Make) -> None:
    seen: list[ChatResponse] = []

    def looks(request: ChatRequest) -> Steps:
        seen.append((yield request))

    server.add(HELLO_STREAM, Stall(after_events=1))

    async def use(service: LLMService) -> EventStream:
        async with service.stream(ASK) as stream:
            async for event in stream:
                if event.delta is not None:
                    break
        return stream

    stream = run(service_of(server, middleware=[looks]), use)
    assert [(one.finish_reason, one.text) for one in seen] == [("cancelled", "Hel")]
    assert stream.response is seen[0]


@pytest.mark.parametrize("error", [ConfigurationError("no such answer"), ZeroDivisionError()])
@pytest.mark.parametrize("end", ["stream", "service"])
def test_a_cancelled_answer_stays_if_it_raises_for_that(
    server: ReplayServer, service_of: Make, error: Exception, end: str
) -> None:
    """What it raises is told once, and all that the service has open is closed all the same."""

    def refuses(request: ChatRequest) -> Steps:
        yield request
        raise error

    server.add(HELLO_STREAM, Stall(after_events=1), times=2)

    async def use(service: LLMService) -> list[EventStream]:
        streams = [service.stream(ASK), service.stream(ASK)]
        for stream in streams:
            await anext(stream)
        with pytest.raises(type(error)) as raised:
            await (streams[0].cancel() if end == "stream" else service.aclose())
        assert raised.value is error
        await streams[0].cancel()
        if end == "stream":
            with pytest.raises(type(error)):
                await streams[1].cancel()
        return streams

    streams = run(service_of(server, middleware=[refuses]), use)
    assert [stream.response.finish_reason.value for stream in streams] == ["cancelled"] * 2


def test_what_forbids_a_stream_that_is_cancelled_first_is_told_by_its_response(
    server: ReplayServer, service_of: Make
) -> None:
    def forbids(_: ChatRequest) -> Steps:
        raise ConfigurationError("not in this house")
        yield

    async def use(service: LLMService) -> EventStream:
        stream = service.stream(ASK)
        await stream.cancel()
        return stream

    stream = run(service_of(server, middleware=[forbids]), use)
    with pytest.raises(ConfigurationError, match="not in this house"):
        _ = stream.response
    assert not server.requests


def test_a_blocking_service_is_closed_whatever_a_middleware_raises(
    server: ReplayServer,
) -> None:
    async def refuses(request: ChatRequest) -> AsyncGenerator[ChatRequest | ChatResponse, ChatResponse]:
        yield request
        raise ZeroDivisionError

    server.add(HELLO_STREAM, Stall(after_events=1))
    threads = threading.active_count()
    endpoint = Endpoint("vllm", model="m", base_url=server.url)
    service = SyncLLMService(endpoint, middleware=[refuses])
    stream = service.stream(ASK)
    next(stream)
    assert threading.active_count() == threads + 1
    with pytest.raises(ZeroDivisionError):
        service.close()
    assert stream.response.finish_reason.value == "cancelled"
    assert threading.active_count() == threads


class Holding:
    """Asynchronous middleware that waits for ever, before the request or behind the answer."""

    def __init__(self, *, before: bool) -> None:
        self.waits, self.ended, self._before = threading.Event(), threading.Event(), before

    async def __call__(
        self, request: ChatRequest
    ) -> AsyncGenerator[ChatRequest | ChatResponse, ChatResponse]:
        if self._before:
            await self._wait()
        yield request
        await self._wait()

    async def _wait(self) -> None:
        self.waits.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # it may wait to free what it holds
            self.ended.set()


END = pytest.mark.parametrize("end", ["cancel", "close", "limit"])


@END
def test_a_wait_of_asynchronous_middleware_ends_with_the_call(
    server: ReplayServer, service_of: Make, end: str
) -> None:
    holding = Holding(before=True)
    limits = Timeouts(call=0.01 if end == "limit" else None)

    async def main() -> ChatResponse:
        async with service_of(server, middleware=[holding], timeout=limits) as service:
            events = service.stream(ASK)
            reading = asyncio.create_task(anext(events))
            while not holding.waits.is_set():
                await asyncio.sleep(0)
            if end != "limit":
                await (events.cancel() if end == "cancel" else service.aclose())
            with suppress(CrosswalkError):
                await reading
            async for _ in events:
                pass
            return events.response

    response = asyncio.run(main())
    assert response.finish_reason.value == ("error" if end == "limit" else "cancelled")
    assert holding.ended.is_set()
    assert not server.requests


@END
def test_a_wait_of_asynchronous_middleware_ends_with_the_blocking_call(
    server: ReplayServer, end: str
) -> None:
    holding = Holding(before=True)
    endpoint = Endpoint("vllm", model="m", base_url=server.url)
    limits = Timeouts(call=0.01 if end == "limit" else None)
    service = SyncLLMService(endpoint, middleware=[holding], timeout=limits)
    events = service.stream(ASK)
    reading = threading.Thread(target=lambda: list(events))
    reading.start()
    holding.waits.wait()
    if end != "limit":
        (events if end == "cancel" else service).close()
    reading.join()
    service.close()
    assert events.response.finish_reason.value == ("error" if end == "limit" else "cancelled")
    assert holding.ended.is_set()
    assert not server.requests


def test_a_blocking_call_may_end_behind_the_close_of_its_service(server: ReplayServer) -> None:
    """The thread of its middleware ends with it, and so does that of a call that comes too late."""
    server.add(HELLO)
    answered, go = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def slow(request: ChatRequest) -> AsyncGenerator[ChatRequest, ChatResponse]:
        loops.append(asyncio.get_running_loop())
        yield request
        answered.set()
        await go.wait()

    before = set(threading.enumerate())
    service = SyncLLMService(Endpoint("vllm", model="m", base_url=server.url), middleware=[slow])
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(service.complete, ASK)
        answered.wait()
        service.close()
        loops[0].call_soon_threadsafe(go.set)
        assert answer.result().text == "Hello."
    with pytest.raises(CrosswalkError, match="the service is closed"):
        service.complete(ASK)
    for thread in set(threading.enumerate()) - before:
        thread.join()
    assert [loop.is_closed() for loop in loops] == [True, True]


def test_ctrl_c_ends_asynchronous_middleware_behind_a_cancelled_answer(server: ReplayServer) -> None:
    server.add(HELLO_STREAM, Stall(after_events=1))
    holding, is_pressed, here = Holding(before=False), threading.Event(), threading.get_ident()

    def interrupt(*_: object) -> None:
        if not is_pressed.is_set():
            is_pressed.set()
            raise KeyboardInterrupt

    def press() -> None:
        holding.waits.wait()
        while not is_pressed.wait(0.01):
            signal.pthread_kill(here, signal.SIGINT)

    before = signal.signal(signal.SIGINT, interrupt)
    ctrl_c = threading.Thread(target=press)
    ctrl_c.start()
    endpoint = Endpoint("vllm", model="m", base_url=server.url)
    try:
        with SyncLLMService(endpoint, middleware=[holding]) as service:
            events = service.stream(ASK)
            next(events)
            with pytest.raises(KeyboardInterrupt):
                events.cancel()
    finally:
        ctrl_c.join()
        signal.signal(signal.SIGINT, before)
    assert holding.ended.is_set()
    assert events.response.finish_reason.value == "cancelled"


def test_asynchronous_middleware_cannot_wait_for_its_own_blocking_service(server: ReplayServer) -> None:
    server.add(HELLO)
    refusals: list[CrosswalkError] = []

    async def asking(request: ChatRequest) -> AsyncGenerator[ChatRequest, ChatResponse]:
        try:
            service.complete(request)
        except CrosswalkError as error:
            refusals.append(error)
        yield request

    endpoint = Endpoint("vllm", model="m", base_url=server.url)
    with SyncLLMService(endpoint, middleware=[asking]) as service:
        assert service.complete(ASK).text == "Hello."
    assert [str(error) for error in refusals] == [
        "asynchronous middleware cannot wait for a call of its own service"
    ]


def test_asynchronous_middleware_of_a_forgotten_blocking_call_is_closed(server: ReplayServer) -> None:
    server.add(HELLO_STREAM, Stall(after_events=1))
    is_closed, go = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def holding(request: ChatRequest) -> AsyncGenerator[ChatRequest, ChatResponse]:
        loops.append(asyncio.get_running_loop())
        try:
            yield request
        finally:
            await go.wait()
            is_closed.set()

    before = set(threading.enumerate())
    service = SyncLLMService(Endpoint("vllm", model="m", base_url=server.url), middleware=[holding])
    events = service.stream(ASK)
    next(events)
    del events, service
    collect_garbage()  # does not wait
    loops[0].call_soon_threadsafe(go.set)
    is_closed.wait()
    for thread in set(threading.enumerate()) - before:
        thread.join()


def test_an_answer_stays_whole_if_the_call_is_cancelled_behind_it(server: ReplayServer) -> None:
    server.add(HELLO_STREAM)
    holding = Holding(before=False)
    endpoint = Endpoint("vllm", model="m", base_url=server.url)
    with SyncLLMService(endpoint, middleware=[holding], timeout=Timeouts(call=3600)) as service:
        events = service.stream(ASK)
        reading = threading.Thread(target=lambda: list(events))
        reading.start()
        holding.waits.wait()
        events.cancel()
        reading.join()
    assert events.response.text == "Hello."
    assert holding.ended.is_set()


@pytest.mark.parametrize("way", [whole, streamed])
def test_its_own_timeout_is_its_own(server: ReplayServer, service_of: Make, way: Way) -> None:
    async def impatient(request: ChatRequest) -> AsyncGenerator[ChatRequest | ChatResponse, ChatResponse]:
        raise TimeoutError("mine")
        yield request

    with pytest.raises(TimeoutError, match="mine"):
        run(service_of(server, middleware=[impatient]), way)


def yields_nothing(_: ChatRequest) -> Steps:
    return
    yield


def yields_a_text(_: ChatRequest) -> Any:
    yield "Why?"


def answers_with_a_text(request: ChatRequest) -> Any:
    yield request
    yield "Because."


def no_generator(request: ChatRequest) -> Any:
    return request


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        (yields_nothing, "yields_nothing must yield a ChatRequest first, not NoneType"),
        (yields_a_text, "yields_a_text must yield a ChatRequest first, not str"),
        (answers_with_a_text, "answers_with_a_text must yield a ChatResponse then, not str"),
        (no_generator, "no_generator must be a generator function"),
    ],
)
def test_what_is_no_middleware(server: ReplayServer, service_of: Make, wrong: Any, cause: str) -> None:
    server.add(HELLO)
    with pytest.raises(ConfigurationError, match=cause):
        run(service_of(server, middleware=[wrong]), whole)


@pytest.mark.parametrize("wrong", [3, [3], no_generator])
def test_what_is_no_list_of_them(server: ReplayServer, service_of: Make, wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="middleware must be a list"):
        service_of(server, middleware=wrong)


# ------------------------------------------------------------------------------------------------ the cache


@pytest.mark.parametrize("first", [whole, streamed])
@pytest.mark.parametrize("second", [whole, streamed])
def test_what_was_answered_is_not_asked_again(
    server: ReplayServer, service_of: Make, first: Way, second: Way
) -> None:
    server.add(HELLO if first is whole else HELLO_STREAM)
    cache = MemoryCache()

    async def use(service: LLMService) -> tuple[ChatResponse, ChatResponse]:
        return await first(service), await second(service)

    one, two = run(service_of(server, cache=cache), use)
    assert two.same_content(attrs.evolve(one, attempts=()))
    assert (two.id, two.usage, two.metadata) == (one.id, one.usage, one.metadata)
    assert (len(one.attempts), two.attempts, len(server.requests)) == (1, (), 1)
    assert cache.stats().hits == 1


@pytest.mark.parametrize(
    "other",
    [
        ChatRequest("Why not?"),
        ChatRequest("Why?", temperature=0.0),
        ChatRequest("Why?", model="n"),
        ChatRequest("Why?", provider_options={"vllm": {"top_a": 1}}),
    ],
    ids=["question", "temperature", "model", "options"],
)
def test_what_is_asked_otherwise_is_asked(server: ReplayServer, service_of: Make, other: ChatRequest) -> None:
    server.add(HELLO, times=2)

    async def use(service: LLMService) -> None:
        await whole(service)
        await whole(service, other)

    run(service_of(server, cache=MemoryCache()), use)
    assert len(server.requests) == 2


def test_another_endpoint_has_answers_of_its_own(server: ReplayServer, service_of: Make) -> None:
    server.add(HELLO, times=None)
    cache = MemoryCache()
    endpoint = Endpoint("vllm", model="m", base_url=server.url)
    for endpoints in ([endpoint], [attrs.evolve(endpoint, model="n")], [endpoint, endpoint], [endpoint]):
        run(service_of(*endpoints, cache=cache), whole)
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "answer",
    [
        Answer.of_json(body({"content": "Hello"}, "length")),
        Answer.of_json(body({"content": "Hello"}, "content_filter")),
        Answer.of_json(body({"content": "Hello"}, "guardrail_intervened")),
        Answer.of_json(body({"content": "Hello"}, "abort")),
        Answer.of_json(
            body({"content": "Hello"})
            | {
                "choices": [
                    {
                        "index": number,
                        "message": {"role": "assistant", "content": "Hi"},
                        "finish_reason": finish,
                    }
                    for number, finish in enumerate(["stop", "length"])
                ]
            }
        ),
        Answer.of_json(
            body({"content": "Hello"})
            | {
                "choices": [
                    {
                        "index": number,
                        "message": {"role": "assistant", "content": None, said: "No."},
                        "finish_reason": "stop",
                    }
                    for number, said in enumerate(["content", "refusal"])
                ]
            }
        ),
        Answer.of_json(body({"content": None, "tool_calls": [called('{"x":')]}, "tool_calls")),
        Answer.of_json(
            body({"content": "Hello"})
            | {
                "choices": [
                    {
                        "index": number,
                        "message": {"role": "assistant", "content": None, "tool_calls": [called(arguments)]},
                        "finish_reason": "tool_calls",
                    }
                    for number, arguments in enumerate(["{}", "[]"])
                ]
            }
        ),
        Answer.of_json(
            body({"text": "Hello"})
            | {"usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}
        ),
    ],
    ids=[
        "cut",
        "moderated",
        "unknown end",
        "aborted",
        "one of two cut",
        "one of two declined",
        "broken call",
        "one of two broken",
        "unread",
    ],
)
def test_what_is_not_whole_is_not_kept(server: ReplayServer, service_of: Make, answer: Answer) -> None:
    server.add(answer, times=2)
    cache = MemoryCache()

    async def use(service: LLMService) -> None:
        for _ in range(2):
            await whole(service)

    run(service_of(server, cache=cache), use)
    assert (len(server.requests), cache.size()) == (2, 0)


@ways
def test_an_error_is_not_kept(server: ReplayServer, service_of: Make, way: Way, answer: Answer) -> None:
    server.add(Answer.failure(400)).add(answer)
    cache = MemoryCache()

    async def use(service: LLMService) -> ChatResponse:
        if way is whole:
            with pytest.raises(CrosswalkError):
                await way(service)
        else:
            assert (await way(service)).error_info is not None
        assert cache.size() == 0
        response: ChatResponse = await way(service)
        return response

    assert run(service_of(server, cache=cache), use).text == "Hello."


def test_what_cannot_be_sent_has_no_key(server: ReplayServer, service_of: Make) -> None:
    with pytest.raises(CrosswalkError, match="no model"):
        run(service_of(Endpoint("vllm", base_url=server.url), cache=MemoryCache()), whole)


@pytest.mark.parametrize("levels", range(246, 254))
def test_what_cannot_be_stored_is_answered_all_the_same(
    server: ReplayServer, service_of: Make, levels: int
) -> None:
    """Be it stored or not: what was paid for is given, and is the same the second time."""
    text = (
        orjson.dumps(body({"content": "Hello."}))[:-1]
        + b',"odd":'
        + b'{"a":' * levels
        + b"1"
        + b"}" * levels
        + b"}"
    )
    server.add(Answer((text,), headers={"Content-Type": "application/json"}), times=2)

    async def use(service: LLMService) -> list[ChatResponse]:
        return [await whole(service) for _ in range(2)]

    one, two = run(service_of(server, cache=MemoryCache(), limits=Limits(depth=300)), use)
    assert one.text == two.text == "Hello."
    assert one.metadata.extensions == two.metadata.extensions


def test_what_a_stranger_left_is_not_taken(server: ReplayServer, service_of: Make) -> None:
    class Odd(MemoryCache):
        def get(self, key: object) -> object:
            return {"id": 3}

    server.add(HELLO)
    assert run(service_of(server, cache=Odd()), whole).text == "Hello."


def test_without_await(server: ReplayServer) -> None:
    server.add(HELLO)
    log: list[str] = []
    endpoint = Endpoint("vllm", model="m", base_url=server.url)
    options: dict[str, Any] = {"client_options": {"verify": False}, "middleware": [tagged("a", log)]}
    with SyncLLMService(endpoint, cache=MemoryCache(), **options) as service:
        assert service.complete(ASK).text == "Hello.a"
        with service.stream(ASK) as events:
            assert_right(list(events))
        assert events.response.text == "Hello.a"
    assert len(server.requests) == 1


# ----------------------------------------------------------------------------------------- replayed as deltas


@pytest.mark.parametrize("provider", ["anthropic", "gemini", "openai_responses", "vllm"])
def test_a_replayed_answer_says_what_it_said(provider: str) -> None:
    """Over all recordings: deltas that add up to the same parts, and the response itself."""
    folder = ROOT / "tests/captures" / provider
    seen = 0
    for file in sorted(folder.glob("*.response.*")):
        response = reading(file)
        if response is None:
            continue
        seen += 1
        events = replayed(response)
        assert_right(events)
        assert events[-1].response is response
        again = ChatResponse.from_deltas([event.delta for event in events if event.delta is not None])
        for name in (
            "text",
            "reasoning",
            "refusal",
            "tool_calls",
            "finish_reason",
            "raw_finish_reason",
            "usage",
        ):
            assert getattr(again, name) == getattr(response, name), (file.name, name)
        assert [one.message for one in again.alternatives] == [one.message for one in response.alternatives]
        assert parts(again) == parts(response), file.name
    assert seen > 10


def reading(file: Path) -> ChatResponse | None:
    capture = load_capture(file)
    try:
        response = normalize(capture.body, file.parent.name, unknown="keep")
    except CrosswalkError:
        return None
    return None if response.error_info is not None else response


def parts(response: ChatResponse) -> list[str]:
    """The kinds of its parts. Those of one kind that touch are one."""
    found = [one.type.value for one in response.segments if one.content or one.metadata]
    return [one for number, one in enumerate(found) if number == 0 or found[number - 1] != one]


def test_a_message_made_by_hand_is_replayed() -> None:
    message = ChatMessage.assistant("Hello.", tool_calls=[ToolCall("1", "add", "{}")])
    response = attrs.evolve(made(""), message=message, finish_reason="tool_calls")
    again = ChatResponse.from_deltas([e.delta for e in replayed(response) if e.delta is not None])
    assert (again.message, again.finish_reason) == (message, "tool_calls")


@pytest.mark.parametrize("cache", [7, {}, "redis://localhost"])
def test_what_is_no_cache_is_refused_when_the_service_is_made(
    server: ReplayServer, service_of: Make, cache: Any
) -> None:
    """Not when the answer, which was paid, is to be kept."""
    with pytest.raises(ConfigurationError, match="cache must be an AnswerCache, not"):
        service_of(server, cache=cache)
