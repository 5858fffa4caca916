"""`crosswalk report` reads what the logs of products state, and leaves out what is no exchange."""

from __future__ import annotations

import bz2
import csv
import io
import json
import lzma
import math
import random
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from crosswalk.cli import report_rows
from crosswalk.cli.report_rows import Group, ReportRow

from .conftest import Done, Terminal
from .log_samples import (
    CHAT,
    CHAT_SPAN,
    CLAUDE,
    CONSOLE,
    DATADOG,
    EVALS,
    GENERATION,
    INFERENCE,
    INFERENCE_ON_CONSOLE,
    LLM,
    MLFLOW_SPANS,
    MODEL,
    OPIK,
    PHOENIX,
    POSTHOG,
    RUN,
    SAMPLES,
    SPAN,
    SPEND,
    TRACELOOP,
    TRACELOOP_ON_CONSOLE,
    WEAVE,
    Sample,
    lines,
    text,
)

Run = Callable[..., Done]


def check(run: Run, file: Path, sample: Sample) -> None:
    done = run("report", file, "--by", "vendor,model", "--csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))

    def total(name: str) -> float:
        return sum(float(row[name] or 0) for row in rows)

    found = [
        total(name)
        for name in ("exchanges", "errors", "prompt_tokens", "completion_tokens", "cached_tokens", "cost")
    ]
    assert found == [*sample[2:7], pytest.approx(sample.cost)], done.err
    assert {row["vendor"] for row in rows} == {*sample.vendors}
    assert {row["model"] for row in rows} == {*sample.models}
    assert done.status == 0
    left_out = [line for line in done.err.splitlines() if line.startswith("left out ")]
    assert [line.split()[2] for line in left_out] == ([str(sample.left_out)] if sample.left_out else [])


def nested(line: dict[str, Any], id: str, parent: str, value: Any = None) -> list[dict[str, Any]]:
    """Two spans with the same counts, the first one in the second one, whose id in *line* is at *id*."""

    def put(line: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
        key, _, rest = path.partition("/")
        return {**line, key: put(line[key], rest, value) if rest else value}

    return [put(put(line, id, "inner"), parent, value or "outer"), put(line, id, "outer")]


NESTED = {
    "OTLP": nested(CHAT_SPAN, "spanId", "parentSpanId"),
    "OpenInference": nested(INFERENCE, "spanId", "parentSpanId"),
    "OpenLLMetry": nested(TRACELOOP, "spanId", "parentSpanId"),
    "the console": nested(CONSOLE, "context/span_id", "parent_id"),
    "OpenInference on the console": nested(INFERENCE_ON_CONSOLE, "context/span_id", "parent_id"),
    "Phoenix": nested(PHOENIX, "context.span_id", "parent_id"),
    "Langfuse": nested(GENERATION, "id", "parentObservationId"),
    "LangSmith": nested(RUN, "id", "parent_run_id"),
    "Opik": nested(OPIK, "id", "parent_span_id"),
    "Braintrust": nested(SPAN, "span_id", "span_parents", ["outer"]),
    "Datadog": nested(DATADOG, "attributes/span_id", "attributes/parent_id"),
    "MLflow": nested(MLFLOW_SPANS[0], "span_id", "parent_span_id"),
    "Weave": nested(WEAVE, "id", "parent_id"),
    "PostHog": nested(POSTHOG, "properties/$ai_span_id", "properties/$ai_parent_id"),
}


@pytest.mark.parametrize("spans", NESTED.values(), ids=NESTED)
@pytest.mark.parametrize("step", [1, -1], ids=["inner first", "outer first"])
def test_a_model_call_around_another_one_counts_once(
    run: Run, tmp_path: Path, spans: list[dict[str, Any]], step: int
) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(*spans[::step]))
    done = run("report", tmp_path / "a.jsonl", "--csv")
    (row,) = csv.DictReader(io.StringIO(done.out))
    assert (done.status, row["exchanges"], row["prompt_tokens"], row["completion_tokens"]) == (
        0,
        "1",
        "500",
        "20",
    )
    assert "1 span with the same counts as the model calls inside, counted once" in done.err


def span(id: str, parent: str | None, prompt: int | None = None) -> dict[str, Any]:
    counts = {} if prompt is None else {"input": prompt, "output": 1}
    return {**GENERATION, "id": id, "parentObservationId": parent, "usageDetails": counts}


SUM = {**span("c", None, 7), "usageDetails": {"input": 7, "output": 2}}


FAR = [span(f"n{number}", f"p{number}", 1) for number in range(10_001)]
"""More spans than are looked through at once."""


@pytest.mark.parametrize(
    ("spans", "exchanges", "prompt"),
    [
        ([span("a", "c", 3), span("b", "c", 4), SUM], 2, 7),
        ([span("a", "b", 3), span("b", "c", 3), span("c", None, 3)], 1, 3),
        ([span("c", None, 3), span("b", "c", 3), span("a", "b", 3)], 1, 3),
        ([span("a", "b", 3), span("b", "c"), span("c", None, 3)], 1, 3),
        ([span("a", "b", 3), span("b", None, 500)], 2, 503),  # a model called in a tool of another call
        ([span("b", None, 500), span("a", "b", 3)], 2, 503),
        ([span("a", "x", 3), span("b", "x", 3)], 2, 6),
        ([span("c", None, 5), span("a", "c", 5), span("b", "c", 2)], 3, 12),  # one inside has all its counts, and there is another
        ([SUM, span("b", "c"), span("a", "b", 3), span("d", "b", 4)], 2, 7),
        ([span("a", "c", 3), span("c", None, 3)] * 2, 2, 6),  # a log that is there twice
        ([span("c", None, 3), span("a", "c", 3)] * 2, 2, 6),
        ([span("a", "a", 3), span("b", "b")], 2, 3),
        ([span("a", "b", 3), span("b", "c", 3), span("c", "a", 3)], 1, 3),  # damaged: each inside of the next one
        pytest.param([span("c", None, 3), *FAR, span("a", "c", 3)], 10_003, 10_007, marks=pytest.mark.sweep),
        pytest.param([span("a", "b", 3), *FAR, span("b", None, 3)], 10_003, 10_007, marks=pytest.mark.sweep),
    ],
    ids=["the sum of two", "three deep", "three deep, outer first", "one without counts", "other counts", "other counts, outer first",
         "siblings", "the counts of one of two", "two inside one without counts, outer first", "twice", "twice, outer first", "in themselves",
         "in a circle", "far away, outer first", "far away"],
)  # fmt: skip
def test_only_spans_that_repeat_what_is_inside_are_left_out(
    run: Run, tmp_path: Path, spans: list[dict[str, Any]], exchanges: int, prompt: int
) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(*spans))
    (row,) = csv.DictReader(io.StringIO(run("report", tmp_path / "a.jsonl", "--csv").out))
    assert (row["exchanges"], row["prompt_tokens"]) == (str(exchanges), str(prompt))


