"""What a server leaves empty, sends as null or leaves out is absent in the answer, unless a mark says who has filled it in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from crosswalk.plugin.registry import Registry
from crosswalk.plugins import (
    CREATED,
    FINISH,
    ID,
    MODEL,
    REASONING,
    TEXT,
    FieldTable,
    FinishReason,
    MappingState,
    Provenance,
    ResponseDelta,
    TableDialect,
    UsageInfo,
    calls,
    count,
    hookimpl,
)
from crosswalk.testing import Capture, check_capture

BODY = b"""{"run":"r1","engine":"oak","born":1767261900,"said":{"thought":"Hm.","text":"It is noon."},"acts":[{"id":"a1","name":"bell",
"arguments":{}}],"why":"done","used":{"read":3,"made":2,"price":"0.5"}}"""
STREAM = b"""{"run":"r1","engine":"oak","born":1767261900,"said":{"thought":"Hm."}}
{"said":{"text":"It is"}}
{"said":{"text":" noon."}}
{"acts":[{"id":"a1","name":"bell","arguments":{}}]}
{"why":"done","used":{"read":3,"made":2,"price":"0.5"}}
"""
CAPTURES = [
    Capture("talk", Path("talk.json"), BODY),
    Capture("talk_stream", Path("talk.ndjson"), STREAM, stream=True),
]


class Oak(TableDialect):
    """A plain wire, read by a table. Subclasses put something in place of what is empty."""

    title = "Oak"
    fields = FieldTable(
        {
            "run": ID,
            "engine": MODEL,
            "born": CREATED,
            "said.thought": REASONING,
            "said.text": TEXT,
            "acts": calls(),
            "why": FINISH,
            "used.read": count("prompt_tokens"),
            "used.made": count("completion_tokens"),
        }
    )
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {"done": FinishReason.STOP}

    def fill(self, event: dict[str, Any], state: MappingState) -> None:
        """Change *event* before it is read."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        self.fill(event, state)
        return super().map_delta(event, state)


def filling(path: str, values: tuple[Any, ...], value: Any) -> Oak:
    """Return a plugin that puts *value* in place of each of *values* at *path*."""
    *holder_keys, key = path.split(".")

    class Fills(Oak):
        def fill(self, event: dict[str, Any], state: MappingState) -> None:
            holder: Any = event
            for name in holder_keys:
                holder = holder.get(name) if type(holder) is dict else None
            for item in holder if type(holder) is list else [holder]:
                if type(item) is dict and key in item and item[key] in values:
                    item[key] = value

    return Fills()


class CountsNothingAsZero(Oak):
    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        used = event.get("used")
        if type(used) is dict:
            used.update({key: 0 for key in ("read", "made") if used.get(key, "") is None})
        return super().map_usage(event, state)


class SaysItsThoughts(Oak):
    def fill(self, event: dict[str, Any], state: MappingState) -> None:
        said = event.get("said")
        if type(said) is dict and said.get("text") in ("", None):
            said["text"] = said.get("thought")


class MarksItsModel(Oak):
    """The server is known to leave its name out, and only one model is behind it."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        yield from super().map_delta(event, state)
        if state.model is None:
            state.identify(model="oak-1")
            state.note("model", Provenance.DERIVED)


class MarksItsText(Oak):
    def fill(self, event: dict[str, Any], state: MappingState) -> None:
        if type(event.get("said")) is dict and event["said"].get("text") == "":
            event["said"]["text"] = "(nothing)"
            state.note("message.content", Provenance.DERIVED)


def found_in(plugin: Any, capture: Capture) -> list[str]:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, "oak")
    checks = ["nothing filled in"]
    problems = check_capture(registry.mapper("oak"), capture, checks=checks, others=CAPTURES)
    return [str(problem) for problem in problems]


@pytest.mark.untraced
@pytest.mark.parametrize("capture", [0, 1], ids=["body", "stream"])
@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (filling("why", ("",), "done"), "why: with \"\" in its place, raw_finish_reason: 'done' is not a word"),
        (filling("why", (None,), "done"), "why: with null in its place, raw_finish_reason: 'done' is not a word"),
        (filling("engine", ("",), "oak-1"), 'engine: with "" in its place, model: made up, and not marked'),
        (filling("engine", (None,), "oak-1"), "engine: with null in its place, model: made up, and not marked"),
        (filling("run", ("", None), "r0"), 'run: with "" in its place, id: made up, and not marked'),
        (filling("born", ("", None), 1767261901), "born: with null in its place, created: made up, and not marked"),
        (filling("acts.id", ("",), "a0"), 'acts[0].id: with "" in its place, tool call 0: its id is made up'),
        (filling("acts.name", ("",), "ring"), "acts[0].name: with \"\" in its place, tool call 0: its name 'ring'"),
        (filling("said.text", ("",), "(no answer)"), 'said.text: with "" in its place, another text appears'),
        (filling("said.thought", ("",), "(none)"), 'said.thought: with "" in its place, another reasoning appears'),
        (CountsNothingAsZero(), "used.read: with null in its place, usage.prompt_tokens is 0, which was not sent"),
        (CountsNothingAsZero(), "used.made: with null in its place, usage.completion_tokens is 0, which was not"),
    ],
)  # fmt: skip
def test_a_value_in_place_of_an_empty_one_is_found(plugin: Any, message: str, capture: int) -> None:
    """In a body as in a stream."""
    found = found_in(plugin, CAPTURES[capture])
    assert any(message in line for line in found), found


def test_reasoning_in_place_of_an_empty_text_is_found() -> None:
    """Although the server has sent it."""
    found = found_in(SaysItsThoughts(), CAPTURES[0])
    assert any('said.text: with "" in its place, another text appears' in line for line in found), found


@pytest.mark.parametrize("capture", [0, 1], ids=["body", "stream"])
@pytest.mark.parametrize(
    "plugin", [Oak(), MarksItsModel(), MarksItsText()], ids=lambda one: type(one).__name__
)
def test_a_right_plugin_and_a_marked_repair_are_silent(plugin: Any, capture: int) -> None:
    assert found_in(plugin, CAPTURES[capture]) == []


def test_a_zero_of_another_report_is_the_servers() -> None:
    """As in a stream whose first event counts the answer so far, and whose last one all of it."""
    first, rest = STREAM.split(b"}}\n", 1)
    body = first + b'},"start":{"made":0}}\n' + rest
    capture = Capture("talk_stream", Path("talk.ndjson"), body, stream=True)

    class Counts(Oak):
        fields = FieldTable(
            {
                "run": ID,
                "said.text": TEXT,
                "why": FINISH,
                "start.made": count("completion_tokens"),
                "used.made": count("completion_tokens"),
            }
        )

    assert found_in(Counts(), capture) == []
