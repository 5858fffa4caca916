"""What servers of this family add to OpenAI's dialect: reasoning in details, sources, audio, images, a way to be asked.

Facts: provider document "OpenAI Chat Completions", sections 2, 3, 9 and 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from crosswalk.plugins import Access, MappingState, OpenAIChatDialect, ResponseDelta, Segment, hookimpl
from crosswalk_openai.segments import audio_segments, citations, image_segments, take_details

if TYPE_CHECKING:
    from crosswalk.plugins import ChatRequest, HTTPRequest

__all__ = ["ChatDialect", "reached_at"]


def reached_at(base_url: str, name: str) -> Access:
    """How a server is reached by default, with the variables that begin with *name*."""
    return Access(
        base_url=base_url, base_url_variables=(f"{name}_BASE_URL",), api_key_variables=(f"{name}_API_KEY",)
    )


class ChatDialect(OpenAIChatDialect):
    """The hooks for a server that speaks OpenAI's dialect, with annotations, audio and images as segments.

    Attributes:
        style: in what its requests differ from OpenAI's: the arguments of an ``OpenAIChatStyle``.
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
    style: ClassVar[Mapping[str, Any]] = {}

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``."""
        from crosswalk.plugins import OpenAIChatStyle, build_openai_chat_request

        return build_openai_chat_request(request, OpenAIChatStyle(**self.style))

    def choice_deltas(
        self, choice: dict[str, Any], part: dict[str, Any], index: int, state: MappingState, *, whole: bool
    ) -> Iterable[ResponseDelta]:
        """The deltas of one choice: its reasoning in the order of its details, then the rest."""
        deltas = super().choice_deltas(choice, part, index, state, whole=whole)
        return take_details(part, index, state, deltas) if "reasoning_details" in part else deltas

    def segments(self, part: dict[str, Any], choice: int, state: MappingState) -> Iterator[Segment]:
        """The segments of a message or delta that are neither text nor tool calls."""
        if "annotations" in part:
            yield from citations(part)
        if "audio" in part:
            yield from audio_segments(part)
        if "images" in part:
            yield from image_segments(part)
