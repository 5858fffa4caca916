"""llama.cpp's native dialect: ``/completion`` and ``/infill``, whole and streamed (sections 2.1, 2.4, 3 and 4).

A body and the events of a stream have one shape. The answers to several prompts are one array, or mixed events of
several streams with different ``index``. Each is a choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, ClassVar

from crosswalk.plugins import (
    FinishReason,
    MappingState,
    Provenance,
    Recognition,
    ResponseDelta,
    TokenLogprob,
    Totals,
    UsageInfo,
    accept_count,
    accept_logprobs,
    accept_object,
    look_at,
    look_at_count,
    require_object,
    take_boolean,
    take_count,
    take_error,
    take_string,
    unknown_event,
)

_TIME_KEYS = ("prompt_ms", "predicted_ms")
_LONGEST = 1e15  # milliseconds: what a timedelta still holds

_OLD_WORD_KEYS = ("stopped_limit", "stopped_word", "stopped_eos")
"""The three flags that gave the reason before ``stop_type``."""

_COUNT_KEYS = ("tokens_evaluated", "tokens_predicted")
_MARK_KEYS = frozenset({*_COUNT_KEYS, "generation_settings", "stop_type", *_OLD_WORD_KEYS})
_ANSWER_KEYS = _MARK_KEYS | {
    *("completion_probabilities", "content", "has_new_line", "id_slot", "index", "model", "prompt"),
    *("prompt_progress", "stop", "stopping_word", "timings", "tokens", "tokens_cached", "truncated"),
}


class NativeDialect:
    """The mapping hooks for the native endpoints.

    Attributes:
        text_paths: see ``ProviderInfo``.
        pieces: see ``ProviderInfo``.
    """

    message_paths: ClassVar[tuple[str, ...]] = ("*",)
    text_paths: ClassVar[tuple[str, ...]] = ("content",)
    pieces: ClassVar[tuple[str, ...]] = (
        "tokens",
        "completion_probabilities",
        "choices[].tokens",
        "choices[].completion_probabilities",
    )
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {
        "eos": FinishReason.STOP,
        "word": FinishReason.STOP,
        "limit": FinishReason.LENGTH,
        "none": FinishReason.ERROR,
        "stopped_eos": FinishReason.STOP,
        "stopped_word": FinishReason.STOP,
        "stopped_limit": FinishReason.LENGTH,
        "": FinishReason.STOP,  # the word was not among the fields that the client asked for
    }

    def recognizes(self, event: Any) -> Recognition:
        """Return whether *event* is of this dialect. The client may have requested any subset of its fields."""
        first_answer = event[0] if type(event) is list and event else event
        if type(first_answer) is not dict:
            return Recognition.NO
        names = _names(first_answer)
        if names & _MARK_KEYS and (names <= _ANSWER_KEYS or "stop" in names):
            return Recognition.CERTAIN
        is_answer = type(first_answer.get("content")) is str or type(first_answer.get("timings")) is dict
        return Recognition.POSSIBLE if is_answer and names <= _ANSWER_KEYS else Recognition.NO

    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        """The text of each answer in *event*, and its end, if it is its last event."""
        for number, item in enumerate(_answers(event)):
            answer = require_object(item, f"[{number}]" if item is not event else "the event")
            if answer.get("error"):
                yield take_error(answer)
                continue
            if answer.keys().isdisjoint(_ANSWER_KEYS) and _names(answer).isdisjoint(_ANSWER_KEYS):
                raise unknown_event(answer, "no field of an answer in it")
            choice = take_count(answer, "index")
            if choice is None:
                choice = number
            state.begin(choice)
            yield from self._deltas(answer, choice, state)
            answer["index"] = choice  # identifies the residue

    def _deltas(self, answer: dict[str, Any], choice: int, state: MappingState) -> Iterator[ResponseDelta]:
        content = take_string(answer, "content")
        logprobs = _logprobs(answer)
        if content or logprobs:
            yield ResponseDelta(content_delta=content or None, logprobs=logprobs, choice=choice)
        state.take_identity(answer)
        # The last event only has the fields that the client requested, which may exclude this one.
        has_stop = "stop" in answer
        if not has_stop or take_boolean(answer, "stop"):
            word = take_string(answer, "stop_type")
            if word is None:
                word = _old_word(answer)
                if has_stop:
                    answer["stop"] = True  # nothing else shows that it ended here
            yield ResponseDelta(raw_finish_reason=word, choice=choice)

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """The reason for a ``stop_type`` (section 4)."""
        return self.finish_reasons.get(reason)

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Take the counts so far, of all answers. The prompt's count includes the cached tokens (section 2.1)."""
        usage, is_sum = None, False
        counted_answers = []
        for answer in _answers(event):
            note_duration(answer, answer.get("index") or 0, state)
            sent_counts = {
                name: count for name in _COUNT_KEYS if (count := accept_count(answer, name)) is not None
            }
            cached_count = cached_tokens(answer) if sent_counts else None
            counts = state.usage_info(*map(sent_counts.get, _COUNT_KEYS), cached_tokens=cached_count)
            if counts is not None:
                counted_answers.append((answer, sent_counts))
                # It has its number, unless its counts alone are shown here, or all as it was sent. The last event of an
                # answer has its prompt.
                choice = answer.get("index") or 0
                usage = state.own(Totals).add(choice, look_at(answer, "prompt", str), counts, state)
                is_sum = usage is not counts
        if is_sum:
            # The part of this answer stays in the extensions.
            for answer, sent_counts in counted_answers:
                answer.update(sent_counts)
        return usage

    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """Return the residue. Answers after the first have it under ``choices``."""
        answers: list[dict[str, Any]] = _answers(event)
        first_answer = next((answer for answer in answers if answer.get("index") == 0), {})
        other_answers = [answer for answer in answers if answer is not first_answer and len(answer) > 1]
        first_answer.pop("index", None)
        if other_answers:
            first_answer["choices"] = other_answers
        return first_answer


