"""Verdicts of moderation: Azure's content filters and OpenAI's own (sections 2 and 8).

The verdicts stay whole in the extensions, where all of them are; one that is not harmless is a segment as well, so that
nobody has to look for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crosswalk.plugins import (
    Annotation,
    CitationRef,
    ContentFilterCategory,
    ContentFilterResult,
    ContentFilterSeverity,
    MappingState,
    ResponseDelta,
    SafetyAnnotation,
    Segment,
    SegmentType,
    accept_object,
    accept_objects,
    look_at,
)

__all__ = ["choice_verdict", "moderation_verdicts", "prompt_verdicts"]


def prompt_verdicts(event: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
    """What the filter found in each prompt; older versions of the API say ``prompt_annotations``."""
    for key in ("prompt_filter_results", "prompt_annotations"):
        for result in accept_objects(event, key):
            index = look_at(result, "prompt_index", int) or 0
            yield from _verdict(result, {"target": "prompt", "prompt_index": index}, 0, state)


def choice_verdict(choice: dict[str, Any], index: int, state: MappingState) -> Iterator[ResponseDelta]:
    """What the filter found in the text of a choice, unless it said so before."""
    return _verdict(choice, {"target": "completion"}, index, state)


class _Said(dict[tuple[Any, ...], tuple[Annotation, ...]]):
    """The last verdict on each prompt and each choice."""


def _verdict(
    holder: dict[str, Any], about: dict[str, Any], choice: int, state: MappingState
) -> Iterator[ResponseDelta]:
    found = tuple(_findings(accept_object(holder, "content_filter_results") or {}, state))
    # Azure repeats the verdicts with every piece of text: what was said is not said again.
    said = state.own(_Said)
    key = (*about.values(), choice)
    if found and said.get(key) != found:
        said[key] = found
        yield ResponseDelta(segment=Segment(SegmentType.SAFETY, "", about, found), choice=choice)


_CATEGORIES = frozenset(ContentFilterCategory)
_SEVERITIES = frozenset(ContentFilterSeverity)


def _findings(results: dict[str, Any], state: MappingState) -> Iterator[Annotation]:
    """The categories that are not harmless, in order; the four of the canonical vocabulary are judged, harmless or not."""
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
    """What OpenAI's moderation flagged in the input and in the output."""
    moderation = accept_object(event, "moderation") or {}
    for side, target in (("input", "prompt"), ("output", "completion")):
        for result in accept_objects(accept_object(moderation, side) or {}, "results"):
            if look_at(result, "flagged", bool):
                categories = accept_object(result, "categories") or {}
                flagged = [SafetyAnnotation(name) for name, is_so in categories.items() if is_so is True]
                yield ResponseDelta(segment=Segment(SegmentType.SAFETY, "", {"target": target}, flagged))
