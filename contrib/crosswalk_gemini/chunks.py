"""One ``GenerateContentResponse``: its candidates, or the verdict that there are none (sections 2 to 4)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any

from crosswalk.plugins import (
    FinishReason,
    MappingState,
    ResponseDelta,
    TokenLogprob,
    UnknownEventError,
    accept_logprobs,
    accept_object,
    accept_objects,
    accept_string,
    event_type,
    leave_mistyped,
    take_count,
    take_error,
    take_object,
    take_objects,
    take_same,
)
from crosswalk_gemini.answer import Answer, Answers
from crosswalk_gemini.citations import cited, note_citations
from crosswalk_gemini.finish import end_deltas, gemini_error, take_word
from crosswalk_gemini.parts import part_deltas
from crosswalk_gemini.safety import blocked_segment, note_ratings, rated

__all__ = ["chunk_deltas"]

_KNOWN = ("candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId")


def chunk_deltas(chunk: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
    """The deltas of one chunk or body, candidate by candidate.

    Raises:
        UnknownEventError: it is no answer of this API, for example one of the Interactions API.
        WireTypeError: what decides the answer has another type than the API promises.
    """
    if chunk.get("error"):
        yield take_error(chunk, gemini_error(None, chunk))
        return
    if chunk.keys().isdisjoint(_KNOWN):
        word = event_type(chunk)
        raise UnknownEventError(f"no candidates in it ({word or 'no type'})", event_type=word)
    state.take_identity(chunk, id="responseId", model="modelVersion")
    if "createTime" in chunk:
        _accept_time(chunk, state)
    for candidate in _one_by_one(chunk, "candidates"):
        yield from _candidate_deltas(candidate, state)
    if "promptFeedback" in chunk:
        yield from _feedback_deltas(chunk, state)


def _one_by_one(container: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
    """The objects of an array, as :func:`take_objects`; those before an item that is none are given before it raises."""
    items = container.get(key)
    if type(items) is list:
        yield from takewhile(lambda item: type(item) is dict, items)
    take_objects(container, key)


def _candidate_deltas(candidate: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
    """The parts, then what is said about them once the answer has ended, then its end."""
    choice = candidate["index"] = take_count(candidate, "index") or 0  # proto leaves zeros out
    state.begin(choice)
    answer = state.own(Answers)[choice]
    content = take_object(candidate, "content")
    if content:
        for part in _one_by_one(content, "parts"):
            yield from part_deltas(part, answer, state)
        take_same(content, "role", "model")
    logprobs = _logprobs(candidate) if "logprobsResult" in candidate else None
    if logprobs:
        yield ResponseDelta(logprobs=logprobs, choice=choice)
    note_citations(candidate, answer)
    note_ratings(candidate, answer, state)
    word = take_word(candidate, "finishReason")
    if word and answer.word is None:
        answer.word = word
    elif word and word != answer.word:
        candidate.setdefault("finishReason", word)
    if answer.word is not None:
        yield from _last_deltas(answer)
    if word:
        yield from end_deltas(candidate, word, answer, state)


def _last_deltas(answer: Answer) -> Iterator[ResponseDelta]:
    """What is said about the whole answer: held back to its end, so that it does not cut the text in pieces."""
    for segment in (*cited(answer), *rated(answer)):
        if segment not in answer.shown:
            answer.shown.add(segment)
            yield ResponseDelta(segment=segment, choice=answer.choice)
    answer.citations, answer.grounding, answer.ratings = [], [], ()


def _logprobs(candidate: dict[str, Any]) -> tuple[TokenLogprob, ...] | None:
    """The tokens of ``logprobsResult``, each with the likeliest ones at its place, which stand in a list of their own."""
    result = accept_object(candidate, "logprobsResult") or {}
    chosen = accept_logprobs(result, "chosenCandidates", logprob="logProbability")
    if result.get("topCandidates") is None:
        return chosen
    tops = accept_objects(result, "topCandidates")
    if len(tops) != len(chosen or ()):
        leave_mistyped(result, "topCandidates")
        return chosen
    likeliest = [accept_logprobs(top, "candidates", logprob="logProbability") for top in tops]
    if not any(tops):
        result.pop("topCandidates", None)
    return tuple(
        TokenLogprob(token.token, token.logprob, token.bytes, top or ())
        for token, top in zip(chosen or (), likeliest, strict=True)
    )


def _feedback_deltas(chunk: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
    """The end of an answer that was refused for its prompt (section 4)."""
    feedback = take_object(chunk, "promptFeedback") or {}
    word = take_word(feedback, "blockReason")
    if not word:
        return
    yield ResponseDelta(segment=blocked_segment(feedback, word, state))
    message = accept_string(feedback, "blockReasonMessage")
    if message:
        yield ResponseDelta(refusal_delta=message)
    yield ResponseDelta(finish_reason=FinishReason.CONTENT_FILTER, raw_finish_reason=word)


def _accept_time(chunk: dict[str, Any], state: MappingState) -> None:
    """Take ``createTime``, RFC 3339; what is no time, or not written as the canonical one is, stays."""
    text = accept_string(chunk, "createTime")
    if not text:
        return
    state.identify(created=_time(text))
    if state.created is None or text != state.created.isoformat().replace("+00:00", "Z"):
        chunk["createTime"] = text


def _time(text: str) -> datetime | None:
    try:
        time = datetime.fromisoformat(text)
        return None if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):  # the latter at the ends of the calendar
        return None
