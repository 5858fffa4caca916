from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crosswalk import ResponseDelta
from crosswalk.plugins import (
    FINISH,
    TEXT,
    FieldTable,
    FinishReason,
    ProviderInfo,
    Recognition,
    hookimpl,
    same,
    take_string,
)
from crosswalk.testing import Corpus

from .conftest import ROOT, Done, line

Run = Callable[..., Done]
Captures = Callable[..., Path]
OLLAMA = ROOT / "tests/captures/ollama"
VLLM = ROOT / "tests/captures/vllm"


def tables(text: str) -> dict[str, list[list[str]]]:
    """The rows of each section of a Markdown page."""
    found: dict[str, list[list[str]]] = {}
    title = ""
    for row in text.splitlines():
        if row.startswith("## "):
            title = row[3:].replace("\\", "")
        elif row.startswith("| "):
            found.setdefault(title, []).append([cell.strip() for cell in row[1:-1].split(" | ")])
    return found


@pytest.mark.sweep
def test_sections_by_endpoint_and_form(run: Run) -> None:
    done = run("table", "ollama", OLLAMA, "--format", "markdown")
    assert done.status == 0
    assert list(tables(done.out)) == [
        "",
        "/api/chat, whole",
        "/api/chat, streamed",
        "/api/generate, whole",
        "/api/generate, streamed",
        "/v1/chat/completions, whole",
        "/v1/chat/completions, streamed",
        "/v1/completions, whole",
        "/v1/completions, streamed",
        "HTTP errors",
        "Fields of NativeDialect",
    ]
    assert done.err == "left out, not endpoints of the provider: /api/nope\n"


def test_rows_tell_path_types_and_how(run: Run, captures: Captures) -> None:
    call = {"function": {"name": "f", "arguments": {"a": 1, "b": {"c": "x"}}}}
    captures("a", line(message={"role": "assistant", "content": "", "thinking": None, "tool_calls": [call]}))
    captures("b", line(message={"role": "assistant", "content": "Hi", "thinking": "Hm"}, total_duration=5000))
    done = run("table", "ollama", "captures", "--format", "markdown")
    rows = {row[0]: row[1:] for row in tables(done.out)["/api/chat, whole"]}
    assert rows["`message.content`"] == ["string", "`message.content`, `segments[text].content`", "typed"]
    assert rows["`message.thinking`"] == ["null, string", "`segments[reasoning].content`", "typed"]
    assert rows["`message.tool_calls[].function.arguments.*`"] == [
        "integer, string",
        "`message.tool_calls[].arguments`, `segments[tool_call].content`",
        "typed",
    ]
    assert rows["`message.role`"][-1] == "same, another value: `metadata.extensions.message.role`"
    assert rows["`done`"] == ["boolean", "", "decides, refused otherwise: IncompleteStreamError"]
    assert rows["`total_duration`"][-1] == "converted, extensions"
    order = list(rows)
    assert order.index("`message.tool_calls[].function.name`") < order.index("`done`")


@pytest.mark.sweep
def test_keys_that_are_data_are_one_row(run: Run) -> None:
    done = run("table", "vllm", VLLM / "cmpl_echo_logprobs.response.json", "--format", "markdown")
    rows = {row[0]: row[1:] for row in tables(done.out)["/v1/completions, whole"]}
    top = rows["`choices[].logprobs.top_logprobs[].*`"]
    assert top == ["number", "`logprobs[].top[].logprob`", "typed"]
    done = run("table", "vllm", VLLM / "vllm_prompt_logprobs.response.json", "--format", "markdown")
    assert "`metadata.extensions.prompt_logprobs[].*.rank`" in done.out


def test_what_a_later_event_replaces_is_in_the_delta_alone(run: Run, captures: Captures) -> None:
    captures("a", line("x", done=False, extra=1), line("y", extra={"a": 1}))
    done = run("table", "ollama", "captures", "--format", "markdown")
    rows = {row[0]: row[1:] for row in tables(done.out)["/api/chat, streamed"]}
    assert rows["`extra`"] == ["integer", "", "`extensions.extra`", "delta"]


def test_text_is_one_table_a_section(run: Run, captures: Captures) -> None:
    captures("a", line())
    captures("b", line("x", done=False), line("y"))
    done = run("table", "ollama", "captures")
    assert done.out.startswith("/api/chat, whole\n\nwire ")
    assert "\n\n/api/chat, streamed\n\nwire " in done.out
    assert "in the delta" in done.out


def test_markdown_is_safe(run: Run, captures: Captures) -> None:
    captures("a", line() | {"<b>": 1, "x|y": 2, "b`\x1b": 3})
    out = run("table", "ollama", "captures", "--format", "markdown").out
    assert '`["x\\|y"]`' in out
    assert "\x1b" not in out
    assert '\\["b\\`\\\\u001b"\\]' in out


class Events:
    """A provider with events that name their type, with one leaf of every odd kind."""

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> list[ResponseDelta]:
        text = event.get("text")
        return [ResponseDelta(content_delta=text)] if text else []

    @hookimpl
    def extensions(self, event: Any) -> dict[str, Any]:
        return {"size": f"{event['size']} bytes"} if "size" in event else {}

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Events & <more>")


