"""Messages and their parts."""

from __future__ import annotations

from typing import Any

import pytest

from crosswalk.errors import ResponseValidationError
from crosswalk.types import AudioPart, ChatMessage, FilePart, ImagePart, Role, TextPart, ToolCall

CALL = ToolCall("c", "f")


def test_the_factories_make_one_of_each_role() -> None:
    """Design, section 4: system, user, assistant, tool."""
    assert ChatMessage.system("s") == ChatMessage(Role.SYSTEM, "s")
    assert ChatMessage.user("u", name="Ada") == ChatMessage(Role.USER, "u", "Ada")
    assert ChatMessage.assistant("a", tool_calls=[CALL]) == ChatMessage(Role.ASSISTANT, "a", None, (CALL,))
    assert ChatMessage.assistant() == ChatMessage(Role.ASSISTANT)
    result = ChatMessage.tool_result("c", "42", name="f")
    assert result == ChatMessage(Role.TOOL, "42", "f", None, "c")


def test_no_tool_calls_are_none() -> None:
    """FR-012: an empty list of calls counts as none."""
    assert ChatMessage.assistant("a", tool_calls=[]).tool_calls is None


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"role": "user", "content": "x", "tool_calls": [CALL]}, "a user message cannot have tool calls"),
        ({"role": "system", "content": "x", "tool_calls": [CALL]}, "a system message cannot have tool calls"),
        ({"role": "tool", "content": "x"}, "a tool message needs the id of the call it answers"),
        ({"role": "tool", "content": "x", "tool_call_id": ""}, "a tool message needs the id"),
        ({"role": "tool", "tool_call_id": "c"}, "a tool message needs content"),
        ({"role": "user", "content": "x", "tool_call_id": "c"}, "a user message cannot answer a tool call"),
        ({"role": "assistant", "content": "x", "tool_call_id": "c"}, "cannot answer a tool call"),
        ({"role": "user"}, "a user message needs content"),
        ({"role": Role.SYSTEM}, "a system message needs content"),
    ],
)
def test_what_makes_no_sense_for_the_role_is_refused(fields: dict[str, Any], cause: str) -> None:
    """Design, section 4."""
    with pytest.raises(ResponseValidationError, match=cause):
        ChatMessage(**fields)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("hi", "hi"),
        ("", ""),
        ([TextPart("a"), ImagePart(url="u"), TextPart("b")], "ab"),
        ([AudioPart(data="QQ==")], ""),
        ((part for part in [TextPart("a")]), "a"),
        ([], ""),
    ],
)
def test_the_text_of_a_message(content: Any, text: str) -> None:
    """Its text, or that of its text parts. Never ``None``."""
    assert ChatMessage.user(content).text == text


def test_an_assistant_may_say_nothing() -> None:
    """As next to tool calls."""
    message = ChatMessage.assistant(tool_calls=[CALL])
    assert (message.content, message.text) == (None, "")


@pytest.mark.parametrize("part", [ImagePart, AudioPart, FilePart])
@pytest.mark.parametrize("fields", [{}, {"url": "u", "data": "d"}])
def test_media_lies_somewhere_or_is_there(part: Any, fields: dict[str, str]) -> None:
    """Either a URL or data, and not both."""
    with pytest.raises(
        ResponseValidationError, match=f"{part.__name__} needs either a url or data, and not both"
    ):
        part(**fields)


def test_a_file_may_have_an_id_in_place_of_an_address() -> None:
    assert FilePart(id="file-1").id == "file-1"
    with pytest.raises(ResponseValidationError, match="FilePart needs either a url or data"):
        FilePart(id="file-1", url="u")
