"""One ``GenerateContentResponse``: its candidates, or the verdict that there are none (sections 2 to 4)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from crosswalk import (
    FinishReason,
    MappingState,
    ResponseDelta,
    UnknownEventError,
    error_delta,
    event_type,
    get_array,
    get_count,
    get_object,
    get_string,
    require_object,
)
from crosswalk_gemini.answer import Answer, answer_of
from crosswalk_gemini.citations import cited, note_citations
from crosswalk_gemini.errors import gemini_error
from crosswalk_gemini.finish import end_deltas, enum_word
from crosswalk_gemini.logprobs import token_logprobs
from crosswalk_gemini.parts import part_deltas
from crosswalk_gemini.safety import blocked_segment, note_ratings, rated

__all__ = ["chunk_deltas", "chunks", "is_certain", "is_error"]

_KNOWN = ("candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId")


def chunks(event: Any) -> list[tuple[dict[str, Any], str]]:
    """The objects of *event*, each with its place: one, or those of an array that somebody else decoded (section 1).

    Tools that decode a capture without the provider's framing give such an array.

    Raises:
        WireTypeError: one of them is no object.
    """
    if type(event) is not list:
        return [(require_object(event, "the event"), "")]
    return [(require_object(item, f"[{number}]"), f"[{number}]") for number, item in enumerate(event)]


def is_error(chunk: dict[str, Any]) -> bool:
    """Whether *chunk* is an error inside a stream (section 7)."""
    return bool(chunk.get("error"))


def is_certain(chunk: dict[str, Any]) -> bool:
    """Whether *chunk* has the names that no other API uses."""
    candidates = chunk.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    content = first.get("content") if isinstance(first, dict) else None
    return (
        isinstance(chunk.get("usageMetadata"), dict)
        or isinstance(chunk.get("promptFeedback"), dict)
        or (isinstance(first, dict) and ("modelVersion" in chunk or "finishReason" in first))
        or (isinstance(content, dict) and isinstance(content.get("parts"), list))
    )


def chunk_deltas(chunk: dict[str, Any], place: str, state: MappingState) -> list[ResponseDelta]:
    """The deltas of one chunk or body, candidate by candidate.

    Args:
        chunk: the object.
        place: where it stands in the event; ``""`` where it is the event.
        state: the stream's scratch pad.

    Raises:
        UnknownEventError: it is no answer of this API, for example one of the Interactions API.
        WireTypeError: a leaf has another type than the API promises.
    """
    if is_error(chunk):
        return [error_delta(gemini_error(None, chunk), state)]
    if not any(name in chunk for name in _KNOWN):
        word = event_type(chunk)
        raise UnknownEventError(f"no candidates in it ({word or 'no type'})", event_type=word)
    state.identify(
        id=get_string(chunk, "responseId", place),
        model=get_string(chunk, "modelVersion", place),
        created=_time(get_string(chunk, "createTime", place)),
    )
    at = f"{place}.candidates" if place else "candidates"
    deltas: list[ResponseDelta] = []
    for number, item in enumerate(get_array(chunk, "candidates", place)):
        deltas += _candidate_deltas(require_object(item, f"{at}[{number}]"), f"{at}[{number}]", state)
    deltas += _feedback_deltas(chunk, place, state)
    return deltas


def _candidate_deltas(candidate: dict[str, Any], place: str, state: MappingState) -> Iterator[ResponseDelta]:
    """The parts, then what is said about them once the answer has ended, then its end."""
    choice = get_count(candidate, "index", place) or 0  # proto leaves zeros out
    state.choices.add(choice)
    answer = answer_of(choice, state)
    content = get_object(candidate, "content", place) or {}
    where = f"{place}.content.parts"
    for number, part in enumerate(get_array(content, "parts", f"{place}.content")):
        spot = f"{where}[{number}]"
        yield from part_deltas(require_object(part, spot), spot, answer, state)
    logprobs = token_logprobs(candidate, place)
    if logprobs:
        yield ResponseDelta(state.next_index(), logprobs=logprobs, choice=choice)
    note_citations(candidate, place, answer)
    note_ratings(candidate, place, answer, state)
    word = enum_word(candidate, "finishReason", place)
    if word:
        answer.words.append(word)
    if answer.words:
        yield from _last_deltas(answer, state)
    if word:
        yield from end_deltas(candidate, word, place, answer, state)


def _last_deltas(answer: Answer, state: MappingState) -> Iterator[ResponseDelta]:
    """What is said about the whole answer: held back to its end, so that it does not cut the text in pieces."""
    for segment in (*cited(answer), *rated(answer)):
        if segment not in answer.shown:
            answer.shown.add(segment)
            yield ResponseDelta(state.next_index(), segment=segment, choice=answer.choice)
    answer.citations, answer.grounding, answer.ratings = [], [], ()


def _feedback_deltas(chunk: dict[str, Any], place: str, state: MappingState) -> Iterator[ResponseDelta]:
    """The end of an answer that was refused for its prompt (section 4)."""
    where = f"{place}.promptFeedback" if place else "promptFeedback"
    feedback = get_object(chunk, "promptFeedback", place) or {}
    word = enum_word(feedback, "blockReason", where)
    message = get_string(feedback, "blockReasonMessage", where)
    if not word:
        return
    yield ResponseDelta(state.next_index(), segment=blocked_segment(feedback, word, where, state))
    if message:
        yield ResponseDelta(state.next_index(), refusal_delta=message)
    yield ResponseDelta(state.next_index(), finish_reason=FinishReason.CONTENT_FILTER, raw_finish_reason=word)


def _time(text: str | None) -> datetime | None:
    """``createTime``, RFC 3339; ``None`` where it is missing or no time."""
    try:
        time = datetime.fromisoformat(text) if text else None
        return None if time is None or time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):  # the latter at the ends of the calendar
        return None
