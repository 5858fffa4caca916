"""OpenAI: ``/v1/chat/completions`` and ``/v1/completions``, also as Azure serves them.

Facts: provider document "OpenAI Chat Completions". The look-alikes of other services are in ``lookalikes``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, ClassVar

from crosswalk.plugins import (
    Access,
    FinishReason,
    MappingState,
    ResponseDelta,
    hookimpl,
    take_object,
    take_string,
)
from crosswalk_openai.dialect import ChatDialect
from crosswalk_openai.safety import choice_verdict, moderation_verdicts, prompt_verdicts

__all__ = ["ChatDialect", "OpenAI", "plugin"]

_VERDICTS = {"prompt_filter_results", "prompt_annotations", "moderation"}


class OpenAI(ChatDialect):
    """The hooks for OpenAI's and Azure OpenAI's chat and completions."""

    title: ClassVar[str] = "OpenAI Chat Completions"
    documentation: ClassVar[str | None] = "https://platform.openai.com/docs/api-reference/chat"
    access: ClassVar[Access | None] = Access.by_name("https://api.openai.com/v1", "OPENAI")
    # Its reasoning models refuse ``max_tokens``.
    style: ClassVar[Mapping[str, Any]] = {"max_tokens": "max_completion_tokens"}
    endpoints: ClassVar[tuple[str, ...]] = (
        *ChatDialect.endpoints,
        "/openai/deployments/{deployment}/chat/completions",
        "/openai/deployments/{deployment}/completions",
    )
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses",)
    stamp_leaves: ClassVar[tuple[str, ...]] = ("obfuscation",)
    # OpenAI's padding, and the verdicts of Azure's filters (sections 3 and 8).
    marks: ClassVar[tuple[str, ...]] = (
        "obfuscation",
        "prompt_filter_results",
        "choices[].content_filter_results",
    )
    # The first models that read images said max_tokens, in ``finish_details``.
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {
        **ChatDialect.finish_reasons,
        "max_tokens": FinishReason.LENGTH,
    }

    @hookimpl
    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``: verdicts on the prompt come first, OpenAI's moderation last."""
        deltas = super().map_delta(event, state)
        if type(event) is not dict:
            return deltas
        if event.get("object") == "":
            del event["object"]  # as their empty id and model, it says nothing in Azure's chunks of verdicts
        if _VERDICTS.isdisjoint(event):
            return deltas
        return chain(prompt_verdicts(event, state), deltas, moderation_verdicts(event))

    def choice_deltas(
        self, choice: dict[str, Any], part: dict[str, Any], index: int, state: MappingState, *, whole: bool
    ) -> Iterable[ResponseDelta]:
        """The deltas of one choice, then what the filter says about it; it may have no delta but that (section 8)."""
        if "finish_details" in choice and choice.get("finish_reason") is None:
            details = take_object(choice, "finish_details") or {}
            choice["finish_reason"] = take_string(details, "type")
        deltas = super().choice_deltas(choice, part, index, state, whole=whole)
        if choice.get("content_filter_results"):
            return chain(deltas, choice_verdict(choice, index, state))
        return deltas

    def spell(self, event: dict[str, Any]) -> None:
        """See the dialect: a word of the first models that read images stands where they said it."""
        super().spell(event)
        for choice in event.get("choices", ()):
            if choice.get("finish_reason") == "max_tokens":
                choice["finish_details"] = {"type": choice.pop("finish_reason")}


plugin = OpenAI()
