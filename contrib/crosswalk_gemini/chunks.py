"""One ``GenerateContentResponse``: its candidates, or the verdict that there are none (sections 2 to 4)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from crosswalk.plugins import (
    ErrorInfo,
    FinishReason,
    MappingState,
    ResponseDelta,
    accept_string,
    error_delta,
    look_at,
    look_at_time,
    take_count,
    take_error,
    take_object,
    take_objects,
    take_same,
    unknown_event,
)
from crosswalk_gemini.finish import FAILED, REASONS, STOP, VAGUE, gemini_error, take_word
from crosswalk_gemini.parts import Answer, Answers, call_end, part_deltas
from crosswalk_gemini.sides import blocked_segment, note_sides, segments_beside, take_logprobs

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
        raise unknown_event(chunk, "no candidates in it")
    state.take_identity(chunk, id="responseId", model="modelVersion")
    if "createTime" in chunk:
        state.identify(created=look_at_time(chunk, "createTime"))
        # What is no time, or not written as the canonical one is, stays.
        written = None if state.created is None else state.created.isoformat().replace("+00:00", "Z")
        take_same(chunk, "createTime", written)
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
    logprobs = take_logprobs(candidate) if "logprobsResult" in candidate else None
    if logprobs:
        yield ResponseDelta(logprobs=logprobs, choice=choice)
    note_sides(candidate, answer, state)
    word = take_word(candidate, "finishReason")
    if word and answer.word is None:
        answer.word = word
    elif word and word != answer.word:
        candidate.setdefault("finishReason", word)
    if answer.word is not None:
        for segment in segments_beside(answer):
            yield ResponseDelta(segment=segment, choice=choice)
    if word:
        yield from _end_deltas(candidate, word, answer, state)


def _end_deltas(
    candidate: dict[str, Any], word: str, answer: Answer, state: MappingState
) -> Iterator[ResponseDelta]:
    """The end of an answer that says *word*: its detail, then the word."""
    choice = answer.choice
    message = look_at(candidate, "finishMessage", str)
    if word in STOP:
        # Some streams leave out the end of the arguments. With any other word they are cut, and stay so.
        for end in call_end(answer, state):
            yield ResponseDelta(tool_call_delta=end, choice=choice)
    if message and REASONS.get(word) is FinishReason.CONTENT_FILTER:
        del candidate["finishMessage"]
        yield ResponseDelta(refusal_delta=message, choice=choice)
    if word in VAGUE and answer.produced:
        yield ResponseDelta(finish_reason=FinishReason.STOP, raw_finish_reason=word, choice=choice)
    elif word in FAILED:
        said = message or f"the answer ended with {word}"
        retryable = word == "MALFORMED_RESPONSE"
        delta = error_delta(ErrorInfo(FAILED[word], said, retryable, code=word))
        # An error with a finish reason would be one of the whole response.
        reason = None if choice else FinishReason.ERROR
        yield ResponseDelta(
            segment=delta.segment, finish_reason=reason, raw_finish_reason=word, choice=choice
        )
    else:
        yield ResponseDelta(raw_finish_reason=word, choice=choice)


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
