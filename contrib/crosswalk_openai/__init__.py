"""OpenAI: ``/v1/chat/completions`` and ``/v1/completions``, also as Azure serves them.

Facts: provider document "OpenAI Chat Completions". The look-alikes of other services are in ``lookalikes``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from crosswalk.plugins import (
    Access,
    Annotation,
    CallIds,
    CitationRef,
    ContentFilterCategory,
    ContentFilterResult,
    ContentFilterSeverity,
    MappingState,
    Recognition,
    ResponseDelta,
    SafetyAnnotation,
    Segment,
    SegmentType,
    WayBack,
    accept_object,
    accept_objects,
    hookimpl,
    look_at,
    take_object,
    take_string,
)
from crosswalk_openai.dialect import ChatDialect

if TYPE_CHECKING:
    from crosswalk.plugins import ChatRequest, HTTPRequest

__all__ = ["ChatDialect", "OpenAI", "plugin"]

_VERDICTS = {"prompt_filter_results", "prompt_annotations", "moderation"}


class OpenAI(ChatDialect):
    """The hooks for OpenAI's and Azure OpenAI's chat and completions."""

    title: ClassVar[str] = "OpenAI Chat Completions"
    documentation: ClassVar[str | None] = "https://platform.openai.com/docs/api-reference/chat"
    access: ClassVar[Access | None] = Access.by_name("https://api.openai.com/v1", "OPENAI")
    # Its reasoning models refuse ``max_tokens``.
    style: ClassVar[Mapping[str, Any]] = {
        "options": {"max_tokens": "max_completion_tokens"},
        "refusal": True,
        "null_content": False,  # servers that copy its API check for a text
        "takes_any_arguments": True,
    }
    call_ids: ClassVar[CallIds | None] = CallIds(maximum=40)
    way_back: ClassVar[WayBack] = WayBack(
        takes_custom_calls=True, takes_media=("audio_id",), shows_pictures=True, names_speakers=True
    )
    call_names: ClassVar[str | None] = "[a-zA-Z0-9_-]{1,64}"
    endpoints: ClassVar[tuple[str, ...]] = (
        *ChatDialect.endpoints,
        "/openai/deployments/{deployment}/chat/completions",
        "/openai/deployments/{deployment}/completions",
    )
    speaks: ClassVar[tuple[str, ...]] = ("openai_responses",)
    is_original: ClassVar[bool] = True
    text_paths: ClassVar[tuple[str, ...]] = ChatDialect.text_paths
    timestamp_key: ClassVar[str | None] = "obfuscation"
    # OpenAI's padding, and the verdicts of Azure's filters (sections 3 and 8).
    marks: ClassVar[tuple[str, ...]] = (
        "obfuscation",
        "prompt_filter_results",
        "choices[].content_filter_results",
    )

    @hookimpl
    def build_request(self, request: ChatRequest) -> HTTPRequest:
        """See the hook ``build_request``."""
        from crosswalk_openai.requests import refused_beside_functions

        return self.built(request, unsupported=refused_beside_functions(request))

    def recognizes(self, event: Any) -> Recognition:
        """See the hook ``recognizes``: only Azure has an inner error."""
        error = event.get("error") if isinstance(event, dict) else None
        if isinstance(error, dict) and isinstance(error.get("innererror"), dict):
            return Recognition.CERTAIN
        return super().recognizes(event)

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """See the hook ``map_delta``: verdicts on the prompt come first, OpenAI's moderation last."""
        deltas = super().map_delta(event, state)
        if type(event) is not dict:
            return deltas
        if event.get("object") == "":
            del event[
                "object"
            ]  # as their empty id and model, it carries no information in Azure's chunks of verdicts
        if _VERDICTS.isdisjoint(event):
            return deltas
        return chain(prompt_verdicts(event, state), deltas, moderation_verdicts(event))

    def choice_deltas(
        self, choice: dict[str, Any], part: dict[str, Any], index: int, state: MappingState, *, whole: bool
    ) -> Iterable[ResponseDelta]:
        """Return the deltas of one choice, then the verdict of the filter, which may be its only delta (section 8)."""
        if "finish_details" in choice and choice.get("finish_reason") is None:
            details = take_object(choice, "finish_details") or {}
            choice["finish_reason"] = take_string(details, "type")
        deltas = super().choice_deltas(choice, part, index, state, whole=whole)
        if choice.get("content_filter_results"):
            return chain(deltas, _verdict(choice, {"target": "completion"}, index, state))
        return deltas

    def spell(self, event: dict[str, Any]) -> None:
        """See the dialect. A word of the first models that read images is written to their path."""
        super().spell(event)
        for choice in event.get("choices", ()):
            if choice.get("finish_reason") == "max_tokens":
                choice["finish_details"] = {"type": choice.pop("finish_reason")}


