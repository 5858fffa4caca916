"""The twin without ``await``: the same answers, in the thread that asks."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import attrs
import httpx2
import orjson
import pytest

from crosswalk import ChatResponse, ConfigurationError, CrosswalkError, FinishReason, RateLimitError
from crosswalk.config import Settings
from crosswalk.service import (
    ChatRequest,
    Endpoint,
    SyncLLMService,
    Timeouts,
    UnsupportedRequestError,
)
from crosswalk.service.http import AiohttpTransport, ClientTransport
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


def test_nothing_is_read_before_it_is_asked_for() -> None:
    """So a consumer that does not read holds the server back."""
    pieces = 9
    sent: list[int] = []

    class Body(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            for number in range(pieces):
                sent.append(number)
                yield b"data: " + orjson.dumps(chunk({"content": f"{number} "})) + b"\n\n"
            yield b"data: " + orjson.dumps(chunk({}, "stop")) + b"\n\ndata: [DONE]\n\n"

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Body())

    client = httpx2.Client(transport=httpx2.MockTransport(answer))
    endpoint = Endpoint("vllm", model="m", base_url="http://server.test")
    with SyncLLMService(endpoint, client=client, settings=Settings()) as service:
        events = service.stream(ASK)
        assert not sent
        next(events)
        assert sent == [0]
        assert events.partial.text == "0 "
        assert "".join(events.text) == "".join(f"{number} " for number in range(pieces))
        events = service.stream(ASK)
        next(events)
        service.close()
        assert "".join(events.text) == "0 "
        assert events.response.finish_reason is FinishReason.CANCELLED
    assert not client.is_closed


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


def test_a_closed_service_leaves_what_has_arrived(server: ReplayServer, service: SyncLLMService) -> None:
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


def test_middleware_sees_the_callers_context_and_may_ask_its_own_service(server: ReplayServer) -> None:
    """Asynchronous middleware runs in an event loop of its own, always the same one."""
    user: ContextVar[str] = ContextVar("user")
    seen: list[Any] = []

    async def waiting(request: ChatRequest) -> AsyncGenerator[ChatRequest | ChatResponse, ChatResponse]:
        await asyncio.sleep(0)
        seen.append((user.get(), asyncio.get_running_loop()))
        response = yield request
        await asyncio.sleep(0)
        yield attrs.evolve(response, id="changed")

    def asking(request: ChatRequest) -> Iterator[Any]:
        if request.max_tokens is None:
            seen.append(service.complete(ASK, max_tokens=1).text)
        yield request

    def refusing(request: ChatRequest) -> Iterator[Any]:
        yield request
        if request.max_tokens == 2:
            raise LookupError("not this one")

    server.add(Answer.of_json(body({"content": "Hello."})), times=2)
    server.add(ANSWER).add(Answer.of_json(body({"content": "Hello."})))
    user.set("Ann")
    middleware: list[Any] = [waiting, refusing, asking]
    with SyncLLMService(
        Endpoint("vllm", model="m", base_url=server.url), settings=Settings(), middleware=middleware
    ) as service:
        assert service.complete(ASK).id == "changed"
        assert "".join(service.stream(ASK, max_tokens=1).text) == "Hello."
        with pytest.raises(LookupError, match="not this one"):
            service.complete(ASK, max_tokens=2)
    (name, loop), *_ = seen
    assert name == "Ann"
    assert [one for one in seen if one != (name, loop)] == ["Hello."]
    assert loop.is_closed()


def test_what_waits_for_an_event_loop_is_named(server: ReplayServer) -> None:
    class Cache:
        def get(self, _: Any) -> None: ...

        def put(self, *_: Any) -> None: ...

    server.add(Answer.of_json(body({"content": "Hello."})), times=2)
    endpoint = Endpoint("vllm", model="m", base_url=server.url)
    with SyncLLMService(endpoint, settings=Settings(), cache=Cache()) as service:  # type: ignore[arg-type]
        assert service.complete(ASK).text == "Hello."
        waits: Any = service._service
        monkey = waits.models

        async def models() -> tuple[str, ...]:
            await asyncio.sleep(0)
            return ()

        waits.models = models
        with pytest.raises(CrosswalkError, match="waits for an event loop: use LLMService"):
            service.models()
        waits.models = monkey


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"transport": "aiohttp"}, "aiohttp needs an event loop"),
        ({"client": httpx2.AsyncClient(verify=False)}, "client must be an httpx2.Client, not AsyncClient"),
        ({"client_options": {"colour": 1}}, "httpx2.Client has no option 'colour'"),
    ],
)
def test_what_only_an_event_loop_can_use_is_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        SyncLLMService(Endpoint("vllm", model="m"), **options)


def test_it_works_in_a_thread_with_an_event_loop(server: ReplayServer, service: SyncLLMService) -> None:
    """As in a notebook."""
    server.add(Answer.of_json(body({"content": "Hello."}))).add(ANSWER).add(ANSWER, Stall(after_events=1))

    async def cell() -> None:
        assert service.complete(ASK).text == "Hello."
        assert "".join(service.stream(ASK).text) == "Hello."
        left = service.stream(ASK)
        next(left)

    asyncio.run(cell())


def test_several_threads_share_a_service(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(Answer.of_json(body({"content": "Hello."})), times=None)
    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(service.complete(ASK).text)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["Hello."] * 8


def test_a_forgotten_service_closes_the_connections_of_its_forgotten_streams(server: ReplayServer) -> None:
    server.add(ANSWER, Stall(after_events=1))
    events = SyncLLMService(Endpoint("vllm", model="m", base_url=server.url), settings=Settings()).stream(ASK)
    assert [next(events).event_type.value for _ in range(2)][-1] == "response.output_text.delta"
    del events
    collect_garbage()
    server.wait_for(lambda it: bool(it.disconnects))


def test_a_closed_service_cannot_be_asked(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(Answer.of_json(body({"content": "Hello."})))
    service.complete(ASK)
    service.close()
    with pytest.raises(CrosswalkError, match="the service is closed"):
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

async def passing(request):
    yield request

service = SyncLLMService(
    Endpoint("vllm", model="m", base_url=sys.argv[1]),
    settings=Settings(),
    middleware=[passing],
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
def test_a_forked_process_has_connections_of_its_own(server: ReplayServer, options: dict[str, Any]) -> None:
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
        with pytest.raises(CrosswalkError, match="belongs to the process"):
            next(events)
        events.close()
        assert service.complete(ASK).text == "Hello."
        assert server.requests[-1].connection > server.requests[0].connection
        service.close()
    assert "".join(events.text).endswith("lo.")


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
