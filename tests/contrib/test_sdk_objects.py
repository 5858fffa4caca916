"""The official SDKs' objects are mapped like the answer's bytes, and Crosswalk imports nothing of the SDKs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import anthropic._models
import ollama
import openai._models
import pytest
from anthropic.lib.streaming import _types as anthropic_events
from anthropic.types import Message, RawMessageStreamEvent
from google.genai import types as google
from openai.lib.streaming.chat import ChunkEvent, ContentDeltaEvent
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.parsed_chat_completion import ParsedChatCompletion
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel

from crosswalk import (
    ChatResponse,
    CrosswalkError,
    InvalidJSONError,
    anormalize_stream,
    normalize,
    normalize_stream,
)
from crosswalk.codec import differences
from crosswalk.testing import Capture, load_captures

CAPTURES = Path(__file__).parents[1] / "captures"
SAME: dict[str, Any] = {"id_factory": lambda: "x", "clock": lambda: datetime(2026, 1, 1, tzinfo=UTC)}
OPENAI = {
    "chat.completion": ChatCompletion,
    "chat.completion.chunk": ChatCompletionChunk,
    "text_completion": Completion,
    "response": Response,
}
MESSAGES = {
    *("message_start", "message_delta", "message_stop"),
    *("content_block_start", "content_block_delta", "content_block_stop"),
}


def as_model(event: Any) -> Any:
    """*event* as its SDK gives it. ``None`` where no SDK does."""
    if not isinstance(event, dict):
        return None
    kind = str(event.get("type"))
    if event.get("object") in OPENAI:
        return openai._models.construct_type(type_=OPENAI[event["object"]], value=event)
    if kind.startswith("response."):
        return openai._models.construct_type(type_=ResponseStreamEvent, value=event)
    if kind == "message":
        return anthropic._models.construct_type(type_=Message, value=event)
    if kind in MESSAGES:
        return anthropic._models.construct_type(type_=RawMessageStreamEvent, value=event)
    if "candidates" in event or "usageMetadata" in event:
        made = google.GenerateContentResponse._from_response(response=event, kwargs={})  # type: ignore[arg-type]
        made.sdk_http_response = google.HttpResponse(headers={"a": "b"})
        made.automatic_function_calling_history = []
        return made
    if "done" in event:
        return (ollama.ChatResponse if "message" in event else ollama.GenerateResponse)(**event)
    return None


def models(capture: Capture) -> list[Any]:
    """The events of *capture* as an SDK gives them. None where no SDK reads all of them."""
    try:
        found = [as_model(event) for event in capture.events()]
    except (CrosswalkError, ValueError):  # pydantic's, too: google-genai refuses fields that it does not know
        return []
    return found if all(model is not None for model in found) else []


# What the SDKs themselves lose or change, by provider: paths of which the answers may differ.
LOST = {
    "ollama": ("tool_calls", "segments[].metadata", "provenance", "logprobs", "bytes"),
    "gemini": ("citation", "segments", "citationMetadata"),
}


def unexplained(provider: str, one: ChatResponse, other: ChatResponse) -> list[str]:
    """How *other*, made of the SDK's objects, differs from *one*, made of the bytes, though no SDK explains it."""
    found = []
    for difference in differences(one, other):
        before, after = difference.before, difference.after
        is_number = (
            isinstance(before, int | float) and before == after
        )  # 1 has become 1.0, as it is annotated
        is_json = difference.field.endswith(
            ("arguments", "segments[].content")
        )  # fields in another order, or 1.0
        if not (is_number or is_json or any(word in difference.field for word in LOST.get(provider, ()))):
            found.append(difference.place)
    return found


@pytest.mark.sweep
@pytest.mark.parametrize("provider", sorted(folder.name for folder in CAPTURES.iterdir() if folder.is_dir()))
def test_sdk_objects_are_read_like_the_bytes(provider: str) -> None:
    """Whole answers and streams of all captures that an SDK reads."""
    wrong, tried, equal = {}, 0, 0
    for capture in load_captures(CAPTURES / provider):
        made = models(capture) if capture.status < 400 else []
        if not made:
            continue
        try:
            expected = normalize(capture.body, provider, **SAME)
        except CrosswalkError as error:
            with pytest.raises(type(error)):
                normalize(made, provider, **SAME)
            continue
        if "_debug_info" in str(capture.events()):
            continue  # ollama's SDK leaves out the only thing that such an answer says
        stream = normalize_stream(iter(made), provider, **SAME)
        list(stream)
        again = normalize(made[0] if len(made) == 1 else made, provider, **SAME)
        assert again.same_content(stream.response)
        wrong[capture.case] = unexplained(provider, expected, again)
        tried += 1
        equal += not list(differences(expected, again))
    assert {case: places for case, places in wrong.items() if places} == {}
    assert equal >= tried / 4 or provider == "openai_responses"  # every body of it has a 1 that becomes 1.0


