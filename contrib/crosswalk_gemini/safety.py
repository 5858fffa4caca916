"""Safety ratings, of the answer and of the prompt (section 8).

They stay in the extensions, where all of them are; those that are not harmless are shown in a segment as well.
"""

from __future__ import annotations

from typing import Any

from crosswalk.plugins import (
    ContentFilterCategory,
    ContentFilterResult,
    ContentFilterSeverity,
    MappingState,
    SafetyAnnotation,
    Segment,
    SegmentType,
    accept_objects,
    look_at,
)
from crosswalk_gemini.answer import Answer
from crosswalk_gemini.finish import number_word

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


def note_ratings(candidate: dict[str, Any], answer: Answer, state: MappingState) -> None:
    """Read the ratings of *candidate*; :func:`rated` shows the last ones once the answer has ended."""
    if candidate.get("safetyRatings") is not None:
        answer.ratings = _ratings(candidate, state)


def rated(answer: Answer) -> list[Segment]:
    """The verdicts on *answer*; empty when all are harmless."""
    return [Segment(SegmentType.SAFETY, "", annotations=answer.ratings)] if answer.ratings else []


def blocked_segment(feedback: dict[str, Any], word: str, state: MappingState) -> Segment:
    """The verdict on a prompt that was blocked for *word*."""
    verdict = SafetyAnnotation(word, blocked=True)
    return Segment(
        SegmentType.SAFETY, "", {"of": "prompt"}, annotations=(verdict, *_ratings(feedback, state))
    )


def _ratings(container: dict[str, Any], state: MappingState) -> tuple[SafetyAnnotation, ...]:
    """The ratings that are not harmless; those of a canonical category are judged, harmless or not."""
    found = []
    for rating in accept_objects(container, "safetyRatings"):
        category = _word(rating, "category") or "HARM_CATEGORY_UNSPECIFIED"
        level = _word(rating, "probability")
        blocked = look_at(rating, "blocked", bool) or False
        if category in _CATEGORIES and level in _SEVERITIES:
            state.judge(ContentFilterResult(_CATEGORIES[category], _SEVERITIES[level], blocked))
        if blocked or level not in _HARMLESS:
            found.append(SafetyAnnotation(category, level, blocked))
    return tuple(found)


def _word(rating: dict[str, Any], key: str) -> str | None:
    """The word of an enum, or its number as a word."""
    return number_word(rating.get(key)) or look_at(rating, key, str)
