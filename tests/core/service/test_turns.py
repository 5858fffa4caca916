"""The input with which plugins build their requests: turns, options and tools in the form that many APIs share."""

from __future__ import annotations

from typing import Any

import pytest

from crosswalk import ChatMessage, ToolCall
from crosswalk.plugins import ContentPart, Turn, alternating, message_of, tool_fields
from crosswalk.service import ToolDefinition, UnsupportedRequestError

CALL = ChatMessage.assistant(None, tool_calls=[ToolCall("1", "f", "{}"), ToolCall("2", "g", "{}")])
RESULTS = (ChatMessage.tool_result("1", "one"), ChatMessage.tool_result("2", "two"))


def said(*turns: Turn) -> list[tuple[bool, list[str]]]:
    def answer(turn: Turn) -> list[dict[str, Any]]:
        message = message_of(turn)
        return (
            [{"text": message.text}] if message.text else [{"text": c.name} for c in message.tool_calls or ()]
        )

    def result(message: ChatMessage) -> dict[str, Any]:
        return {"text": f"{message.tool_call_id}: {message.text}"}

    def part(given: ContentPart) -> dict[str, Any]:
        return {"text": getattr(given, "text", "")}

    found = alternating(turns, answer=answer, result=result, part=part)
    return [(is_answer, [each["text"] for each in parts]) for is_answer, parts in found]


USER, MODEL = ChatMessage.user, ChatMessage.assistant


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ((USER("a"), MODEL("b"), USER("c")), [(False, ["a"]), (True, ["b"]), (False, ["c"])]),
        ((USER("a"), USER("b")), [(False, ["a", "b"])]),
        ((MODEL("a"), MODEL("b")), [(False, ["(The conversation begins.)"]), (True, ["a", "b"])]),
        (
            (USER("a"), CALL, *RESULTS, USER("b")),
            [(False, ["a"]), (True, ["f", "g"]), (False, ["1: one", "2: two", "b"])],
        ),
        ((USER("a"), MODEL(""), USER("b")), [(False, ["a"]), (True, ["(no answer)"]), (False, ["b"])]),
        ((USER("a"), MODEL("")), [(False, ["a"])]),
        (
            (USER("a"), MODEL("b"), USER("")),
            [(False, ["a"]), (True, ["b"]), (False, ["(The user says nothing.)"])],
        ),
        (
            (USER("a"), MODEL("b"), USER(""), MODEL("c"), USER("d")),
            [
                (False, ["a"]),
                (True, ["b"]),
                (False, ["(The user says nothing.)"]),
                (True, ["c"]),
                (False, ["d"]),
            ],
        ),
        (
            (USER("a"), MODEL("b"), USER(""), USER("c")),
            [(False, ["a"]), (True, ["b"]), (False, ["c"])],
        ),
    ],
)
def test_user_and_model_take_turns(turns: tuple[Turn, ...], expected: list[tuple[bool, list[str]]]) -> None:
    assert said(*turns) == expected


@pytest.mark.parametrize("turns", [(), (MODEL(""), USER(""))])
def test_somebody_has_to_say_something(turns: tuple[Turn, ...]) -> None:
    with pytest.raises(UnsupportedRequestError, match="the conversation has no content"):
        said(*turns)


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        (ToolDefinition("f"), {"name": "f", "schema": {"type": "object", "properties": {}}}),
        (
            ToolDefinition("f", "does it", {"type": "object"}, strict=False),
            {"name": "f", "schema": {"type": "object"}, "description": "does it", "strict": False},
        ),
    ],
)
def test_a_tool_says_what_it_is(tool: ToolDefinition, expected: dict[str, Any]) -> None:
    assert tool_fields(tool, "schema") == expected
