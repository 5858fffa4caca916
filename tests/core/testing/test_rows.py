"""The kit reads a plugin's table of fields: each row is tried, also one that no recording shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

from crosswalk import registry as installed
from crosswalk.plugin.registry import Registry
from crosswalk.plugins import (
    CREATED,
    FINISH,
    ID,
    MODEL,
    REASONING,
    REFUSAL,
    TEXT,
    FieldRow,
    FieldTable,
    FinishReason,
    MappingState,
    OpenAIChatDialect,
    Recognition,
    ResponseDelta,
    Said,
    TableDialect,
    UsageInfo,
    WireTypeError,
    count,
    hookimpl,
    same,
    take_string,
)
from crosswalk.testing import CHECKS, Capture, check_capture, load_captures
from crosswalk.testing.evidence import unproven

BODY = b'{"run":"r1","parts":[{"text":"Hello"}],"why":"stop","used":{"in":3}}'
WHOLE = Capture("talk", Path("talk.json"), BODY)
STREAM = Capture(
    "talk_stream",
    Path("talk.ndjson"),
    b'{"run":"r1","parts":[{"text":"Hel"}]}\n{"parts":[{"text":"lo"}]}\n{"why":"stop"}\n',
    stream=True,
)


class Heron:
    """A plain wire, read by a table alone."""

    fields = FieldTable(
        {
            "run": ID,
            "engine": MODEL,
            "parts[].text": TEXT,
            "parts[].thought": REASONING,
            "parts[].by": same("heron"),
            "no": REFUSAL,
            "why": FINISH,
            "used.in": count("prompt_tokens"),
            "used.kept": count("cached_tokens"),
            "used.hit": count("cached_tokens"),
        }
    )
    silent = FieldTable({"why": FINISH})

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        yield from self.fields.map_delta(event, state)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        return self.fields.map_usage(event, state)

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason | None:
        return FinishReason.STOP if reason == "stop" else None


class WithoutThoughts(Heron):
    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        for delta in self.fields.map_delta(event, state):
            if delta.reasoning_delta is None:
                yield delta
            elif delta.content_delta is not None:
                yield ResponseDelta(content_delta=delta.content_delta)


class WithoutHits(Heron):
    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        usage = self.fields.map_usage(event, state)
        return None if usage is None else attrs.evolve(usage, cached_tokens=None)


class Stripped(Heron):
    """Its thoughts lose the white space around them. No recording has thoughts."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        for delta in self.fields.map_delta(event, state):
            thought = delta.reasoning_delta
            yield delta if thought is None else attrs.evolve(delta, reasoning_delta=thought.strip() or "-")


class Refusing(Heron):
    """A server that never thinks and refuses."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        if event.get("no"):
            raise WireTypeError("no", expected="no refusal", got=event["no"])
        yield from self.fields.map_delta(event, state)


class Family(Heron):
    """A plugin whose dialect has the table."""

    fields = Heron.fields
    dialects = (WithoutThoughts(),)

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        return Recognition.POSSIBLE


class Dated(Heron):
    """Its whole answers say when."""

    fields = FieldTable({**Heron.fields.rows, "at": CREATED})


class Detailed(Heron):
    """It counts what it drew."""

    fields = FieldTable(
        {**Heron.fields.rows, "used.drawn": count("image_output_tokens"), "used.all": count("total_tokens")}
    )


class Summed(Heron):
    """It says its text twice, and its counts elsewhere."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        if "all" in event:
            event["parts"][0]["text"] = event.pop("all")
        yield from self.fields.map_delta(event, state)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        event["used"] = {**event.get("used", {}), **event.pop("sum")}
        return self.fields.map_usage(event, state)


class Timed(Heron):
    """Its engine counts as well, and what that says decides."""

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        event["kept"], event["used"] = event["used"], event.pop("engine_says")
        return self.fields.map_usage(event, state)


