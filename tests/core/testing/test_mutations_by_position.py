"""The kit is tested by mistakes in a plugin for a wire of rows, where a value means something by its position alone.

No key tells there what a value is, so that each mistake must be found by what becomes of the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

from crosswalk.plugin.registry import Registry
from crosswalk.plugins import (
    FinishReason,
    ResponseDelta,
    ToolCallDelta,
    UnknownEventError,
    UnknownFinishReasonError,
    UsageInfo,
    WireTypeError,
    hookimpl,
    take_objects,
    take_string,
)
from crosswalk.testing import CHECKS, Capture, Problem, check_capture

Row = list[Any]


def take(row: Row, place: int) -> str | None:
    """The text in the cell at *place*, taken out. ``None`` if there is none."""
    value = row[place] if place < len(row) else None
    if value is not None and type(value) is not str:
        raise WireTypeError(f"[{place}]", expected="string", got=value)
    if place < len(row):
        row[place] = None
    return value


class Loom:
    """A small provider that keeps every promise. Each mistake overrides one of its methods."""

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> Iterator[ResponseDelta]:
        for row in self.rows(event):
            kind = row[0] if row else None
            if kind not in ("hi", "think", "say", "do", "sum", "bye"):
                yield from self.unknown(kind)
            elif kind == "hi":
                state.identify(id=take(row, 1), model=self.model(row), created=self.time(row))
            elif kind == "think" and (text := take(row, 1)):
                yield ResponseDelta(reasoning_delta=text)
            elif kind == "say" and (text := self.text(row, state)):
                yield ResponseDelta(content_delta=text)
            elif kind == "do":
                yield ResponseDelta(tool_call_delta=self.call(row))
            elif kind == "bye":
                yield from self.end(row, state)
            if kind != "sum":
                take(row, 0)

    @hookimpl
    def map_usage(self, event: Any, state: Any) -> UsageInfo | None:
        found = None
        for row in self.rows(event):
            if row[0] == "sum":
                take(row, 0)
                found = self.counts(row, state)
        return found

    @hookimpl
    def map_finish_reason(self, reason: str, state: Any) -> FinishReason:
        known = {
            "1": FinishReason.STOP,
            "done": FinishReason.STOP,
            "acted": FinishReason.TOOL_CALLS,
            "length": FinishReason.LENGTH,
        }
        if reason not in known:
            raise UnknownFinishReasonError(reason)
        return known[reason]

    @hookimpl
    def extensions(self, event: Any, state: Any) -> dict[str, Any]:
        rows = [left for row in self.rows(event) if (left := [cell for cell in row if cell is not None])]
        more = (
            {key: value for key, value in event.items() if key != "rows"} if isinstance(event, dict) else {}
        )
        return {**more, "rows": rows} if rows else more

    def rows(self, event: Any) -> list[Row]:
        rows = [event] if isinstance(event, list) else event.get("rows") if isinstance(event, dict) else None
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            raise UnknownEventError("neither a row nor rows", event_type=type(rows).__name__)
        return rows

    def unknown(self, kind: Any) -> Iterator[ResponseDelta]:
        raise UnknownEventError("a row of an unknown kind", event_type=str(kind))

    def model(self, row: Row) -> str | None:
        return take(row, 2)

    def time(self, row: Row) -> datetime | None:
        text = take(row, 3)
        if text is None:
            return None
        try:
            if text.isdecimal() and str(int(text)) == text:
                return datetime.fromtimestamp(int(text), UTC)
            return datetime.fromisoformat(text).replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            raise WireTypeError("[3]", expected="time", got=text) from None

    def text(self, row: Row, state: Any) -> str | None:
        return take(row, 1)

    def call(self, row: Row) -> ToolCallDelta:
        slot = self.count(row, 1)
        if slot is None or slot > 63:
            raise WireTypeError("[1]", expected="a slot", got=row)
        return ToolCallDelta(slot, take(row, 2), take(row, 3), self.arguments(row))

    def arguments(self, row: Row) -> str | None:
        return take(row, 4)

    def end(self, row: Row, state: Any) -> Iterator[ResponseDelta]:
        if (word := take(row, 1)) is not None:
            yield ResponseDelta(raw_finish_reason=word)

    def count(self, row: Row, place: int) -> int | None:
        text = take(row, place)
        if text is not None and not (
            text.isascii() and text.isdecimal() and len(text) < 18 and str(int(text)) == text
        ):
            raise WireTypeError(f"[{place}]", expected="digits", got=text)
        return None if text is None else int(text)

    def counts(self, row: Row, state: Any) -> UsageInfo | None:
        fresh, cached, said = self.count(row, 1), self.count(row, 2), self.count(row, 3)
        prompt = None if fresh is None else fresh + (cached or 0)
        found: UsageInfo | None = state.usage_info(prompt, said, cached_tokens=cached)
        return found


HI = ["hi", "loom-7", "Warp-2", "1780000000"]
CAPTURES: dict[str, list[Any]] = {
    "talk": [
        {"rows": [["hi", "loom-9", "Warp-2", "2026-05-28 20:26:40"], ["think", "Let me See."], ["say", "Good Evening"],
                  ["sum", "9", "4", "5"], ["bye", "done"]]}
    ],
    "talk_stream": [
        HI, ["think", "Let me "], ["think", "See."], ["say", "Good"], ["say", " Evening"], ["say", ", all"],
        ["sum", "9", "4", "2"], ["sum", "9", "4", "5"], ["bye", "done"],
    ],
    "call_stream": [
        HI, ["do", "0", "c-1", "look", '{"City": '], ["do", "0", None, None, '"Le Havre"}'],
        ["do", "1", "c-2", "look", '{"City": "Brest"}'], ["sum", "9", "4", "5"], ["bye", "acted"],
    ],
    "bye_first_stream": [HI, ["say", "It is "], ["say", "late, and counts"], ["bye", "done"], ["sum", "9", "4", "5"]],
}  # fmt: skip


def capture(name: str, events: list[Any]) -> Capture:
    is_stream = name.endswith("_stream")
    lines = b"data: %s\n\n" if is_stream else b"%s\n"
    body = b"".join(lines % orjson.dumps(event) for event in events)
    return Capture(name, Path(name), body, stream=is_stream, pair=name.removesuffix("_stream"))


def mapped(plugin: Any) -> Any:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, "loom")
    return registry.mapper("loom")


def found_in(
    plugin: Any, *, sample: int | None = 40, checks: tuple[str, ...] = tuple(CHECKS)
) -> Iterator[Problem]:
    """The kit's findings, without a snapshot and without a pair: in one capture after the other, as long as you ask."""
    mapper = mapped(plugin)
    for one in CAPTURES.items():
        yield from check_capture(mapper, capture(*one), sample=sample, checks=checks)


