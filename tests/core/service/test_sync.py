"""The twin without ``await``: the same answers, and a thread that goes away."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import attrs
import pytest

from crosswalk import FinishReason, RateLimitError
from crosswalk.config import Settings
from crosswalk.service import ChatRequest, Endpoint, SyncLLMService
from crosswalk.testing.faults import Stall
from crosswalk.testing.replay import Answer, ReplayServer
from wires import body, chunk

ASK = ChatRequest("hi")
ANSWER = Answer.of_events([chunk({"content": "Hel"}), chunk({"content": "lo."}), chunk({}, "stop")])


@pytest.fixture
def service(server: ReplayServer) -> Iterator[SyncLLMService]:
    with SyncLLMService(
        Endpoint("vllm", model="m", base_url=server.url),
        settings=Settings(),
        client_options={"verify": False},
    ) as running:
        yield running


def test_the_same_methods(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(Answer.of_json(body({"content": "Hello."})))
    assert service.complete(ASK).text == "Hello."
    server.add(ANSWER)
    with service.stream(ASK) as events:
        told = [event.event_type.value for event in events]
    assert told[-1] == "response.completed"
    assert events.response.text == "Hello."

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
