"""The twin without ``await``: the same answers, and a thread that goes away."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import attrs
import httpx2
import orjson
import pytest

from crosswalk import ChatResponse, CrosswalkError, FinishReason, RateLimitError
from crosswalk.config import Settings
from crosswalk.service import (
    ChatRequest,
    Endpoint,
    SyncLLMService,
    Timeouts,
    UnsupportedRequestError,
    sync as service_thread,
)
from crosswalk.service.aiohttp_transport import AiohttpTransport
from crosswalk.service.http import ClientTransport
from crosswalk.service.sync import READ_AHEAD
from crosswalk.testing.exchange import Stall
from crosswalk.testing.replay import Answer, ReplayServer
from leaving import collect_garbage
from wires import body, chunk

ASK = ChatRequest("hi")
ANSWER = Answer.of_events([chunk({"content": "Hel"}), chunk({"content": "lo."}), chunk({}, "stop")])


WAYS = {"connections": {}, "client": {"http2": False}}
"""Options of the HTTP client with which a call is made: the second way needs a client of its own."""


@pytest.fixture(params=WAYS)
def service(server: ReplayServer, request: pytest.FixtureRequest) -> Iterator[SyncLLMService]:
    """A service, in both ways."""
    with SyncLLMService(
        Endpoint("vllm", model="m", base_url=server.url),
        settings=Settings(),
        client_options={"verify": False, **WAYS[request.param]},
        timeout=Timeouts(total=60),
    ) as running:
        yield running


def test_the_same_methods(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(Answer.of_json(body({"content": "Hello."})))
    assert service.complete(ASK).text == "Hello."
    server.add(ANSWER)
    with service.stream(ASK) as events:
        told = [event.event_type.value for event in events]
    assert told[-1] == "response.completed"
    assert events.response.text == events.partial.text == "Hello."

    @attrs.frozen
    class Number:
        n: int

    server.add(Answer.of_json(body({"content": '{"n": 7}'})))
    assert service.complete_json(ASK, Number).value == Number(7)
    assert repr(service).startswith("SyncLLMService(Endpoint(provider='vllm'")


def test_errors_are_raised_here(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(Answer.failure(429, retry_after=1e6))
    with pytest.raises(RateLimitError):
        service.complete(ASK)


def test_leaving_the_block_cancels(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(ANSWER, Stall(after_events=1))
    with service.stream(ASK) as events:
        for event in events:
            if event.delta is not None:
                break
    assert events.response.finish_reason is FinishReason.CANCELLED
    assert events.response.text == "Hel"
    server.wait_for(lambda it: bool(it.disconnects))


def test_another_thread_cancels(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(ANSWER, Stall(after_events=1))
    events = service.stream(ASK)
    canceller = threading.Thread(
        target=lambda: (server.wait_for(lambda it: bool(it.requests)), events.cancel())
    )
    canceller.start()
    told = [event.event_type.value for event in events]
    canceller.join()
    assert told[-1] == "response.incomplete"
    assert events.response.finish_reason is FinishReason.CANCELLED


def test_ctrl_c_in_a_wait_ends_the_stream(server: ReplayServer, service: SyncLLMService) -> None:
    """The connection is closed, and the text so far stays available."""
    server.add(ANSWER, Stall(after_events=1))
    waits, is_pressed = threading.Event(), threading.Event()
    target = threading.get_ident()

    def interrupt(*_: object) -> None:
        if not is_pressed.is_set():
            is_pressed.set()
            raise KeyboardInterrupt

    def press() -> None:
        """Press until it is noticed: a signal just before the thread begins to wait does not end the wait."""
        waits.wait()
        while not is_pressed.wait(0.01):
            signal.pthread_kill(target, signal.SIGINT)

    before = signal.signal(signal.SIGINT, interrupt)
    ctrl_c = threading.Thread(target=press)
    ctrl_c.start()
    try:
        with service.stream(ASK) as events:
            assert [next(events).event_type.value for _ in range(2)][-1] == "response.output_text.delta"
            with pytest.raises(KeyboardInterrupt):
                waits.set()
                next(events)
    finally:
        is_pressed.set()
        waits.set()
        ctrl_c.join()
        signal.signal(signal.SIGINT, before)
    server.wait_for(lambda it: bool(it.disconnects))
    assert [event.event_type.value for event in events][-1:] == ["response.incomplete"]
    assert events.response.finish_reason is FinishReason.CANCELLED
    assert events.response.text == "Hel"


def test_a_stream_is_read_ahead_of_its_consumer_within_a_bound() -> None:
    """A consumer that does not read holds the server back, and goes on when it reads again."""
    pieces = 3 * READ_AHEAD
    sent: list[int] = []
    is_taken = asyncio.Event()

    class Body(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for number in range(pieces):
                if number:
                    await is_taken.wait()
                sent.append(number)
                yield b"data: " + orjson.dumps(chunk({"content": f"{number} "})) + b"\n\n"
            yield b"data: " + orjson.dumps(chunk({}, "stop")) + b"\n\ndata: [DONE]\n\n"

    async def answer(request: httpx2.Request) -> httpx2.Response:
        if b'"stream":true' in request.content:
            sent.clear()
            is_taken.clear()
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Body())
        is_taken.set()
        await asyncio.sleep(0)  # until the task that reads has gone as far as it goes
        return httpx2.Response(200, json=body({"content": "Hello."}))

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    endpoint = Endpoint("vllm", model="m", base_url="http://server.test")
    with SyncLLMService(endpoint, client=client, settings=Settings()) as service:
        events = service.stream(ASK)
        next(events)
        service.complete(ASK)
        assert len(sent) == 1 + READ_AHEAD
        assert events.partial.text == "".join(f"{number} " for number in sent)
        assert "".join(events.text) == "".join(f"{number} " for number in range(pieces))
        events = service.stream(ASK)
        next(events)
        service.complete(ASK)
        service.close()
        assert "".join(events.text) == "".join(f"{number} " for number in range(1 + READ_AHEAD))
        assert events.response.finish_reason is FinishReason.CANCELLED


def test_a_stream_that_is_read_to_its_end_stays_there(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(ANSWER)
    events = service.stream(ASK)
    assert list(events)[-1].event_type.value == "response.completed"
    assert list(events) == list(events) == []


def test_an_error_in_place_of_an_event_is_raised_once(server: ReplayServer, service: SyncLLMService) -> None:
    events = service.stream(ASK, provider_options={"vlm": {"a": 1}})
    with pytest.raises(UnsupportedRequestError):
        next(events)
    assert list(events) == []


def test_a_closed_service_leaves_what_was_read_ahead(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(ANSWER, Stall(after_events=1))
    events = service.stream(ASK)
    next(events)
    server.wait_for(lambda it: bool(it.requests))
    unread = service.stream(ASK)
    service.close()
    assert [event.event_type.value for event in events][-1] == "response.incomplete"
    assert events.response.finish_reason is FinishReason.CANCELLED
    events.cancel()  # does nothing
    with pytest.raises(CrosswalkError, match="the service is closed"):
        next(unread)


def test_what_runs_in_the_thread_sees_the_callers_context_and_cannot_wait_for_it(
    server: ReplayServer, service: SyncLLMService
) -> None:
    user: ContextVar[str] = ContextVar("user")
    users: list[str] = []

    async def asking(request: ChatRequest) -> AsyncGenerator[ChatRequest | ChatResponse, ChatResponse]:
        users.append(user.get())
        with pytest.raises(CrosswalkError, match="cannot wait for its own service"):
            service.complete(ASK)
        yield request

    server.add(Answer.of_json(body({"content": "Hello."})))
    server.add(ANSWER)
    user.set("Ann")
    with SyncLLMService(
        Endpoint("vllm", model="m", base_url=server.url), settings=Settings(), middleware=[asking]
    ) as service:
        assert service.complete(ASK).text == "".join(service.stream(ASK).text) == "Hello."
    assert users == ["Ann", "Ann"]


def test_several_threads_share_a_service(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(Answer.of_json(body({"content": "Hello."})), times=None)
    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(service.complete(ASK).text)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["Hello."] * 8


def service_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "crosswalk service"}


def test_a_forgotten_service_ends_its_thread_once_its_streams_are_forgotten(server: ReplayServer) -> None:
    server.add(ANSWER, Stall(after_events=1))
    before = service_threads()
    events = SyncLLMService(Endpoint("vllm", model="m", base_url=server.url), settings=Settings()).stream(ASK)
    assert [next(events).event_type.value for _ in range(2)][-1] == "response.output_text.delta"
    (started,) = service_threads() - before
    del events
    collect_garbage()
    started.join()
    server.wait_for(lambda it: bool(it.disconnects))


def test_closing_ends_the_thread(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(Answer.of_json(body({"content": "Hello."})))
    before = service_threads()
    service.complete(ASK)
    (started,) = service_threads() - before
    service.close()
    assert not started.is_alive()
    with pytest.raises(Exception, match="the service is closed"):
        service.complete(ASK)
    service.close()


# ------------------------------------------------------------------------------------ a forked process

FORKS = """
import os, sys
from crosswalk.config import Settings
from crosswalk.errors import CrosswalkError
from crosswalk.service import ChatRequest, Endpoint, SyncLLMService