def test_events_that_name_their_type_have_sections_of_their_own(
    run: Run, tmp_path: Path, provider: Callable[[object, str], str]
) -> None:
    (tmp_path / "a.sse").write_text(
        'event: text\ndata: {"type": "text", "text": "a"}\n\ndata: {"type": "end", "size": 3}\n\ndata: [3]\n\n'
    )
    (tmp_path / "b.json").write_text('{"type": 4, "text": "a"}')
    (tmp_path / "c.txt").write_text("no JSON")
    done = run("table", provider(Events(), "events"), "a.sse", "b.json", "c.txt", "--format", "markdown")
    assert done.status == 1
    found = tables(done.out)
    assert list(found)[1:] == [
        "unknown endpoint, whole",
        "unknown endpoint, streamed",
        "unknown endpoint, streamed, end",
        "unknown endpoint, streamed, text",
    ]
    rows = {row[0]: row[1:] for row in found["unknown endpoint, streamed, end"]}
    assert rows["`type`"] == ["string", "", "", "LOST"]
    assert done.out.startswith("# The crosswalk of Events & \\<more\\>\n")


# The rows of a plugin's own tables.


class Heron:
    """A provider that reads by one table."""

    fields = FieldTable({"say[].text": TEXT, "say[].why": FINISH, "by": same("heron"), "no": same(None)})

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Heron", api="1.2")

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        return Recognition.CERTAIN if "say" in event else Recognition.NO

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> Any:
        return self.fields.map_delta(event, state)


def test_the_rows_of_a_table_are_shown_with_the_captures_that_show_them(
    run: Run, tmp_path: Path, provider: Callable[[object, str], str]
) -> None:
    name = provider(Heron(), "heron")
    (tmp_path / "a.json").write_text('{"say": [{"text": "a"}, {"why": "stop"}], "by": null}')
    (tmp_path / "b.ndjson").write_text('{"say": [{"text": "a"}], "no": 1}\n{"say": [{"why": "stop"}]}')
    (tmp_path / "c.json").write_text('{"say": "a"}')  # nothing that a row could take
    (tmp_path / "d.json").write_text('{"choices": [], "by": "heron"}')  # another provider's
    (tmp_path / "e.txt").write_text("no JSON")
    (tmp_path / "f.json").write_text("")
    files = [file.name for file in sorted(tmp_path.iterdir())]
    rows = tables(run("table", name, *files, "--format", "markdown").out)["Fields of Heron"]
    assert rows == [
        ["row", "canonical", "captures"],
        ["`say[].text`", "`text`", "2"],
        ["`say[].why`", "`finish_reason`", "2"],
        ["`by`", "`always heron`", "0"],
    ]


class Ticker(Heron):
    """The same with rows by place."""

    fields = FieldTable({"[0]": TEXT, "[1][0].why": FINISH, "[2]": same("tick")})

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        return Recognition.CERTAIN


def test_the_rows_by_place_are_shown_too(
    run: Run, tmp_path: Path, provider: Callable[[object, str], str]
) -> None:
    name = provider(Ticker(), "ticker")
    (tmp_path / "a.json").write_text('["a", [{"why": "stop"}]]')
    (tmp_path / "b.ndjson").write_text('{"a": 1}\n')
    rows = tables(run("table", name, "a.json", "b.ndjson", "--format", "markdown").out)["Fields of Ticker"]
    assert rows[1:] == [
        ["`[0]`", "`text`", "1"],
        ["`[1][0].why`", "`finish_reason`", "1"],
        ["`[2]`", "`always tick`", "0"],
    ]


