"""A report on columns says what one on the raw log says."""

from __future__ import annotations

import csv
from decimal import Decimal
from pathlib import Path

import pytest

from .conftest import Run, lines, record, rows


@pytest.mark.untraced
@pytest.mark.parametrize("by", ["model,day", "vendor,status", "provider,hour", "finish", "error"])
def test_columns_and_the_raw_log_give_the_same_report(run: Run, by: str) -> None:
    run("samples", ".")
    assert run("batch", "log.jsonl", "--output", "out", "--jobs", 1).status == 0
    raw = run("report", "log.jsonl", "--by", by, "--csv")
    assert raw.out.count("\n") > 2
    assert run("report", "out", "--by", by, "--csv").out == raw.out


def test_what_could_not_be_read_is_counted_alike(run: Run) -> None:
    call = {"function": {"name": "f", "arguments": "{"}}
    calls = {
        "model": "m",
        "message": {"role": "assistant", "tool_calls": [call]},
        "done": True,
        "done_reason": "stop",
    }
    Path("log.jsonl").write_bytes(
        lines(b"{", {"body": "", "provider": "ollama"}, {"provider": "ollama", "body": calls})
    )
    run("batch", "log.jsonl", "--output", "out")
    raw = run("report", "log.jsonl", "--csv").out
    assert run("report", "out", "--csv").out == raw
    assert "InvalidJSONError" in raw or "IncompleteStreamError" in raw


def test_what_a_log_states_without_its_answers_is_counted_alike(run: Run) -> None:
    spend = {
        "call_type": "acompletion", "startTime": "2026-05-01T10:00:00Z", "endTime": "2026-05-01T10:00:01Z", "model": "m",
        "custom_llm_provider": "vertex_ai", "spend": 0.01, "prompt_tokens": 950, "completion_tokens": 40, "response": {},
    }  # fmt: skip
    helicone = {
        "request_id": "r1", "request_created_at": "2026-05-01T10:00:00Z", "response_body": None, "response_status": 200,
        "provider": "ANTHROPIC", "prompt_tokens": 100, "prompt_cache_read_tokens": 800, "cost": 0.5,
    }  # fmt: skip
    unread = [
        spend | {"response": {"choices": "many"}},
        spend | {"response": 7},
        helicone | {"response_body": {"x": 1}},
    ]
    failed = [spend | {"status": "failure"}, helicone | {"response_status": 500}]
    Path("log.jsonl").write_bytes(lines(spend, helicone, *unread, *failed, record(1), b"{"))
    run("batch", "log.jsonl", "--output", "out")
    for by in ("model", "vendor", "provider", "finish", "error", "day"):
        raw, stored = (run("report", path, "--by", by, "--csv") for path in ("log.jsonl", "out"))
        assert (raw.status, stored.status) == (1, 1)
        assert figures(stored.out) == figures(raw.out)
    notes = run("report", "log.jsonl").out
    assert run("report", "out").out == notes
    assert "2 of 9 exchanges have no stored answer" in notes
    assert "1 of 9 exchanges have no token counts" in notes
    stated = [
        row for row in rows("out") if dict(row["metadata"]["provenance"]).get("message.content") == "absent"
    ]
    assert [(row["usage"]["prompt_tokens"], row["cost"]) for row in stated] == [
        (950, Decimal("0.01")),
        (900, Decimal("0.5")),
    ]


def figures(text: str) -> list[dict[str, object]]:
    """The rows of a report. Costs in columns have more digits."""
    return [{**row, "cost": Decimal(row["cost"] or 0)} for row in csv.DictReader(text.splitlines())]


def test_sessions_users_and_tags_can_be_counted(run: Run) -> None:
    labels = {"session": "s1", "user": "u1", "tags": ["beta"], "trace_id": "ab"}
    Path("log.jsonl").write_bytes(
        lines(record(1) | labels, {"body": "", "provider": "ollama"} | labels, record(2))
    )
    run("batch", "log.jsonl", "--output", "out")
    for by, value in (("session", "s1"), ("user", "u1"), ("tags", '"[""beta""]"')):
        done = run("report", "out", "--by", by, "--csv")
        rest, labelled = done.out.splitlines()[1:]
        assert (rest[:3], labelled[: len(value) + 3]) == (",1,", f"{value},2,")
        assert run("report", "log.jsonl", "--by", by, "--csv").out == done.out
    assert {row["trace_id"] for row in rows("out")} == {"ab", None}


def generation(
    id: str, parent: str | None, prompt: int, output: int, model: str, day: int
) -> dict[str, object]:
    """An observation of Langfuse's export, as a model call inside of another one."""
    return {
        "id": id, "type": "GENERATION", "traceId": "t", "parentObservationId": parent, "model": model, "level": "DEFAULT",
        "startTime": f"2026-05-0{day}T10:00:00Z", "output": "Hi", "usageDetails": {"input": prompt, "output": output},
    }  # fmt: skip


@pytest.mark.parametrize("by", ["none", "day"])
@pytest.mark.parametrize("step", [1, -1], ids=["inner first", "outer first"])
def test_a_call_around_others_does_not_count_in_columns_either(run: Run, by: str, step: int) -> None:
    inner = [generation("a", "c", 3, 1, "inner", 1), generation("b", "c", 4, 1, "other", 2)]
    Path("log.jsonl").write_bytes(lines(*[*inner, generation("c", None, 7, 2, "outer", 1)][::step]))
    options = () if by == "none" else ("--partition-by", by)
    assert run("batch", "log.jsonl", "--output", "out", *options).status == 0
    raw, stored = (run("report", path, "--csv") for path in ("log.jsonl", "out"))
    assert [line.split(",")[:2] for line in stored.out.splitlines()[1:]] == [["inner", "1"], ["other", "1"]]
    assert stored.out == raw.out
    assert stored.err == "1 span with the same counts as the model calls inside, counted once\n"
    if not options:
        assert sorted((row["record_id"], row["parent"]) for row in rows("out"))[:2] == [
            ("a", "c"),
            ("b", "c"),
        ]


def test_both_can_be_counted_together(run: Run) -> None:
    Path("log.jsonl").write_bytes(lines(record(1)))
    run("batch", "log.jsonl", "--output", "out")
    assert run("report", "out", "log.jsonl", "--csv").out.splitlines()[1].startswith("m,2,")


def test_stored_columns_get_no_prices_and_the_report_says_so(run: Run) -> None:
    pytest.importorskip("genai_prices")
    Path("log.jsonl").write_bytes(lines(record(1)))
    run("batch", "log.jsonl", "--output", "out")
    done = run("report", "out", "--prices")
    assert "--prices adds no costs to stored columns" in done.err
    assert "crosswalk batch --prices" in done.err


def test_an_empty_job_has_an_empty_report(run: Run) -> None:
    Path("log.jsonl").write_bytes(b"")
    run("batch", "log.jsonl", "--output", "out")
    assert run("report", "out").status == 0
