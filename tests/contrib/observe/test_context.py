"""Records and spans say what the program says of its requests, and which trace they belong to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from crosswalk_observe import JSONLinesLog, OpenTelemetrySink, Watcher, watching
from crosswalk_observe.context import Labels

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
