"""One outcome of a call in every service: over httpx2 and aiohttp, in an event loop, without one, and through a client."""

from __future__ import annotations

import asyncio
import importlib.util
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import attrs
import httpx2
import pytest

from crosswalk import ChatResponse, CrosswalkError, ProviderError
from crosswalk.config import Settings
from crosswalk.service import ChatRequest, Endpoint, LLMService, RetryPolicy, SyncLLMService, Timeouts
from crosswalk.testing import Answer, Cut, ReplayServer
from crosswalk.testing.exchange import Fault, Slow, Stall
from strict_answers import every_api
from wires import body, chunk

ASK = ChatRequest("hi")
WHOLE = Answer.of_json(body({"content": "Hello."}))
STREAM = Answer.of_events([chunk({"content": "Hel"}), chunk({"content": "lo."}), chunk({}, "stop")])
KEEP_ALIVES = Answer(
    (b": waiting\n\n",) * 50, headers={"Content-Type": "text/event-stream"}, stream=True, case="comments"
)
DENIED = Answer.of_json({"error": {"message": "no such key", "code": "invalid_api_key"}}, status=401)
SOON = RetryPolicy(initial_seconds=0, max_seconds=0)
LATER = RetryPolicy(initial_seconds=3600, max_seconds=3600)
SHORT, LONG = 0.2, 1.0
"""Seconds that are too few for a server that stalls, and seconds in which any other one has begun to answer."""
Told: TypeAlias = tuple[Any, ...]
"""The finish reason and the text, or the error and its code. Then each attempt: its outcome, its status and its code."""


@attrs.frozen
class Case:
    """A call, and what must come of it.

    Attributes:
        answers: what the server sends, one answer for each request, with its faults.
        told: the outcome.
        is_stream: whether the events are read.
        cancelled: when the caller ends it: after the first ``text``, once the ``request`` has come, or in a ``pause``.
        options: arguments of the service.
        before: the calls of the same service before it.
        has_other: whether an endpoint at which nobody listens is asked first.
        servers: the number of endpoints of the server.
    """

    answers: tuple[tuple[Answer, *tuple[Fault, ...]], ...]
    told: Told
    is_stream: bool = attrs.field(default=False, kw_only=True)
    cancelled: str = attrs.field(default="", kw_only=True)
    options: dict[str, Any] = attrs.field(factory=dict, kw_only=True)
    before: int = attrs.field(default=0, kw_only=True)
    has_other: bool = attrs.field(default=False, kw_only=True)
    servers: int = attrs.field(default=1, kw_only=True)


def limited(**limits: float) -> dict[str, Any]:
    """The options of one attempt with these limits."""
    return {"retry": 0, "timeout": Timeouts(**{"total": 60, **limits})}


def late(name: str) -> Told:
    return ("ProviderTimeoutError", f"{name}_timeout")


FINE = ("success", 200, None)
BUSY, DOWN = ("error", 503, "replay"), ("error", 500, "replay")
LEFT = ("cancelled", "Hel", ("cancelled", 200, "cancelled"))
CASES = {
    "a body": Case(((WHOLE,),), ("stop", "Hello.", FINE)),
    "a stream": Case(((STREAM,),), ("stop", "Hello.", FINE), is_stream=True),
    "503 twice, with Retry-After": Case(
        ((Answer.failure(503, retry_after=0),), (Answer.failure(503, retry_after=0),), (WHOLE,)),
        ("stop", "Hello.", BUSY, BUSY, FINE),
        options={"retry": SOON},
    ),
    "500 here and there": Case(
        ((Answer.failure(500),), (Answer.failure(500),)),
        ("ServerError", "replay", DOWN, DOWN),
        options={"retry": 0},
        servers=2,
    ),
    "nobody listens, and the next one answers": Case(
        ((WHOLE,),),
        ("stop", "Hello.", ("error", None, "connect_error"), FINE),
        options={"retry": 0},
        has_other=True,
    ),
    "the head is late": Case(
        ((WHOLE, Stall()),),
        (*late("whole"), ("error", None, "whole_timeout")),
        options=limited(whole=SHORT),
    ),
    "the bytes drip for too long": Case(
        ((STREAM, Slow(SHORT, chunk_bytes=1)),),
        ("error", "", ("error", 200, "total_timeout")),
        options=limited(total=LONG),
        is_stream=True,
    ),
    "no further byte": Case(
        ((STREAM, Stall(after_events=1)),),
        ("error", "Hel", ("error", 200, "between_bytes_timeout")),
        options=limited(between_bytes=LONG),
        is_stream=True,
    ),
    "no first token": Case(
        ((KEEP_ALIVES, Slow(SHORT / 2)),),
        ("error", "", ("error", 200, "first_token_timeout")),
        options=limited(first_token=LONG),
        is_stream=True,
    ),
    "the call has no time left": Case(
        ((WHOLE, Stall()),),
        (*late("call"), ("error", None, "call_timeout")),
        options={"retry": SOON, "timeout": Timeouts(call=SHORT)},
    ),
    "cut": Case(
        ((STREAM, Cut(after_events=1)),),
        ("error", "Hel", ("error", 200, "connection_lost")),
        options={"retry": 0},
        is_stream=True,
    ),
    "the error is cut": Case(
        ((DENIED, Cut(after_bytes=20)),),
        ("AuthenticationError", None, ("error", 401, None)),
        options={"retry": SOON},
    ),
    "the error is cut, and the server is busy": Case(
        ((attrs.evolve(DENIED, status=503), Cut(after_bytes=20)), (WHOLE,)),
        ("stop", "Hello.", ("error", 503, None), FINE),
        options={"retry": SOON},
    ),
    "the rest of the error is late": Case(
        ((DENIED, Stall(after_bytes=20)),),
        ("AuthenticationError", None, ("error", 401, None)),
        options=limited(whole=SHORT),
    ),
    "the error is not compressed as it says": Case(
        ((attrs.evolve(DENIED, headers={**DENIED.headers, "Content-Encoding": "gzip"}),),),
        ("AuthenticationError", None, ("error", 401, None)),
        options={"retry": SOON},
    ),
    "cancelled in the stream": Case(
        ((STREAM, Stall(after_events=1)),), LEFT, is_stream=True, cancelled="text"
    ),
    "cancelled before the head": Case(
        ((STREAM, Stall()),),
        ("cancelled", "", ("cancelled", None, "cancelled")),
        is_stream=True,
        cancelled="request",
    ),
    "cancelled in a pause": Case(
        ((Answer.failure(500),),),
        ("cancelled", "", DOWN),
        options={"retry": LATER},
        is_stream=True,
        cancelled="pause",
    ),
    "a kept connection is lost": Case(
        ((WHOLE,), (WHOLE, Cut()), (WHOLE,)), ("stop", "Hello.", FINE), options={"retry": 0}, before=1
    ),
}