def _answers(event: Any) -> list[Any]:
    return event if type(event) is list else [event]


def _names(answer: dict[str, Any]) -> set[str]:
    """Return the names of its fields. A client can request only ``timings/predicted_n``."""
    return {name.partition("/")[0] for name in answer}


def _old_word(answer: dict[str, Any]) -> str:
    """Return the flag that is set, or ``""``."""
    flags = {name: flag for name in _OLD_WORD_KEYS if (flag := take_boolean(answer, name)) is not None}
    answer.update(flags)  # only one of them can be the word
    return next((name for name, flag in flags.items() if flag), "")


def _logprobs(answer: dict[str, Any]) -> tuple[TokenLogprob, ...] | None:
    """Take the tokens with their log probabilities. Probabilities after sampling stay in the extensions."""
    items = answer.get("completion_probabilities")
    if type(items) is list and any(type(item) is dict and "token" not in item for item in items):
        return None  # old versions have a shape of their own
    return accept_logprobs(answer, "completion_probabilities")


def timings_of(event: dict[str, Any]) -> dict[str, Any]:
    """Return the server's measurements of an answer (sections 3, 5 and 6), which stay in the extensions."""
    return accept_object(event, "timings") or {}


class _Durations(dict[int, timedelta]):
    """The duration of each answer, by choice."""


def note_duration(event: dict[str, Any], choice: int, state: MappingState) -> None:
    """Note the duration of prompt and answer of *choice*. With several answers at once, the longest counts."""
    timings = timings_of(event)
    times = [time for name in _TIME_KEYS if (time := look_at(timings, name, float)) is not None]
    is_known = bool(times) and len(times) == sum(timings.get(name) is not None for name in _TIME_KEYS)
    if is_known and 0 <= sum(times) < _LONGEST:
        durations = state.own(_Durations)
        durations[choice] = timedelta(milliseconds=sum(times))
        state.request_duration = max(durations.values())
        state.note("metadata.request_duration", Provenance.DERIVED)


def cached_tokens(event: dict[str, Any]) -> int | None:
    """Return the number of cached prompt tokens, or ``None`` if unknown, as in older versions."""
    return look_at_count(timings_of(event), "cache_n")