# Verdicts of moderation: Azure's content filters and OpenAI's own (sections 2 and 8). They stay completely in the
# extensions. A verdict above harmless is also a segment, which is easier to find.


def prompt_verdicts(event: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
    """Take the verdicts on each prompt. Older versions of the API send ``prompt_annotations``."""
    for key in ("prompt_filter_results", "prompt_annotations"):
        for result in accept_objects(event, key):
            index = look_at(result, "prompt_index", int) or 0
            yield from _verdict(result, {"target": "prompt", "prompt_index": index}, 0, state)


class _Said(dict[tuple[Any, ...], tuple[Annotation, ...]]):
    """The last verdict on each prompt and each choice."""


def _verdict(
    holder: dict[str, Any], about: dict[str, Any], choice: int, state: MappingState
) -> Iterator[ResponseDelta]:
    results = tuple(_findings(accept_object(holder, "content_filter_results") or {}, state))
    # Azure repeats the verdicts with every piece of text. Each verdict on a prompt or a choice is yielded once.
    raw = state.own(_Said)
    key = (*about.values(), choice)
    if results and raw.get(key) != results:
        raw[key] = results
        yield ResponseDelta(segment=Segment(SegmentType.SAFETY, "", about, results), choice=choice)


_CATEGORIES = frozenset(ContentFilterCategory)
_SEVERITIES = frozenset(ContentFilterSeverity)


def _findings(results: dict[str, Any], state: MappingState) -> Iterator[Annotation]:
    """Return the categories above harmless, in order. The four of the canonical vocabulary are always judged."""
    for category, value in results.items():
        for verdict in value if type(value) is list else [value]:
            if type(verdict) is not dict:
                continue
            blocked = look_at(verdict, "filtered", bool) or False
            detected = look_at(verdict, "detected", bool)
            severity = look_at(verdict, "severity", str)
            if category in _CATEGORIES and severity in _SEVERITIES:
                state.judge(
                    ContentFilterResult(
                        ContentFilterCategory(category), ContentFilterSeverity(severity), blocked
                    )
                )
            if blocked or detected or severity not in (None, "safe"):
                yield SafetyAnnotation(category, severity or ("detected" if detected else None), blocked)
                if citation := accept_object(verdict, "citation"):
                    yield CitationRef(source=look_at(citation, "URL", str))


def moderation_verdicts(event: dict[str, Any]) -> Iterator[ResponseDelta]:
    """Return the findings of OpenAI's moderation in the input and in the output."""
    moderation = accept_object(event, "moderation") or {}
    for side, target in (("input", "prompt"), ("output", "completion")):
        for result in accept_objects(accept_object(moderation, side) or {}, "results"):
            if look_at(result, "flagged", bool):
                categories = accept_object(result, "categories") or {}
                flagged = [SafetyAnnotation(name) for name, is_so in categories.items() if is_so is True]
                yield ResponseDelta(segment=Segment(SegmentType.SAFETY, "", {"target": target}, flagged))


plugin = OpenAI()
