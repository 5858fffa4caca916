from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import orjson
import pytest

from crosswalk import ResponseDelta
from crosswalk.plugin.registry import registry
from crosswalk.plugins import FINISH, TEXT, FieldTable, TableDialect, hookimpl

from .conftest import ROOT, Done, line

Run = Callable[..., Done]
Captures = Callable[..., Path]
OLLAMA = ROOT / "tests/captures/ollama"
VLLM = ROOT / "tests/captures/vllm"


def explained(run: Run, file: Path, *options: str) -> dict[tuple[int, str], dict[str, Any]]:
    done = run("explain", "--json", file, *options)
    assert done.status == 0, done.err
    return {(row["event"], row["path"]): row for row in orjson.loads(done.out)}


def effects(row: dict[str, Any], where: str = "response") -> set[tuple[str, str]]:
    return {(effect["how"], effect["path"]) for effect in row[where]}


def test_every_leaf_of_a_body(run: Run) -> None:
    rows = explained(run, OLLAMA / "chat_length.response.json")
    found = {path: effects(row) for (_, path), row in rows.items()}
    assert found == {
        "model": {("typed", "model"), ("typed", "metadata.model_id")},
        "created_at": {("converted", "created"), ("extensions", "metadata.extensions.created_at")},
        "message.role": {("same", "message.role"), ("otherwise", "metadata.extensions.message.role")},
        "message.content": {("typed", "message.content"), ("typed", "segments[0].content")},
        "done": set(),
        "done_reason": {("typed", "finish_reason"), ("typed", "raw_finish_reason")},
        "total_duration": {
            ("converted", "metadata.request_duration_seconds"),
            ("extensions", "metadata.extensions.total_duration"),
        },
        "load_duration": {("extensions", "metadata.extensions.load_duration")},
        "prompt_eval_count": {("typed", "usage.prompt_tokens")},
        "prompt_eval_duration": {("extensions", "metadata.extensions.prompt_eval_duration")},
        "eval_count": {("typed", "usage.completion_tokens")},
        "eval_duration": {("extensions", "metadata.extensions.eval_duration")},
    }
    assert rows[1, "done"]["refused"] == "IncompleteStreamError"
    assert not any(row["lost"] for row in rows.values())


@pytest.mark.sweep
def test_a_stream_tells_more_in_its_deltas(run: Run) -> None:
    rows = explained(run, OLLAMA / "go_chat_logprobs_stream.response.ndjson")
    assert effects(rows[2, "created_at"]) == set()
    assert effects(rows[2, "created_at"], "delta") == {("extensions", "extensions.created_at")}
    assert effects(rows[2, "message.content"], "delta") == {("typed", "content_delta")}
    assert effects(rows[2, "done"]) == set()  # content would come after the end
    assert effects(rows[4, "done"]) == {("decides", "finish_reason"), ("decides", "raw_finish_reason")}
    assert effects(rows[2, "model"]) >= {("same", "model"), ("otherwise", "metadata.extensions.model")}
    assert effects(rows[1, "logprobs[0].bytes[0]"]) == {("typed", "logprobs[0].bytes[0]")}


@pytest.mark.sweep
def test_what_tells_choices_apart_changes_as_one(run: Run) -> None:
    rows = explained(run, VLLM / "n2_stream.response.sse")
    assert ("typed", "alternatives[0].index") in effects(rows[2, "choices[0].index"])
    assert ("typed", "choice") in effects(rows[2, "choices[0].index"], "delta")


def test_tool_calls_and_nulls(run: Run) -> None:
    rows = explained(run, OLLAMA / "chat_tools_parallel_seed4.response.json")
    arguments = rows[1, "message.tool_calls[2].function.arguments.n"]
    assert effects(arguments) == {
        ("typed", "message.tool_calls[2].arguments"),
        ("typed", "segments[2].content"),
    }
    rows = explained(run, VLLM / "n2.response.json")
    assert effects(rows[1, "choices[0].message.refusal"]) == {
        ("empty", "refusal"),
        ("empty", "segments[1].content"),
    }
    assert effects(rows[1, "service_tier"]) == {("extensions", "metadata.extensions.service_tier")}


@pytest.mark.sweep
def test_text_is_a_table(run: Run) -> None:
    done = run("explain", VLLM / "logprobs_tool.response.json")
    assert done.status == 0
    head, first, *_ = done.out.splitlines()
    assert head.split() == ["event", "wire", "value", "where", "how"]
    assert first.split()[:2] == ["1", "id"]
    rows = {row.split()[1]: row for row in done.out.splitlines()}
    assert rows["choices[0].message.function_call"].endswith("  empty")
    assert rows["choices[0].message.tool_calls[0].type"].endswith("  implied")
    assert rows["choices[0].index"].endswith("another value is refused: IncompleteStreamError")