def found(plugin: Any, *captures: Capture, check: str = "rows hold") -> list[str]:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, "heron")
    mapper = registry.mapper("heron")
    return [
        str(problem)
        for one in captures
        for problem in check_capture(mapper, one, checks=[check], others=captures)
    ]


@pytest.mark.parametrize("plugin", [Heron(), Refusing(), Family()])
def test_a_right_table_has_no_problem(plugin: Any) -> None:
    """Nor one whose server refuses what no server says at once."""
    assert found(plugin, WHOLE, STREAM) == []


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (WithoutThoughts(), "parts[0].thought: its row says reasoning, and it is not read as that"),
        (WithoutHits(), "used.kept: its row says usage.cached_tokens, and it is not read as that"),
        (Stripped(), "parts[0].thought: another text in its place is not passed on unchanged"),
    ],
)
def test_a_row_that_no_recording_shows_is_tried(plugin: Any, message: str) -> None:
    assert any(message in problem for problem in found(plugin, WHOLE)), found(plugin, WHOLE)


def test_a_number_in_the_place_of_a_time_may_be_one() -> None:
    dated = attrs.evolve(WHOLE, body=WHOLE.body[:-1] + b',"at":"2026-11-20T09:49:14Z"}')
    assert found(Dated(), dated, check="never silently wrong") == []


def test_a_row_is_tried_in_a_stream() -> None:
    assert found(WithoutThoughts(), STREAM) == [
        "P4 talk_stream, event 2, parts[0].thought: its row says reasoning, and it is not read as that"
    ]


def test_a_count_that_a_later_event_replaces_is_not_tried() -> None:
    counted = attrs.evolve(STREAM, body=STREAM.body + b'{"used":{"in":3,"hit":1}}\n')
    assert found(Heron(), counted) == []


def test_a_count_of_details_is_read_as_its_row_says() -> None:
    assert found(Detailed(), WHOLE) == []


def test_what_something_else_says_too_is_not_tried() -> None:
    """Its text is beside the parts as well, and its counts are in another place."""
    body = b'{"run":"r1","parts":[{"text":"Hello"}],"all":"Hello","why":"stop","sum":{"in":3}}'
    assert found(Summed(), attrs.evolve(WHOLE, body=body)) == []
    body = b'{"run":"r1","parts":[{"text":"Hello"}],"why":"stop","sum":{"in":3}}'
    assert found(Summed(), attrs.evolve(WHOLE, body=body)) == []


def test_counts_that_something_else_decides_are_not_tried() -> None:
    body = WHOLE.body[:-1] + b',"engine_says":{"in":3}}'
    assert found(Timed(), attrs.evolve(WHOLE, body=body)) == []


def test_counts_of_several_events_may_be_summed() -> None:
    counted = attrs.evolve(STREAM, body=b'{"used":{"in":3}}\n' + STREAM.body + b'{"used":{"in":4}}\n')
    assert found(WithoutHits(), counted) == []


def test_rows_without_a_recording_are_told() -> None:
    registry = Registry(installed=[], environ={})
    registry.register(Heron(), "heron")
    missing = unproven(registry.mapper("heron"), [WHOLE, STREAM])
    assert "the rows engine, parts[].thought, no, used.kept, used.hit" in missing


@pytest.mark.untraced
def test_the_rows_of_ollama_are_read_as_they_say() -> None:
    """With an image and calls of ``/api/generate``, of which there is no recording."""
    captures = load_captures(Path(__file__).parents[2] / "captures/ollama")
    mapper = installed.mapper("ollama")
    missing = next(one for one in unproven(mapper, captures) if one.startswith("the rows "))
    assert missing.startswith("the rows message.images, tool_calls, images, choices[].message.")
    problems = [check_capture(mapper, one, checks=["rows hold"], others=captures) for one in captures]
    assert [*filter(None, problems)] == []


