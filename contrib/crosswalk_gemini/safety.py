"""Safety ratings, of the answer and of the prompt (section 8).

They stay in the extensions, where all of them are; those that are not harmless are shown in a segment as well.
"""

from __future__ import annotations

from typing import Any

from crosswalk import (
    ContentFilterCategory,
    ContentFilterResult,
    ContentFilterSeverity,
    MappingState,
    SafetyAnnotation,
    Segment,
    SegmentType,
    get_array,
    get_boolean,
    require_object,
)
from crosswalk_gemini.answer import Answer
from crosswalk_gemini.finish import enum_word

__all__ = ["blocked_segment", "note_ratings", "rated"]

_CATEGORIES = {
    "HARM_CATEGORY_HATE_SPEECH": ContentFilterCategory.HATE,
    "HARM_CATEGORY_SEXUALLY_EXPLICIT": ContentFilterCategory.SEXUAL,
}
_SEVERITIES = {
    "NEGLIGIBLE": ContentFilterSeverity.SAFE,
    "LOW": ContentFilterSeverity.LOW,
    "MEDIUM": ContentFilterSeverity.MEDIUM,
    "HIGH": ContentFilterSeverity.HIGH,
}
_HARMLESS = (None, "NEGLIGIBLE", "1", "HARM_PROBABILITY_UNSPECIFIED", "0")


def note_ratings(candidate: dict[str, Any], place: str, answer: Answer, state: MappingState) -> None:
    """Read the ratings of *candidate*; :func:`rated` shows the last ones once the answer has ended.

    Raises:
        WireTypeError: a leaf has another type than the API promises.
    """
    if candidate.get("safetyRatings") is not None:
        answer.ratings = _ratings(candidate, place, state)


def rated(answer: Answer) -> list[Segment]:
    """The verdicts on *answer*; empty when all are harmless."""
    return [Segment(SegmentType.SAFETY, "", annotations=answer.ratings)] if answer.ratings else []


def blocked_segment(feedback: dict[str, Any], word: str, place: str, state: MappingState) -> Segment:
    """The verdict on a prompt that was blocked for *word*."""
    verdict = SafetyAnnotation(word, blocked=True)
    return Segment(
        SegmentType.SAFETY, "", {"of": "prompt"}, annotations=(verdict, *_ratings(feedback, place, state))
    )


def _ratings(container: dict[str, Any], place: str, state: MappingState) -> tuple[SafetyAnnotation, ...]:
    """The ratings that are not harmless; those of a canonical category are judged, harmless or not."""
    found = []
    for number, item in enumerate(get_array(container, "safetyRatings", place)):
        spot = f"{place}.safetyRatings[{number}]"
        rating = require_object(item, spot)
        category = enum_word(rating, "category", spot) or "HARM_CATEGORY_UNSPECIFIED"
        level = enum_word(rating, "probability", spot)
        blocked = get_boolean(rating, "blocked", spot) or False
        if category in _CATEGORIES and level in _SEVERITIES:
            state.judge(ContentFilterResult(_CATEGORIES[category], _SEVERITIES[level], blocked))
        if blocked or level not in _HARMLESS:
            found.append(SafetyAnnotation(category, level, blocked))
    return tuple(found)