@pytest.mark.parametrize(
    "ends", [("a", "c", "c", None), ("c", None, "a", "c")], ids=["outer last", "outer first"]
)
def test_spans_far_from_each_other_both_count(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: tuple[Any, ...]
) -> None:
    """A log of any length is read with a bounded memory."""
    monkeypatch.setattr(report_rows, "MAX_SPANS", 50)
    first, first_parent, last, last_parent = ends
    between = FAR[:51]
    (tmp_path / "a.jsonl").write_bytes(
        lines(span(first, first_parent, 3), *between, span(last, last_parent, 3))
    )
    (row,) = csv.DictReader(io.StringIO(run("report", tmp_path / "a.jsonl", "--csv").out))
    assert (row["exchanges"], row["prompt_tokens"]) == ("53", "57")


@pytest.mark.parametrize("spans", [*permutations([span("a", "c", 3), span("b", "c", 4), SUM])])
def test_a_call_with_the_sum_of_those_inside_does_not_count_in_any_order(
    run: Run, tmp_path: Path, spans: tuple[dict[str, Any], ...]
) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(*spans))
    (row,) = csv.DictReader(io.StringIO(run("report", tmp_path / "a.jsonl", "--csv").out))
    assert (row["exchanges"], row["prompt_tokens"]) == ("2", "7")