def test_a_table_of_one_dialect_is_shown_by_its_own_captures(run: Run, captures: Captures) -> None:
    chat = {"id": "c", "choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}]}
    captures("a", line())
    captures("b", chat, path="/v1/chat/completions")
    captures("c", {"id": "e", "error": "no"}, status=500)
    shown = run("table", "ollama", "captures").out.partition("\nFields of NativeDialect\n")[2]
    shown, _, shown_of_chat = shown.partition("\nFields of OpenAILayer\n")
    counts = {row.split()[0]: row.split()[-1] for row in shown.splitlines() if row}
    assert (counts["message.content"], counts["done"], counts["id"], counts["images"]) == ("1", "1", "0", "0")
    assert "choices[].message.content" in shown_of_chat
    assert "OpenAILayer" not in run("table", "ollama", "captures/a.json").out  # no capture is of it


def test_a_dialect_of_openai_states_what_it_takes(run: Run) -> None:
    """Also what no capture shows: vLLM's own place of a count, and OpenAI's beside it."""
    shown = run("table", "vllm", VLLM / "chat_emoji.response.json").out.partition("\nFields of VLLM\n")[2]
    counts = {row.split()[0]: row.split()[1:] for row in shown.splitlines() if row}
    assert counts["choices[].message.content"] == ["text", "1"]
    assert counts["choices[].delta.tool_calls"] == ["tool_calls", "0"]
    paths = [path for path, (place, *_) in counts.items() if place == "usage.cache_write_tokens"]
    own_path, path = (
        f"usage.prompt_tokens_details.{name}_tokens" for name in ("created_cache", "cache_write")
    )
    assert paths == [own_path, path]


def test_the_tables_of_types_are_shown_as_one(run: Run) -> None:
    shown = run("table", "anthropic", ROOT / "tests/captures/anthropic").out
    shown = shown.partition("\nFields of HostedMessages\n")[2].partition("\nFields of ")[0]
    places = {row.split()[0]: row.split()[1] for row in shown.splitlines() if row}
    paths = ["content[].thinking", "content_block.input", "delta.text", "delta.stop_reason"]
    assert [places[path] for path in paths] == ["reasoning", "tool_calls", "text", "finish_reason"]


def test_a_path_of_several_types_has_all_its_places(run: Run) -> None:
    shown = run("table", "openai_responses", ROOT / "tests/captures/openai_responses").out
    shown = shown.partition("\nFields of ResponsesDialect\n")[2]
    delta = next(row for row in shown.splitlines() if row.startswith("delta "))
    places = {place.strip(", ") for place in delta.split()[1:-1]}
    assert places == {"text", "refusal", "reasoning", "tool_calls", "segments"}
    assert "\nobject " in shown
    assert "\ntype " not in shown  # its place would be all types


class Rowless:
    """A plugin that reads without a table."""

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Rowless", endpoints=("/say",))

    @hookimpl
    def map_delta(self, event: Any) -> list[ResponseDelta]:
        return [ResponseDelta(content_delta=take_string(event, "text"), finish_reason=FinishReason.STOP)]


@pytest.mark.parametrize(
    ("provider", "rows", "other_form"),
    [
        ("bedrock", {"stopReason": "finish_reason", "messageStop.stopReason": "finish_reason"}, "delta.text"),
        ("cohere", {"message.tool_plan": "reasoning", "delta.finish_reason": "finish_reason"}, "tool_plan"),
        ("gemini", {"candidates[].groundingMetadata": "segments", "delta.text": "text"}, "step.type"),
    ],
)
def test_what_code_reads_is_stated_once_where_recordings_show_it(
    run: Run, provider: str, rows: dict[str, str], other_form: str
) -> None:
    shown = run("table", provider, ROOT / "tests/captures" / provider).out.partition("\nFields of ")[2]
    stated = [line.split() for line in shown.splitlines()[2:] if line]
    for path, place in rows.items():
        assert [(row[1], row[2] != "0") for row in stated if row[0] == path] == [(place, True)]
    assert not [row for row in stated if row[0] == other_form]


def test_a_plugin_without_rows_has_no_list_of_them(
    run: Run, tmp_path: Path, provider: Callable[[object, str], str]
) -> None:
    (tmp_path / "a.json").write_text('{"text": "Hi"}')
    shown = run("table", provider(Rowless(), "rowless"), "a.json").out
    assert "message.content" in shown
    assert "Fields of" not in shown


# Which captures.


def test_the_project_s_own_captures_are_found(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert run("table", "xai") == run("table", "xai", "tests/captures/xai")


def test_the_captures_of_the_provider_s_package_come_first(
    run: Run, tmp_path: Path, captures: Captures, monkeypatch: pytest.MonkeyPatch, provider: Any
) -> None:
    file = captures("a", line())
    package = tmp_path / "acme_plugin"
    file.parent.rename(tmp_path / "acme_captures")
    package.mkdir()
    (package / "__init__.py").write_text("")
    (tmp_path / "acme_captures").rename(package / "captures")
    monkeypatch.syspath_prepend(str(tmp_path))
    import crosswalk_ollama

    class Plugin(type(crosswalk_ollama.plugin)):  # type: ignore[misc]
        __name__ = "acme_plugin"

    plugin = Plugin(*crosswalk_ollama.plugin.dialects)
    done = run("table", provider(plugin, "acme"))
    assert done.status == 0
    assert "/api/chat, whole" in done.out


@pytest.mark.untraced
def test_the_captures_that_come_with_crosswalk_are_the_last_resort(run: Run) -> None:
    done = run("table", "zai")
    assert done.status == 0
    assert "/chat/completions, streamed" in done.out


@pytest.mark.parametrize("has_corpus", [True, False])
def test_without_captures_there_is_no_table(
    run: Run,
    captures: Captures,
    provider: Callable[[object, str], str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    has_corpus: bool,
) -> None:
    import crosswalk_ollama

    name = provider(crosswalk_ollama.plugin, "stranger")
    if not has_corpus:
        monkeypatch.setattr(Corpus, "installed", partial(Corpus.installed, ()))
    assert run("table", name) == (2, "", "crosswalk table: no captures of stranger here; name some\n")
    captures("a", {"models": []}, path="/api/tags")
    done = run("table", "vllm", "captures")
    assert done.status == 2
    assert "no captures of vllm's endpoints" in done.err
    assert run("table", "acme").status == 2
    assert "acme" not in sys.modules
