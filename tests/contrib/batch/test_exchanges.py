"""Further facts of a log become columns."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crosswalk import ConfigurationError
from crosswalk_batch import Options, from_arrow, normalize_batch

from .conftest import Run, lines, ollama, rows

BROKEN = (
    'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant",'
    '"model":"claude-x","content":[],"usage":{"input_tokens":900,"output_tokens":1}}}\n\n'
)
GPT = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1795168800,
    "model": "gpt-4o",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
}


def exchange(**more: Any) -> dict[str, Any]:
    return {
        "ts": 1795168800250, "vendor": "ollama", "http": "200", "rid": 7, "took": 1500, "tenant": "kelp", "n": [1],
        "answer": ollama(created_at=None, model=None), "ask": {"model": "m2"},
    } | more  # fmt: skip


FIELDS = (
    "created=ts@ms", "provider=vendor", "status=http", "id=rid", "latency=took@ms", "response=answer", "request=ask",
)  # fmt: skip
HOW = [word for field in FIELDS for word in ("--field", field)]


def test_fields_of_any_log_become_columns(run: Run) -> None:
    Path("log.jsonl").write_bytes(
        lines(exchange(), exchange(answer=None), exchange(http=503, answer={"error": "busy"}))
    )
    done = run("batch", "log.jsonl", "--output", "out", *HOW, "--keep", "tenant,list=n")
    assert "3 records: 2 mapped, 1 rejected (1 RecordError)\nlayouts: 2 custom, 1 unreadable\n" in done.err
    one, busy = rows("out")
    (reject,) = rows("out", "rejects")
    for row in (one, busy, reject):
        assert str(row["time"]) == "2026-11-20 10:00:00.250000+00:00"
        assert (row["latency_seconds"], row["vendor"], row["requested_model"]) == (1.5, "ollama", "m2")
        assert (row["record_id"], row["tenant"], row["list"], row["request"]) == (
            "7",
            "kelp",
            "[1]",
            '{"model":"m2"}',
        )
    assert (one["status"], busy["status"]) == (200, 503)
    assert (one["model"], one["created"], one["metadata"]["request_duration_seconds"]) == (
        "m2",
        one["time"],
        1.5,
    )
    assert (busy["error_kind"], busy["error_status"], busy["error_message"]) == ("server", 503, "busy")
    assert (busy["refusal"], one["error_kind"]) == (None, None)
    assert from_arrow(pq.read_table("out/responses/part-000000.parquet"))[1].refusal == "busy"


def test_columns_of_parquet_are_fields_too(run: Run) -> None:
    table = pa.Table.from_pylist(
        [
            {
                "answer": orjson.dumps(ollama(created_at=None)),
                "when": 1795168800.25,
                "tenant": "kelp",
                "price": Decimal("0.5"),
            },
            {"answer": b"\xff", "when": 0.0, "tenant": None, "price": None},
        ]
    )
    pq.write_table(table.append_column("at", pa.array([1, 2], pa.timestamp("us"))), "log.parquet")
    run(
        "batch", "log.parquet", "--output", "out", "--jobs", 1, "--keep", "tenant,at",
        "--field", "response=answer", "--field", "created=when", "--field", "cost=price",
    )  # fmt: skip
    (row,), (reject,) = rows("out"), rows("out", "rejects")
    assert (row["time"], row["number"], row["source"]) == (row["created"], 1, "log.parquet")
    assert (row["cost"], row["cost_source"], row["tenant"]) == (Decimal("0.5"), "log", "kelp")
    assert row["at"] == "1970-01-01T00:00:00.000001"
    assert (reject["number"], reject["message"]) == (
        2,
        "the answer is not text; without --layout, --field and --keep it may be",
    )


def test_rejects_keep_their_place_when_they_are_read_again(run: Run) -> None:
    Path("log.jsonl").write_bytes(
        lines(b"", {"id": "r", "provider": "olama", "body": ollama(), "created": "2026-11-20"})
    )
    run("batch", "log.jsonl", "--output", "out")
    run("batch", "out/rejects", "--output", "again", "--provider", "ollama", "--jobs", 1)
    (row,) = rows("again")
    assert (row["source"], row["number"], row["record_id"], str(row["time"])) == (
        "log.jsonl", 2, "r", "2026-11-20 00:00:00+00:00",
    )  # fmt: skip


def test_a_stream_that_broke_off_keeps_what_it_said(run: Run) -> None:
    Path("log.jsonl").write_bytes(
        lines(
            {"id": "a", "provider": "anthropic", "body": BROKEN, "duration_seconds": 2},
            {"provider": "anthropic", "body": ""},
        )
    )
    run("batch", "log.jsonl", "--output", "out")
    one, empty = rows("out", "rejects")
    assert (one["partial"]["model"], one["partial"]["usage"]["prompt_tokens"]) == ("claude-x", 900)
    assert (one["partial"]["metadata"]["request_duration_seconds"], empty["partial"]) == (2.0, None)


def test_what_nobody_said_is_null(run: Run) -> None:
    body = ollama(created_at=None, model=None, prompt_eval_count=None, eval_count=None)
    Path("log.jsonl").write_bytes(lines({"provider": "ollama", "body": body}))
    run("batch", "log.jsonl", "--output", "out")
    (row,) = rows("out")
    absent = (
        "time",
        "latency_seconds",
        "requested_model",
        "status",
        "cost",
        "cost_source",
        "request",
        "tags",
    )
    assert {row[name] for name in (*absent, "created", "model", "usage")} == {None}
    assert row["metadata"]["model_id"] is row["metadata"]["request_duration_seconds"] is None
    (back,) = from_arrow(pq.read_table("out/responses/part-000000.parquet"))
    assert (back.model, back.created.year, back.usage.total_tokens, back.metadata.model_id) == (
        "unknown",
        1970,
        0,
        "unknown",
    )


def test_costs_are_the_logs_or_the_providers_or_an_estimate(run: Run) -> None:
    own = {**GPT, "usage": {**GPT["usage"], "cost": 0.25}}  # type: ignore[dict-item]
    Path("log.jsonl").write_bytes(
        lines(
            {"provider": "openai", "body": GPT, "cost": "0.125"},
            {"provider": "openrouter", "body": own},
            {"provider": "openai", "body": GPT},
        )
    )
    run("batch", "log.jsonl", "--output", "out", "--prices")
    found = [(row["cost"], row["cost_source"]) for row in rows("out")]
    assert found[:2] == [(Decimal("0.125"), "log"), (Decimal("0.25"), "provider")]
    assert found[2][1] == "estimated"
    assert found[2][0] > 0
    run("batch", "log.jsonl", "--output", "without")
    assert [row["cost_source"] for row in rows("without")] == ["log", "provider", None]


def test_prices_need_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswalk.prices.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="prices need the extra"):
        normalize_batch(pa.RecordBatch.from_pydict({"body": [b"{}"]}), Options(with_prices=True))


def test_the_layout_of_the_first_lines_is_that_of_the_log(run: Run) -> None:
    payload = {
        "call_type": "completion",
        "startTime": 1795168800.25,
        "endTime": 1795168801,
        "response": GPT,
        "id": "r1",
    }
    partly = {"response": GPT, "id": "r2"}
    Path("log.jsonl").write_bytes(lines(*[payload] * 20, partly))
    done = run("batch", "log.jsonl", "--output", "out")
    assert done.err == "21 records: 21 mapped, 0 rejected\nlayouts: 21 litellm\n"
    assert rows("out")[-1]["record_id"] == "r2"


@pytest.mark.untraced
@pytest.mark.parametrize(
    ("limit", "status"), [(None, 0), ("0", 1), ("1", 0), ("50%", 0), ("49.9%", 1), ("0.5", 1)]
)
def test_so_many_rejects_are_allowed(run: Run, limit: str | None, status: int) -> None:
    Path("log.jsonl").write_bytes(lines({"body": GPT}, b"{"))
    how = () if limit is None else ("--max-rejects", limit)
    assert run("batch", "log.jsonl", "--output", "out", *how).status == status


@pytest.mark.parametrize("limit", ["many", "-1", "nan", "%"])
def test_a_limit_of_rejects_is_a_number_or_a_share(run: Run, limit: str) -> None:
    Path("log.jsonl").write_bytes(b"")
    assert run("batch", "log.jsonl", "--output", "out", "--max-rejects", limit).status == 2


def test_a_program_can_read_what_was_done(run: Run) -> None:
    Path("log.jsonl").write_bytes(lines({"body": GPT}, b"{", GPT))
    run("batch", "log.jsonl", "--output", "out")
    receipt = orjson.loads(Path("out/crosswalk-batch/part-000000.json").read_bytes())
    assert (receipt["records"], receipt["faults"]) == (3, [])
    assert receipt["counts"] == {
        "errors": {"RecordError": 1},
        "layouts": {"exchange": 1, "plain": 1, "unreadable": 1},
        "guesses": {"openai": 2},
        "left_out": {},
    }


def test_a_duration_that_the_answer_says_is_the_latency(run: Run) -> None:
    Path("log.jsonl").write_bytes(lines({"provider": "ollama", "body": ollama(total_duration=2_500_000_000)}))
    run("batch", "log.jsonl", "--output", "out")
    assert rows("out")[0]["latency_seconds"] == 2.5


def test_other_bytes_of_a_row_are_kept_as_text(run: Run) -> None:
    pq.write_table(
        pa.Table.from_pylist([{"body": orjson.dumps(ollama()), "provider": "ollama", "key": b"k\xff"}]),
        "log.parquet",
    )
    run("batch", "log.parquet", "--output", "out", "--jobs", 1, "--keep", "key")
    assert rows("out")[0]["key"] == "k\ufffd"


def test_a_cost_of_too_many_digits_is_not_one(run: Run) -> None:
    Path("log.jsonl").write_bytes(lines({"body": GPT, "cost": 1e17}, {"body": GPT, "cost": 1e19}))
    run("batch", "log.jsonl", "--output", "out")
    assert [row["cost"] for row in rows("out")] == [Decimal(10**17), None]