def test_more_calls_in_each_other_than_there_can_be_count_as_they_come(run: Run, tmp_path: Path) -> None:
    spans = [span(f"n{number}", f"n{number + 1}", 3) for number in range(100)]
    (tmp_path / "a.jsonl").write_bytes(lines(*spans[::-1]))
    (row,) = csv.DictReader(io.StringIO(run("report", tmp_path / "a.jsonl", "--csv").out))
    assert 1 < int(row["exchanges"]) < 100


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_what_a_log_states_counts(run: Run, tmp_path: Path, sample: Sample) -> None:
    file = tmp_path / sample.file
    file.write_bytes(sample.data)
    check(run, file, sample)


@pytest.mark.parametrize(
    "name", ["a file of OTLP", "the console exporter", "a HAR file", "a VCR cassette", "OpenRouter, CSV"]
)
def test_standard_input_is_read_by_its_content(
    run: Run, stdin: Callable[[bytes], None], tmp_path: Path, name: str
) -> None:
    stdin(SAMPLES[name].data)
    check(run, Path("-"), SAMPLES[name])


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress])
def test_other_packed_files_are_read(run: Run, tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    file = tmp_path / "log"
    file.write_bytes(pack(lines(SPEND)))
    check(run, file, SAMPLES["packed"])


def test_the_database_of_llm_is_read(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "logs.db"
    row = LLM | {"response_json": '{"usage": {}}'}
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE conversations (id TEXT, name TEXT)")
        database.execute("INSERT INTO conversations VALUES ('c', 'Hello')")
        database.execute(f"CREATE TABLE responses ({', '.join(row)})")
        database.execute(f"INSERT INTO responses VALUES ({', '.join('?' * len(row))})", [*row.values()])
        database.commit()
    check(run, file, SAMPLES["llm, JSON"])


def test_the_newer_tables_of_llm_are_read(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "logs.db"
    names = ("id", "model", "input_tokens", "output_tokens", "token_details", "duration_ms", "datetime_utc")
    row = {name: LLM[name] for name in names} | {
        "thread_id": "c",
        "tip_message_hash": "b2:1",
        "resolved_model": MODEL,
    }
    with closing(sqlite3.connect(file)) as database:
        database.execute(
            "CREATE TABLE responses (id TEXT, model TEXT, prompt TEXT, response TEXT, datetime_utc TEXT)"
        )
        database.execute(f"CREATE TABLE turns ({', '.join(row)})")
        database.execute(f"INSERT INTO turns VALUES ({', '.join('?' * len(row))})", [*row.values()])
        database.commit()
    check(run, file, SAMPLES["llm, JSON"])


def test_what_the_console_exporter_prints_is_read(run: Run, tmp_path: Path) -> None:
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    file = tmp_path / "spans.txt"
    with file.open("w") as out:
        provider = trace.TracerProvider()
        provider.add_span_processor(export.SimpleSpanProcessor(export.ConsoleSpanExporter(out=out)))
        with provider.get_tracer("t").start_as_current_span("agent"):
            for attributes in (INFERENCE_ON_CONSOLE, TRACELOOP_ON_CONSOLE, CONSOLE):
                with provider.get_tracer("t").start_as_current_span(
                    "call", attributes=attributes["attributes"]
                ):
                    pass
        provider.shutdown()
    check(run, file, Sample("", b"", exchanges=3, prompt=1500, completion=60, cached=900, left_out=1))


@pytest.mark.parametrize("indent", [False, True])
def test_pages_and_arrays_of_what_normalize_writes_are_read(run: Run, tmp_path: Path, indent: bool) -> None:
    log, file = tmp_path / "log.jsonl", tmp_path / "page.json"
    log.write_bytes(lines(CHAT, CHAT))
    stored = [json.loads(line) for line in run("normalize", log).out.splitlines()]
    expected = Sample("", b"", exchanges=2, prompt=1000, completion=40, cached=600)
    for page in ({"data": stored}, stored):
        file.write_text(json.dumps(page, indent=2 if indent else None))
        check(run, file, expected)


@pytest.mark.parametrize(
    "line",
    [
        {"completion": "Hi"},
        {"choices": [{"text": "Hi"}]},
        {"response": "Hi"},
        {"message": {"role": "assistant", "content": "Hi"}},
    ],
    ids=str,
)
def test_a_line_that_only_resembles_an_answer_is_unread(
    run: Run, tmp_path: Path, line: dict[str, object]
) -> None:
    file = tmp_path / "own.jsonl"
    file.write_bytes(
        lines({"ts": "2026-05-01", "model": "gpt-4o", "prompt": "x", **line, "usage": {"in": 1}})
    )
    assert run("report", file).status == 1


def test_times_in_an_odd_form_are_a_note(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    odd = [{"created": "noon"}, {"created": "01/05/2026 10:00"}, {"latency_seconds": "fast"}, {"time": True}]
    file.write_bytes(lines(*({"body": CHAT, **one} for one in odd), {"body": CHAT, "created": 1777629600}))
    done = run("report", file)
    assert done.status == 0
    assert "\n4 of 5 exchanges have a time in a form that is not read; they count without it." in done.out
    file.write_bytes(lines({"answer": CHAT, "when": "noon"}))
    done = run("report", file, "--field", "response=answer", "--field", "created=when")
    assert (done.status, "1 of 1 exchanges have a time in a form" in done.out) == (0, True)


def test_a_folder_is_read_by_the_content_of_its_files(run: Run, tmp_path: Path) -> None:
    for name in ("packed", "packed, an array", "rotated"):
        (tmp_path / SAMPLES[name].file).write_bytes(SAMPLES[name].data)
    both = Sample("", b"", exchanges=4, prompt=2000, completion=80, cached=1200, cost=0.75)
    check(run, tmp_path, both)


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ({"response": CHAT, "ts": "2026-05-01T10:00:00Z", "status": 200}, "--field response=response --field created=ts"),
        ({"completion": text(CHAT), "time": 1777629600}, "--field response=completion --field created=time"),
        ({"event": {"result": CHAT}, "ts": 1777629600000}, "--field response=event.result --field created=ts@ms"),
        ({"my answer": CLAUDE, "ts": "noon"}, '--field response=["my answer"]'),
    ],
)  # fmt: skip
def test_options_are_proposed_for_a_log_of_ones_own(
    run: Run, tmp_path: Path, line: dict[str, object], options: str
) -> None:
    file = tmp_path / "own.jsonl"
    file.write_bytes(lines(line, line, SPEND))
    done = run("report", file, "--csv")
    form = "anthropic" if "my answer" in line else "openai"
    assert done.status == 1
    where = options.split()[1].partition("=")[2]
    if "my" in options:
        where = '["my answer"]'
    assert f"2 lines hold an answer in the form of {form} under {where}; to read it: {options}\n" in done.err
    again = run(
        "report",
        file,
        "--csv",
        *(
            part
            for option in options.split(" --field ")
            for part in ("--field", option.removeprefix("--field "))
        ),
    )
    assert (again.status, "hold an answer" in again.err) == (0, False)
    assert sum(int(row["prompt_tokens"]) for row in csv.DictReader(io.StringIO(again.out))) in (1500, 1300)


def test_a_log_without_any_answer_gets_no_proposal(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    file.write_bytes(lines({"a": {"x": {"y": 1}, "z": {"content": [7]}}, "c": [1]}))
    done = run("report", file)
    assert (done.status, "hold" in done.err) == (1, False)
    assert "no answer was recognized; if each line has it under a key" in done.err


def test_groups_are_made_by_any_path_and_by_each_tag(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    tagged = SPEND | {"request_tags": ["a", "b", 7], "metadata": {"tenant": "kelp"}}
    file.write_bytes(
        lines(tagged, SPEND | {"request_tags": {"env": "x"}}, {**CHAT, "metadata": {"tenant": "wren"}})
    )

    def groups(by: str) -> list[tuple[str, ...]]:
        rows = csv.reader(io.StringIO(run("report", file, "--by", by, "--csv").out))
        return [tuple(row[: len(by.split(",")) + 1]) for row in rows][1:]

    assert groups("metadata.tenant") == [("", "1"), ("kelp", "1"), ("wren", "1")]
    assert groups("tag") == [("", "1"), ("7", "1"), ("a", "1"), ("b", "1"), ("env: x", "1")]
    assert groups("team,logged_vendor") == [("", "", "1"), ("kelp", "openai", "2")]


def test_counts_that_differ_from_those_of_the_answer_are_said(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(lines(SPEND | {"response": CHAT}, SPEND | {"response": CHAT, "prompt_tokens": 7}, CHAT))
    done = run("report", file)
    assert "\n1 of 3 exchanges state other token counts than their answer; the answer's count.\n" in done.out
    assert "\n1 of 3 vendors are derived from the model's name.\n" in done.out


def test_a_log_whose_lines_are_all_left_out_fails(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(lines(*EVALS[:1]))
    done = run("report", file)
    assert (done.status, done.err) == (1, "left out 1 line: 1 the description of a run of OpenAI Evals\n")
    assert run("normalize", file).status == 0


def test_a_batch_costs_half(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("genai_prices")
    batch, usual, priority = tmp_path / "batch.jsonl", tmp_path / "usual.jsonl", tmp_path / "priority.jsonl"
    batch.write_bytes(SAMPLES["OpenAI's batch"].data)
    usual.write_bytes(lines(CHAT))
    priority.write_bytes(lines(CHAT | {"service_tier": "priority"}))

    def cost(file: Path) -> str:
        (row,) = csv.DictReader(io.StringIO(run("report", file, "--prices", "--csv").out))
        return row["cost"]

    assert 2 * float(cost(batch)) == float(cost(usual)) > 0
    assert cost(priority) == ""


def test_a_usual_terminal_shows_a_table_with_numbers_to_the_right(
    run: Run, terminal: Callable[[str], Terminal], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(lines(SPEND, CHAT | {"model": "m"}))
    for width, last in ((80, "p50 s"), (120, "p95 s")):
        monkeypatch.setenv("COLUMNS", str(width))
        screen = terminal("stdout")
        run("report", file)
        drawn = re.sub(r"\x1b\[[0-9;]*m", "", screen.text()).splitlines()
        assert drawn[0].split("  ")[0].strip() == "model"
        assert drawn[0].rstrip().endswith(last)
        assert max(map(len, drawn[:5])) <= width
        assert drawn[2].split()[:2] == ["gpt-4o-2024-08-06", "1"]
        assert drawn[2].index("500") + 3 == drawn[0].index(" in ") + 3


@pytest.mark.parametrize("count", [0, 1, 10_000, 10_001, 30_000])
def test_many_latencies_are_told_to_half_a_per_cent(count: int) -> None:
    values = [1.0003**number * 0.01 for number in range(count)]
    random.Random(7).shuffle(values)
    group = Group(values=())
    for value in values:
        group.add(ReportRow(latency=value))
    for share in (0.01, 0.5, 0.95, 1.0) if count else ():
        exact = sorted(values)[math.ceil(share * count) - 1]
        assert group.latency(share) == (exact if count <= 10_000 else pytest.approx(exact, rel=0.005))
    for _ in range(count or 1):
        group.add(ReportRow(latency=0.0))
    assert group.latency(0.5) == pytest.approx(0.0, abs=1e-5)
    assert Group(values=()).latency(0.5) is None
