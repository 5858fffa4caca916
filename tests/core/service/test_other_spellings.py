"""What clients say as only some servers spell it: chunks of Mistral's, Google's lists of one, arguments that are no object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from crosswalk import AudioPart, ChatMessage
from crosswalk.service import (
    AdaptationKind,
    ChatRequest,
    HTTPRequest,
    UnsupportedRequestError,
    build_http_request,
    read_request,
)

HI: dict[str, Any] = {"role": "user", "content": "Hi"}
URL = "https://example.org/a"
DATA = "data:application/pdf;base64,JVBERi0="


def built(form: str, body: dict[str, Any], to: str) -> HTTPRequest:
    model = None if "model" in body else "m"
    return build_http_request(read_request(body, form, model=model).request, to, on_unsupported="drop")


def asked(*parts: dict[str, Any]) -> dict[str, Any]:
    return {
        "model": "m",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Look"}, *parts]}],
    }


CHUNKS: dict[str, dict[str, Any]] = {
    "document": {"type": "document_url", "document_url": URL, "document_name": "a.pdf"},
    "data": {"type": "document_url", "document_url": DATA},
    "file": {"type": "file", "file_id": "f1"},
    "sound": {"type": "input_audio", "input_audio": "SUQzBAAA"},
    "sound at a URL": {"type": "input_audio", "input_audio": URL},
}


@pytest.mark.parametrize("to", ["mistral", "openai"])
@pytest.mark.parametrize("chunk", CHUNKS)
def test_a_chunk_of_mistral_s_goes_to_mistral_as_it_came(chunk: str, to: str) -> None:
    request = built("openai-chat", asked(CHUNKS[chunk]), to)
    assert request.body["messages"][0]["content"][1] == CHUNKS[chunk]
    assert request.adaptations == ()


@pytest.mark.parametrize(
    ("chunk", "to", "sent"),
    [
        ("document", "anthropic", {"type": "document", "source": {"type": "url", "url": URL}, "title": "a.pdf"}),
        ("document", "gemini", {"fileData": {"fileUri": URL, "displayName": "a.pdf"}}),
        ("document", "openai_responses", {"type": "input_file", "file_url": URL, "filename": "a.pdf"}),
        ("data", "gemini", {"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0="}}),
        ("data", "openrouter", {"type": "file", "file": {"file_data": DATA, "filename": "file"}}),
        ("file", "openai_responses", {"type": "input_file", "file_id": "f1"}),
        ("sound", "vllm", {"type": "input_audio", "input_audio": {"data": "SUQzBAAA", "format": "mp3"}}),
        ("sound", "gemini", {"inlineData": {"mimeType": "audio/mpeg", "data": "SUQzBAAA"}}),
        ("sound at a URL", "gemini", {"fileData": {"fileUri": URL}}),
    ],
)  # fmt: skip
def test_a_chunk_of_mistral_s_arrives_in_other_words(chunk: str, to: str, sent: dict[str, Any]) -> None:
    request = built("openai-chat", asked(CHUNKS[chunk]), to)
    (turn,) = request.body.get("messages") or request.body.get("contents") or request.body["input"]
    assert (turn.get("content") or turn["parts"])[1] == sent
    assert request.dropped == ()


def test_a_sound_of_vllm_s_has_its_url() -> None:
    chunk = {"type": "audio_url", "audio_url": {"url": "data:audio/wav;base64,UklGRg=="}}
    request = built("openai-chat", asked(chunk), "gemini")
    assert request.body["contents"][0]["parts"][1] == {
        "inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}
    }


def test_a_sound_without_a_type_has_that_of_its_data() -> None:
    def sent(data: str) -> Any:
        request = ChatRequest([ChatMessage.user([AudioPart(data=data)])], model="m")
        return build_http_request(request, "openai").body["messages"][0]["content"][0]["input_audio"]

    assert sent("UklGRg==") == {"data": "UklGRg==", "format": "wav"}
    assert sent("//sQxAAA") == {"data": "//sQxAAA", "format": "mp3"}
    with pytest.raises(UnsupportedRequestError, match="media_type"):
        sent("AAAA")


@pytest.mark.parametrize(
    "chunk",
    [
        {"type": "document_url", "document_name": "a.pdf"},
        {"type": "document_url", "document_url": {"url": URL}},
    ],
    ids=["none", "an object"],
)
def test_a_chunk_without_its_content_is_named(chunk: dict[str, Any]) -> None:
    request = built("openai-chat", asked(chunk), "anthropic")
    assert [(one.field, one.refuses) for one in request.dropped] == [("messages[0].content[1]", True)]


THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}], "signature": "s1"}
SAID = {"type": "text", "text": "Yes"}
REFERENCE = {"type": "reference", "reference_ids": [1]}


@pytest.mark.parametrize("chunks", [[THOUGHT, SAID], [SAID, REFERENCE]], ids=["thinking", "reference"])
def test_an_answer_in_chunks_goes_back_to_mistral(chunks: list[Any]) -> None:
    call = {"id": "c12345678", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "c12345678", "content": "ok"}
    answer = {"role": "assistant", "content": chunks, "tool_calls": [call]}
    body = {"model": "m", "messages": [HI, answer, result]}
    assert built("openai-chat", body, "mistral").body["messages"] == body["messages"]
    request = built("openai-chat", body, "ollama")
    assert request.body["messages"][1]["content"] == "Yes"
    assert request.body["messages"][1]["tool_calls"][0]["function"]["name"] == "f"
    assert not any(one.refuses for one in request.adaptations)


def test_what_mistral_does_not_know_in_an_answer_is_told() -> None:
    answer = {"role": "assistant", "content": [THOUGHT, {"type": "hologram", "beam": "marked"}, SAID]}
    request = built("openai-chat", {"model": "m", "messages": [HI, answer, HI]}, "anthropic")
    (block,) = request.body["messages"][1]["content"]
    assert block["text"] == '{"type":"hologram","beam":"marked"}Yes'
    assert "messages[1].content[1]" in [one.field for one in request.adaptations]


def test_a_file_of_a_server_s_is_no_part_of_an_answer_in_chunks() -> None:
    answer = {"role": "assistant", "content": [THOUGHT, {"type": "file", "file_id": "f1"}, SAID]}
    with pytest.raises(UnsupportedRequestError, match=r"messages\[1\].content\[1\] .it names what a server"):
        built("openai-chat", {"model": "m", "messages": [HI, answer, HI]}, "anthropic")


@pytest.mark.parametrize("to", ["mistral", "anthropic", "openai"])
def test_an_answer_that_is_to_be_continued(to: str) -> None:
    body = {"model": "m", "messages": [HI, {"role": "assistant", "content": "Once", "prefix": True}]}
    request = built("openai-chat", body, to)
    assert request.body["messages"][-1].get("prefix", False) is (to != "anthropic")
    assert request.dropped == ()


def test_google_takes_an_object_for_a_list_of_one() -> None:
    body = {
        "contents": {"parts": {"text": "Hi", "video_metadata": {"fps": 1}}},
        "tools": {"function_declarations": {"name": "f", "behavior": "BLOCKING"}},
    }
    assert built("gemini", body, "gemini").body == body
    request = built("gemini", body, "openai")
    assert [tool["function"]["name"] for tool in request.body["tools"]] == ["f"]
    assert {one.field: one.reason for one in request.dropped} == {
        "contents.parts.video_metadata": "Chat Completions has no place for it",
        "tools.function_declarations.behavior": "Chat Completions has no place for it",
    }


# ------------------------------------------------------------------------------------ arguments

OBJECT_ALONE = ["anthropic", "gemini", "bedrock", "ollama", "vllm", "sglang", "llamacpp", "lmstudio"]
ANY_TEXT = ["openai", "openai_responses", "cohere", "mistral", "deepseek", "groq", "openrouter"]


def arguments_sent(value: Any) -> Iterator[Any]:
    """Yield the arguments of the calls in *value*, in the words of any API."""
    for name, inner in value.items() if isinstance(value, dict) else ():
        if name in ("arguments", "input", "args") and not isinstance(inner, list):
            yield inner
        else:
            yield from arguments_sent(inner)
    for inner in value if isinstance(value, list) else ():
        yield from arguments_sent(inner)


def with_arguments(form: str, text: str) -> dict[str, Any]:
    if form == "openai-responses":
        call = {"type": "function_call", "call_id": "c12345678", "name": "f", "arguments": text}
        return {
            "model": "m",
            "input": [HI, call, {"type": "function_call_output", "call_id": "c12345678", "output": "x"}],
        }
    call = {"id": "c12345678", "type": "function", "function": {"name": "f", "arguments": text}}
    result = {"role": "tool", "tool_call_id": "c12345678", "content": "x"}
    return {
        "model": "m",
        "messages": [HI, {"role": "assistant", "content": None, "tool_calls": [call]}, result],
    }


@pytest.mark.untraced
@pytest.mark.parametrize("form", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("text", ["", "{bad", "1e400", "[1]", '{"a":1,"a":2}'])
@pytest.mark.parametrize("to", [*OBJECT_ALONE, *ANY_TEXT])
def test_arguments_that_are_no_object(to: str, text: str, form: str) -> None:
    """An API with a text for them gets the text. Where an object is forced, that is named."""
    request = built(form, with_arguments(form, text), to)
    (sent,) = arguments_sent(request.body)
    named = [(one.field, one.kind) for one in request.adaptations if one.field != "max_tokens"]
    if to in ANY_TEXT:
        assert sent == text
        assert named == []
    else:
        assert (json.loads(sent) if isinstance(sent, str) else sent) == {"INVALID_JSON": text}
        assert named == [("messages[1].tool_calls[0].arguments", AdaptationKind.CLAMPED)]


def test_arguments_that_say_so_themselves_are_an_object() -> None:
    body = with_arguments("openai-chat", '{"INVALID_JSON":"{"}')
    assert built("openai-chat", body, "vllm").adaptations == ()


def test_free_text_that_says_so_is_no_such_call() -> None:
    call = {"id": "c1", "type": "custom", "custom": {"name": "f", "input": "INVALID_JSON"}}
    result = {"role": "tool", "tool_call_id": "c1", "content": "x"}
    body = {
        "model": "m",
        "messages": [HI, {"role": "assistant", "content": None, "tool_calls": [call]}, result],
    }
    request = built("openai-chat", body, "vllm")
    assert [*arguments_sent(request.body)] == ['{"input":"INVALID_JSON"}']
    assert request.adaptations == ()


# ------------------------------------------------------------------------------------ what a server is known to lack

WITHOUT_FILES = [
    "deepseek",
    "groq",
    "vllm",
    "sglang",
    "llamacpp",
    "lmstudio",
    "tgi",
    "together",
    "fireworks",
    "xai",
    "moonshot",
]
FUNCTION = {"type": "function", "function": {"name": "look"}}
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [FUNCTION]}}


def file_of(data: str) -> dict[str, Any]:
    return {"type": "file", "file": {"file_data": data, "filename": "a.pdf"}}


@pytest.mark.parametrize(
    "part", [file_of(DATA), {"type": "file", "file": {"file_id": "f1"}}], ids=["data", "id"]
)
@pytest.mark.parametrize("to", WITHOUT_FILES)
def test_a_file_is_refused_where_no_file_can_be_sent(to: str, part: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedRequestError, match=f"{to}: a file cannot be sent to this API"):
        built("openai-chat", asked(part), to)


@pytest.mark.parametrize("to", WITHOUT_FILES)
def test_a_file_of_text_is_told_where_no_file_can_be_sent(to: str) -> None:
    request = built("openai-chat", asked(file_of("data:text/plain;base64,SGlnaCB0aWRl")), to)
    texts = [part["text"] for part in request.body["messages"][0]["content"]]
    assert texts == ["Look", "a.pdf", "High tide"]


@pytest.mark.parametrize(
    ("file", "sent"),
    [
        (file_of(DATA), {"type": "file_url", "file_url": {"url": "JVBERi0="}, "file_name": "a.pdf"}),
        (CHUNKS["document"], {"type": "file_url", "file_url": {"url": URL}, "file_name": "a.pdf"}),
        ({"type": "document_url", "document_url": URL}, {"type": "file_url", "file_url": {"url": URL}}),
    ],
    ids=["data", "url", "no name"],
)
def test_perplexity_takes_a_file_in_its_own_words(file: dict[str, Any], sent: dict[str, Any]) -> None:
    assert built("openai-chat", asked(file), "perplexity").body["messages"][0]["content"][1] == sent


def test_perplexity_keeps_no_file() -> None:
    with pytest.raises(UnsupportedRequestError, match="a file cannot be sent"):
        built("openai-chat", asked(CHUNKS["file"]), "perplexity")


@pytest.mark.parametrize("to", ["groq", "perplexity"])
def test_a_sound_is_refused_where_no_sound_can_be_sent(to: str) -> None:
    with pytest.raises(UnsupportedRequestError, match="a sound cannot be sent"):
        built("openai-chat", asked(CHUNKS["sound"]), to)


@pytest.mark.parametrize(
    ("form", "choice"),
    [
        ("openai-chat", ALLOWED),
        (
            "openai-responses",
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "look"}]},
        ),
    ],
)
@pytest.mark.parametrize("to", [*WITHOUT_FILES, "openrouter", "mistral"])
def test_a_choice_among_some_tools_is_named_where_there_is_none(to: str, form: str, choice: Any) -> None:
    body = {"model": "m", "tool_choice": choice, "messages": [HI], "tools": [FUNCTION]}
    if form == "openai-responses":
        body = {
            "model": "m",
            "tool_choice": choice,
            "input": [HI],
            "tools": [{"type": "function", "name": "look"}],
        }
    request = built(form, body, to)
    assert "tool_choice" not in request.body
    assert [(one.field, one.refuses) for one in request.dropped] == [("tool_choice", True)]


def test_another_choice_goes_on_to_a_server_of_the_form() -> None:
    """The server itself says what it thinks of a choice that nobody here knows."""
    body = {"model": "m", "tool_choice": {"type": "dice"}, "messages": [HI], "tools": [FUNCTION]}
    assert built("openai-chat", body, "groq").body["tool_choice"] == {"type": "dice"}


# ------------------------------------------------------------------------------------ a budget for thinking


@pytest.mark.parametrize("model", ["m", "anthropic/claude-sonnet-4.5", "google/gemini-2.5-pro"])
@pytest.mark.parametrize("on_unsupported", ["raise", "drop"])
def test_a_budget_arrives_at_openrouter(model: str, on_unsupported: Any) -> None:
    """In place of a word of effort: the API takes one of both."""
    sent = {"max_tokens": 8000, "reasoning": {"max_tokens": 3000}}
    thinking = {"type": "enabled", "budget_tokens": 3000}
    body = {"model": model, "max_tokens": 8000, "messages": [HI], "thinking": thinking}
    config = {"maxOutputTokens": 8000, "thinkingConfig": {"thinkingBudget": 3000}}
    google = {"model": model, "contents": [{"parts": [{"text": "Hi"}]}], "generationConfig": config}
    for request in (
        read_request(body, "anthropic").request,
        read_request(google, "gemini").request,
        ChatRequest("Hi", model=model, max_tokens=8000, extra_options={"thinking_budget": 3000}),
        ChatRequest(
            "Hi",
            model=model,
            max_tokens=8000,
            reasoning_effort="high",
            extra_options={"thinking_budget": 3000},
        ),
    ):
        made = build_http_request(request, "openrouter", on_unsupported=on_unsupported)
        assert {name: made.body[name] for name in made.body.keys() - {"model", "messages"}} == sent
        assert made.adaptations == ()


def test_an_effort_without_a_budget_is_a_word_at_openrouter() -> None:
    request = ChatRequest("Hi", model="anthropic/claude-sonnet-4.5", reasoning_effort="high")
    assert build_http_request(request, "openrouter").body["reasoning"] == {"effort": "high"}
