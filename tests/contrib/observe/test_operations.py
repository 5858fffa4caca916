"""A span is one call of an SDK: current while its request is sent, whatever it takes, and never lost."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import Any

import httpx2
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from crosswalk.testing import Answer, ReplayServer
from crosswalk_observe import ObservedExchange, OpenTelemetrySink, WatchedExchange, Watcher

from .conftest import Seen, capture

URL = "https://api.openai.com/v1/chat/completions"
COUNT = "X-Stainless-Retry-Count"
BODY = b'{"model": "tiny"}'
ANSWER = capture("openai/made_text.response.json").body
BUSY = b'{"error": {"message": "slow down", "type": "rate_limit_exceeded", "code": null, "param": null}}'


class Spans:
    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.sink = OpenTelemetrySink(self.tracers)

    @property
    def ended(self) -> list[Any]:
        return [dict(span.attributes or {}) for span in self.exporter.get_finished_spans()]


@pytest.fixture
def spans() -> Spans:
    return Spans()


def attempt(
    watcher: Watcher, number: int | None, status: int | None = 200, url: str = URL, **headers: str
) -> WatchedExchange:
    """One exchange, with *status*. ``None`` for a connection that fails."""
    exchange = watcher.begin("POST", url, {} if number is None else {COUNT: str(number)}, BODY)
    assert exchange is not None
    if status is None:
        exchange.failed(ConnectionError())
    else:
        exchange.answered(status, {name.replace("_", "-"): value for name, value in headers.items()})
        exchange.chunk(ANSWER if status == 200 else BUSY)
        exchange.ended()
    return exchange


def test_the_attempts_of_one_call_are_one_span_and_a_record_each(spans: Spans) -> None:
    seen, sink = Seen(), Failing()
    with Watcher(spans.sink, seen, sink, in_background=False) as watcher:
        first = attempt(watcher, 0, 429)
        attempt(watcher, 1, None)
        assert spans.ended == []
        last = attempt(watcher, 2)
        (span,) = spans.ended
    assert span["http.request.resend_count"] == 2
    assert span["http.response.status_code"] == 200
    assert span["crosswalk.exchange.id"] == last.id
    assert "error.type" not in span
    (span,) = spans.exporter.get_finished_spans()
    assert span.status.is_ok
    assert span.start_time is not None
    assert span.start_time // 1000 == int(first.began.timestamp() * 1e6)
    assert len(sink.records) == 1
    assert [(record.status, record.resend_count) for record in seen] == [(429, 0), (None, 1), (200, 2)]


def test_an_attempt_that_begins_before_the_last_one_is_read_goes_on(spans: Spans) -> None:
    with Watcher(spans.sink, in_background=False) as watcher:
        first = watcher.begin("POST", URL, {COUNT: "0"}, BODY)
        assert first is not None
        first.answered(429, {})
        second = watcher.begin("POST", URL, {COUNT: "1"}, BODY)
        assert second is not None
        first.abandoned()
        second.answered(200, {})
        second.chunk(ANSWER)
        second.ended()
    assert [span["http.response.status_code"] for span in spans.ended] == [200]


@pytest.mark.parametrize(
    ("number", "status", "headers", "is_over"),
    [
        (0, 429, {}, False),
        (0, 503, {}, False),
        (0, 409, {"x_should_retry": "false"}, True),
        (0, 400, {"x_should_retry": "true"}, False),
        (0, 400, {}, True),
        (0, 200, {}, True),
        (0, None, {}, False),
        (None, 429, {}, True),
    ],
)
def test_a_call_is_over_when_the_sdk_does_not_try_again(
    number: int | None, status: int | None, headers: dict[str, str], is_over: bool, spans: Spans
) -> None:
    with Watcher(spans.sink, in_background=False) as watcher:
        attempt(watcher, number, status, **headers)
        assert len(spans.ended) == is_over
        assert watcher.flush()
        assert len(spans.ended) == 1
        attempt(watcher, 1)  # too late, or another call's
        assert len(spans.ended) == 2


@pytest.mark.parametrize(("asked", "wait"), [("", 10), ("20", 30), ("61", 10), ("soon", 10)])
def test_a_call_that_is_not_tried_again_in_time_is_over(
    asked: str, wait: float, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("crosswalk_observe.exchange.time.monotonic", lambda: now)
    with Watcher(spans.sink, in_background=False) as watcher:
        attempt(watcher, 0, 429, retry_after=asked)
        now += wait - 1
        attempt(watcher, None)
        assert len(spans.ended) == 1
        now += 1
        attempt(watcher, None)
        assert [span["http.response.status_code"] for span in spans.ended] == [200, 429, 200]


def test_calls_that_are_not_tried_again_in_time_are_over_in_the_background(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = count(0, 3.32)  # the third look is just before the end of what a call waits for
    monkeypatch.setattr("crosswalk_observe.exchange.time.monotonic", lambda: next(clock))
    sink = Failing()
    with Watcher(sink) as watcher:
        attempt(watcher, 0, 429)
        assert sink.has_ended.wait(60)
    assert len(sink.records) == 1


def test_nothing_is_held_of_a_call_that_is_over(spans: Spans) -> None:
    with Watcher(spans.sink, in_background=False) as watcher:
        calls = [
            weakref.ref(attempt(watcher, number % 2, 429 if number % 2 == 0 else 200)) for number in range(20)
        ]
        gc.collect()
        assert [call() for call in calls[:-1]] == [None] * 19
    assert len(spans.ended) == 10


def test_another_call_is_another_span(spans: Spans) -> None:
    with Watcher(spans.sink, in_background=False) as watcher:
        attempt(watcher, 0, 429)
        attempt(watcher, 1, url="https://api.openai.com/v1/completions")
        attempt(watcher, 0, 429)
        attempt(watcher, 2)
    assert len(spans.ended) == 4


def test_the_span_is_current_while_the_request_is_sent(server: ReplayServer, spans: Spans) -> None:
    server.add(capture("openai/made_text.response.json"), times=None)
    current = []

    def handle(request: Any) -> Any:
        current.append(trace.get_current_span().get_span_context().span_id)
        return httpx2.Response(200, content=ANSWER)

    with Watcher(spans.sink, in_background=False) as watcher:
        transport = watcher.transport(httpx2.MockTransport(handle))
        with spans.tracers.get_tracer("the program").start_as_current_span("work") as work:
            with httpx2.Client(transport=transport) as client:
                client.post(URL, content=BODY)

            async def ask() -> None:
                async with httpx2.AsyncClient(transport=transport) as client:
                    await client.post(URL, content=BODY)

            asyncio.run(ask())
            assert trace.get_current_span() is work
    first, second, outer = spans.exporter.get_finished_spans()
    assert current == [first.context.span_id, second.context.span_id]
    assert {first.parent.span_id, second.parent.span_id} == {outer.context.span_id}


def test_a_span_without_a_record_ends_too(spans: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    with Watcher(spans.sink, in_background=False, most_bytes=2000) as watcher:
        redirected = watcher.begin("POST", URL, {}, BODY)
        assert redirected is not None
        redirected.answered(307, {})
        dropped = watcher.begin("POST", URL, {}, BODY)
        assert dropped is not None
        dropped.answered(200, {})
        dropped.chunk(b"x" * 3000)
        with monkeypatch.context() as patched:
            patched.setattr("crosswalk_observe.watcher.record_of", lambda *_: 1 / 0)
            attempt(watcher, None)
        redirected.discard()
        late = watcher.begin("POST", URL, {}, BODY)
    assert late is not None
    assert len(spans.ended) == 4
    assert [span["gen_ai.request.model"] for span in spans.ended] == ["tiny"] * 4


class Failing:
    """A sink with operations that fail on request."""

    def __init__(self, *where: str) -> None:
        self.where = where
        self.has_ended = threading.Event()
        self.records: list[ObservedExchange | None] = []

    def __call__(self, record: ObservedExchange) -> None:
        self.records.append(record)

    def started(self, exchange: WatchedExchange) -> Failing:
        self.fail("started")
        return self

    def current(self) -> AbstractContextManager[object]:
        self.fail("current")
        return nullcontext()

    def end(self, record: ObservedExchange | None) -> None:
        self.fail("end")
        self.records.append(record)
        self.has_ended.set()

    def fail(self, where: str) -> None:
        if where in self.where:
            raise ZeroDivisionError


def test_an_operation_that_fails_hurts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    seen, answers = Seen(), []
    sinks = Failing("started"), Failing("current"), Failing("end")
    with Watcher(*sinks, seen, in_background=False) as watcher:
        transport = watcher.transport(httpx2.MockTransport(lambda _: httpx2.Response(200, content=ANSWER)))
        with httpx2.Client(transport=transport) as client:
            answers.append(client.post(URL, content=BODY).content)
    assert answers == [ANSWER]
    assert [len(sink.records) for sink in sinks] == [1, 1, 0]
    assert len(seen) == 1
    assert [record.getMessage() for record in caplog.records] == [
        "Failing failed with ZeroDivisionError (logged once)",
        "beginning an operation failed with ZeroDivisionError (logged once)",
    ]


PROGRAM = """
import http.client, sys
import httpx2
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from crosswalk_observe import OpenTelemetrySink, Watcher, install

