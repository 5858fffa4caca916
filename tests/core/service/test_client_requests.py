"""Requests of any format are read by one function, and sent to any provider."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from crosswalk import ChatMessage, ResponseValidationError
from crosswalk.convert import ConversionError
from crosswalk.service import build_http_request, read_request

BODY = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], "min_p": 0.1}


@pytest.mark.parametrize(
    "body", [BODY, orjson.dumps(BODY), bytearray(orjson.dumps(BODY)), orjson.dumps(BODY).decode()]
)
def test_a_body_is_read_as_text_and_decoded(body: Any) -> None:
    incoming = read_request(body, "openai-chat")
    assert incoming.request.messages == (ChatMessage.user("Hi"),)
    assert incoming.unread == {"min_p": 0.1}
    sent = build_http_request(incoming.request, "ollama").body
    assert sent["options"] == {"num_predict": 9, "min_p": 0.1}


def test_a_model_may_stand_in_the_path() -> None:
    incoming = read_request({"contents": [{"parts": [{"text": "Hi"}]}]}, "gemini", model="m")
    assert build_http_request(incoming.request, "openai").body == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
    }


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{", "the body is not JSON"),
        (b"[]", "must be an object, not array"),
        (7, "must be an object, not number"),
        (None, "must be an object, not null"),
        ({"model": "m", "messages": [7]}, r"messages\[0\]: must be an object, not number"),
        ({"model": "m", "messages": [{1: 2}]}, "not a JSON object"),
    ],
)
def test_the_problem_of_another_body_has_a_place(body: Any, problem: str) -> None:
    with pytest.raises(ResponseValidationError, match=problem):
        read_request(body, "openai-chat")


@pytest.mark.parametrize("name", [["look"], {"is": "look"}])
def test_a_call_whose_name_is_no_text_has_a_place(name: Any) -> None:
    call = {"type": "function_call", "call_id": "c", "name": name, "arguments": "{}"}
    with pytest.raises(ResponseValidationError, match=r"input\[0\]: ToolCall.name must be text"):
        read_request({"model": "m", "input": [call]}, "openai-responses")


@pytest.mark.parametrize("form", ["pigeon", 7])
def test_a_format_that_is_not_there(form: Any) -> None:
    with pytest.raises(ConversionError, match=f"no form {form!r}; there are: openai-chat"):
        read_request(BODY, form)
