"""The twin without ``await``: the same answers, and a thread that goes away."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import attrs
import httpx2
import pytest

from crosswalk import CrosswalkError, FinishReason, RateLimitError
from crosswalk.config import Settings
from crosswalk.service import ChatRequest, Endpoint, SyncLLMService, Timeouts
from crosswalk.service.client import ClientTransport
from crosswalk.service.pools import LoopPool, ThreadPool
from crosswalk.service.sync import forget_threads
from crosswalk.service.waits import ThreadWait
from crosswalk.testing.faults import Stall
from crosswalk.testing.replay import Answer, ReplayServer
from wires import body, chunk

ASK = ChatRequest("hi")
ANSWER = Answer.of_events([chunk({"content": "Hel"}), chunk({"content": "lo."}), chunk({}, "stop")])


WAYS = {"in the thread that asks": {}, "in a thread of its own": {"http2": False}}
"""Options of the HTTP client with which a call is made; those of the second way need an event loop."""


@pytest.fixture(params=WAYS)
def service(server: ReplayServer, request: pytest.FixtureRequest) -> Iterator[SyncLLMService]:
    """A service, in both ways."""
    with SyncLLMService(
        Endpoint("vllm", model="m", base_url=server.url),
        settings=Settings(),
        client_options={"verify": False, **WAYS[request.param]},
        timeout=Timeouts(total=60),
    ) as running:
        assert running._service.blocks is (not WAYS[request.param])
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


def test_an_interrupted_wait_ends_the_work(
    server: ReplayServer, service: SyncLLMService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the next event is awaited: the connection is closed, and what came is there."""
    server.add(ANSWER, Stall(after_events=1))
    with service.stream(ASK) as events:
        assert [next(events).event_type.value for _ in range(2)][-1] == "response.output_text.delta"
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr("concurrent.futures.Future.result", interrupted)
            patched.setattr(ThreadWait, "hold", interrupted)
            next(events)
    assert events.response.finish_reason is FinishReason.CANCELLED
    assert events.response.text == "Hel"
    server.wait_for(lambda it: bool(it.disconnects))


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_several_threads_share_a_service(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(Answer.of_json(body({"content": "Hello."})), times=None)
    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(service.complete(ASK).text)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["Hello."] * 8


def test_closing_ends_the_thread(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(Answer.of_json(body({"content": "Hello."})))
    service.complete(ASK)
    service.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "crosswalk service"]
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
    """As a web server's workers have, whose application made the service before they were forked."""
    server.add(Answer.of_json(body({"content": "Hello."}))).add(ANSWER)
    server.add(Answer.of_json(body({"content": "Hello."})), times=2)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKS, server.url, repr(options)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stderr, done.returncode) == ("", 0)
    assert [request.connection for request in server.requests] == [1, 1, 2, 1]


def test_what_a_forked_process_forgets(
    server: ReplayServer, service: SyncLLMService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same within one process, whose id alone changes."""
    server.add(Answer.of_json(body({"content": "Hello."})), times=None)
    service.complete(ASK)
    events = service.stream(ASK)
    with monkeypatch.context() as patched:
        patched.setattr("os.getpid", lambda: -1)
        forget_threads()
        with pytest.raises(CrosswalkError, match="belongs to the process"):
            next(events)
        events.close()
        assert service.complete(ASK).text == "Hello."
        assert [request.connection for request in server.requests] == [1, 2]
        (left,) = service._service._setup.transport._left
    if service._service.blocks:
        left.close()
        return
    ((loop, thread),) = service._runner._left
    asyncio.run_coroutine_threadsafe(left.aclose(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


def test_a_client_of_ones_own_does_not_go_along(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with httpx2.AsyncClient(verify=False) as client:
            transport = ClientTransport(client, {})
            await transport.ready()
            monkeypatch.setattr("os.getpid", lambda: -1)
            with pytest.raises(CrosswalkError, match="make a service here"):
                await transport.ready()
            own = {"verify": False}
            for unused in (
                ClientTransport(None, own),
                LoopPool(own, is_secure=False),
                ThreadPool(own, is_secure=False),
            ):
                unused._process = 0
                await unused.ready()  # nothing to leave behind
                assert unused._left == []
                await unused.aclose()

    asyncio.run(run())
