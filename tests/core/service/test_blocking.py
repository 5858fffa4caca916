"""A call that waits without an event loop: how its waits end, its connections, a client of the application, and forks."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import nullcontext, suppress
from types import FrameType
from typing import Any

import httpcore2
import httpx2
import orjson
import pytest

from crosswalk import CrosswalkError, FinishReason, ProviderTimeoutError
from crosswalk.config import Settings
from crosswalk.service import ChatRequest, Endpoint, RetryPolicy, SyncLLMService, Timeouts
from crosswalk.service.blocking import BlockingWait, ThreadSlots, run
from crosswalk.service.endpoint import StepTimeout
from crosswalk.testing.exchange import Stall
from crosswalk.testing.replay import Answer, ReplayServer
from wires import body, chunk

ASK = ChatRequest("hi")
HELLO = body({"content": "Hello."})
ANSWER = Answer.of_events([chunk({"content": "Hel"}), chunk({"content": "lo."}), chunk({}, "stop")])
LATER = RetryPolicy(initial_seconds=3600, max_seconds=3600)


def service_of(server: ReplayServer, **options: Any) -> SyncLLMService:
    endpoint = Endpoint("vllm", model="m", base_url=server.url)
    return SyncLLMService(endpoint, **{"settings": Settings(), **options})


# ------------------------------------------------------------------------------------ how waits end


def test_another_thread_ends_the_wait_for_the_next_attempt(server: ReplayServer) -> None:
    server.add(Answer.failure(503))
    with service_of(server, retry=LATER) as service:
        events = service.stream(ASK)
        canceller = threading.Thread(
            target=lambda: (server.wait_for(lambda it: bool(it.requests)), events.cancel())
        )
        canceller.start()
        assert [event.event_type.value for event in events] == ["response.incomplete"]
        canceller.join()
    assert events.response.finish_reason is FinishReason.CANCELLED


def test_another_thread_ends_the_wait_for_the_head_of_an_answer(server: ReplayServer) -> None:
    server.add(ANSWER, Stall(after_events=0))
    with service_of(server) as service:
        events = service.stream(ASK)
        canceller = threading.Thread(
            target=lambda: (server.wait_for(lambda it: bool(it.requests)), events.cancel())
        )
        canceller.start()
        assert [event.event_type.value for event in events] == ["response.incomplete"]
        canceller.join()
        server.wait_for(lambda it: bool(it.disconnects))


def test_a_call_that_another_thread_ends_hurts_no_other_call(server: ReplayServer) -> None:
    """Its connection may have been used by another call before, and that of another call comes from the same pool."""
    server.add(ANSWER, Stall(after_events=1), when=lambda asked: b'"stream":true' in asked.body, times=None)
    server.add(Answer.of_json(HELLO), times=None)
    wrong: list[Any] = []

    def work(number: int) -> None:
        for turn in range(6):
            if (number + turn) % 3:
                response = service.complete(ASK)
                if (response.text, len(response.attempts)) != ("Hello.", 1):
                    wrong.append(response)
                continue
            events = service.stream(ASK)
            next(events)
            canceller = threading.Thread(target=events.cancel)
            canceller.start()
            for _ in events:
                pass
            canceller.join()
            if events.response.finish_reason is not FinishReason.CANCELLED:
                wrong.append(events.response)

    with service_of(server) as service:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, LookupError])
def test_what_a_signals_handler_raises_ends_the_wait_for_the_next_attempt(
    server: ReplayServer, error: type[BaseException]
) -> None:
    server.add(Answer.failure(503))
    is_pressed, here = threading.Event(), threading.get_ident()

    def interrupt(_: int, frame: FrameType | None) -> None:
        is_waiting = frame is not None and frame.f_code is threading.Condition.wait.__code__
        if is_waiting and not is_pressed.is_set():
            is_pressed.set()
            raise error

    def press() -> None:
        server.wait_for(lambda it: bool(it.requests))
        while not is_pressed.wait(0.01):  # until the call waits
            signal.pthread_kill(here, signal.SIGINT)

    before = signal.signal(signal.SIGINT, interrupt)
    ctrl_c = threading.Thread(target=press)
    ctrl_c.start()
    try:
        with service_of(server, retry=LATER) as service, pytest.raises(error):
            service.complete(ASK)
    finally:
        ctrl_c.join()
        signal.signal(signal.SIGINT, before)


def test_a_call_that_has_ended_waits_for_nothing() -> None:
    wait = BlockingWait()
    wait.cancel()
    wait.await_bell(threading.Event())
    with pytest.raises(httpcore2.ReadError):
        wait.at(None, lambda: pytest.fail("it has ended"))


def test_without_limits_a_call_waits_as_long_as_it_takes(server: ReplayServer) -> None:
    endless = Timeouts(total=None, connect=None, whole=None, between_bytes=None)
    server.add(Answer.of_json(HELLO)).add(ANSWER)
    with service_of(server, timeout=endless) as service:
        assert service.complete(ASK).text == "".join(service.stream(ASK).text) == "Hello."


def test_a_slot_that_comes_too_late_is_given_back() -> None:
    slots, waits = ThreadSlots(1), [BlockingWait() for _ in range(3)]
    run(slots.take(waits[0]))

    def freed_and_cancelled(bell: threading.Event, seconds: float | None = None) -> None:
        slots.give_back(waits[0])
        waits[1].cancel()

    waits[1].await_bell = freed_and_cancelled  # type: ignore[method-assign]
    with pytest.raises(TimeoutError):
        run(slots.take(waits[1]))
    run(slots.take(waits[2]))  # without waiting


def test_the_slot_of_an_interrupted_call_is_free_when_its_waits_are_gone() -> None:
    slots, waits = ThreadSlots(1), [BlockingWait() for _ in range(3)]
    run(slots.take(waits[0]))

    def interrupted(bell: threading.Event, seconds: float | None = None) -> None:
        raise KeyboardInterrupt

    waits[1].await_bell = interrupted  # type: ignore[method-assign]
    with suppress(KeyboardInterrupt):
        run(slots.take(waits[1]))
    last = waits.pop()
    waits.clear()
    gc.collect()

    def comes_at_once(bell: threading.Event, seconds: float | None = None) -> None:
        assert bell.is_set()

    last.await_bell = comes_at_once  # type: ignore[method-assign]
    run(slots.take(last))


def test_the_slot_of_a_cancelled_call_goes_to_the_next_one() -> None:
    slots, waits = ThreadSlots(1), [BlockingWait() for _ in range(2)]
    run(slots.take(waits[0]))
    waits[0].cancel()  # and Ctrl-C has ended it before it could give the slot back
    run(slots.take(waits[1]))


@pytest.mark.parametrize("error", [TimeoutError, ConnectionResetError, OSError, ValueError])
@pytest.mark.parametrize("through", ["pool", "client"])
def test_the_error_of_an_alarm_is_the_applications_own(
    server: ReplayServer, error: type[Exception], through: str
) -> None:
    """It is not taken for the server's failure, after which the server would be asked again."""
    server.add(ANSWER, Stall(after_events=1))
    is_rung, here = threading.Event(), threading.get_ident()

    def alarm(_: int, frame: FrameType | None) -> None:
        is_waiting = frame is not None and frame.f_globals["__name__"].startswith("httpcore2")
        if is_waiting and not is_rung.is_set():
            is_rung.set()
            raise error("mine")

    def ring() -> None:
        while not is_rung.wait(0.01):  # until the call waits at its connection
            signal.pthread_kill(here, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, alarm)
    ringing = threading.Thread(target=ring)
    client = httpx2.Client()
    options: dict[str, Any] = {"client": client} if through == "client" else {}
    try:
        with client, service_of(server, **options) as service, service.stream(ASK) as stream:
            next(stream)
            next(stream)
            ringing.start()
            with pytest.raises(error, match="mine"):
                list(stream)
    finally:
        is_rung.set()
        ringing.join()
        signal.signal(signal.SIGUSR1, before)
    assert len(server.requests) == 1


