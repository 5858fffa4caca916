"""``crosswalk report`` and the log that comes with it."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest

from .conftest import Done

Run = Callable[..., Done]

CHAT = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1795168800,
    "model": "gpt-4o",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    "usage": {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "total_tokens": 1100,
        "prompt_tokens_details": {"cached_tokens": 250},
    },
}
CALLS = {
    "model": "llama",
    "created_at": "2026-11-21T10:00:00Z",
    "message": {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
    "done": True,
    "done_reason": "stop",
}  # fmt: skip
BROKEN = {**CHAT, "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
    "role": "assistant", "content": None, "tool_calls": [{"id": "t", "type": "function", "function": {"name": "f", "arguments": "{oops"}}]
}}]}  # fmt: skip
CUT = (
    'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant",'
    '"model":"claude-x","content":[],"usage":{"input_tokens":900,"output_tokens":1}}}\n\n'
)
LOG: list[Any] = [
    {"provider": "openai", "status": 200, "created": "2026-11-20T10:00:00Z", "duration_seconds": 1, "cost": "0.5", "body": CHAT},
    {"provider": "openai", "status": 200, "created": "2026-11-20T23:59:59Z", "duration_seconds": 3, "body": BROKEN},
    {"provider": "openai", "status": 429, "created": "2026-11-21T00:00:00Z", "duration_seconds": 2, "model": "gpt-4o",
     "body": {"error": {"message": "slow down", "type": "rate_limit_error"}}},
    {"provider": "ollama", "body": CALLS},
    {"provider": "anthropic", "created": "2026-11-21T00:00:00Z", "body": CUT},
    {"provider": "anthropic", "model": "claude-y", "body": ""},
    b"{oops",
]  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "log.jsonl"
    file.write_bytes(b"".join((one if type(one) is bytes else orjson.dumps(one)) + b"\n" for one in LOG))
    return file


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_log_is_counted_by_model_and_day(run: Run, log: Path) -> None:
    done = run("report", log, "--by", "model,day", "--csv")
    assert done.status == 1  # two lines could not be read
    rows = table(done.out)
    assert [(row["model"], row["day"], row["exchanges"], row["errors"]) for row in rows] == [
        ("", "", "1", "1"),
        ("claude-x", "2026-11-21", "1", "1"),
        ("claude-y", "", "1", "1"),
        ("gpt-4o", "2026-11-20", "2", "0"),
        ("gpt-4o", "2026-11-21", "1", "1"),
        ("llama", "2026-11-21", "1", "0"),
    ]
    gpt = rows[3]
    assert (gpt["prompt_tokens"], gpt["completion_tokens"], gpt["cached_tokens"]) == ("2000", "200", "500")
    assert (gpt["cost"], gpt["estimated_costs"], gpt["latency_p50"], gpt["latency_p95"]) == (
        "0.5",
        "0",
        "1.0",
        "3.0",
    )
    assert (gpt["tool_calls"], gpt["broken_tool_calls"], gpt["finish_stop"], gpt["finish_tool_calls"]) == (
        "1",
        "1",
        "1",
        "1",
    )
    assert (rows[1]["prompt_tokens"], rows[1]["error_IncompleteStreamError"]) == ("900", "1")
    assert (rows[4]["error_rate_limit"], rows[0]["error_unreadable"]) == ("1", "1")


def test_a_line_without_an_answer_is_counted_with_its_other_facts(run: Run, tmp_path: Path) -> None:
    line = {
        "provider": "openai",
        "model": "m",
        "status": 500,
        "time": "2026-11-20T10:00:00Z",
        "latency_seconds": 3,
        "body": None,
    }
    (tmp_path / "log.jsonl").write_bytes(orjson.dumps(line))
    done = run("report", tmp_path / "log.jsonl", "--by", "vendor,model,day,status", "--csv")
    [row] = table(done.out)
    assert (row["vendor"], row["model"], row["day"], row["status"]) == ("openai", "m", "2026-11-20", "500")
    assert (row["error_unreadable"], row["latency_p50"]) == ("1", "3.0")


def test_a_table_has_sums_and_says_what_is_missing(run: Run, log: Path) -> None:
    done = run("report", log)
    lines = done.out.splitlines()
    assert lines[0].split() == ["model", "exchanges", "errors", "%", "errors", "prompt", "tokens", "completion", "tokens", "cached", "cost",
                                "p50", "s", "p95", "s"]  # fmt: skip
    assert lines[-11].split()[:5] == ["all", "7", "4", "57.1", "2,900"]
    assert "\nErrors: 2 IncompleteStreamError, 1 rate_limit, 1 unreadable\n" in done.out
    assert "\nTool calls: 2, 1 with arguments that are not a JSON object\n" in done.out
    assert "\n4 of 7 exchanges have no token counts.\n" in done.out
    assert "\n6 of 7 exchanges have no cost.\n" in done.out
    assert done.err == ""


def test_costs_can_be_estimated(run: Run, log: Path) -> None:
    pytest.importorskip("genai_prices")
    done = run("report", log, "--prices", "--csv")
    gpt = next(row for row in table(done.out) if row["model"] == "gpt-4o")
    assert gpt["estimated_costs"] == "1"
    assert Decimal(gpt["cost"]) > Decimal("0.5")
    assert " costs are estimated by list prices (genai-prices " in run("report", log, "--prices").out


def test_models_without_a_list_price_are_named(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("genai_prices")
    file = tmp_path / "log.jsonl"
    models = [f"own-{number:02}" for number in range(12)]

    def write(models: list[str]) -> None:
        bodies = (orjson.dumps({"provider": "vllm", "body": {**CHAT, "model": model}}) for model in models)
        file.write_bytes(b"\n".join(bodies))

    write(["own-11", *models[:10]])
    note = f"No list price for 11 models: {', '.join(models[:10])} and 1 more."
    assert note in run("report", file, "--prices").out
    assert note in run("report", file, "--prices", "--html").out
    write(models[:10] * 2)
    done = run("report", file, "--prices")
    assert done.out.endswith(f"\nNo list price for 10 models: {', '.join(models[:10])}.\n")
    assert "\n20 of 20 exchanges have no cost.\n" in done.out
    assert "No list price" not in run("report", file).out


def test_a_cost_too_small_to_show_is_not_shown_as_zero(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    for cost, shown in ((0.0001, " 0.0001 "), (0.00009, " <0.0001 "), (0, " 0.0000 ")):
        file.write_bytes(
            orjson.dumps(
                {"provider": "openrouter", "body": {**CHAT, "usage": {**CHAT["usage"], "cost": cost}}}  # type: ignore[dict-item]
            )
        )
        assert shown in run("report", file).out


def test_answers_of_no_provider_are_counted_with_a_way_to_name_it(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(orjson.dumps(CHAT) + b'\n{"hello": 1}\n')
    assert "\n1 of 2 exchanges fit no provider, or several. --verbose lists them; " in run("report", file).out


def test_prices_without_their_package_are_refused_before_anything_is_read(
    run: Run, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    done = run("report", log, "--prices")
    assert (done.status, done.out) == (2, "")
    assert "pip install 'crosswalk-llm[prices]'" in done.err


def test_an_own_cost_of_the_provider_counts(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(
        orjson.dumps({"provider": "openrouter", "body": {**CHAT, "usage": {**CHAT["usage"], "cost": 0.25}}})
    )  # type: ignore[dict-item]
    (row,) = table(run("report", file, "--csv", "--prices").out)
    assert (row["cost"], row["estimated_costs"]) == ("0.25", "0")


def test_one_group_needs_no_sum(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(orjson.dumps(CHAT))
    out = run("report", file, "--by", "vendor,hour").out
    assert [line.split()[:3] for line in out.splitlines()[1:2]] == [["openai", "2026-11-20", "10:00"]]
    assert "\nall" not in out
    assert "No exchange states its cost; --prices estimates it by list prices." in out


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("vendr", "--by: no line has 'vendr', did you mean 'vendor'?"),
        ("model,sesion", "--by: no line has 'sesion', did you mean 'session'?"),
        ("metadata.tenant", "--by: no line has 'metadata.tenant'"),
    ],
)
def test_a_grouping_that_no_line_has_fails_and_is_said(run: Run, tmp_path: Path, by: str, said: str) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(orjson.dumps(LOG[0]) + b"\n")
    done = run("report", file, "--by", by)
    assert (done.status, said in done.err.splitlines()) == (1, True)
    assert run("report", file, "--by", "status,team,body.model").status == 0


def test_a_page_can_be_looked_at(run: Run, log: Path) -> None:
    done = run("report", log, "--by", "model,status", "--html")
    assert done.out.startswith("<!doctype html>")
    assert "<h1>7 exchanges</h1>" in done.out
    assert '<td class="k">gpt-4o</td><td class="k">429</td><td>1</td><td>1</td>' in done.out
    assert "2, 1 of them with arguments that are not a JSON object." in done.out
    assert "<script" not in done.out


def test_a_page_of_no_exchange_has_no_counts(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(b"")
    done = run("report", file, "--html")
    assert "<h1>0 exchanges</h1>" in done.out
    assert "<h2>" not in done.out
    assert run("report", file).status == 0


def test_a_text_of_the_log_is_no_markup(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(orjson.dumps({**CHAT, "model": "<b>\x1b[31m"}))
    out = run("report", file, "--html", "--provider", "openai").out
    assert "<b>" not in out
    assert "\x1b" not in out


def test_what_cannot_be_read_is_named_if_asked(run: Run, log: Path) -> None:
    done = run("report", log, "--verbose", "--jobs", 2)
    assert f"{log}:5: IncompleteStreamError" in done.err
    assert f"{log}:7: not JSON" in done.err
    assert done.status == 1


def test_lines_with_names_of_their_own_need_to_be_told(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    line = {"when": "2026-11-20T10:00:00Z", "vendor": "openai", "http_status": 200, "response": CHAT}
    file.write_bytes(orjson.dumps(line) + b"\n")
    done = run("report", str(file))
    assert done.status == 1
    assert "Errors: 1 DetectionError" in done.out
    assert "name that: --field response=KEY" in done.err
    assert run("report", str(file), "--field", "response=response").status == 0


@pytest.mark.parametrize(
    ("unread", "status"),
    [
        (b"{oops", 1),
        (orjson.dumps({"body": {"x": 1}}), 1),
        (orjson.dumps({"provider": "openai", "body": CHAT, "status": "noon"}), 1),
        (orjson.dumps({"provider": "anthropic", "body": CUT}), 0),  # it was read as far as it came
        (orjson.dumps({"provider": "openai", "status": 429, "body": {"error": {"message": "busy"}}}), 0),
    ],
)
def test_a_report_that_could_not_read_everything_fails(
    run: Run, tmp_path: Path, unread: bytes, status: int
) -> None:
    lines = [orjson.dumps({"provider": "openai", "body": CHAT})] * 3
    (tmp_path / "log.jsonl").write_bytes(b"\n".join([*lines, unread]))
    assert run("report", tmp_path / "log.jsonl").status == status


SPEND = {
    "request_id": "1", "call_type": "acompletion", "startTime": "2026-05-01T10:00:00Z", "endTime": "2026-05-01T10:00:01Z",
    "model": "m", "custom_llm_provider": "openai", "spend": 0.01, "prompt_tokens": 950, "completion_tokens": 40,
    "metadata": {"usage_object": {"cache_read_input_tokens": 800}}, "status": "success", "end_user": "u1", "response": {},
}  # fmt: skip


def test_lines_that_store_no_answer_count_with_what_they_state(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "spend.jsonl"
    failed = {
        **SPEND,
        "status": "failure",
        "spend": 0,
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "metadata": {},
    }
    file.write_bytes(b"\n".join(map(orjson.dumps, [SPEND, SPEND, failed])))
    done = run("report", file, "--by", "model,vendor,user", "--csv")
    [row] = table(done.out)
    assert (done.status, row["model"], row["vendor"], row["user"]) == (0, "m", "openai", "u1")
    assert (row["exchanges"], row["errors"], row["finish_error"]) == ("3", "1", "1")
    assert (row["prompt_tokens"], row["completion_tokens"], row["cached_tokens"]) == ("1900", "80", "1600")
    assert (row["cost"], row["latency_p50"]) == ("0.02", "1.0")
    assert "finish_stop" not in row
    assert (
        "2 of 3 exchanges have no stored answer; they count with what the log states."
        in run("report", file).out
    )


def test_an_answer_that_cannot_be_read_counts_with_what_its_line_states(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    lines = [{**SPEND, "response": {"choices": "many"}}, {**SPEND, "response": 7}]
    file.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    done = run("report", file, "--csv")
    [row] = table(done.out)
    assert (done.status, row["model"], row["exchanges"], row["errors"]) == (1, "m", "2", "2")
    assert (row["prompt_tokens"], row["completion_tokens"], row["cost"]) == ("1900", "80", "0.02")


def test_a_folder_of_captures_is_counted_too(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.response.json").write_bytes(orjson.dumps(CHAT))
    (tmp_path / "b.response.json").write_bytes(b"")
    (row, other) = table(run("report", tmp_path, "--csv").out)
    assert (row["exchanges"], other["model"], other["exchanges"]) == ("1", "gpt-4o", "1")
    assert run("report", tmp_path / "none.jsonl").status == 2
    assert run("report", tmp_path, "--provider", "olama").status == 2


def test_other_files_beside_a_log_are_passed_over(run: Run, log: Path) -> None:
    (log.parent / "more").mkdir()
    for name in ("index.json", "more/output.txt"):
        (log.parent / name).write_text("oops")
    done = run("report", log.parent, "--csv")
    assert done.out == run("report", log, "--csv").out
    assert "passed over 2 files next to the logs" in done.err


def test_an_answer_that_a_resumed_session_repeats_counts_once(run: Run, tmp_path: Path) -> None:
    message = {"type": "message", "id": "m", "role": "assistant", "model": "claude-x", "content": [],
               "stop_reason": "end_turn", "usage": {"input_tokens": 3, "output_tokens": 2}}  # fmt: skip
    for session in ("s1", "s2"):
        line = {"type": "assistant", "uuid": session, "sessionId": session, "timestamp": "2026-11-20T10:00:00Z",
                "requestId": "r1", "message": message}  # fmt: skip
        (tmp_path / f"{session}.jsonl").write_bytes(orjson.dumps(line) + b"\n")
    done = run("report", tmp_path, "--by", "session", "--csv")
    assert [(row["session"], row["exchanges"], row["prompt_tokens"]) for row in table(done.out)] == [
        ("s1", "1", "3")
    ]
    assert "1 answer of resumed sessions in several files, counted once" in done.err


def test_a_folder_without_answers_is_said(run: Run, tmp_path: Path) -> None:
    done = run("report", tmp_path)
    assert (done.status, done.err) == (2, f"{tmp_path}: no captures in it\n")


def test_a_log_may_come_from_standard_input(run: Run, stdin: Callable[[bytes], None]) -> None:
    stdin(orjson.dumps(CHAT))
    (row,) = table(run("report", "--csv").out)
    assert row["exchanges"] == "1"


def test_answers_of_several_providers_are_said(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(orjson.dumps(CHAT) + b"\n" + orjson.dumps(CHAT))
    assert "2 answers of several possible providers: 2 as openai" in run("report", file).err


def test_the_demo_needs_nothing(run: Run) -> None:
    done = run("report", "--demo", "--by", "vendor")
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[-1]
    assert (
        run("report", "--demo", "log.jsonl").err
        == "crosswalk report: --demo reports on its own log: name none\n"
    )


def test_other_names_to_group_by_are_refused(run: Run, log: Path) -> None:
    done = run("report", log, "--by", "model,a..b")
    assert done.status == 2
    assert "'a..b' is neither a path nor one of model, day, hour, vendor, logged_vendor, provider" in done.err


def test_a_sample_is_written_once(run: Run, tmp_path: Path) -> None:
    done = run("samples", tmp_path / "new")
    file = tmp_path / "new" / "log.jsonl"
    assert done == (0, "", f"{file}: try crosswalk report {file} --by vendor,model\n")
    assert run("report", file, "--csv").out == run("report", "--demo", "--csv").out
    before = file.read_bytes()
    again = run("samples", tmp_path / "new")
    assert (again.status, "File exists" in again.err, file.read_bytes()) == (2, True, before)


def test_a_file_that_breaks_off_and_names_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cut.response.ndjson").write_bytes(b'{"message":{"content":"H"},"done":false}\n')
    body = {"message": {"content": "Hi"}, "done": True, "done_reason": "stop"}
    (tmp_path / "whole.response.json").write_bytes(orjson.dumps(body))
    rows = table(run("report", tmp_path, "--provider", "ollama", "--csv").out)
    assert [(row["model"], row["exchanges"], row["errors"]) for row in rows] == [("", "2", "1")]


def test_what_normalize_wrote_is_reported_like_the_log(run: Run, tmp_path: Path) -> None:
    log, stored = tmp_path / "log.jsonl", tmp_path / "stored.jsonl"
    log.write_bytes(b"\n".join(orjson.dumps({**CHAT, "model": model}) for model in ("a", "b", "b")))
    stored.write_text(run("normalize", log).out)
    reported = run("report", log, "--by", "model,provider").out
    assert run("report", stored, "--by", "model,provider").out == reported
    assert "openai" in reported


def test_an_answer_that_mentions_the_version_of_the_stored_form_is_a_providers_answer(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "log.jsonl"
    choice = {"index": 0, "delta": {"content": '"format_version"'}, "finish_reason": "stop"}
    chunk = {**CHAT, "object": "chat.completion.chunk", "choices": [choice]}
    stream = f'data: {orjson.dumps(chunk).decode()}\n\ndata: {{"format_version": 1}}\n\ndata: [DONE]\n\n'
    bodies = [{**CHAT, "format_version": "1.0"}, {"body": stream, "provider": "openai"}]
    file.write_bytes(b"\n".join(map(orjson.dumps, bodies)))
    (row,) = table(run("report", file, "--by", "provider", "--csv").out)
    assert (row["provider"], row["exchanges"]) == ("openai", "2")