class Ticker(TableDialect):
    """A wire of arrays, read by place."""

    title = "Ticker"
    fields = FieldTable(
        {
            "[0]": TEXT,
            "[2]": FINISH,
            "[3]": count("completion_tokens"),
            "[4]": MODEL,
            "[1][].thought": REASONING,
        }
    )
    finish_reasons: ClassVar[dict[str, FinishReason]] = {"done": FinishReason.STOP}


class Thoughtless(Ticker):
    """A mistake in a row that no recording shows."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        """Leave the thoughts out."""
        return iter([one for one in super().map_delta(event, state) if one.reasoning_delta is None])


TICKS = [
    Capture("tick", Path("tick.json"), b'["Good Evening",null,"done",5]'),
    Capture(
        "tick_stream",
        Path("tick.sse"),
        b'data: ["Good",null,null,null,"m-1"]\n\ndata: [" Evening"]\n\ndata: ["",null,"done",5]\n\n',
        stream=True,
    ),
]


def test_a_row_by_place_is_tried() -> None:
    wrong = found(Thoughtless(), *TICKS)
    assert any("[1][0].thought: its row says reasoning" in problem for problem in wrong), wrong
    for check in CHECKS:
        assert found(Ticker(), *TICKS, check=check) == []
    registry = Registry(installed=[], environ={})
    registry.register(Ticker(), "ticker")
    assert "the rows [1][].thought" in unproven(registry.mapper("ticker"), TICKS)


# OpenAI's chat dialect reads by methods, and states what they take as rows.


CHAT = Capture(
    "chat",
    Path("chat.json"),
    b'{"id":"c-1","object":"chat.completion","created":1764500000,"model":"m","choices":[{"index":0,"message":'
    b'{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1,'
    b'"total_tokens":4,"prompt_tokens_details":{"cached_tokens":2}}}',
)
CHAT_STREAM = Capture(
    "chat_stream",
    Path("chat.sse"),
    b'data: {"id":"c-1","object":"chat.completion.chunk","created":1764500000,"model":"m","choices":[{"index":1,"delta":'
    b'{"role":"assistant","content":"Hi"}}]}\n\n'
    b'data: {"id":"c-1","object":"chat.completion.chunk","created":1764500000,"model":"m","choices":[{"index":0,"delta":'
    b'{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}\n\n'
    b'data: {"id":"c-1","object":"chat.completion.chunk","created":1764500000,"model":"m","choices":[{"index":1,"delta":'
    b'{"content":"!"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
    stream=True,
)


class Lookalike(OpenAIChatDialect):
    """A server of OpenAI's dialect, with a count in a place of its own."""

    endpoints = ("/v1/chat/completions",)
    cached_tokens = (*OpenAIChatDialect.cached_tokens, "hits")


class Forgetful(Lookalike):
    """It takes its count, and forgets it."""

    def usage_info(self, usage: dict[str, Any], state: MappingState) -> UsageInfo | None:
        hits = usage.pop("hits", None)
        return super().usage_info(usage, state) if hits is None else None


class Silent(Lookalike):
    """It takes the reasoning under one of its names, and leaves it out."""

    def reasoning(self, part: dict[str, Any], choice: int, state: MappingState) -> str | None:
        part.pop("reasoning", None)
        return super().reasoning(part, choice, state)


class Chatty(Lookalike):
    """Its refusals are texts."""

    def choice_deltas(
        self, choice: dict[str, Any], part: dict[str, Any], index: int, state: MappingState, *, whole: bool
    ) -> Iterator[ResponseDelta]:
        part["content"] = (part.get("content") or "") + (part.pop("refusal", None) or "")
        yield from super().choice_deltas(choice, part, index, state, whole=whole)


@pytest.mark.parametrize("capture", [CHAT, CHAT_STREAM])
def test_a_right_lookalike_has_no_problem(capture: Capture) -> None:
    assert found(Lookalike(), capture) == []


