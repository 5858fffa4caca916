"""ResponseDelta, and the shortcuts to make one."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from crosswalk.errors import ResponseValidationError
from crosswalk.types import (
    FinishReason,
    FrozenObject,
    ResponseDelta,
    Segment,
    SegmentType,
    TokenLogprob,
    ToolCallDelta,
    UsageInfo,
)
from crosswalk.types.delta import ended, said, text_delta, with_changes
from crosswalk.types.json import EMPTY_OBJECT
from crosswalk.types.message import arguments_delta
from strategies import unfolded

SAYINGS: list[dict[str, Any]] = [
    {"content_delta": "x"},
    {"content_delta": ""},
    {"tool_call_delta": ToolCallDelta(0)},
    {"finish_reason": FinishReason.STOP},
    {"usage": UsageInfo(0, 0)},
    {"reasoning_delta": ""},
    {"refusal_delta": ""},
    {"segment": Segment(SegmentType.TEXT)},
    {"raw_finish_reason": ""},
    {"logprobs": (TokenLogprob("a", 0.0),)},
    {"extensions": FrozenObject({"a": None})},
]


@pytest.mark.parametrize("said", SAYINGS)
def test_any_one_thing_is_something(said: dict[str, Any]) -> None:
    """FR-058 to FR-063: each field alone makes a delta, ``extensions`` too. The others are unset."""
    delta = ResponseDelta(0, **said)
    assert unfolded(delta) == unfolded(ResponseDelta(index=0, choice=0, **said))
    assert delta.is_complete == ("finish_reason" in said)


@pytest.mark.parametrize(
    "nothing", [{}, {"logprobs": ()}, {"extensions": None}, {"extensions": {}}, {"choice": 1}]
)
def test_a_delta_that_says_nothing_is_refused(nothing: dict[str, Any]) -> None:
    """FR-063: ``ACODE-RSP-009``."""
    with pytest.raises(ResponseValidationError, match="Delta must have content or be complete") as caught:
        ResponseDelta(0, **nothing)
    assert caught.value.code == "ACODE-RSP-009"


@pytest.mark.parametrize(("index", "choice"), [(-2, 0), (0, -1), (None, 0), (0, None), ("1", 0)])
def test_places_are_integers_from_0(index: int, choice: int) -> None:
    """FR-057."""
    with pytest.raises(ResponseValidationError, match="delta index and choice must be integers from 0"):
        ResponseDelta(index, content_delta="x", choice=choice)


@pytest.mark.parametrize("name", ["content_delta", "reasoning_delta", "refusal_delta"])
def test_texts_are_texts(name: str) -> None:
    """NFR-016: a plugin that passes on something else hears of it where it happens."""
    texts: dict[str, Any] = {name: {"a": 1}}
    with pytest.raises(ResponseValidationError, match=f"{name} must be text, not object"):
        ResponseDelta(0, **texts)


@pytest.mark.parametrize("choice", [0, 1, 2**63])
@pytest.mark.parametrize("call", [None, ToolCallDelta(2), arguments_delta(2, "x"), "call"])
@pytest.mark.parametrize("reasoning", [None, "", "r", "ré", "\ud800"])
@pytest.mark.parametrize("text", [None, "", "x", "é", "\udfff", b"x"])
def test_what_is_said_is_what_the_constructor_makes(
    text: Any, reasoning: str | None, call: Any, choice: int
) -> None:
    given = {"content_delta": text, "reasoning_delta": reasoning, "tool_call_delta": call}
    try:
        expected = ResponseDelta(**given, choice=choice)
    except ResponseValidationError as error:
        with pytest.raises(ResponseValidationError, match=str(error)):
            said(text, reasoning, call, choice=choice)
    else:
        assert unfolded(said(text, reasoning, call, choice=choice)) == unfolded(expected)


@pytest.mark.parametrize("choice", [0, 1, 2**63])
@pytest.mark.parametrize("word", ["stop", "", "é", "\ud800", None, 1, b"stop"])
def test_what_has_ended_is_what_the_constructor_makes(word: Any, choice: int) -> None:
    try:
        expected = ResponseDelta(raw_finish_reason=word, choice=choice)
    except ResponseValidationError as error:
        with pytest.raises(ResponseValidationError, match=str(error)):
            ended(word, choice=choice)
    else:
        assert unfolded(ended(word, choice=choice)) == unfolded(expected)


def test_a_text_delta_is_what_the_constructor_makes() -> None:
    """The shortcut skips the checks and nothing else."""
    extensions = FrozenObject({"a": 1})
    assert unfolded(text_delta(3, "content_delta", "x", 1, extensions)) == unfolded(
        ResponseDelta(3, content_delta="x", choice=1, extensions=extensions)
    )
    assert unfolded(text_delta(3, "reasoning_delta", "x", 0, EMPTY_OBJECT)) == unfolded(
        ResponseDelta(3, reasoning_delta="x")
    )
    made = text_delta(3, "tool_call_delta", arguments_delta(2, "x"), 0, EMPTY_OBJECT)
    assert unfolded(made) == unfolded(ResponseDelta(3, tool_call_delta=ToolCallDelta(2, None, None, "x")))
    assert made.tool_call_delta is not None
    for one in (made, made.tool_call_delta):
        with pytest.raises(AttributeError):
            one.index = 1  # type: ignore[misc]


@pytest.mark.parametrize("said", SAYINGS)
def test_changes_leave_the_rest(said: dict[str, Any]) -> None:
    """The shortcut gives what ``attrs.evolve`` would, without the end."""
    delta = ResponseDelta(0, **{"content_delta": "x", **said}, choice=2)
    extensions, usage = FrozenObject({"b": 1}), UsageInfo(1, 2)
    unended = attrs.evolve(
        delta, index=7, extensions=extensions, usage=usage, finish_reason=None, raw_finish_reason=None
    )
    assert unfolded(with_changes(delta, 7, extensions, usage)) == unfolded(unended)
