"""An answer with renamed text is never complete: of every shipped provider, and of a third party's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from crosswalk import ChatResponse, CrosswalkError, Provenance, Registry, from_json, normalize, to_json
from crosswalk.plugins import (
    Correction,
    FinishReason,
    MappingState,
    ProviderHooks,
    ProviderInfo,
    ResponseDelta,
    UsageInfo,
    accept_count,
    hookimpl,
    take_string,
)
from crosswalk.structured import ReasonCode, StructuredParser

CAPTURES = Path(__file__).parents[2] / "captures"
ANSWER = {
    "id": "a",
    "object": "chat.completion",
    "session_id": "s",
    "text": "Hi there",
    "why": "end",
    "in": 3,
    "out": 5,
}


def places(value: Any, text: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Return the objects in *value* that hold *text*, with its key."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, dict | list):
            yield from places(item, text)
        elif item == text and isinstance(value, dict):
            yield value, str(key)


def renamed(body: Any, text: str) -> bytes:
    for owner, key in list(places(body, text)):
        owner["novel_words"] = owner.pop(key)
    return orjson.dumps(body)


def bodies() -> Iterator[tuple[str, Path]]:
    """The whole chat answers of each provider that have one text and counts that tell it from the reasoning."""
    for path in sorted(CAPTURES.glob("*/*.response.json")):
        provider = path.parent.name
        try:
            read = normalize(path.read_bytes(), provider, unknown="keep")
        except CrosswalkError:
            continue
        reasoning = read.usage.reasoning_tokens or 0
        is_told = read.usage.completion_tokens > reasoning and (reasoning or not read.reasoning)
        kinds = {segment.type for segment in read.segments} - {"text", "reasoning", "citation", "safety"}
        texts = [segment for segment in read.segments if segment.type == "text"]
        is_one = len(texts) == 1 and any(places(orjson.loads(path.read_bytes()), read.text))
        if read.is_complete and is_told and is_one and not kinds:
            yield provider, path


BODIES = list(bodies())


@pytest.mark.untraced
@pytest.mark.parametrize(("provider", "path"), BODIES, ids=lambda value: getattr(value, "stem", value))
def test_a_renamed_text_of_a_shipped_provider_is_told(provider: str, path: Path) -> None:
    text = normalize(path.read_bytes(), provider).text
    payload = renamed(orjson.loads(path.read_bytes()), text)
    try:
        response = normalize(payload, provider, unknown="keep")
    except CrosswalkError:
        return  # this dialect knows by its text that it is an answer
    assert response.text == ""
    assert response.incomplete_reason in {"unread", "unknown_event"}
    assert not response.is_complete


def test_most_providers_are_among_them() -> None:
    assert len({provider for provider, _ in BODIES}) >= 15


CHAT_COUNTS = {"prompt_tokens": 1, "completion_tokens": 5, "total_tokens": 6}
COMPLETION = {"id": "c", "object": "text_completion", "created": 1, "model": "m", "usage": CHAT_COUNTS}
GEMINI_COUNTS = {"promptTokenCount": 1, "candidatesTokenCount": 5, "totalTokenCount": 6}
ITEM = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": []}
RESPONSE = {"id": "r", "object": "response", "created_at": 1, "status": "completed", "model": "m"}
RESPONSE_COUNTS = {"input_tokens": 1, "output_tokens": 5, "total_tokens": 6}
GENERATED = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "response": "", "done": True, "done_reason": "stop",
    "prompt_eval_count": 1, "eval_count": 5}  # fmt: skip
NATIVE = {"index": 0, "content": "", "id_slot": 0, "stop": True, "model": "m", "tokens_predicted": 5, "tokens_evaluated": 1,
    "stop_type": "eos", "stopping_word": "", "tokens_cached": 3, "prompt": "Say hi", "timings": {}}  # fmt: skip
MESSAGE = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [], "stop_reason": "end_turn",
    "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 5}}  # fmt: skip
TGI_DETAILS = {"finish_reason": "eos_token", "generated_tokens": 5, "prefill": [], "tokens": []}


def candidate(**more: Any) -> dict[str, Any]:
    one = {"content": {"role": "model", **more}, "finishReason": "STOP"}
    return {"candidates": [one], "usageMetadata": GEMINI_COUNTS}


def completion(**more: Any) -> dict[str, Any]:
    return {**COMPLETION, "choices": [{"index": 0, "finish_reason": "stop", **more}]}


def items(*output: dict[str, Any]) -> dict[str, Any]:
    return {**RESPONSE, "output": output, "usage": RESPONSE_COUNTS}


@pytest.mark.parametrize(
    ("provider", "body", "reason"),
    [
        ("gemini", candidate(txt="hi"), "unread"),
        ("gemini", candidate(pieces=[{"txt": "hi"}]), "unread"),
        ("gemini", candidate(parts=[]), None),
        ("openai_responses", items({**ITEM, "txt": "hi"}), "unread"),
        ("openai_responses", items(ITEM), None),
        ("openai_responses", items({"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"}), None),
        ("vllm", completion(output="hi"), "unread"),
        ("together", completion(text="", words="hi"), "unread"),
        ("vllm", completion(text="", stop_reason="</s>"), None),
        ("sglang", completion(text="", matched_stop="</s>"), None),
        ("ollama", GENERATED | {"output": "Hi there"}, "unread"),
        ("ollama", GENERATED | {"remote_model": "m", "remote_host": "https://host"}, None),
        ("llamacpp", NATIVE | {"txt": "Hi"}, "unread"),
        ("llamacpp", NATIVE, None),
        ("anthropic", MESSAGE | {"answer": "Hi"}, "unread"),
        ("anthropic", MESSAGE | {"stop_sequence": "END", "container": {"id": "c", "expires_at": "2026"}}, None),
        ("tgi", {"generated_text": "", "words": "Hi", "details": TGI_DETAILS}, "unread"),
        ("tgi", {"generated_text": "", "details": TGI_DETAILS}, None),
    ],
    ids=str,
)  # fmt: skip
def test_text_beside_the_content_of_a_message_is_told(provider: str, body: Any, reason: str | None) -> None:
    response = normalize(orjson.dumps(body), provider)
    assert (response.text, response.finish_reason, response.incomplete_reason) == ("", "stop", reason)


def test_padding_of_an_event_is_no_text_of_its_message() -> None:
    body = completion(message={"content": ""}) | {"object": "chat.completion", "p": "abcdef"}
    for provider in ("ollama", "llamacpp", "tgi", "cloudflare", "mistral"):
        assert normalize(orjson.dumps(body), provider).incomplete_reason is None


def test_it_is_noted_and_no_value_is_read_from_it() -> None:
    response = normalize(orjson.dumps(ANSWER), "stranger", registry=registry_of(Renamed()))
    assert response.metadata.provenance["message"] is Provenance.UNMAPPED
    assert StructuredParser(list[int]).parse(response).reason is ReasonCode.TRUNCATED
    assert from_json(to_json(response), ChatResponse).incomplete_reason == "unread"


class Renamed(ProviderHooks):
    """A stranger's plugin for a server that has renamed ``result`` to ``text``."""

    paths: tuple[str, ...] | None = None

    @hookimpl
    def provider_info(self) -> ProviderInfo:
        return ProviderInfo(title="Stranger", message_paths=self.paths)

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        state.take_identity(event)
        if text := take_string(event, "result"):
            yield ResponseDelta(content_delta=text)
        if event.pop("withdrawn", False):
            yield ResponseDelta(correction=Correction("text", "", 0, 2))
        if word := take_string(event, "why"):
            yield ResponseDelta(raw_finish_reason=word)

    @hookimpl
    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        return state.usage_info(accept_count(event, "in"), accept_count(event, "out"))

    @hookimpl
    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        return FinishReason.STOP if reason == "end" else None