def test_a_leaf_that_only_a_delta_keeps(run: Run) -> None:
    done = run("explain", OLLAMA / "go_chat_stop_stream.response.ndjson")
    rows = [row for row in done.out.splitlines() if row.startswith("2 ") and "created_at" in row]
    assert rows[0].endswith("  in the delta alone")
    assert "delta: extensions.created_at" in rows[0]


def test_an_error_body_is_explained_by_its_status(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"error": {"message": "no", "code": null, "retry": 1.5}}')
    rows = explained(run, tmp_path / "a.json", "--status", "404", "--provider", "vllm")
    assert ("typed", "refusal") in effects(rows[1, "error.message"])
    assert ("typed", "segments[0].metadata.raw.error.code") in effects(rows[1, "error.code"])
    assert ("typed", "segments[0].metadata.raw.error.retry") in effects(rows[1, "error.retry"])


def test_an_answer_that_is_cut_is_explained_and_fails(run: Run, captures: Captures) -> None:
    done = run("explain", captures("a", line("th", done=False), line("ree", done=False)))
    assert done.status == 1
    assert "message.content" in done.out
    assert "as a whole: IncompleteStreamError" in done.err


def test_a_stream_that_is_cut_inside_an_event_is_explained_up_to_there(run: Run) -> None:
    done = run("explain", "--event", 3, OLLAMA / "v1_client_disconnect_stream.response.sse")
    assert done.status == 1
    assert "as a whole: IncompleteStreamError" in done.err
    assert {row.split()[0] for row in done.out.splitlines()} == {"event", "3"}


def test_what_holds_no_leaves(run: Run, tmp_path: Path, stdin: Callable[[bytes], None]) -> None:
    (tmp_path / "a.txt").write_text("404 page not found")
    done = run("explain", "a.txt", "--provider", "ollama", "--status", "404")
    cause = "no leaf can be read from its beginning; not JSON at byte 4"
    assert (done.status, done.err.partition(":")[2][1 : 1 + len(cause)]) == (1, cause)
    done = run("explain", "a.txt", "--provider", "ollama")
    assert (done.status, done.err.partition(":")[2][1 : 1 + len(cause)]) == (1, cause)
    stdin(b"")
    assert run("explain", "-").err == "-: it is empty\n"
    stdin(b"data: [DONE]\n\n")
    done = run("explain", "-", "--provider", "vllm")
    assert done.err == "-: no leaf can be read from its beginning; there is no event in it\n"


def test_an_event_that_is_not_there(run: Run) -> None:
    done = run("explain", OLLAMA / "go_chat_stop_stream.response.ndjson", "--event", 99)
    assert done == (2, "", "crosswalk explain: there is no event 99: it has 8 events\n")


def test_standard_input_is_explained(run: Run, stdin: Callable[[bytes], None]) -> None:
    stdin(orjson.dumps(line("x" * 100, count=2**60, share=0.0, more="2", flag=True)))
    done = run("explain", "-")
    assert done.status == 0
    assert f'"{"x" * 38}…' in done.out
    assert done.out.count("metadata.extensions.") == 5


def test_what_cannot_be_read_is_status_2(run: Run, tmp_path: Path) -> None:
    assert run("explain", "nowhere") == (2, "", "crosswalk explain: nowhere: No such file or directory\n")
    assert run("explain", tmp_path).status == 2
    (tmp_path / "a.json").write_text("{}")
    assert run("explain", "a.json", "--provider", "acme").status == 2


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_lost_leaf_is_shown_and_fails(
    run: Run, tmp_path: Path, provider: Callable[[object, str], str], options: tuple[str, ...]
) -> None:
    class Deaf:
        @hookimpl
        def map_delta(self, state: Any) -> list[ResponseDelta]:
            return [ResponseDelta(content_delta="always")]

        @hookimpl
        def extensions(self) -> dict[str, Any]:
            return {}

    (tmp_path / "a.json").write_text('{"said": "x"}')
    done = run("explain", "a.json", "--provider", provider(Deaf(), "deaf"), *options)
    assert done.status == 1
    assert ("not mapped: the value is lost" in done.out) or '"lost": true' in done.out


class Letter(TableDialect):
    """A server whose events are JSON in a text."""

    title = "Letter"
    nested: ClassVar[dict[str, str]] = {"result": "json"}
    fields = FieldTable({"result.said": TEXT, "result.why": FINISH})


def test_what_is_inside_a_text_is_explained(run: Run, tmp_path: Path) -> None:
    plugin = Letter()
    registry.register(plugin, "letter")
    (tmp_path / "talk.response.json").write_text(
        '{"result": "{\\"said\\": \\"Hi\\", \\"why\\": \\"stop\\"}"}'
    )
    try:
        rows = explained(run, tmp_path / "talk.response.json", "--provider", "letter")
    finally:
        registry.unregister(plugin, "letter")
    assert {path: row["value"].strip('"') for (_, path), row in rows.items()} == {
        "result.said": "Hi",
        "result.why": "stop",
    }
    assert ("typed", "message.content") in effects(rows[1, "result.said"])