server = sys.argv[1].partition("//")[2]

class Exporter(SpanExporter):
    def export(self, spans):
        for span in spans:
            connection = http.client.HTTPConnection(server)
            connection.request("POST", "/v1/traces", span.to_json(), {"Content-Type": "application/json"})
            connection.getresponse().read()
            connection.close()
        return SpanExportResult.SUCCESS

def set_up():
    tracers = TracerProvider()
    tracers.add_span_processor(BatchSpanProcessor(Exporter()))
    trace.set_tracer_provider(tracers)

if sys.argv[2] == "before":
    set_up()
install(Watcher(OpenTelemetrySink(), providers={server: "openai"}))
if sys.argv[2] == "after":
    set_up()
url = sys.argv[1] + "/v1/chat/completions"
client = httpx2.Client()
whole = client.post(url, json={"model": "whole"})
busy = client.post(url, json={"model": "busy"}, headers={"X-Stainless-Retry-Count": "0"})
left = client.send(client.build_request("POST", url, json={"model": "left"}), stream=True)
next(left.iter_raw())
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_no_span_is_lost_at_the_end_of_a_program(when: str, server: ReplayServer) -> None:
    """A receiver of spans, in a separate process, has all of them when the program has ended."""
    events = Answer.of_events([{"object": "chat.completion.chunk", "id": "x", "choices": []}] * 3)
    server.add(Answer((b"{}",)), when=lambda asked: asked.path == "/v1/traces", times=None)
    server.add(Answer((BUSY,), status=429), when=lambda asked: b"busy" in asked.body, times=None)
    server.add(events, times=None)
    subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM, server.url, when], check=True)
    sent = [asked.body for asked in server.requests if asked.path == "/v1/traces"]
    names = sorted(
        name for body in sent for name in (b"chat whole", b"chat busy", b"chat left") if name in body
    )
    assert names == [b"chat busy", b"chat left", b"chat whole"]
