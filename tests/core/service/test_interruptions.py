"""What a signal's handler raises reaches the caller: it is no failure of the server's, of a plugin's or of an answer's."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from queue import Queue
from types import FrameType
from typing import Any

import httpx2
import pytest

from crosswalk import FinishReason, ServerError, normalize
from crosswalk.config import Settings
from crosswalk.service import ChatRequest, Endpoint, LLMService, RetryPolicy, SyncLLMService
from crosswalk.testing.exchange import Reset
from crosswalk.testing.replay import Answer, ReplayServer
from wires import body, chunk

ASK = ChatRequest("hi")
WHOLE = Answer.of_json(body({"content": "Hello."}))
IN_PARTS = Answer.of_events([chunk({"content": "Hel"}), chunk({"content": "lo."}), chunk({}, "stop")])
KINDS = (TimeoutError, ConnectionResetError, ValueError)


class Handler:
    """Raises *kind*, as the handler of an alarm does. Like many, it is set for one alarm."""

    def __init__(self, kind: type[BaseException]) -> None:
        self.kind = kind
        self.count = 0  # of the alarms

    def __call__(self, *_: object) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        self.count += 1
        raise self.kind("the alarm")


@contextmanager
def alarm(kind: type[BaseException], is_now: Callable[[FrameType, str], bool]) -> Iterator[Handler]:
    """Let an alarm go off once, at the first event of Python's profiler for which *is_now*."""
    handler = Handler(kind)
    before = signal.signal(signal.SIGALRM, handler)

    def profile(frame: FrameType, event: str, _: object) -> None:
        if not handler.count and is_now(frame, event):
            sys.setprofile(None)
            signal.raise_signal(signal.SIGALRM)

    sys.setprofile(profile)
    try:
        yield handler
    finally:
        sys.setprofile(None)
        signal.signal(signal.SIGALRM, before)


def begins(name: str) -> Callable[[FrameType, str], bool]:
    """The function *name* begins."""
    return lambda frame, event: event == "call" and frame.f_code.co_name == name


@pytest.fixture
def service(server: ReplayServer) -> Iterator[SyncLLMService]:
    """A service that would ask a second time."""
    endpoint = Endpoint("vllm", model="m", base_url=server.url)
    retry = RetryPolicy(attempts=2, initial_seconds=0, max_seconds=0)
    with SyncLLMService(
        endpoint, settings=Settings(), client_options={"verify": False}, retry=retry, max_concurrency=1000
    ) as running:
        yield running


