"""Spans and metrics in OpenTelemetry's words."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from crosswalk import CrosswalkError
from crosswalk.config import Settings
from crosswalk.service import ChatRequest, Endpoint, LLMService, OpenTelemetry, ResponseFormat, SyncLLMService
from crosswalk.testing.replay import Answer, ReplayServer
from wires import body, chunk, usage

Make = Callable[..., LLMService]
HELLO = Answer.of_json(body({"content": "Hello."}, usage=usage(3, 2)))


class Telemetry:
    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.observer = OpenTelemetry(self.tracers, MeterProvider([self.reader]))

    @property
    def spans(self) -> Any:
        return self.exporter.get_finished_spans()

    def points(self) -> dict[str, list[Any]]:
        data = self.reader.get_metrics_data()
        scopes = (
            [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data else []
        )
        return {metric.name: list(metric.data.data_points) for scope in scopes for metric in scope.metrics}


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


def ask(service: LLMService, request: ChatRequest, *, stream: bool = False) -> None:
    async def run() -> None:
        async with service:
            if stream:
                async with service.stream(request) as events:
                    async for _ in events:
                        pass
            else:
                await service.complete(request)

    asyncio.run(run())


def test_a_span_says_what_was_asked_and_answered(
    server: ReplayServer, service_of: Make, telemetry: Telemetry
) -> None:
    server.add(HELLO)
    request = ChatRequest(
        "hi", temperature=0.5, max_tokens=9, seed=1, stop=["x"], response_format=ResponseFormat()
    )
    ask(service_of(server, observers=[telemetry.observer]), request)
    (span,) = telemetry.spans
    assert (span.name, span.kind, span.status.status_code) == ("chat m", SpanKind.CLIENT, StatusCode.UNSET)
    said = dict(span.attributes)
    assert said.pop("crosswalk.duration") > 0
    assert said.pop("crosswalk.call.id")
    assert said == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "vllm",
        "gen_ai.request.model": "m",
        "gen_ai.request.stream": False,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 9,
        "gen_ai.request.seed": 1,
        "gen_ai.request.stop_sequences": ("x",),
        "gen_ai.output.type": "json",
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.response.model": "m",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 2,
        "server.address": "127.0.0.1",
        "server.port": int(server.url.rpartition(":")[2]),
        "crosswalk.attempts": 1,
    }
    assert not span.events


def test_the_metrics(server: ReplayServer, service_of: Make, telemetry: Telemetry) -> None:
    server.add(Answer.of_events([chunk({"content": "Hi"}), chunk({}, "stop"), chunk(usage=usage(3, 2))]))
    ask(service_of(server, observers=[telemetry.observer]), ChatRequest("hi"), stream=True)
    points = telemetry.points()
    assert points["gen_ai.client.inference.time_to_first_chunk"][0].count == 1
    for kind, count in (("input", 3), ("output", 2)):
        (spent,) = points[f"gen_ai.client.inference.usage.{kind}_tokens"]
        assert spent.value == count
    (duration,) = points["gen_ai.client.inference.duration"]
    assert duration.attributes["gen_ai.provider.name"] == "vllm"
    assert duration.attributes["gen_ai.operation.name"] == "chat"


@pytest.mark.untraced
def test_a_server_that_makes_up_models_makes_no_series_of_each(
    server: ReplayServer, service_of: Make, telemetry: Telemetry
) -> None:
    """Spans have the details. A backend keeps every series of metrics for ever."""
    for number in range(103):
        server.add(Answer.of_json({**body({"content": "Hi"}), "model": f"m{number % 102}"}))

    async def run() -> None:
        async with service_of(server, observers=[telemetry.observer]) as service:
            for _ in range(103):
                await service.complete(ChatRequest("hi"))

    asyncio.run(run())
    points = telemetry.points()["gen_ai.client.inference.duration"]
    counts = {point.attributes["gen_ai.response.model"]: point.count for point in points}
    assert len(counts) == 101
    assert (counts["m0"], counts["_OTHER"]) == (2, 2)
    assert telemetry.spans[101].attributes["gen_ai.response.model"] == "m101"


def test_failed_attempts_are_events(server: ReplayServer, service_of: Make, telemetry: Telemetry) -> None:
    server.add(Answer.failure(503), times=None)
    ask(service_of(server, observers=[telemetry.observer]), ChatRequest("hi"), stream=True)
    (span,) = telemetry.spans
    assert [event.attributes["error.type"] for event in span.events] == ["server"] * 3
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes["error.type"], span.attributes["crosswalk.error.kind"]) == ("replay", "server")
    (duration,) = telemetry.points()["gen_ai.client.inference.duration"]
    assert duration.attributes["error.type"] == "replay"


def test_what_could_not_be_sent(server: ReplayServer, service_of: Make, telemetry: Telemetry) -> None:
    service = service_of(Endpoint("vllm", base_url=server.url), observers=[telemetry.observer])
    with pytest.raises(CrosswalkError):
        ask(service, ChatRequest("hi"))
    (span,) = telemetry.spans
    assert span.attributes["error.type"] == "UnsupportedRequestError"
    assert span.status.status_code is StatusCode.ERROR


def test_a_span_is_a_child_of_its_caller_in_either_way(server: ReplayServer, telemetry: Telemetry) -> None:
    server.add(HELLO)
    endpoint = Endpoint("vllm", model="m", base_url=server.url)
    options: Any = {
        "settings": Settings(),
        "observers": [telemetry.observer],
        "client_options": {"verify": False},
    }
    tracer = telemetry.tracers.get_tracer("test")
    with SyncLLMService(endpoint, **options) as service, tracer.start_as_current_span("outer"):
        service.complete(ChatRequest("hi"))
    inner, outer = telemetry.spans
    assert inner.parent.span_id == outer.context.span_id


def test_without_opentelemetry_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(CrosswalkError, match=r"crosswalk-llm\[otel\]"):
        OpenTelemetry()