def asked():
    return service.complete(ChatRequest("hi")).text

service = SyncLLMService(
    Endpoint("vllm", model="m", base_url=sys.argv[1]),
    settings=Settings(),
    client_options={"verify": False, **eval(sys.argv[2])},
)
assert asked() == "Hello."
begun = service.stream(ChatRequest("hi"))
next(begun)
child = os.fork()
if child == 0:
    try:
        begun.close()
        next(begun)
    except CrosswalkError as error:
        assert "belongs to the process" in str(error), error
        assert asked() == "Hello."
        service.close()
        os._exit(7)
    finally:
        os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert "".join(e.delta.content_delta or "" for e in begun if e.delta) == "Hello."
assert asked() == "Hello."
service.close()
"""


@pytest.mark.sweep
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_a_forked_process_has_a_thread_and_connections_of_its_own(
    server: ReplayServer, options: dict[str, Any]
) -> None:
    """As in the workers of a web server with an application that made the service before they were forked."""
    server.add(Answer.of_json(body({"content": "Hello."}))).add(ANSWER)
    server.add(Answer.of_json(body({"content": "Hello."})), times=2)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKS, server.url, repr(options)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stderr, done.returncode) == ("", 0)
    assert [request.connection for request in server.requests] == [1, 1, 2, 1]


LEAVES = """
import sys
from crosswalk.service import Endpoint, SyncLLMService