PLACES = {
    "before a slot is free": "take",
    "in the transport": "handle_request",
    "while the request is written": "write",
    "while the answer is read": "chunk",
    "in a hook": "map_delta",
    "in the reader": "deliver",
    "at the end": "_finish",
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("kind", KINDS)
def test_an_alarm_ends_the_call(
    server: ReplayServer, service: SyncLLMService, kind: type[Exception], place: str
) -> None:
    server.add(WHOLE, times=None)
    with alarm(kind, begins(place)) as handler, pytest.raises(kind, match="the alarm"):
        service.complete(ASK)
    assert handler.count == 1
    assert len(server.requests) <= 1
    assert service.complete(ASK).text == "Hello."


@pytest.mark.parametrize("place", ["at", "chunk", "map_delta"])
def test_its_stream_is_cancelled(server: ReplayServer, service: SyncLLMService, place: str) -> None:
    server.add(IN_PARTS, times=None)
    events = service.stream(ASK)
    with alarm(TimeoutError, begins(place)), pytest.raises(TimeoutError, match="the alarm"):
        list(events)
    list(events)
    assert events.response.finish_reason is FinishReason.CANCELLED
    assert [attempt.outcome.value for attempt in events.response.attempts] == ["cancelled"]
    assert len(server.requests) <= 1


def test_an_alarm_in_a_step_of_the_middleware(server: ReplayServer) -> None:
    def asking(request: ChatRequest) -> Iterator[ChatRequest]:
        signal.raise_signal(signal.SIGALRM)
        yield request

    endpoint = Endpoint("vllm", model="m", base_url=server.url)
    middleware: list[Any] = [asking]
    with (
        SyncLLMService(endpoint, settings=Settings(), middleware=middleware) as service,
        alarm(TimeoutError, lambda *_: False),
        pytest.raises(TimeoutError, match="the alarm"),
    ):
        service.complete(ASK)
    assert not server.requests


@pytest.mark.parametrize("kind", KINDS)
def test_an_alarm_in_a_hook_of_the_client(server: ReplayServer, kind: type[Exception]) -> None:
    """Such as one that refreshes a credential. httpx2's errors have what it raises as their cause."""

    def wait(_: httpx2.Request) -> None:
        try:
            signal.raise_signal(signal.SIGALRM)
        except kind as error:
            raise httpx2.ReadError("no credential") from error

    endpoint = Endpoint("vllm", model="m", base_url=server.url)
    with (
        httpx2.Client(event_hooks={"request": [wait]}) as client,
        SyncLLMService(endpoint, settings=Settings(), client=client) as service,
        alarm(kind, lambda *_: False),
        pytest.raises(kind, match="the alarm"),
    ):
        service.complete(ASK)
    assert not server.requests


@pytest.mark.parametrize("transport", ["httpx2", "aiohttp"])
@pytest.mark.parametrize("place", ["send", "chunk", "map_delta", "sleep"])
def test_an_alarm_ends_an_asynchronous_call(
    server: ReplayServer, service_of: Callable[..., LLMService], transport: str, place: str
) -> None:
    server.add(Answer.of_json({"error": {"message": "busy"}}, status=503)).add(WHOLE, times=None)
    retry = RetryPolicy(attempts=3, initial_seconds=0.001, max_seconds=0.001)

    async def run() -> int:
        async with service_of(server, retry=retry, transport=transport) as service:
            with alarm(TimeoutError, begins(place)), pytest.raises(TimeoutError, match="the alarm"):
                await service.complete(ASK)
            count = len(server.requests)
            assert (await service.complete(ASK)).text == "Hello."
            return count

    assert asyncio.run(run()) <= 2


def test_an_alarm_in_a_read_answer() -> None:
    """Without a service, a plugin's hook and the reader let it through."""
    answer = body({"content": "Hello."})
    for place in ("map_delta", "deliver", "parse_usage"):
        with alarm(ValueError, begins(place)) as handler, suppress(ValueError):
            normalize(answer, "vllm")
            assert not handler.count


def test_a_failure_behind_an_alarm_is_the_servers(server: ReplayServer, service: SyncLLMService) -> None:
    """The caller has caught the alarm, and asks again."""
    server.add(WHOLE).add(WHOLE, Reset(), times=2)
    try:
        with alarm(TimeoutError, begins("chunk")):
            service.complete(ASK)
    except TimeoutError:
        with pytest.raises(ServerError) as failure:
            service.complete(ASK)
    assert failure.value.info.code == "connection_lost"


def test_no_other_call_is_hurt(server: ReplayServer) -> None:
    server.add(IN_PARTS).add(WHOLE, times=None)
    endpoint = Endpoint("vllm", model="m", base_url=server.url)
    with SyncLLMService(endpoint, settings=Settings(), client_options={"verify": False}) as service:
        events = service.stream(ASK)
        next(events)
        service.complete(ASK)
        with alarm(TimeoutError, begins("handle_request")), pytest.raises(TimeoutError, match="the alarm"):
            service.complete(ASK)
        assert "".join(events.text) == "Hello."
        assert service.complete(ASK).text == "Hello."


def test_an_alarm_while_the_answer_is_closed(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(WHOLE, times=None)
    with alarm(TimeoutError, begins("_response_closed")), pytest.raises(TimeoutError, match="the alarm"):
        service.complete(ASK)
    assert service.complete(ASK).text == "Hello."


@pytest.mark.parametrize("kind", [KeyboardInterrupt, TimeoutError])
@pytest.mark.parametrize("step", [("return", "__enter__"), ("call", "__exit__")])
def test_a_lock_that_an_interruption_leaves_taken_is_not_waited_for(
    server: ReplayServer, service: SyncLLMService, step: tuple[str, str], kind: type[BaseException]
) -> None:
    """httpcore2 takes its locks in steps of Python. It may come in between, at any of them."""
    server.add(WHOLE, times=None)
    event, name = step

    def steps(frame: FrameType, told_event: str) -> bool:
        """Whether it is the step of this number."""
        if told_event != event or frame.f_code.co_name != name or "httpcore2" not in frame.f_code.co_filename:
            return False
        return next(passed) == number

    for number in count():  # noqa: B007  # steps() looks at it
        passed = count()
        service.complete(ASK)  # over a connection that is kept
        with suppress(kind), alarm(kind, steps) as handler:
            service.complete(ASK)
        if not handler.count:
            break
        answers: Queue[str] = Queue()
        threading.Thread(target=lambda: answers.put(service.complete(ASK).text), daemon=True).start()
        assert answers.get(timeout=60) == "Hello."
    assert number


@pytest.mark.untraced
@pytest.mark.parametrize("kind", KINDS)
def test_an_alarm_at_any_call_of_a_function(
    server: ReplayServer, service: SyncLLMService, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reaches the caller, unless Python ignores it where it frees an object, and nothing is sent again."""
    ignored: list[bool] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda _: ignored.append(True))
    server.add(WHOLE, times=None)
    for number in count(step=5):
        service.complete(ASK)  # over a connection that is kept
        sent, passed = len(server.requests), count()
        ignored.clear()
        with alarm(kind, lambda _, event: event == "call" and next(passed) == number) as handler:
            try:
                service.complete(ASK)
            except kind as error:
                assert str(error) == "the alarm"
            else:
                sys.setprofile(None)
                assert not handler.count or ignored, number
        assert len(server.requests) <= sent + 1, number
        if not handler.count:
            break
    assert number > 100
