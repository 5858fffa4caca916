"""Verdicts of moderation: Azure's content filters and OpenAI's own (sections 2 and 8).

The verdicts stay whole in the extensions, where all of them are; one that is not harmless is a segment as well, so that
nobody has to look for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crosswalk import (
    Annotation,
    CitationRef,
    ContentFilterCategory,
    ContentFilterResult,
    ContentFilterSeverity,
    MappingState,
    SafetyAnnotation,
    Segment,
    SegmentType,
    get_array,
    get_boolean,
    get_integer,
    get_object,
    get_string,
    require_object,
)

__all__ = ["choice_verdict", "moderation_verdicts", "prompt_verdicts"]


def prompt_verdicts(event: dict[str, Any], state: MappingState) -> Iterator[Segment]:
    """What the filter found in each prompt; older versions of the API say ``prompt_annotations``.

    Raises:
        WireTypeError: a leaf has another type than the API promises.
    """
    for key in ("prompt_filter_results", "prompt_annotations"):
        for number, item in enumerate(get_array(event, key)):
            place = f"{key}[{number}]"
            result = require_object(item, place)
            index = get_integer(result, "prompt_index", place) or 0
            yield from _verdict(result, place, {"target": "prompt", "prompt_index": index}, state)


def choice_verdict(choice: dict[str, Any], place: str, index: int, state: MappingState) -> Iterator[Segment]:
    """What the filter found in the text of a choice, unless it said so before.

    Raises:
        WireTypeError: a leaf has another type than the API promises.
    """
    return _verdict(choice, place, {"target": "completion"}, state, index)


def _verdict(
    holder: dict[str, Any], place: str, about: dict[str, Any], state: MappingState, choice: int = 0
) -> Iterator[Segment]:
    results = get_object(holder, "content_filter_results", place)
    if not results:
        return
    found = tuple(_findings(results, f"{place}.content_filter_results", state))
    # Azure repeats the verdicts with every piece of text: what was said is not said again.
    said = state.data.setdefault("verdicts", {})
    key = (*about.values(), choice)
    if found and said.get(key) != found:
        said[key] = found
        yield Segment(SegmentType.SAFETY, "", about, found)


_CATEGORIES = frozenset(ContentFilterCategory)
_SEVERITIES = frozenset(ContentFilterSeverity)


def _findings(results: dict[str, Any], place: str, state: MappingState) -> Iterator[Annotation]:
    """The categories that are not harmless, in order; the four of the canonical vocabulary are judged, harmless or not."""
    for category, value in results.items():
        for verdict in value if type(value) is list else [value]:
            if type(verdict) is not dict:
                continue
            where = f"{place}.{category}"
            blocked = get_boolean(verdict, "filtered", where) or False
            detected = get_boolean(verdict, "detected", where)
            severity = get_string(verdict, "severity", where)
            if category in _CATEGORIES and severity in _SEVERITIES:
                state.judge(ContentFilterResult(category, severity, blocked))
            if blocked or detected or severity not in (None, "safe"):
                yield SafetyAnnotation(category, severity or ("detected" if detected else None), blocked)
                citation = get_object(verdict, "citation", where)
                if citation:
                    yield CitationRef(source=get_string(citation, "URL", f"{where}.citation"))


def moderation_verdicts(event: dict[str, Any]) -> Iterator[Segment]:
    """What OpenAI's moderation flagged in the input and in the output.

    Raises:
        WireTypeError: a leaf has another type than the API promises.
    """
    moderation = get_object(event, "moderation") or {}
    for side, target in (("input", "prompt"), ("output", "completion")):
        verdict = get_object(moderation, side, "moderation") or {}
        for number, item in enumerate(get_array(verdict, "results", f"moderation.{side}")):
            place = f"moderation.{side}.results[{number}]"
            result = require_object(item, place)
            if get_boolean(result, "flagged", place):
                categories = get_object(result, "categories", place) or {}
                flagged = [SafetyAnnotation(name) for name, is_so in categories.items() if is_so is True]
                yield Segment(SegmentType.SAFETY, "", {"target": target}, flagged)