# ------------------------------------------------------------------------------------ the mistakes


class IsAnHourOff(Loom):
    def time(self, row: Row) -> datetime | None:
        time = super().time(row)
        return time and time + timedelta(hours=1)


class CutsText(Loom):
    def text(self, row: Row, state: Any) -> str | None:
        text = super().text(row, state)
        return text and text[:200]


class LowersTheFinish(Loom):
    def end(self, row: Row, state: Any) -> Iterator[ResponseDelta]:
        for delta in super().end(row, state):
            yield attrs.evolve(delta, raw_finish_reason=str(delta.raw_finish_reason).lower())


class StripsTheFinish(Loom):
    @hookimpl
    def map_finish_reason(self, reason: str, state: Any) -> FinishReason:
        return super().map_finish_reason(reason.strip(), state)


class GivesEqualPiecesOnce(Loom):
    def text(self, row: Row, state: Any) -> str | None:
        text = super().text(row, state)
        if text == state.data.get("last"):
            return None
        state.data["last"] = text
        return text


class DropsMoreCells(Loom):
    @hookimpl
    def extensions(self, event: Any, state: Any) -> dict[str, Any]:
        return {}


class DropsALoneNewline(Loom):
    def text(self, row: Row, state: Any) -> str | None:
        text = super().text(row, state)
        return None if text == "\n" else text


class ReadsPaddedNumbers(Loom):
    def count(self, row: Row, place: int) -> int | None:
        if place < len(row) and isinstance(row[place], str):
            row[place] = row[place].strip()
        return super().count(row, place)


class ReadsWhateverPythonReads(Loom):
    def count(self, row: Row, place: int) -> int | None:
        text = take(row, place)
        try:
            return None if text is None else abs(int(text))
        except ValueError:
            raise WireTypeError(f"[{place}]", expected="digits", got=text) from None


