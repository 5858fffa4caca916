"""What comes in another order, or in another event, is read as before: pieces of texts and of calls. And half a token is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import orjson
import pytest

from crosswalk import Registry
from crosswalk.plugins import (
    FinishReason,
    MappingState,
    ResponseDelta,
    TrailingContentError,
    UsageInfo,
    accept_count,
    hookimpl,
    require_object,
    take_integer,
    take_string,
)
from crosswalk.testing import Capture, check_capture

HEAD = {"id": "w-1", "model": "m-1"}
END = {"why": "done", "in": 3, "out": 5}
TALK = [HEAD, {"think": "So "}, {"think": "it is."}, {"say": "It "}, {"say": "is."}, END]
CALLS = [
    HEAD,
    {"do": 0, "call": "c-1", "tool": "look", "with": '{"at":'}, {"do": 0, "with": '"Brest"}'}, {"did": 0},
    {"do": 1, "call": "c-2", "tool": "look", "with": '{"at":'}, {"do": 1, "with": '"Caen"}'}, {"did": 1},
    END,
]  # fmt: skip
WHOLE = [
    HEAD,
    {"do": 0, "call": "c-1", "tool": "look", "with": "{}"},
    {"do": 1, "call": "c-2", "tool": "look", "with": "{}"},
    END,
]
UNNUMBERED = [
    HEAD,
    {"call": "c-1", "tool": "look", "with": '{"at":'}, {"with": '"Brest"}'},
    {"call": "c-2", "tool": "look", "with": '{"at":'}, {"with": '"Caen"}'},
    END,
]  # fmt: skip


class Weir:
    """Reads each piece by what it says of itself."""

    finish_reasons: ClassVar[dict[str, FinishReason]] = {"done": FinishReason.STOP}

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        """Read the pieces, in whatever event they are."""
        event = require_object(event)
        state.take_identity(event)
        if thought := take_string(event, "think"):
            yield self.thought(thought, state)
        if text := take_string(event, "say"):
            state.data["said"] = True
            yield ResponseDelta(content_delta=text)
        if "with" in event:
            yield ResponseDelta(tool_call_delta=self.call(event, state))
        if word := take_string(event, "why"):
            yield ResponseDelta(raw_finish_reason=word)

    def thought(self, thought: str, state: MappingState) -> ResponseDelta:
        """Make a delta of a thought."""
        return ResponseDelta(reasoning_delta=thought)

    def call(self, event: dict[str, Any], state: MappingState) -> Any:
        """Take a piece of a call."""
        arguments, index = take_string(event, "with"), take_integer(event, "do")
        return state.take_tool_call(event, arguments=arguments, id="call", name="tool", index=index)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Count the tokens."""
        return state.usage_info(accept_count(event, "in"), accept_count(event, "out"))

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """Know one word."""
        return self.finish_reasons.get(reason)


class RefusesLateThoughts(Weir):
    def thought(self, thought: str, state: MappingState) -> ResponseDelta:
        if "said" in state.data:
            raise TrailingContentError("a thought after the text")
        return super().thought(thought, state)


class ContinuesTheLastCall(Weir):
    def call(self, event: dict[str, Any], state: MappingState) -> Any:
        event.pop("do", None)
        return super().call(event, state)


def found_in(plugin: Any, *answers: list[Any]) -> list[str]:
    registry = Registry(installed=[], environ={})
    registry.register(plugin, "weir")
    captures = [
        Capture(
            f"{number}_stream",
            Path("weir"),
            b"".join(orjson.dumps(event) + b"\n" for event in events),
            stream=True,
        )
        for number, events in enumerate(answers)
    ]
    checks = ["text as it was sent", "arguments told apart", "counts are the provider's"]
    mapper = registry.mapper("weir")
    return [
        str(problem)
        for one in captures
        for problem in check_capture(mapper, one, checks=checks, others=captures)
    ]


@pytest.mark.parametrize("plugin", [Weir(), RefusesLateThoughts()], ids=["reads", "refuses"])
def test_a_plugin_that_reads_any_order_or_refuses_it_is_right(plugin: Any) -> None:
    assert found_in(plugin, TALK, CALLS, WHOLE, UNNUMBERED) == []


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (
            ContinuesTheLastCall(),
            "event 3, with: the pieces of two calls that come in turn are not those of each",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Weir) else None,
)
def test_a_mistake_in_another_order_or_event_is_found(plugin: Any, message: str) -> None:
    found = found_in(plugin, TALK, CALLS)
    assert any(message in problem for problem in found), found
