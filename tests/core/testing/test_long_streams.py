"""A long stream costs no more than a short one: the middle of a long run of events of one form is left out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import orjson
import pytest

from crosswalk import Registry
from crosswalk.plugins import (
    FINISH,
    ID,
    MODEL,
    TEXT,
    FieldTable,
    FinishReason,
    MappingState,
    ResponseDelta,
    TableDialect,
    UsageInfo,
    count,
    hookimpl,
)
from crosswalk.testing import Capture, Problem, check_capture
from crosswalk.testing.case import Tally

LONG = 400


class Brook(TableDialect):
    """Reads a stream, and counts how many events it was given."""

    title = "Brook"
    fields = FieldTable(
        {"id": ID, "model": MODEL, "say": TEXT, "why": FINISH, "in": count("prompt_tokens"),
         "out": count("completion_tokens")}
    )  # fmt: skip
    finish_reasons: ClassVar[dict[str, FinishReason]] = {"end": FinishReason.STOP}
    events_read = 0

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """Count the event."""
        type(self).events_read += 1
        return super().map_delta(event, state)


class Lowering(Brook):
    """A mistake in each text."""

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """Lower the text."""
        if isinstance(event, dict) and isinstance(event.get("say"), str):
            event["say"] = event["say"].lower()
        return super().map_delta(event, state)


class Counting(Brook):
    """Makes a count of the number of events, so that none can be left out."""

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Count the texts."""
        state.data["texts"] = state.data.get("texts", 0) + 1
        return state.usage_info(3, state.data["texts"])


def capture(texts: int) -> Capture:
    events: list[dict[str, Any]] = [{"say": f"Word {number} "} for number in range(texts)]
    events = [{"id": "b-1", "model": "m-1"}, *events, {"why": "end", "in": 3, "out": texts}]
    body = b"".join(b"data: %s\n\n" % orjson.dumps(event) for event in events)
    return Capture(
        "talk", Path("talk"), body, stream=True, says={"text": "".join(e.get("say", "") for e in events)}
    )


def checked(kind: type[Brook], texts: int, **options: Any) -> tuple[list[Problem], int]:
    registry = Registry(installed=[], environ={})
    registry.register(kind(), "brook")
    kind.events_read = 0
    return check_capture(registry.mapper("brook"), capture(texts), **options), kind.events_read


@pytest.mark.untraced
def test_a_long_stream_costs_hardly_more_than_a_short_one() -> None:
    short, long = checked(Brook, 60), checked(Brook, LONG)
    assert (short[0], long[0]) == ([], [])
    assert long[1] < 1.5 * short[1]


def test_the_statement_is_about_the_whole_and_a_mistake_is_found() -> None:
    assert {problem.check for problem in checked(Lowering, LONG)[0]} >= {"as stated", "text as it was sent"}


@pytest.mark.untraced
@pytest.mark.parametrize(("kind", "options"), [(Counting, {}), (Brook, {"sample": None})])
def test_nothing_is_left_out_if_all_is_to_be_tried_or_if_more_than_texts_would_be_missing(
    kind: type[Brook], options: dict[str, Any]
) -> None:
    checks = ["framing does not matter", "deterministic"]
    tally = Tally()
    problems, events_read = checked(kind, LONG, checks=checks, tally=tally, **options)
    assert problems == []
    assert events_read > 10 * LONG
    assert tally.captures == 1
