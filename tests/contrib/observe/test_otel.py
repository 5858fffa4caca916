"""The observed exchanges as OpenTelemetry's spans and metrics."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import httpx2
import jsonschema
import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from crosswalk import CrosswalkError, DetectionError, __version__, normalize, otel_attributes
from crosswalk.otel import SCHEMA_URL, otel_output_messages
from crosswalk.testing import Answer, Cut, ReplayServer, load_captures
from crosswalk_observe import OpenTelemetrySink, Watcher

from .conftest import CAPTURES, Seen, Watch, capture, host_of

SCHEMA = json.loads((Path(__file__).parent / "schemas/gen-ai-output-messages.json").read_text())
VALIDATOR = jsonschema.validators.validator_for(SCHEMA)  # made once: each looks through its schema first
WHOLE = VALIDATOR(SCHEMA)
NAMED = {
    one["properties"]["type"]["const"]: VALIDATOR({**one, "$defs": SCHEMA["$defs"]})
    for one in SCHEMA["$defs"].values()
    if "const" in one.get("properties", {}).get("type", {})
}
CHAT = "/v1/chat/completions"
STREAM = "vllm/chat_think_stream.response.sse"
VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
ASKED = {
    "model": "tiny",
    "messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Why?"}],
    "stream": True,
    "temperature": 0.5,
    "max_tokens": 9,
    "stop": "x",
    "n": 2,
    "tools": [
        {
            "type": "function",
            "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}},
        }
    ],
}


class Telemetry:
    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])
        self.log = InMemoryLogRecordExporter()
        self.loggers = LoggerProvider(shutdown_on_exit=False)
        self.loggers.add_log_record_processor(SimpleLogRecordProcessor(self.log))

    def sink(self, **options: Any) -> OpenTelemetrySink:
        return OpenTelemetrySink(self.tracers, self.meters, self.loggers, **options)

    @property
    def events(self) -> Any:
        return self.log.get_finished_logs()

    @property
    def span(self) -> Any:
        (span,) = self.exporter.get_finished_spans()
        return span

    def points(self) -> dict[str, list[Any]]:
        data = self.reader.get_metrics_data()
        assert data is not None
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics]
        return {metric.name: list(metric.data.data_points) for scope in scopes for metric in scope.metrics}


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def ask(
    server: ReplayServer, sink: OpenTelemetrySink, *, provider: str = "vllm", path: str = CHAT, **body: Any
) -> None:
    """One exchange, observed in a thread."""
    with (
        Watcher(sink, providers={host_of(server): provider}) as watcher,
        httpx2.Client(transport=watcher.transport(httpx2.HTTPTransport())) as client,
        suppress(httpx2.TransportError),
    ):
        client.post(server.url + path, json=body or ASKED)


def test_a_span_says_what_was_asked_and_answered_and_how_long_it_took(
    server: ReplayServer, telemetry: Telemetry
) -> None:
    server.add(capture(STREAM))
    before = datetime.now(UTC).timestamp()
    ask(server, telemetry.sink())
    after = datetime.now(UTC).timestamp()
    span = telemetry.span
    assert (span.name, span.kind, span.status.status_code) == ("chat tiny", SpanKind.CLIENT, StatusCode.UNSET)
    assert before - 0.001 <= span.start_time / 1e9 <= span.end_time / 1e9 <= after + 0.001
    said = dict(span.attributes)
    assert 0 < said.pop("gen_ai.response.time_to_first_chunk") <= said.pop("crosswalk.duration")
    expected = normalize(capture(STREAM).body, "vllm")
    assert said.pop("crosswalk.exchange.id")
    assert said == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "vllm",
        "gen_ai.request.model": "tiny",
        "gen_ai.request.stream": True,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 9,
        "gen_ai.request.stop_sequences": ("x",),
        "gen_ai.request.choice.count": 2,
        **otel_attributes(expected),
        "http.response.status_code": 200,
        "server.address": "127.0.0.1",
        "server.port": int(server.url.rpartition(":")[2]),
    }


@pytest.mark.parametrize(
    ("provider", "path", "name"),
    [
        ("gemini", "/v1beta/models/tiny:generateContent", "generate_content"),
        ("gemini", "/v1beta/models/tiny:streamGenerateContent", "generate_content"),
        ("openai", "/v1/completions", "text_completion"),
        ("ollama", "/api/generate", "text_completion"),
        ("ollama", "/api/chat", "chat"),
        ("anthropic", "/v1/messages", "chat"),
    ],
)
def test_an_operation_has_the_name_of_its_api(
    provider: str, path: str, name: str, server: ReplayServer, telemetry: Telemetry
) -> None:
    server.add(Answer.failure(500))
    ask(server, telemetry.sink(), provider=provider, path=path, model="tiny")
    span = telemetry.span
    assert (span.name, span.attributes["gen_ai.operation.name"]) == (f"{name} tiny", name)
    assert "gen_ai.request.stream" not in span.attributes or "stream" in path
    assert span.instrumentation_scope.version == __version__
    assert span.instrumentation_scope.schema_url == SCHEMA_URL
    (duration,) = telemetry.points()["gen_ai.client.inference.duration"]
    assert duration.attributes["gen_ai.operation.name"] == name


def test_the_metrics(server: ReplayServer, telemetry: Telemetry) -> None:
    server.add(capture(STREAM))
    ask(server, telemetry.sink())
    points = telemetry.points()
    usage = "gen_ai.client.inference.usage"
    assert set(points) == {
        "gen_ai.client.inference.duration",
        "gen_ai.client.inference.time_to_first_chunk",
        "gen_ai.client.inference.time_per_output_chunk",
        "gen_ai.client.inference.operation.input_tokens",
        "gen_ai.client.inference.operation.output_tokens",
        f"{usage}.input_tokens",
        f"{usage}.output_tokens",
    }
    expected = normalize(capture(STREAM).body, "vllm").usage
    (spent,) = points[f"{usage}.input_tokens"]
    assert (spent.value, spent.attributes["gen_ai.token.modality"]) == (expected.prompt_tokens, "unknown")
    (per_call,) = points["gen_ai.client.inference.operation.output_tokens"]
    assert (per_call.sum, per_call.count) == (expected.completion_tokens, 1)
    (duration,) = points["gen_ai.client.inference.duration"]
    assert duration.sum == telemetry.span.attributes["crosswalk.duration"]
    assert duration.attributes["gen_ai.request.model"] == "tiny"
    assert duration.attributes["gen_ai.operation.name"] == "chat"


def test_each_later_piece_of_a_stream_has_its_time(telemetry: Telemetry) -> None:
    with Watcher(telemetry.sink(), in_background=False) as watcher:
        exchange = watcher.begin(
            "POST", "https://api.openai.com" + CHAT, {}, b'{"model": "m", "stream": true}'
        )
        assert exchange is not None
        exchange.answered(200, {})
        for _ in range(4):
            exchange.chunk(b": wait\n\n")
        exchange.ended()
    (point,) = telemetry.points()["gen_ai.client.inference.time_per_output_chunk"]
    assert point.count == 3


def test_tokens_of_images_count_by_modality(telemetry: Telemetry) -> None:
    usage = {
        "input_tokens": 50,
        "output_tokens": 9,
        "input_tokens_details": {"text_tokens": 10, "image_tokens": 40},
    }
    with Watcher(telemetry.sink(), in_background=False) as watcher:
        url = "https://api.openai.com/v1/images/generations"
        exchange = watcher.begin("POST", url, {}, b'{"model": "m"}')
        assert exchange is not None
        exchange.answered(200, {})
        exchange.chunk(json.dumps({"data": [], "usage": usage}).encode())
        exchange.ended()
    points = telemetry.points()
    spent = points["gen_ai.client.inference.usage.input_tokens"]
    assert {point.attributes["gen_ai.token.modality"]: point.value for point in spent} == {
        "text": 10,
        "image": 40,
    }


def test_tokens_count_by_modality(telemetry: Telemetry) -> None:
    details = {"cached_tokens": 4, "audio_tokens": 3, "text_tokens": 5}
    body = {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 2,
            "prompt_tokens_details": details,
            "completion_tokens_details": {"text_tokens": 2, "reasoning_tokens": 1},
        },
    }
    with Watcher(telemetry.sink(), in_background=False) as watcher:
        for method, url in (
            ("POST", "https://api.openai.com" + CHAT),
            ("GET", "https://api.openai.com/v1/responses/resp_1"),
        ):
            exchange = watcher.begin(method, url, {}, b'{"model": "m"}')
            assert exchange is not None
            exchange.answered(200, {})
            exchange.chunk(json.dumps(body).encode())
            exchange.ended()
    points = telemetry.points()
    assert {
        name.removeprefix("gen_ai.client.inference.usage."): {
            point.attributes["gen_ai.token.modality"]: point.value for point in found
        }
        for name, found in points.items()
        if ".usage." in name
    } == {
        "input_tokens": {"text": 5, "audio": 3, "unknown": 2},
        "output_tokens": {"text": 2},
        "cache_read.input_tokens": {"unknown": 4},
        "reasoning.output_tokens": {"unknown": 1},
    }
    (other,) = points["gen_ai.client.operation.duration"]
    assert other.attributes["gen_ai.operation.name"] == "fetch_response"


def test_the_dashboard_asks_for_metrics_that_exist(server: ReplayServer, telemetry: Telemetry) -> None:
    server.add(capture(STREAM))
    ask(server, telemetry.sink())
    metrics = {}
    for name, points in telemetry.points().items():
        unit = "_total" if ".usage." in name else "" if name.endswith("tokens") else "_seconds"
        metrics[name.replace(".", "_") + unit] = {key.replace(".", "_") for key in points[0].attributes}
    folder = Path(__file__).parents[3] / "contrib/observability"
    panels = json.loads((folder / "genai.json").read_text("utf-8"))["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    asked = [
        (re.findall(r"(gen_ai_client_\w+?)(?:_bucket|_count|_sum)?[\[{]", query), query) for query in queries
    ]
    assert {name for names, _ in asked for name in names} <= metrics.keys()
    for (name,), query in asked:
        (by,) = re.findall(r"by \(([^)]*)\)", query)
        assert {label.strip() for label in by.split(",")} <= metrics[name] | {"le", "error_type"}


def test_the_parent_is_the_span_in_which_the_request_was_made(
    server: ReplayServer, telemetry: Telemetry
) -> None:
    server.add(capture(STREAM))
    with telemetry.tracers.get_tracer("test").start_as_current_span("outer"):
        ask(server, telemetry.sink())
    inner, outer = telemetry.exporter.get_finished_spans()
    assert inner.parent is not None
    assert outer.context is not None
    assert (inner.name, inner.parent.span_id) == ("chat tiny", outer.context.span_id)


def test_an_error_is_one_of_the_span_and_of_the_metrics(server: ReplayServer, telemetry: Telemetry) -> None:
    server.add(Answer.failure(429))
    ask(server, telemetry.sink())
    assert telemetry.span.status.status_code is StatusCode.ERROR
    attributes = telemetry.span.attributes
    assert (attributes["error.type"], attributes["crosswalk.error.kind"]) == ("replay", "rate_limit")
    (duration,) = telemetry.points()["gen_ai.client.inference.duration"]
    assert duration.attributes["error.type"] == "replay"


def test_a_connection_that_breaks_before_any_answer(server: ReplayServer, telemetry: Telemetry) -> None:
    server.add(capture(STREAM), Cut(after_events=0))
    ask(server, telemetry.sink())
    assert telemetry.span.status.status_code is StatusCode.ERROR
    assert telemetry.span.attributes["error.type"] == "connection_lost"
    assert telemetry.span.status.description == "server: connection_lost"
    assert "gen_ai.response.id" not in telemetry.span.attributes
    assert "gen_ai.response.model" not in telemetry.span.attributes
    (duration,) = telemetry.points()["gen_ai.client.inference.duration"]
    assert "gen_ai.response.model" not in duration.attributes


@pytest.mark.parametrize(
    ("provider", "path", "body"),
    [
        ("ollama", "/api/chat", {"error": "error parsing tool call: raw='{\"name\":\"Jane Doe, 12 High St\"', err=x"}),
        ("vllm", CHAT, {"error": {"message": "'input': 'Jane Doe, 12 High St'", "type": "x", "code": 400}}),
        ("openai", CHAT, {"error": {"message": "x", "type": "x", "code": "Jane Doe, 12 High St"}}),
    ],
)  # fmt: skip
def test_a_span_without_content_does_not_quote_what_the_server_says(
    provider: str, path: str, body: Any, server: ReplayServer, telemetry: Telemetry
) -> None:
    server.add(Answer.of_json(body, status=400), times=None)
    ask(server, telemetry.sink(), provider=provider, path=path)
    span = telemetry.span
    assert "Jane" not in span.to_json()
    assert span.status.description is not None


def test_a_program_that_asks_for_many_models_makes_no_series_of_each(telemetry: Telemetry) -> None:
    with Watcher(telemetry.sink(), in_background=False) as watcher:
        for number in range(102):
            body = json.dumps({"model": f"m{number}"}).encode()
            exchange = watcher.begin("POST", "https://api.openai.com" + CHAT, {}, body)
            assert exchange is not None
            exchange.answered(500, {})
            exchange.ended()
    points = telemetry.points()["gen_ai.client.inference.duration"]
    models = [point.attributes["gen_ai.request.model"] for point in points]
    assert len(models) == 101
    assert models[-1] == "_OTHER"
    assert telemetry.exporter.get_finished_spans()[-1].name == "chat m101"


def test_a_server_that_is_not_there(telemetry: Telemetry) -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused")

    with (
        Watcher(telemetry.sink(), in_background=False) as watcher,
        httpx2.Client(transport=watcher.transport(httpx2.MockTransport(refuse))) as client,
        pytest.raises(httpx2.ConnectError),
    ):
        client.post("https://api.openai.com/v1/chat/completions", json=ASKED)
    said = telemetry.span.attributes
    assert (said["error.type"], said["server.address"]) == ("connect_error", "api.openai.com")
    assert "http.response.status_code" not in said


def test_an_answer_of_nobody_is_a_failed_span(
    server: ReplayServer, watch: Watch, seen: Seen, telemetry: Telemetry
) -> None:
    server.add(capture(STREAM))
    with httpx2.Client(transport=watch().transport(httpx2.HTTPTransport())) as client:
        client.post(server.url + CHAT, json={})
    record = attrs.evolve(seen.one, provider=None, response=None, error=DetectionError("nobody's"))
    telemetry.sink(content=True)(record)
    span = telemetry.span
    assert (span.name, span.status.status_code) == ("chat", StatusCode.ERROR)
    (duration,) = telemetry.points()["gen_ai.client.inference.duration"]
    for said in (duration.attributes, span.attributes):
        assert (said["error.type"], said["gen_ai.provider.name"]) == ("DetectionError", "_OTHER")
    assert duration.sum == record.duration.total_seconds()


@pytest.mark.parametrize(
    ("said", "given", "in_span", "in_event"),
    [
        (None, None, False, False),
        ("NO_CONTENT", None, False, False),
        ("event_only", None, False, True),
        ("span_only", None, True, False),
        ("SPAN_AND_EVENT", None, True, True),
        ("true", None, True, False),
        ("SPAN_ONLY", False, False, False),
        ("EVENT_ONLY", True, True, False),
    ],
)
def test_content_is_told_to_those_who_ask_for_it(
    said: str | None,
    given: bool | None,
    in_span: bool,
    in_event: bool,
    server: ReplayServer,
    telemetry: Telemetry,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if said is not None:
        monkeypatch.setenv(VARIABLE, said)
    server.add(capture(STREAM))
    ask(server, telemetry.sink(content=given))
    attributes = dict(telemetry.span.attributes)
    assert ("gen_ai.output.messages" in attributes) == in_span
    assert ("Why?" in str(attributes)) == in_span
    assert bool(telemetry.events) == in_event


def test_an_event_holds_the_messages_and_belongs_to_the_span(
    server: ReplayServer, telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "EVENT_ONLY")
    server.add(capture(STREAM))
    ask(server, telemetry.sink())
    (event,) = telemetry.events
    record = event.log_record
    assert record.event_name == "gen_ai.client.inference.operation.details"
    assert record.span_id == telemetry.span.context.span_id
    assert record.attributes["gen_ai.request.temperature"] == 0.5
    assert record.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert record.attributes["gen_ai.input.messages"][1]["parts"][0]["content"] == "Why?"
    assert event.instrumentation_scope.schema_url == SCHEMA_URL


def test_an_event_of_what_could_not_be_read(
    server: ReplayServer, watch: Watch, seen: Seen, telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "EVENT_ONLY")
    server.add(capture(STREAM))
    with httpx2.Client(transport=watch().transport(httpx2.HTTPTransport())) as client:
        client.post(server.url + CHAT, json=ASKED)
    telemetry.sink()(attrs.evolve(seen.one, response=None, error=DetectionError("nobody's")))
    (event,) = telemetry.events
    assert "gen_ai.output.messages" not in event.log_record.attributes
    assert "gen_ai.input.messages" in event.log_record.attributes


def test_large_content_can_be_put_elsewhere(server: ReplayServer, telemetry: Telemetry) -> None:
    uploads: list[dict[str, Any]] = []

    def upload(content: dict[str, Any]) -> dict[str, Any]:
        uploads.append(content)
        return {
            "gen_ai.tool.definitions": content["gen_ai.tool.definitions"],
            "app.messages": "s3://bucket/1",
        }

    server.add(capture(STREAM))
    ask(server, telemetry.sink(content=True, upload=upload, content_limit=4))
    attributes = telemetry.span.attributes
    assert uploads[0]["gen_ai.input.messages"][1]["parts"] == [{"type": "text", "content": "Why?"}]
    assert attributes["app.messages"] == "s3://bucket/1"
    assert json.loads(attributes["gen_ai.tool.definitions"])[0]["name"] == "look"
    assert "gen_ai.input.messages" not in attributes


def test_an_upload_that_fails_costs_the_messages_alone(
    server: ReplayServer, telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    def upload(content: dict[str, Any]) -> dict[str, Any]:
        raise ConnectionError("the store is away")

    server.add(capture(STREAM))
    ask(server, telemetry.sink(content=True, upload=upload))
    assert telemetry.span.attributes["gen_ai.usage.output_tokens"] > 0
    assert "gen_ai.input.messages" not in telemetry.span.attributes
    assert "gen_ai.client.inference.duration" in telemetry.points()
    assert "OpenTelemetrySink failed with ConnectionError" in caplog.text


def test_texts_can_be_cut(server: ReplayServer, telemetry: Telemetry) -> None:
    server.add(capture(STREAM))
    ask(server, telemetry.sink(content=True, content_limit=4), **ASKED)
    (system, user), (tool,) = (
        json.loads(telemetry.span.attributes[f"gen_ai.{name}"])
        for name in ("input.messages", "tool.definitions")
    )
    assert (system["role"], system["parts"][0]["type"]) == ("system", "text")
    assert [system["parts"][0]["content"], user["parts"][0]["content"]] == ["Be s", "Why?"]
    assert (tool["type"], tool["parameters"]) == ("function", {"type": "obje"})


def test_a_word_that_nobody_knows_is_told_and_means_no(
    monkeypatch: pytest.MonkeyPatch,
    telemetry: Telemetry,
    server: ReplayServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv(VARIABLE, "SPANS")
    server.add(capture(STREAM))
    with caplog.at_level(logging.WARNING, "crosswalk.observe"):
        ask(server, telemetry.sink())
    assert VARIABLE in caplog.text
    assert "gen_ai.input.messages" not in telemetry.span.attributes


def test_content_in_the_words_of_the_conventions(server: ReplayServer, telemetry: Telemetry) -> None:
    server.add(capture(STREAM))
    ask(server, telemetry.sink(content=True), **ASKED)
    said = telemetry.span.attributes
    assert json.loads(said["gen_ai.input.messages"]) == [
        {"role": "system", "parts": [{"type": "text", "content": "Be short."}]},
        {"role": "user", "parts": [{"type": "text", "content": "Why?"}]},
    ]
    assert json.loads(said["gen_ai.tool.definitions"]) == [
        {"type": "function", "name": "look", "description": "Looks.", "parameters": {"type": "object"}}
    ]
    assert "gen_ai.system_instructions" not in said
    expected = otel_output_messages(normalize(capture(STREAM).body, "vllm"))
    assert json.loads(said["gen_ai.output.messages"]) == expected
    check(expected)


def test_content_of_what_could_not_be_read(server: ReplayServer, telemetry: Telemetry) -> None:
    server.add(Answer.of_json({}))
    with (
        Watcher(telemetry.sink(content=True), providers={host_of(server): "vllm"}) as watcher,
        httpx2.Client(transport=watcher.transport(httpx2.HTTPTransport())) as client,
    ):
        client.post(server.url + CHAT, content=b"no JSON")
    assert "gen_ai.input.messages" not in telemetry.span.attributes


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"generationConfig": {"topK": 4, "maxOutputTokens": 5, "stopSequences": ["a", "b"]}},
            {"top_k": 4, "max_tokens": 5, "stop_sequences": ("a", "b")},
        ),
        ({"options": {"num_predict": 7, "seed": 1}, "temperature": True}, {"max_tokens": 7, "seed": 1}),
        ({"inferenceConfig": {"maxTokens": 3, "topP": 0.5}}, {"max_tokens": 3, "top_p": 0.5}),
        (
            {"reasoning_effort": "low", "response_format": {"type": "json_schema"}},
            {"reasoning.level": "low", "output.type": "json"},
        ),
        (
            {
                "reasoning": {"effort": "high"},
                "text": {"format": {"type": "text"}},
                "previous_response_id": "resp_1",
            },
            {"reasoning.level": "high", "output.type": "text", "previous_response.id": "resp_1"},
        ),
        (
            {
                "generationConfig": {
                    "responseMimeType": "application/json",
                    "thinkingConfig": {"thinkingLevel": "low"},
                }
            },
            {"reasoning.level": "low", "output.type": "json"},
        ),
        (
            {"format": "json", "output_config": {"effort": "max"}},
            {"reasoning.level": "max", "output.type": "json"},
        ),
        ({"thinking": {"type": "enabled"}, "think": "high"}, {"reasoning.level": "high"}),
        ({"generationConfig": {"candidateCount": 2}}, {"choice.count": 2}),
        (
            {"p": 0.5, "k": 3, "parameters": {"max_new_tokens": 9}},
            {"top_p": 0.5, "top_k": 3, "max_tokens": 9},
        ),
        ({"seed": 1.5, "stop": [1], "n": 1, "options": []}, {}),
    ],
)
def test_options_in_the_words_of_every_dialect(
    options: dict[str, Any], said: dict[str, Any], server: ReplayServer, telemetry: Telemetry
) -> None:
    server.add(capture(STREAM))
    ask(server, telemetry.sink(), model="tiny", **options)
    found = {
        name.removeprefix("gen_ai.").removeprefix("request."): value
        for name, value in telemetry.span.attributes.items()
        if name.startswith(("gen_ai.request.", "gen_ai.output.")) and not name.endswith((".model", ".stream"))
    }
    assert found == said


def check(messages: list[dict[str, Any]]) -> None:
    """*messages* are as the schema has them, and each part of a type that it names is as it has that one."""
    WHOLE.validate(messages)
    for message in messages:
        for part in message["parts"]:
            if part["type"] in NAMED:
                NAMED[part["type"]].validate(part)


def answers() -> Iterator[tuple[str, Any]]:
    for folder in sorted(CAPTURES.iterdir()):
        if folder.is_dir():
            for one in load_captures(folder):
                try:
                    yield folder.name, normalize(one.body, folder.name, status=one.status)
                except CrosswalkError:
                    continue


@pytest.mark.sweep
def test_every_answer_is_as_the_schema_has_it_and_says_all() -> None:
    for provider, response in answers():
        messages = otel_output_messages(response)
        check(messages)
        (first, *others) = messages
        parts = first["parts"]
        assert "".join(part["content"] for part in parts if part["type"] == "text") == response.text, provider
        calls = [(part["id"], part["name"]) for part in parts if part["type"] == "tool_call"]
        assert sorted(calls) == sorted((call.id, call.name) for call in response.tool_calls), provider
        assert len(others) == len(response.alternatives)


# -------------------------------------------------------------------------------- what it needs


@pytest.mark.parametrize(
    ("value", "content", "needs"),
    [
        ("", None, "facts"),
        ("NO_CONTENT", None, "facts"),
        ("", False, "facts"),
        ("", True, "everything"),
        ("SPAN_ONLY", None, "everything"),
        ("EVENT_ONLY", None, "everything"),
    ],
)
def test_only_messages_need_more_than_facts(
    value: str, content: bool | None, needs: str, telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, value)
    assert telemetry.sink(content=content).needs == needs


def test_a_span_of_facts_is_the_same_as_one_beside_a_sink_that_needs_everything(
    server: ReplayServer, seen: Seen
) -> None:
    spans = []
    for more in ((), (seen,)):
        server.add(Answer.of_capture(capture(STREAM)))
        telemetry = Telemetry()
        with (
            Watcher(telemetry.sink(), *more, providers={host_of(server): "vllm"}) as watcher,
            httpx2.Client(transport=watcher.transport(httpx2.HTTPTransport())) as client,
        ):
            client.post(server.url + CHAT, json=ASKED)
        of_each = ("crosswalk.exchange.id", "crosswalk.duration", "time_to_first")
        said = telemetry.span.attributes
        spans.append({name: said[name] for name in said if not any(word in name for word in of_each)})
    assert spans[0] == spans[1]
    assert "gen_ai.usage.output_tokens" in spans[0]


def test_the_answer_shows_another_provider_than_the_address(telemetry: Telemetry) -> None:
    answer = capture("vllm/chat_think.response.json")
    with Watcher(telemetry.sink(), include=["a.example"], in_background=False) as watcher:
        exchange = watcher.begin("POST", "https://a.example" + CHAT, {}, b'{"model":"m","messages":[]}')
        assert exchange is not None
        exchange.answered(200, {"content-type": "application/json"})
        exchange.chunk(answer.body)
        exchange.ended()
    assert exchange.site.providers[0] != "vllm"
    assert telemetry.span.attributes["gen_ai.provider.name"] == "vllm"
    for points in telemetry.points().values():
        assert points[0].attributes["gen_ai.provider.name"] == "vllm"
