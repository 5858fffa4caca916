"""What servers of this family add to OpenAI's dialect, and the core's building block leaves in the extensions.

Facts: provider document "OpenAI Chat Completions", sections 2, 3, 9 and 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from crosswalk import (
    MappingState,
    OpenAIChatDialect,
    Recognition,
    ResponseDelta,
    Segment,
    UsageInfo,
    get_count,
    get_object,
    hookimpl,
    taken_if,
)
from crosswalk.mapping.choices import number_of, part_of
from crosswalk.service.openai_chat import OpenAIChatStyle, build_openai_chat_request
from crosswalk.service.request import ChatRequest, HTTPRequest
from crosswalk_openai.citations import ANNOTATIONS, citations
from crosswalk_openai.consumed import extended, says_the_same
from crosswalk_openai.media import AUDIO, audio_segments

__all__ = ["ChatDialect", "choices_of", "number_of", "part_of", "usage_of"]


def _is_the_id(value: Any, _: dict[str, Any], state: MappingState) -> bool:
    return not value or value == state.response_id


def _is_the_model(value: Any, _: dict[str, Any], state: MappingState) -> bool:
    return not value or value == state.model


def _is_the_time(value: Any, _: dict[str, Any], state: MappingState) -> bool:
    known = 0 if state.created is None else int(state.created.timestamp())
    return type(value) is int and value in (0, known)


def _is_empty(value: Any, *_: Any) -> bool:
    return bool(value == "")


def _is_the_role(value: Any, *_: Any) -> bool:
    return value is None or value == "assistant"


_CALL = OpenAIChatDialect.consumed["choices"][0]["delta"]["tool_calls"][0]
# A dump of a client may have both: the function is the one that counts.
_CALLS = [{**_CALL, "custom": taken_if(lambda _, call, __: not call.get("function"), _CALL["custom"])}]


class ChatDialect(OpenAIChatDialect):
    """The hooks for a server that speaks OpenAI's dialect, with annotations and audio as segments.

    Attributes:
        flat_counts: counts that stand beside ``prompt_tokens`` and not, or not only, in the details: the
            provider's name for each, and the place in the details that it stands for.
        style: in what its requests differ from OpenAI's.
    """

    pieces: ClassVar[tuple[str, ...]] = (
        "choices[].token_ids",
        "choices[].delta.annotations",
        "choices[].logprobs.content",
        "choices[].logprobs.reasoning_content",
        "choices[].logprobs.refusal",
        "choices[].logprobs.text_offset",
        "choices[].logprobs.token_ids",
    )
    flat_counts: ClassVar[Mapping[str, tuple[str, str]]] = MappingProxyType({})
    style: ClassVar[OpenAIChatStyle] = OpenAIChatStyle()
    consumed: ClassVar[Any] = extended(
        OpenAIChatDialect.consumed,
        # Azure's chunks of verdicts have an empty id, model and object and the time 0: they say nothing.
        top={
            "id": taken_if(_is_the_id),
            "model": taken_if(_is_the_model),
            "created": taken_if(_is_the_time),
            "object": taken_if(_is_empty),
        },
        part={
            "role": taken_if(_is_the_role),
            "tool_calls": _CALLS,
            "annotations": ANNOTATIONS,
            "audio": AUDIO,
        },
    )

    def __init_subclass__(cls) -> None:
        """Let the table of consumed leaves follow ``flat_counts``."""
        super().__init_subclass__()
        counts = {name: taken_if(says_the_same(*place)) for name, place in cls.flat_counts.items()}
        cls.consumed = extended(cls.consumed, usage=counts)

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``."""
        return build_openai_chat_request(request, self.style)

    @hookimpl
    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``."""
        found = super().recognizes(event)
        if found is Recognition.NO or not isinstance(event.get("choices"), list):
            return found
        return Recognition.CERTAIN if self.is_marked(event) else found

    def is_marked(self, event: dict[str, Any]) -> bool:
        """Whether *event*, which has choices, carries a mark that no other server writes."""
        return False

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``; a chunk that calls itself one needs no choices."""
        if type(event) is dict and "choices" not in event and event.get("object") == "chat.completion.chunk":
            event = {**event, "choices": []}
        return super().map_delta(event, state)

    def choice_deltas(
        self, choice: dict[str, Any], number: int, place: str, state: MappingState
    ) -> list[ResponseDelta]:
        """The deltas of one choice: its text, its tool calls, then what else came with them."""
        deltas = super().choice_deltas(choice, number, place, state)
        name, part = part_of(choice)
        if part:
            index = number_of(choice, number, place)
            deltas += [
                ResponseDelta(state.next_index(), segment=segment, choice=index)
                for segment in self.segments(part, f"{place}.{name}")
            ]
        return deltas

    def segments(self, part: dict[str, Any], place: str) -> Iterator[Segment]:
        """The segments of a message or delta that are neither text nor tool calls."""
        if part.get("annotations"):
            yield from citations(part, place)
        if part.get("audio"):
            yield from audio_segments(part, place)

    @hookimpl
    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """See the hook ``extensions``."""
        shape = self.shape(self.settled(event, state))
        return OpenAIChatDialect.extensions(shape, event, state)

    def shape(self, event: dict[str, Any]) -> ChatDialect:
        """The dialect whose table of consumed leaves fits *event*, for a leaf that may be of either of two shapes."""
        return self

    def usage_info(self, usage: dict[str, Any], place: str, state: MappingState) -> UsageInfo | None:
        """The counts of a usage object, with those of :attr:`flat_counts` where the details say nothing."""
        for name, (group, field) in self.flat_counts.items():
            count = get_count(usage, name, place)
            details = get_object(usage, group, place) or {}
            if count is not None and details.get(field) is None:
                usage = {**usage, group: {**details, field: count}}
        return super().usage_info(usage, place, state)


def choices_of(event: dict[str, Any]) -> list[dict[str, Any]]:
    """The choices of an event of unknown origin, as far as they are objects."""
    choices = event.get("choices")
    return [choice for choice in choices if type(choice) is dict] if type(choices) is list else []


def usage_of(event: dict[str, Any]) -> dict[str, Any]:
    """The usage of an event of unknown origin; empty where it is no object."""
    usage = event.get("usage")
    return usage if type(usage) is dict else {}