@pytest.mark.parametrize(
    ("plugin", "messages"),
    [
        (Silent(), {"choices[0].message.reasoning: its row says reasoning"}),
        (Chatty(), {"choices[0].message.refusal: its row says refusal"}),
        (Forgetful(), {"usage.hits: its row says usage.cached_tokens"}),
    ],
)
def test_a_place_of_a_lookalike_that_no_recording_shows_is_tried(plugin: Any, messages: set[str]) -> None:
    told = {one.partition("event 1, ")[2].partition(",")[0] for one in found(plugin, CHAT)}
    assert messages <= told, told


def test_it_is_tried_in_a_stream_too() -> None:
    told = found(Silent(), CHAT_STREAM)
    assert told == [
        "P4 chat_stream, event 3, choices[0].delta.reasoning: its row says reasoning, and it is not read as that"
    ]


def test_places_of_a_lookalike_without_a_recording_are_told() -> None:
    registry = Registry(installed=[], environ={})
    registry.register(Lookalike(), "heron")
    missing = next(one for one in unproven(registry.mapper("heron"), [CHAT]) if one.startswith("the rows "))
    assert "choices[].message.function_call" in missing
    assert "usage.hits" in missing
    assert "choices[].text" not in missing  # no endpoint of its has one
    assert "cached_tokens, " not in missing.partition("usage.prompt_tokens_details.")[0]


def take_words(part: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    said.text = take_string(part, key)


def take_part(holder: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    for part in holder[key]:
        if (table := PARTS.get(part.get("kind"))) is not None:
            del part["kind"]
            table.read(part, said, state)


def lose(part: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    """Nobody recorded a refusal beside words, so that nobody sees it."""
    del part[key]


PARTS = {
    "idea": FieldTable({"idea": REASONING}),
    "words": FieldTable({"text": FieldRow("text", take_words), "aside": FieldRow("refusal", lose)}),
}
TYPED = Capture(
    "parts",
    Path("parts.json"),
    b'{"run":"r1","parts":[{"kind":"idea","idea":"Hm"},{"kind":"words","text":"Hello"}],"why":"stop"}',
)


class Typed(Heron):
    """A wire whose parts have a table for each kind, in a table for each kind of event."""

    fields = FieldTable({"run": ID, "parts[]": FieldRow("segments", take_part, inside=PARTS), "why": FINISH})


def test_a_row_is_tried_in_a_value_of_its_type() -> None:
    """Not in the first part, which is of another kind, and by what its place says, whatever function takes it."""
    problems = found(Typed(), TYPED)
    assert problems[0].endswith("parts[1].aside: its row says refusal, and it is not read as that"), problems
    assert not any("parts[0]" in problem for problem in problems), problems


class Stating:
    """A wire read without a table, which states rows of events that differ in their type alone."""

    rows: ClassVar[dict[str, dict[str, FieldRow]]] = {
        "words": {"type": same("words"), "delta": TEXT, "used.in": count("prompt_tokens")},
        "idea": {"type": same("idea"), "delta": REASONING},
    }

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        state.take_identity(event, id="run")
        words = take_string(event, "delta") or ""
        is_idea = take_string(event, "type") == "idea"
        yield ResponseDelta(reasoning_delta=words) if is_idea else ResponseDelta(content_delta=words)
        if event.pop("end", False):
            yield ResponseDelta(finish_reason=FinishReason.STOP)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        return Heron.fields.map_usage(event, state)


@pytest.mark.parametrize("type", [b"", b'"type":"words",'])
def test_a_row_with_a_constant_beside_it_is_of_events_with_it(type: bytes) -> None:
    """The last event has thoughts at the path of the text."""
    body = b'{"run":"r1",%s"delta":"Hi"}\n{"type":"idea","delta":"Hm","end":true}\n' % type
    assert found(Stating(), attrs.evolve(STREAM, body=body)) == []