class Pauses:
    """An observer that calls back when an attempt has ended: what follows is the pause before the next one."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call

    def started(self, _: object) -> Pauses:
        return self

    def attempted(self, _: object, __: object) -> None:
        self._call()

    def ended(self, _: object, __: object) -> None:
        pass


def told(response: ChatResponse) -> Told:
    attempts = [
        (one.outcome.value, one.extra.get("status"), one.extra.get("code")) for one in response.attempts
    ]
    return (response.finish_reason.value, response.text, *attempts)


def refused(error: CrosswalkError) -> Told:
    assert isinstance(error, ProviderError), error
    _, _, *attempts = told(error.response)
    info = error.response.error_info
    assert info is not None
    return (type(error).__name__, info.code, *attempts)


def endpoints_of(case: Case, server: ReplayServer) -> list[Endpoint]:
    dead = [Endpoint("vllm", model="m", base_url="http://127.0.0.1:9")] * case.has_other
    return dead + [Endpoint("vllm", model="m", base_url=server.url)] * case.servers


def in_a_loop(case: Case, server: ReplayServer, **more: Any) -> Told:
    """The outcome in an event loop."""

    async def main() -> Told:
        tasks: list[Any] = []
        watching = [Pauses(lambda: tasks.append(asyncio.create_task(events.cancel())))]
        options = {**case.options, "observers": watching if case.cancelled == "pause" else []}
        async with LLMService(*endpoints_of(case, server), settings=Settings(), **options, **more) as service:
            for _ in range(case.before):
                await service.complete(ASK)
            if not case.is_stream:
                return told(await service.complete(ASK))
            events = service.stream(ASK)

            async def cancel_when_asked() -> None:
                await asyncio.to_thread(server.wait_for, lambda it: bool(it.requests))
                await events.cancel()

            if case.cancelled == "request":
                tasks.append(asyncio.create_task(cancel_when_asked()))
            async for event in events:
                if case.cancelled == "text" and event.delta is not None:
                    await events.cancel()
            await asyncio.gather(*tasks)
            return told(events.response)

    try:
        return asyncio.run(main())
    except CrosswalkError as error:
        return refused(error)


def in_a_thread(case: Case, server: ReplayServer, **more: Any) -> Told:
    """The outcome without an event loop. Another thread ends what is cancelled."""
    threads: list[threading.Thread] = []

    def begin(work: Callable[[], object]) -> None:
        threads.append(threading.Thread(target=work))
        threads[-1].start()

    def cancel_when_asked() -> None:
        server.wait_for(lambda it: bool(it.requests))
        events.cancel()

    watching = [Pauses(lambda: begin(events.cancel))] if case.cancelled == "pause" else []
    options = {**case.options, "observers": watching}
    try:
        with SyncLLMService(*endpoints_of(case, server), settings=Settings(), **options, **more) as service:
            for _ in range(case.before):
                service.complete(ASK)
            if not case.is_stream:
                return told(service.complete(ASK))
            events = service.stream(ASK)
            if case.cancelled == "request":
                begin(cancel_when_asked)
            for event in events:
                if case.cancelled == "text" and event.delta is not None:
                    begin(events.cancel)
            return told(events.response)
    except CrosswalkError as error:
        return refused(error)
    finally:
        for thread in threads:
            thread.join()


def by_aiohttp(case: Case, server: ReplayServer) -> Told:
    """The outcome over the other HTTP library."""
    return in_a_loop(case, server, transport="aiohttp")


def through_a_client(case: Case, server: ReplayServer) -> Told:
    """The outcome through a client of the application, without an event loop."""
    with httpx2.Client(verify=False) as client:
        return in_a_thread(case, server, client=client)


WAYS = [in_a_loop, in_a_thread, through_a_client]
if importlib.util.find_spec("aiohttp"):
    WAYS.append(by_aiohttp)


def waits_long(case: Case) -> bool:
    """Whether a real second has to pass, in which a busy machine still sends a head."""
    timeouts = case.options.get("timeout")
    return isinstance(timeouts, Timeouts) and LONG in attrs.astuple(timeouts)


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with every_api() as running:
        yield running


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.sweep) if waits_long(case) else name
        for name, case in CASES.items()
    ],
)
def test_a_call_has_one_outcome_in_every_service(
    name: str, way: Callable[[Case, ReplayServer], Told], server: ReplayServer
) -> None:
    case = CASES[name]
    for answer, *faults in case.answers:
        server.add(answer, *faults)
    assert way(case, server) == case.told
    assert len(server.requests) == len(case.answers)
