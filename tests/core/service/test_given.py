"""Conversations as they may be given: turns, a single one, a text, or dicts as OpenAI's SDK has them."""

from __future__ import annotations

from typing import Any

import pytest

from crosswalk import (
    AudioPart,
    ChatMessage,
    FilePart,
    ImagePart,
    ResponseValidationError,
    TextPart,
    ToolCall,
)
from crosswalk.service import ChatRequest, build_http_request

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
USER, MODEL = ChatMessage.user, ChatMessage.assistant


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"role": "user", "content": "hi"}, USER("hi")),
        ({"role": "user", "content": "hi", "name": "ann", "tool_calls": None}, USER("hi", name="ann")),
        ({"role": "developer", "content": "Be brief."}, ChatMessage.system("Be brief.")),
        ({"role": "assistant", "content": None, "refusal": "No."}, MODEL("No.")),
        (
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            MODEL(tool_calls=[ToolCall("c", "f", "{}")]),
        ),
        (
            {"role": "assistant", "content": "Hm.", "tool_calls": [ToolCall("c", "f", "{}")]},
            MODEL("Hm.", tool_calls=[ToolCall("c", "f", "{}")]),
        ),
        (
            {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "1"}]},
            ChatMessage.tool_result("c", [TextPart("1")]),
        ),
        (
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
                    {"type": "input_image", "image_url": "data:;base64,AA=="},
                    {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
                    {
                        "type": "file",
                        "file": {"file_data": "data:application/pdf;base64,AA==", "filename": "a"},
                    },
                    {"type": "file", "file": {"file_data": "AA=="}},
                    TextPart("t"),
                ],
            },
            USER(
                [
                    ImagePart(url="https://x/y.png"),
                    ImagePart(data="AA==", media_type="image/png"),
                    ImagePart(data="AA=="),
                    AudioPart(data="AA==", media_type="audio/wav"),
                    FilePart(data="AA==", media_type="application/pdf", name="a"),
                    FilePart(data="AA=="),
                    TextPart("t"),
                ]
            ),
        ),
        (
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
            ChatMessage("assistant", [TextPart("No.")]),  # type: ignore[arg-type]  # a word is as good
        ),
    ],
)
def test_a_message_in_openais_form(given: dict[str, Any], message: ChatMessage) -> None:
    assert ChatRequest([given]).messages == ChatRequest(given).messages == (message,)


def test_what_was_sent_to_openai_can_be_given() -> None:
    turns = [
        ChatMessage.system("Be brief."),
        USER([TextPart("What is this?"), ImagePart(data="AA==", media_type="image/png")]),
        MODEL("Hm.", tool_calls=[ToolCall("c", "f", "{}")]),
        ChatMessage.tool_result("c", "1"),
    ]
    sent = build_http_request(ChatRequest(turns, model="m"), "openai").body["messages"]
    assert ChatRequest(sent).messages == tuple(turns)


def test_dicts_and_turns_may_be_mixed() -> None:
    request = ChatRequest(USER("hi")).with_turns(MODEL("Yes?"), {"role": "user", "content": "Why?"})
    assert [message.text for message in request.messages] == ["hi", "Yes?", "Why?"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({}, "unknown role"),
        ({"role": "robot", "content": "x"}, "unknown role"),
        ({"role": "user"}, "a user message needs content"),
        ({"role": "user", "content": "x", "colour": "red"}, "a message has no field 'colour'"),
        ({"role": "user", "content": 7}, "content must be text or parts"),
        (
            {"role": "user", "content": [{"type": "hologram"}]},
            "no part of a message can be read from 'hologram'",
        ),
        ({"role": "user", "content": [7]}, "from number"),
        ({"role": "user", "content": [{"type": "text", "text": 7}]}, "text"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": 7}]}, "from 'image_url'"),
        ({"role": "assistant", "tool_calls": 7}, "tool_calls must be a list"),
        ({"role": "assistant", "tool_calls": [{"id": "c"}]}, "a tool call has an id, and a function"),
        (
            {"role": "assistant", "tool_calls": [{"id": 7, "function": {"name": "f", "arguments": "{}"}}]},
            "ToolCall.id must be text",
        ),
        ({"role": "tool", "content": "1"}, "the id of the call"),
    ],
)
def test_another_form_is_refused_and_says_where(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(ResponseValidationError, match=rf"^(\S+ )?messages\[1\]: .*{why}"):
        ChatRequest([USER("hi"), wrong])