def registry_of(plugin: Renamed) -> Registry:
    made = Registry(installed=[])
    made.register(plugin, "stranger")
    return made


@pytest.mark.parametrize(
    ("paths", "more", "reason"),
    [
        (None, {}, "unread"),
        (None, {"text": ""}, None),
        (None, {"out": 0}, None),
        (None, {"result": "Hi"}, None),
        (None, {"result": "Hi", "withdrawn": True}, "unread"),
        (None, {"text": None, "results": [{"text": "Hi"}]}, "unread"),
        ((), {}, None),
        (("results[]",), {}, None),
        (("results[]",), {"results": [{"role": "x"}, {"text": "Hi"}]}, "unread"),
        (("results[]",), {"results": {"text": "Hi"}}, None),
        (("answer.parts",), {"answer": {"parts": ["Hi"]}}, "unread"),
        (("answer.parts",), {"answer": "Hi"}, None),
        (("*",), {}, "unread"),
        (("*",), {"text": {"part": "Hi"}}, None),
        (("answer.*",), {"answer": {"words": "Hi"}}, "unread"),
        (("answer.*",), {"answer": "Hi"}, None),
    ],
)
def test_a_stranger_may_say_where_its_messages_are(
    paths: tuple[str, ...] | None, more: dict[str, Any], reason: str | None
) -> None:
    plugin = Renamed()
    plugin.paths = paths
    response = normalize(orjson.dumps(ANSWER | more), "stranger", registry=registry_of(plugin))
    assert response.incomplete_reason == reason
    assert response.is_complete is (reason is None)
