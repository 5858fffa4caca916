"""OpenRouter: reasoning in details that must be sent back, images, and errors inside answers of status 200.

Facts: provider document "OpenAI Chat Completions", section 9.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from crosswalk import (
    KEY,
    TAKEN,
    FinishReason,
    MappingState,
    ResponseDelta,
    Segment,
    SegmentType,
    error_delta,
    error_info,
    get_array,
    get_integer,
    get_object,
    get_string,
    hookimpl,
    require_object,
    taken_if,
)
from crosswalk.plugin import Access
from crosswalk.service.openai_chat import OpenAIChatStyle
from crosswalk.service.request import ChatRequest, HTTPRequest
from crosswalk_openai.consumed import extended
from crosswalk_openai.dialect import ChatDialect, choices_of, number_of, part_of
from crosswalk_openai.media import IMAGES, image_segments
from crosswalk_openai.requests import ACCESS, STYLES, openrouter_request

__all__ = ["OpenRouter"]

_TEXTS: Mapping[Any, str] = {"reasoning.text": "text", "reasoning.summary": "summary"}
_OPAQUE: Mapping[Any, str] = {"reasoning.text": "signature", "reasoning.encrypted": "data"}
"""For each type of detail: where its text and its opaque value stand."""
_NAMES = {"signature": "signature", "data": "encrypted"}
"""What the segment's metadata calls an opaque value."""


def _is_from(keys: Mapping[Any, str], key: str) -> Any:
    return taken_if(lambda _, detail, __: keys.get(detail.get("type")) == key)


def _is_opaque(_: Any, detail: dict[str, Any], __: MappingState) -> bool:
    key = _OPAQUE.get(detail.get("type"))
    return key is not None and bool(detail.get(key))


def _is_shown(value: Any, part: dict[str, Any], _: MappingState) -> bool:
    shown = _text_of(part) or part.get("reasoning") or part.get("reasoning_content")
    return not value or value == shown


def _text_of(part: dict[str, Any]) -> str:
    """The text of all reasoning details of *part*, whose leaves have been checked."""
    details = part.get("reasoning_details") or ()
    return "".join(detail.get(_TEXTS.get(detail.get("type"))) or "" for detail in details)


_DETAILS = [
    {
        "index": KEY,
        "type": taken_if(_is_opaque),
        "id": taken_if(_is_opaque),
        "format": taken_if(_is_opaque),
        "text": _is_from(_TEXTS, "text"),
        "summary": _is_from(_TEXTS, "summary"),
        "signature": _is_from(_OPAQUE, "signature"),
        "data": _is_from(_OPAQUE, "data"),
    }
]


class OpenRouter(ChatDialect):
    """OpenAI's dialect as OpenRouter speaks it, whatever provider is behind it."""

    title: ClassVar[str] = "OpenRouter"
    documentation: ClassVar[str | None] = "https://openrouter.ai/docs/api-reference/overview"
    access: ClassVar[Access | None] = ACCESS["openrouter"]
    style: ClassVar[OpenAIChatStyle] = STYLES["openrouter"]
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses", "anthropic")
    # Not the reasoning: it says again what the details say.
    text_leaves: ClassVar[tuple[str, ...]] = ("choices[0].delta.content", "choices[0].text")
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = MappingProxyType(
        {**ChatDialect.finish_reasons, "error": FinishReason.ERROR}
    )
    consumed: ClassVar[Any] = extended(
        ChatDialect.consumed,
        choice={
            "error": TAKEN,
            # The chunk with the usage takes it back, as it would the finish word: that is nothing said.
            "native_finish_reason": taken_if(lambda value, *_: value is None),
        },
        part={
            "reasoning": taken_if(_is_shown),
            "reasoning_content": taken_if(_is_shown),
            "reasoning_details": _DETAILS,
            "images": IMAGES,
        },
    )

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``."""
        return openrouter_request(request)

    def is_marked(self, event: dict[str, Any]) -> bool:
        """Whether *event* says what the provider behind OpenRouter called the end."""
        return any("native_finish_reason" in choice for choice in choices_of(event))

    def choice_deltas(
        self, choice: dict[str, Any], number: int, place: str, state: MappingState
    ) -> list[ResponseDelta]:
        """The deltas of one choice: its reasoning in the order of its details, then the rest, then its error."""
        name, part = part_of(choice)
        error = get_object(choice, "error", place)
        deltas: list[ResponseDelta] = []
        if part.get("reasoning_details"):
            index = number_of(choice, number, place)
            deltas += _reasoning(part, f"{place}.{name}", index, state)
            if _text_of(part):
                get_string(part, "reasoning", f"{place}.{name}")
                get_string(part, "reasoning_content", f"{place}.{name}")
                choice = {**choice, name: {**part, "reasoning": None, "reasoning_content": None}}
        deltas += super().choice_deltas(choice, number, place, state)
        if error:
            deltas.append(error_delta(error_info(None, error), state))
        return deltas

    def segments(self, part: dict[str, Any], place: str) -> Iterator[Segment]:
        """The segments of a message or delta that are neither text nor tool calls."""
        yield from super().segments(part, place)
        if part.get("images"):
            yield from image_segments(part, place)


def _reasoning(part: dict[str, Any], place: str, choice: int, state: MappingState) -> Iterator[ResponseDelta]:
    for number, item in enumerate(get_array(part, "reasoning_details", place)):
        spot = f"{place}.reasoning_details[{number}]"
        detail = require_object(item, spot)
        kind = get_string(detail, "type", spot)
        text = get_string(detail, _TEXTS[kind], spot) if kind in _TEXTS else None
        if text:
            yield ResponseDelta(state.next_index(), reasoning_delta=text, choice=choice)
        opaque = get_string(detail, _OPAQUE[kind], spot) if kind in _OPAQUE else None
        if opaque:
            about = {
                "type": kind,
                "id": get_string(detail, "id", spot),
                "format": get_string(detail, "format", spot),
                "index": get_integer(detail, "index", spot),
                _NAMES[_OPAQUE[kind]]: opaque,
            }
            known = {key: value for key, value in about.items() if value is not None}
            segment = Segment(SegmentType.REASONING, "", known)
            yield ResponseDelta(state.next_index(), segment=segment, choice=choice)