def test_bytes_of_google_s_stay_what_the_server_wrote() -> None:
    """Pydantic would write base64 for URLs."""
    signature = "+/+/++8="
    part = {"text": "x", "thought": True, "thoughtSignature": signature}
    body = {"candidates": [{"content": {"parts": [part], "role": "model"}, "finishReason": "STOP"}]}
    response = normalize(as_model(body), "gemini", **SAME)
    assert response.same_content(normalize(body, "gemini", **SAME))
    assert signature in str(response.segments[0].metadata)


def chunk(**delta: Any) -> dict[str, Any]:
    finish = delta.pop("finish", None)
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


CHUNKS = [chunk(role="assistant", content="Hi"), chunk(content=" you"), chunk(finish="stop")]


def test_decoded_chunks_and_mixed_ones_are_events() -> None:
    stream = normalize_stream([CHUNKS[0], as_model(CHUNKS[1]), bytearray(b""), CHUNKS[2]], "openai")
    assert [delta.content_delta for delta in stream][:2] == ["Hi", " you"]
    assert stream.response.text == "Hi you"
    assert len(stream.response.raw_events) == 3


def test_decoded_chunks_are_events_of_an_asynchronous_stream() -> None:
    async def chunks() -> AsyncIterator[Any]:
        for one in CHUNKS:
            yield as_model(one)

    async def read() -> ChatResponse:
        return await anormalize_stream(chunks(), "openai").response()

    assert asyncio.run(read()).text == "Hi you"


def test_what_only_a_helper_says_is_left_out() -> None:
    """openai's and anthropic's helpers for streams give events of their own between those of the server."""
    seen = [
        event
        for one in CHUNKS
        for event in (
            ChunkEvent.model_construct(type="chunk", chunk=as_model(one), snapshot=None),
            ContentDeltaEvent.model_construct(type="content.delta", delta="Hi", snapshot="Hi", parsed=None),
        )
    ]
    assert normalize(seen, "openai", **SAME).same_content(normalize(CHUNKS, "openai", **SAME))

    (capture,) = (
        one for one in load_captures(CAPTURES / "anthropic") if one.case == "made_pause_turn_stream"
    )
    raw = models(capture)
    helped: list[Any] = []
    for event in raw:
        helped.append(event)
        if event.type == "content_block_delta":
            text = anthropic_events.TextEvent.model_construct(type="text", text="x", snapshot="x")
            helped.append(text)
        if event.type == "message_stop":
            helped[-1] = anthropic_events.MessageStopEvent.model_construct(
                type="message_stop", message=as_model({"type": "message", "content": []})
            )
    assert normalize(helped, "anthropic", **SAME).same_content(normalize(raw, "anthropic", **SAME))


def test_what_an_sdk_has_parsed_is_left_out() -> None:
    message = {"role": "assistant", "content": "{}", "parsed": {"a": 1}}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    made = openai._models.construct_type(type_=ParsedChatCompletion[Any], value=body)
    assert "parsed" not in str(normalize(made, "openai").metadata.extensions)


class Odd(BaseModel):
    when: Any = None


def test_what_json_does_not_have_is_written_as_servers_do_or_refused() -> None:
    from crosswalk.types.json import dumped

    kind = google.FinishReason.STOP
    said = dumped(Odd(when=[datetime(2026, 1, 1, tzinfo=UTC), date(2026, 1, 2), kind, b"\xff", (1, None)]))
    assert said == {"when": ["2026-01-01T00:00:00Z", "2026-01-02", "STOP", "/w==", [1, None]]}
    with pytest.raises(InvalidJSONError, match="Odd is not a JSON object: object is not JSON"):
        normalize(Odd(when=object()), "openai")
    with pytest.raises(
        InvalidJSONError,
        match=r"dict is not a JSON object: it holds a value that JSON cannot represent, such as NaN or a date$",
    ):
        normalize({"x": float("nan")}, "openai")
    with pytest.raises(InvalidJSONError, match="dict is not a JSON object"):
        list(normalize_stream([{"a": float("nan")}], "openai"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("data: {}", "a stream's chunks are bytes, not str: pass the response itself"),
        (7, "a stream's chunks are bytes, decoded JSON objects or an SDK's events, not int"),
        (Odd, "not ModelMetaclass"),
    ],
)
def test_other_chunks_are_refused_in_words(given: Any, said: str) -> None:
    read: list[Callable[[], object]] = [
        lambda: list(normalize_stream([given], "openai")),
        lambda: normalize([given], "openai"),
    ]
    for one in read:
        with pytest.raises(TypeError, match=said):
            one()


def test_a_stream_is_no_whole_answer() -> None:
    def chunks() -> Iterator[bytes]:
        yield b""

    with pytest.raises(TypeError, match=r"not generator; .* pass a stream to normalize_stream\(\)"):
        normalize(chunks(), "openai")  # type: ignore[arg-type]
