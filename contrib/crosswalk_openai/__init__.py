"""OpenAI: ``/v1/chat/completions`` and ``/v1/completions``, also as Azure serves them.

Facts: provider document "OpenAI Chat Completions". The look-alikes of other services are in ``lookalikes``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from crosswalk import (
    FinishReason,
    MappingState,
    ResponseDelta,
    Segment,
    get_object,
    get_string,
    hookimpl,
    require_object,
)
from crosswalk.plugin import Access
from crosswalk.service.openai_chat import OpenAIChatStyle
from crosswalk_openai.dialect import ChatDialect, choices_of, number_of
from crosswalk_openai.requests import ACCESS, STYLES
from crosswalk_openai.safety import choice_verdict, moderation_verdicts, prompt_verdicts

__all__ = ["ChatDialect", "OpenAI", "plugin"]


class OpenAI(ChatDialect):
    """The hooks for OpenAI's and Azure OpenAI's chat and completions."""

    title: ClassVar[str] = "OpenAI Chat Completions"
    documentation: ClassVar[str | None] = "https://platform.openai.com/docs/api-reference/chat"
    access: ClassVar[Access | None] = ACCESS["openai"]
    style: ClassVar[OpenAIChatStyle] = STYLES["openai"]
    endpoints: ClassVar[tuple[str, ...]] = (
        *ChatDialect.endpoints,
        "/openai/deployments/{deployment}/chat/completions",
        "/openai/deployments/{deployment}/completions",
    )
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses",)
    stamp_leaves: ClassVar[tuple[str, ...]] = ("obfuscation",)
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = MappingProxyType(
        # The first models that read images said max_tokens, in ``finish_details``.
        {**ChatDialect.finish_reasons, "max_tokens": FinishReason.LENGTH}
    )

    def is_marked(self, event: dict[str, Any]) -> bool:
        """Whether *event* has OpenAI's padding or the verdicts of Azure's filters (sections 3 and 8)."""
        return (
            "obfuscation" in event
            or "prompt_filter_results" in event
            or any("content_filter_results" in choice for choice in choices_of(event))
        )

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``: verdicts on the prompt come first, OpenAI's moderation last."""
        event = require_object(event, "the event")
        deltas = self._as_deltas(prompt_verdicts(event, state), state)
        deltas += super().map_delta(event, state)
        if event.get("moderation"):
            deltas += self._as_deltas(moderation_verdicts(event), state)
        return deltas

    def choice_deltas(
        self, choice: dict[str, Any], number: int, place: str, state: MappingState
    ) -> list[ResponseDelta]:
        """The deltas of one choice, then what the filter says about it; it may have no delta but that (section 8)."""
        details = get_object(choice, "finish_details", place)
        if details and choice.get("finish_reason") is None:
            word = get_string(details, "type", f"{place}.finish_details")
            choice = {**choice, "finish_reason": word}
        deltas = super().choice_deltas(choice, number, place, state)
        if choice.get("content_filter_results"):
            index = number_of(choice, number, place)
            deltas += self._as_deltas(choice_verdict(choice, place, index, state), state, index)
        return deltas

    @staticmethod
    def _as_deltas(segments: Iterable[Segment], state: MappingState, choice: int = 0) -> list[ResponseDelta]:
        return [ResponseDelta(state.next_index(), segment=segment, choice=choice) for segment in segments]


plugin = OpenAI()
