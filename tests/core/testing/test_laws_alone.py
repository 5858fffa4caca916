"""Laws that find little in the planted plugins: each has a mistake that nothing else in the kit finds.

What each of the other laws finds alone is on the page "Test without a model", counted by ``scripts/plugin_mutants.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
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
    Access,
    ChatRequest,
    FieldRow,
    FieldTable,
    FinishReason,
    HTTPRequest,
    Limits,
    MappingState,
    OpenAIChatStyle,
    PushDecoder,
    ResponseDelta,
    TableDialect,
    build_openai_chat_request,
    count,
    hookimpl,
)
from crosswalk.testing import CHECKS, Capture, check_capture

HEAD = b'{"run":"r1","engine":"oak","born":1767261900,"text":"It is"}\n'
CAPTURES = [
    Capture(
        "talk",
        Path("talk.json"),
        b'{"run":"r1","engine":"oak","born":1767261900,"text":"It is noon.","why":"done","used":{"read":3,"made":2}}',
    ),
    Capture(
        "talk_stream",
        Path("talk.ndjson"),
        HEAD + b'{"text":" noon."}\n{"why":"done","used":{"read":3,"made":2}}\n{"gust":"ne"}\n',
        stream=True,
        content_type="application/x-oak",
    ),
]


KEPT = FieldRow("extensions", lambda holder, key, said, state: None)


class Oak(TableDialect):
    """A plain wire, read by a table and asked in OpenAI's words."""

    title = "Oak"
    endpoints = ("/v1/tell",)
    access: ClassVar[Access | None] = Access.by_name("http://127.0.0.1:7472", "OAK")
    fields = FieldTable(
        {
            "run": ID,
            "engine": MODEL,
            "born": CREATED,
            "text": TEXT,
            "why": FINISH,
            "gust": KEPT,
            "used.read": count("prompt_tokens"),
            "used.made": count("completion_tokens"),
        }
    )
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {"done": FinishReason.STOP}

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        return build_openai_chat_request(request, OpenAIChatStyle(path="/v1/tell"))


class ForgetsTheModel(Oak):
    """Has no row for the model."""

    fields = FieldTable({path: row for path, row in Oak.fields.rows.items() if row is not MODEL})


class LinesOfEachChunk(PushDecoder):
    """Takes the end of each chunk for the end of a line."""

    def read(self, chunk: bytes, frames: list[tuple[bytes, str | None]]) -> None:
        frames += [(line, None) for line in chunk.split(b"\n") if line]

    def finish(self, frames: list[tuple[bytes, str | None]]) -> None:
        pass


class CutsLines(Oak):
    @staticmethod
    def framing(start: bytes, limits: Limits, content_type: str) -> PushDecoder | None:
        return LinesOfEachChunk(limits) if content_type and start.startswith(b"{") else None


class CountsPieces(Oak):
    """Says that texts pass unchanged and add nothing else, and counts them."""

    @property
    def text_paths(self) -> tuple[str, ...]:
        return super().text_paths

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        state.data["pieces"] = state.data.get("pieces", 0) + ("text" in event)
        if "gust" in event:
            event["pieces"] = state.data["pieces"]
        return super().map_delta(event, state)


class TakesLengthForStop(Oak):
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {**Oak.finish_reasons, "length": FinishReason.STOP}


class PassesErrorsOver(Oak):
    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        if isinstance(event, dict) and "text" not in event and "why" not in event and "error" in event:
            return ()
        return super().map_delta(event, state)


class CountsForAll(Oak):
    """Counts the events of an answer where all answers find the count."""

    number = 0

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        self.number = 1 if "run" in event else self.number + 1
        if "gust" in event:
            event["number"] = self.number
        return super().map_delta(event, state)


class DeclaresASentinel(Oak):
    sentinel = True


class LeavesThoughtsOut(Oak):
    """Its table has a row for reasoning, which is left out and which no recording shows."""

    fields = FieldTable({**Oak.fields.rows, "musing": REASONING})

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        return [delta for delta in super().map_delta(event, state) if delta.reasoning_delta is None]


class ForgetsTheTemperature(Oak):
    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        built = super().build_request(request)
        built.body.pop("temperature", None)
        return built


class KeepsATuple(Oak):
    """Leaves in the event what JSON does not have."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        if "gust" in event:
            event["winds"] = (event["gust"],)
        return super().map_delta(event, state)


ALONE: list[tuple[type[Oak], str]] = [
    (ForgetsTheModel, "kinds are read"),
    (CutsLines, "framing does not matter"),
    (CountsPieces, "text paths hold"),
    (TakesLengthForStop, "known words keep their meaning"),
    (PassesErrorsOver, "errors show"),
    (CountsForAll, "one answer at a time"),
    (DeclaresASentinel, "declarations hold"),
    (LeavesThoughtsOut, "rows hold"),
    (ForgetsTheTemperature, "requests say all"),
    (KeepsATuple, "deterministic"),
]


def found_in(plugin: Oak) -> dict[str, str]:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, "oak")
    mapper = registry.mapper("oak")
    return {
        problem.check: str(problem)
        for one in CAPTURES
        for problem in check_capture(mapper, one, sample=None, others=CAPTURES)
    }


def test_the_plugin_without_a_mistake_passes() -> None:
    assert found_in(Oak()) == {}


@pytest.mark.untraced
@pytest.mark.parametrize(("mistake", "law"), ALONE, ids=lambda value: getattr(value, "__name__", None))
def test_a_law_finds_what_no_other_finds(mistake: type[Oak], law: str) -> None:
    found = found_in(mistake())
    assert [*found] == [law], found


def test_the_page_names_for_each_law_what_only_it_finds() -> None:
    """In planted plugins, by counts, or here. Statements have tests of their own."""
    page = (Path(__file__).parents[3] / "docs/testing.md").read_text(encoding="utf-8")
    counted = {
        law
        for law, *alone in re.findall(r"^\| `(.+?)` \| \d+ \| (\d+) \| \d+ \| (\d+) \|", page, re.MULTILINE)
        if {*alone} != {"0"}
    }
    _, _, own = page.partition("| the mistake that only it finds |")
    named = re.findall(r"^\| `(.+?)` \|", own, re.MULTILINE)
    assert sorted(named) == sorted(law for _, law in ALONE)
    assert counted | {*named, "as stated", "requests as stated"} == {*CHECKS, "body and stream agree"}