def test_a_slot_goes_to_the_call_that_waits_for_it() -> None:
    slots, waits = ThreadSlots(1), [BlockingWait() for _ in range(3)]

    class Given(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            slots.give_back(waits[0])
            return super().wait(timeout)

    run(slots.take(waits[0]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading, "Event", Given)
        run(slots.take(waits[1]))
    waits[2].cancel()  # before it waits
    with pytest.raises(TimeoutError):
        run(slots.take(waits[2]))


def test_a_wait_for_a_bell_is_ended_from_outside() -> None:
    wait = BlockingWait()

    class Cancelling(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            wait.cancel()
            return super().wait(timeout)

    bell = Cancelling()
    wait.await_bell(bell)
    assert bell.is_set()


def test_a_step_that_is_too_late_ends_the_wait() -> None:
    wait = BlockingWait()

    async def step() -> None:
        wait.begin_step(1.0, StepTimeout)
        wait.now = lambda: float("inf")
        with pytest.raises(httpcore2.ReadTimeout):
            wait.left(None)
        raise OSError

    with pytest.raises(StepTimeout):
        run(wait.within(None, step()))


def test_calls_wait_for_a_slot_and_can_be_ended_meanwhile(server: ReplayServer) -> None:
    server.add(ANSWER, Stall(after_events=1)).add(Answer.of_json(HELLO))
    with service_of(server, max_concurrency=1) as service:
        first = service.stream(ASK)
        next(first)
        second = service.stream(ASK)
        reader = threading.Thread(target=lambda: list(second))
        third: list[str] = []
        waiter = threading.Thread(target=lambda: third.append(service.complete(ASK).text))
        for thread in (reader, waiter):
            thread.start()
        second.cancel()
        reader.join()
        assert len(server.requests) == 1
        first.close()
        waiter.join()
    assert third == ["Hello."]


# ------------------------------------------------------------------------------------ connections


def test_a_header_that_is_not_ascii_is_named(server: ReplayServer) -> None:
    with service_of(server) as service, pytest.raises(CrosswalkError, match="is not HTTP"):
        service.request("GET", "/v1/models", headers={"x": "ü"})
    assert server.requests == ()


def test_a_socks_proxy_is_asked_if_there_is_the_package_for_it(server: ReplayServer) -> None:
    with (
        service_of(server, proxy="socks5://127.0.0.1:9", retry=0) as service,
        pytest.raises(CrosswalkError, match=r"(?i)socks|connect"),
    ):
        service.complete(ASK)
    assert server.requests == ()


# ------------------------------------------------------------------------------------ a client of the application


def client_of(*pieces: bytes, **options: Any) -> httpx2.Client:
    """A client whose server answers with *pieces*."""

    class Body(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield from pieces

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "application/json"}, stream=Body())

    return httpx2.Client(transport=httpx2.MockTransport(answer), **options)


def test_a_hook_may_read_the_answer(server: ReplayServer) -> None:
    client = client_of(orjson.dumps(HELLO), event_hooks={"response": [lambda response: response.read()]})
    with service_of(server, client=client) as service:
        assert service.complete(ASK).text == "Hello."


def test_an_answer_of_a_client_may_be_too_late(server: ReplayServer) -> None:
    client = client_of(orjson.dumps(HELLO))
    limited = service_of(server, client=client, timeout=Timeouts(total=1e-9), retry=0)
    with limited as service, pytest.raises(ProviderTimeoutError):
        service.complete(ASK)


def test_an_answer_of_a_client_ends_where_it_is_cancelled(server: ReplayServer) -> None:
    class Body(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield b"data: " + orjson.dumps(chunk({"content": "Hel"})) + b"\n\n"
            events.cancel()
            yield b"data: " + orjson.dumps(chunk({"content": "lo."})) + b"\n\n"

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Body())

    client = httpx2.Client(transport=httpx2.MockTransport(answer))
    with service_of(server, client=client) as service:
        events = service.stream(ASK)
        assert [event.event_type.value for event in events][-1] == "response.incomplete"
    assert events.response.text == "Hel"


def test_a_connection_of_a_service_may_serve_its_client_afterwards(server: ReplayServer) -> None:
    """Whoever has opened it. Then no call limits it."""
    server.add(Answer.of_json(HELLO), times=3)
    limited = Timeouts(total=60)
    with httpx2.Client(verify=False) as client, service_of(server, client=client, timeout=limited) as service:
        first = service.complete(ASK).text
        url, sent = f"{server.url}/v1/chat/completions", server.requests[0]
        second = client.post(url, content=sent.body, headers={"content-type": "application/json"})
        third = service.complete(ASK).text
    assert second.json() == HELLO
    assert (first, third, len(server.requests)) == ("Hello.", "Hello.", 3)


# ------------------------------------------------------------------------------------ a forked process


def test_a_client_of_ones_own_belongs_to_its_process(
    server: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with service_of(server, client=client_of(orjson.dumps(HELLO))) as service:
        assert service.complete(ASK).text == "Hello."
        with monkeypatch.context() as patched:
            patched.setattr(os, "getpid", lambda: -1)
            with pytest.raises(CrosswalkError, match="make a service here"):
                service.complete(ASK)


@pytest.mark.parametrize("is_forked", [False, True])
def test_slots_and_middleware_of_a_forked_process_are_its_own(
    server: ReplayServer, monkeypatch: pytest.MonkeyPatch, is_forked: bool
) -> None:
    seen: list[str] = []

    async def noting(request: ChatRequest) -> AsyncGenerator[Any, Any]:
        seen.append((yield request).text)

    server.add(Answer.of_json(HELLO), times=2)
    with service_of(server, max_concurrency=1, middleware=[noting]) as service:
        service.complete(ASK)
        with monkeypatch.context() if is_forked else nullcontext(monkeypatch) as patched:
            if is_forked:
                patched.setattr(os, "getpid", lambda: -1)
            service.complete(ASK)
            service.close()
    assert seen == ["Hello.", "Hello."]


def test_an_error_of_asynchronous_middleware_is_raised(server: ReplayServer) -> None:
    async def failing(_: ChatRequest) -> AsyncGenerator[Any, Any]:
        raise LookupError("not this one")
        yield

    with (
        service_of(server, middleware=[failing]) as service,
        pytest.raises(LookupError, match="not this one"),
    ):
        service.complete(ASK)