class AddsCountsAsText(Loom):
    def counts(self, row: Row, state: Any) -> UsageInfo | None:
        fresh, cached, said = self.count(row, 1), self.count(row, 2), self.count(row, 3)
        prompt = None if fresh is None else int(f"{fresh}{cached or ''}")
        found: UsageInfo | None = state.usage_info(prompt, said, cached_tokens=cached)
        return found


class KeepsTheFinishOnItself(Loom):
    """The last event says it, as it was when some answer had it."""

    word: str | None = None

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> Iterator[ResponseDelta]:
        if isinstance(event, list) and event and event[0] == "hi":
            self.word = None
        yield from super().map_delta(event, state)
        if self.word is not None and not state.has_ended(0):
            yield ResponseDelta(raw_finish_reason=self.word)

    def end(self, row: Row, state: Any) -> Iterator[ResponseDelta]:
        self.word = take(row, 1)
        return iter(())


class LeavesTheTextInTheRow(Loom):
    def text(self, row: Row, state: Any) -> str | None:
        return None


MISTAKES = [
    (IsAnHourOff, "nothing invented", "talk, created: made up, and not marked"),
    (IsAnHourOff, "nothing invented", "talk_stream, created: made up, and not marked"),
    (CutsText, "text as it was sent", "a long text with white space around it in its place is not passed on unchanged"),
    (LowersTheFinish, "unknown words raise", "[1]: the finish word 'DONE' is passed on as 'done'"),
    (StripsTheFinish, "unknown words raise", "[1]: the finish word ' done\\n' is read as stop"),
    (GivesEqualPiecesOnce, "text as it was sent", "the same text again, in its next event, is not passed on"),
    (DropsMoreCells, "nothing lost", "talk_stream, event 9, [2]: lost: one more item at the end of the array"),
    (DropsALoneNewline, "text as it was sent", "[1]: a line break in its place is not passed on unchanged"),
    (ReadsPaddedNumbers, "digits kept", "rows[3][1]: the text ' 9\\n' is read as 9"),
    (ReadsWhateverPythonReads, "digits kept", "rows[3][1]: the text '1_9' is read as 19"),
    (AddsCountsAsText, "counts are the provider's", "rows[3][1]: it counts more than once in usage.prompt_tokens"),
    (KeepsTheFinishOnItself, "one answer at a time", "one answer after another: it is read differently than after itself"),
    (LeavesTheTextInTheRow, "output shows", "is empty, and rows[0][0] is left in the extensions"),
]  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("sample", [None, 40, 2])
def test_the_provider_without_a_mistake_passes(sample: int | None) -> None:
    """However much is tried: different meanings of a row's cells in different rows are not a mistake."""
    assert [str(problem) for problem in found_in(Loom(), sample=sample)] == []


@pytest.mark.untraced
@pytest.mark.parametrize(
    "events",
    [
        [{"rows": [HI, ["sum", "9", "4", "5"]]}, ["say", "Counted first"], ["bye", "done"]],
        [HI, ["say", "A number for a word"], ["bye", "1"]],
        [HI, {"rows": [["say", "All at once"], ["bye", "done"], ["sum", "9", "4", "5"]]}],
    ],
)
def test_what_cannot_be_tried_is_no_mistake(events: list[Any]) -> None:
    """Counts that come with the beginning, or with text, cannot be said again. Digits have no other case."""
    mapper = mapped(Loom())
    assert [str(problem) for problem in check_capture(mapper, capture("odd_stream", events))] == []


class Ops:
    """A wire of arrays of objects, of which an event may have any number."""

    @hookimpl
    def map_delta(self, event: Any, state: Any) -> Iterator[ResponseDelta]:
        for op in take_objects(event, "ops"):
            state.take_identity(op)
            if text := take_string(op, "text"):
                yield ResponseDelta(content_delta=text)
            if why := take_string(op, "why"):
                yield ResponseDelta(raw_finish_reason=why)

    @hookimpl
    def map_finish_reason(self, reason: str) -> FinishReason | None:
        return {"done": FinishReason.STOP}.get(reason)


@pytest.mark.parametrize(
    ("mistake", "check", "message"), MISTAKES, ids=lambda value: getattr(value, "__name__", None)
)
def test_each_mistake_is_caught_by_name(mistake: type[Loom], check: str, message: str) -> None:
    """By the check that is there for it, which says where and what."""
    found = []
    for problem in map(str, found_in(mistake(), checks=(check,))):
        found.append(problem)
        if message in problem:
            return
    pytest.fail("\n".join(found[:20]))
