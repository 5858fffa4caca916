"""Records and spans say what the program says of its requests, and which trace they belong to."""

from __future__ import annotations

import pkgutil
import sys
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pyarrow.parquet as pq
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from crosswalk.cli import main
from crosswalk.errors import ConfigurationError
from crosswalk.testing import Answer, ReplayServer
from crosswalk_observe import JSONLinesLog, OpenTelemetrySink, ParquetLog, Watcher, watching
from crosswalk_observe.exchange import Labels

from .conftest import Seen, capture

URL = "https://api.openai.com/v1/chat/completions"
ANSWER = capture("openai/made_text.response.json").body


def ask(watcher: Watcher) -> None:
    transport: Any = httpx2.MockTransport(lambda _: httpx2.Response(200, content=ANSWER))
    with httpx2.Client(transport=watcher.transport(transport)) as client:
        client.post(URL, json={"model": "tiny"})


def test_labels_are_of_the_requests_inside_and_add_up(tmp_path: Path) -> None:
    seen = Seen()
    with Watcher(seen, JSONLinesLog(tmp_path / "log.jsonl"), in_background=False) as watcher:
        with watching(session="s", user="u", tags=["a", "a"]):
            ask(watcher)
            with watching(user="v", tags=["b", "a"]), watching(session="t"):
                ask(watcher)
            ask(watcher)
        ask(watcher)
    outer = Labels("s", "u", ("a",))
    assert [record.labels for record in seen] == [outer, Labels("t", "v", ("a", "b")), outer, Labels()]
    lines = [orjson.loads(line) for line in (tmp_path / "log.jsonl").read_bytes().splitlines()]
    assert [(line.get("session"), line.get("user"), line.get("tags")) for line in lines] == [
        ("s", "u", ["a"]),
        ("t", "v", ["a", "b"]),
        ("s", "u", ["a"]),
        (None, None, None),
    ]


def test_a_record_has_the_ids_of_its_span_or_of_the_program_s() -> None:
    exporter, tracers, seen = InMemorySpanExporter(), TracerProvider(), Seen()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    for sinks in ((OpenTelemetrySink(tracers), seen), (seen,)):
        with (
            Watcher(*sinks, in_background=False) as watcher,
            watching(session="s", user="u", tags=["a"]),
            tracers.get_tracer("program").start_as_current_span("work"),
        ):
            ask(watcher)
    inner, outer, second = exporter.get_finished_spans()
    assert [(record.trace_id, record.span_id) for record in seen] == [
        (f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}") for span in (inner, second)
    ]
    assert inner.context.trace_id == outer.context.trace_id
    attributes = dict(inner.attributes)
    assert (attributes["session.id"], attributes["user.id"], attributes["crosswalk.tags"]) == (
        "s",
        "u",
        ("a",),
    )


def test_without_opentelemetry_a_record_has_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen()
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    with Watcher(seen, in_background=False) as watcher:
        ask(watcher)
    assert (seen.one.trace_id, seen.one.span_id) == (None, None)


# --------------------------------------------------------------------------------------- costs

PRICED = (
    b'{"object": "chat.completion", "model": "gpt-4o", "usage": {"prompt_tokens": 1000, "completion_tokens": 100%s},'
    b' "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}'
)


@pytest.mark.parametrize(
    ("provider", "body", "prices", "cost", "source"),
    [
        ("openai", PRICED % b"", True, "0.0035", "estimated"),
        ("openai", PRICED % b"", False, None, None),
        ("openrouter", PRICED % b', "cost": 0.5', True, "0.5", "provider"),
        ("openrouter", PRICED % b', "cost": 0.5', False, "0.5", "provider"),
        ("vllm", PRICED.replace(b"gpt-4o", b"own") % b"", True, None, None),
    ],
)
def test_records_logs_and_spans_have_the_cost(
    provider: str,
    body: bytes,
    prices: bool,
    cost: str | None,
    source: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    exporter, tracers, seen = InMemorySpanExporter(), TracerProvider(), Seen()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    sinks = (seen, JSONLinesLog("log.jsonl"), ParquetLog("parts"), OpenTelemetrySink(tracers))
    with (
        Watcher(*sinks, prices=prices, providers={"llm": provider}, in_background=False) as watcher,
        watching(session="s", user="u", tags=["a"]),
    ):
        exchange = watcher.begin("POST", "https://llm/v1/chat/completions", {}, b'{"model": "m"}')
        assert exchange is not None
        exchange.answered(200, {})
        exchange.chunk(body)
        exchange.ended()
    found = seen.one.cost
    assert (None if found is None else str(found.amount)) == cost
    (span,) = exporter.get_finished_spans()
    assert (span.attributes or {}).get("gen_ai.usage.cost") == (None if cost is None else float(cost))
    rows = []
    for log, output in (("log.jsonl", "one"), ("parts", "two")):
        assert main(["batch", log, "--output", output, "--jobs", "1"]) == 0
        rows += pq.read_table(f"{output}/responses").to_pylist()
        assert main(["report", output, "--by", "session,user,tags", "--csv"]) == 0
    for row in rows:
        assert (row["cost"], row["cost_source"]) == (None if cost is None else Decimal(cost), source)
        assert (row["session"], row["user"], row["tags"], row["requested_model"]) == ("s", "u", '["a"]', "m")
    one, two = (tuple(row[name] for name in ("time", "latency_seconds", "trace_id")) for row in rows)
    assert one == two
    assert capsys.readouterr().out.count('s,u,"[""a""]",1,0,') == 2


def test_prices_need_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswalk.prices.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="prices need the extra"):
        Watcher(prices=True)


# -------------------------------------------------------------------------------- instrumentor


def test_opentelemetry_finds_an_instrumentor() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8"))["project"]
    ((_, address),) = project["entry-points"]["opentelemetry_instrumentor"].items()
    instrumentor = pkgutil.resolve_name(address)()
    exporter, tracers = InMemorySpanExporter(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    server = ReplayServer()
    server.add(Answer((ANSWER,)), times=2)
    with server, httpx2.Client() as client:
        instrumentor.instrument(skip_dep_check=True, tracer_provider=tracers)
        instrumentor.instrument(tracer_provider=tracers)
        client.post(f"{server.url}/v1/chat/completions", json={"model": "tiny"})
        instrumentor.uninstrument()
        instrumentor.uninstrument()
        client.post(f"{server.url}/v1/chat/completions", json={"model": "tiny"})
    assert [span.name for span in exporter.get_finished_spans()] == ["chat tiny"]
