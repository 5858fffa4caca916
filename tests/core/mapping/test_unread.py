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
        if read.is_complete and is_told and len(texts) == 1 and not kinds and _is_message(path):
            yield provider, path


def _is_message(path: Path) -> bool:
    """Whether the answer has messages: in a completion its text cannot be told from other fields of its choice."""
    body = path.read_bytes()
    return any(word in body for word in (b'"message"', b'"content"', b'"candidates"', b'"generations"')) and (
        not body.startswith(b"[") and b'"generation_settings"' not in body
    )


BODIES = list(bodies())


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
