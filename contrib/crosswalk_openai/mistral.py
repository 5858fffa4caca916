"""Mistral: content as a list of chunks, thinking among them.

Facts: provider document "OpenAI Chat Completions", section 9.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import attrs

from crosswalk import (
    CitationRef,
    ErrorInfo,
    ErrorKind,
    FinishReason,
    MappingState,
    ResponseDelta,
    Segment,
    SegmentType,
    ToolCallDelta,
    error_info,
    get_array,
    get_string,
    hookimpl,
    require_object,
    taken_if,
)
from crosswalk.plugin import Access
from crosswalk.service.openai_chat import OpenAIChatStyle
from crosswalk_openai.consumed import extended
from crosswalk_openai.dialect import ChatDialect, choices_of, number_of, part_of, usage_of
from crosswalk_openai.requests import ACCESS, STYLES

__all__ = ["Mistral"]

_NO_ID = "null"


def _in_chunk(kind: str) -> Any:
    return taken_if(lambda _, chunk, __: chunk.get("type") == kind)


_CHUNKS = [
    {
        "type": taken_if(lambda value, *_: value in ("text", "thinking", "reference")),
        "text": _in_chunk("text"),
        "thinking": taken_if(
            lambda _, chunk, __: chunk.get("type") == "thinking",
            [{"type": taken_if(lambda value, *_: value == "text"), "text": _in_chunk("text")}],
        ),
        "signature": _in_chunk("thinking"),
        "reference_ids": _in_chunk("reference"),
    }
]


class Mistral(ChatDialect):
    """OpenAI's dialect as Mistral speaks it."""

    title: ClassVar[str] = "Mistral"
    documentation: ClassVar[str | None] = "https://docs.mistral.ai/api/endpoint/chat"
    access: ClassVar[Access | None] = ACCESS["mistral"]
    style: ClassVar[OpenAIChatStyle] = STYLES["mistral"]
    endpoints: ClassVar[tuple[str, ...]] = ("/v1/chat/completions", "/v1/fim/completions")
    stamp_leaves: ClassVar[tuple[str, ...]] = ("p",)
    pieces: ClassVar[tuple[str, ...]] = (*ChatDialect.pieces, "choices[].delta.content")
    flat_counts: ClassVar[Mapping[str, tuple[str, str]]] = MappingProxyType(
        {"num_cached_tokens": ("prompt_tokens_details", "cached_tokens")}
    )
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = MappingProxyType(
        {
            **ChatDialect.finish_reasons,
            "model_length": FinishReason.LENGTH,
            "error": FinishReason.ERROR,
        }
    )

    def is_marked(self, event: dict[str, Any]) -> bool:
        """Whether *event* counts seconds of audio, or has content in chunks."""
        return "prompt_audio_seconds" in usage_of(event) or _has_chunks(event)

    @hookimpl
    def map_error(self, status: int, body: Any) -> ErrorInfo | None:
        """See the hook ``map_error``: the code is a number, what it means stands in ``type``."""
        info = error_info(status, body)
        if type(body) is dict and body.get("type") == "invalid_model":
            return attrs.evolve(info, kind=ErrorKind.MODEL_UNAVAILABLE)
        return info

    def choice_deltas(
        self, choice: dict[str, Any], number: int, place: str, state: MappingState
    ) -> list[ResponseDelta]:
        """The deltas of one choice: the chunks of its content in their order, then the rest."""
        name, part = part_of(choice)
        deltas: list[ResponseDelta] = []
        if type(part.get("content")) is list:
            index = number_of(choice, number, place)
            deltas += _chunks(part, f"{place}.{name}", index, state)
            choice = {**choice, name: {**part, "content": None}}
        return deltas + super().choice_deltas(choice, number, place, state)

    def tool_call_deltas(
        self, part: dict[str, Any], place: str, choice: int, state: MappingState, *, whole: bool
    ) -> list[ToolCallDelta]:
        """The tool calls of a message or delta; the id ``"null"`` is none."""
        calls = get_array(part, "tool_calls", place)
        if calls:
            part = {**part, "tool_calls": [_without_null(call) for call in calls]}
        return super().tool_call_deltas(part, place, choice, state, whole=whole)

    def shape(self, event: dict[str, Any]) -> ChatDialect:
        """The dialect whose table of consumed leaves fits *event*: content is a text or a list of chunks."""
        return _IN_CHUNKS if _has_chunks(event) else self


class _InChunks(ChatDialect):
    consumed: ClassVar[Any] = extended(Mistral.consumed, part={"content": _CHUNKS})


_IN_CHUNKS = _InChunks()


def _without_null(call: Any) -> Any:
    return {**call, "id": None} if type(call) is dict and call.get("id") == _NO_ID else call


def _has_chunks(event: dict[str, Any]) -> bool:
    return any(type(part_of(choice)[1].get("content")) is list for choice in choices_of(event))


def _chunks(part: dict[str, Any], place: str, choice: int, state: MappingState) -> Iterator[ResponseDelta]:
    for number, item in enumerate(get_array(part, "content", place)):
        spot = f"{place}.content[{number}]"
        chunk = require_object(item, spot)
        kind = get_string(chunk, "type", spot)
        if kind == "text":
            text = get_string(chunk, "text", spot)
            if text:
                yield ResponseDelta(state.next_index(), text, choice=choice)
        elif kind == "thinking":
            yield from _thinking(chunk, spot, choice, state)
        elif kind == "reference":
            ids = get_array(chunk, "reference_ids", spot)
            yield ResponseDelta(
                state.next_index(),
                segment=Segment(
                    SegmentType.CITATION,
                    "",
                    {"reference_ids": ids},
                    [CitationRef(id=str(known)) for known in ids],
                ),
                choice=choice,
            )


def _thinking(chunk: dict[str, Any], place: str, choice: int, state: MappingState) -> Iterator[ResponseDelta]:
    for number, item in enumerate(get_array(chunk, "thinking", place)):
        spot = f"{place}.thinking[{number}]"
        thought = require_object(item, spot)
        text = get_string(thought, "text", spot) if thought.get("type") == "text" else None
        if text:
            yield ResponseDelta(state.next_index(), reasoning_delta=text, choice=choice)
    signature = get_string(chunk, "signature", place)
    if signature:
        said = Segment(SegmentType.REASONING, "", {"signature": signature})
        yield ResponseDelta(state.next_index(), segment=said, choice=choice)