service = SyncLLMService(Endpoint("openai", model="m", base_url=sys.argv[1], api_key="k"))

def events():
    with SyncLLMService(Endpoint("openai", model="m", base_url=sys.argv[1], api_key="k")) as other:
        yield from other.stream("hi")

texts, begun = service.stream("hi").text, events()
print(next(texts))
next(begun)
"""


@pytest.mark.sweep
def test_a_program_may_end_in_the_middle_of_a_stream(server: ReplayServer) -> None:
    """Generators are closed when the threads of the program have ended already."""
    server.add(ANSWER, times=2)
    done = subprocess.run(
        [sys.executable, "-c", LEAVES, server.url], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)


def test_nothing_waits_for_the_thread_of_a_program_that_ends(
    server: ReplayServer, service: SyncLLMService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same within one process."""
    server.add(ANSWER)
    events = service.stream(ASK)
    next(events)
    with monkeypatch.context() as ending:
        ending.setattr(sys, "is_finalizing", lambda: True)
        events.close()
        service.close()
        with pytest.raises(CrosswalkError, match="the program is ending"):
            service.complete(ASK)


def test_a_service_may_be_closed_by_several_threads(server: ReplayServer) -> None:
    server.add(Answer.of_json(body({"content": "Hello."})), times=30)
    for _ in range(30):
        service = SyncLLMService(Endpoint("openai", model="m", base_url=server.url, api_key="k"))
        service.complete(ASK)
        with ThreadPoolExecutor(4) as pool:
            for closing in [pool.submit(service.close) for _ in range(4)]:
                closing.result()


def test_what_a_forked_process_forgets(
    server: ReplayServer, service: SyncLLMService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same within one process with a changed id."""
    server.add(Answer.of_json(body({"content": "Hello."})))
    server.add(ANSWER)
    server.add(Answer.of_json(body({"content": "Hello."})))
    service.complete(ASK)
    events = service.stream(ASK)
    next(events)
    with monkeypatch.context() as patched:
        patched.setattr("os.getpid", lambda: -1)
        service_thread._forget_threads()
        with pytest.raises(CrosswalkError, match="belongs to the process"):
            next(events)
        events.close()
        del events
        collect_garbage()
        assert service.complete(ASK).text == "Hello."
        assert server.requests[-1].connection > server.requests[0].connection
        (left,) = service._service._setup.transport._left
    ((loop, old),) = service._thread._left
    asyncio.run_coroutine_threadsafe(left.aclose(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    old.join()
    service_thread.ServiceThread(service._service.aclose).forget()  # one that has not started


def test_a_client_of_ones_own_does_not_go_along(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with httpx2.AsyncClient(verify=False) as client:
            transport = ClientTransport(client, {})
            await transport.ready()
            monkeypatch.setattr("os.getpid", lambda: -1)
            with pytest.raises(CrosswalkError, match="make a service here"):
                await transport.ready()
            own = {"verify": False}
            for unused in (ClientTransport(None, own), AiohttpTransport(own)):
                unused._process = 0
                await unused.ready()  # nothing to leave behind
                assert unused._left == []
                await unused.aclose()

    asyncio.run(run())
