"""llama.cpp's native dialect: ``/completion`` and ``/infill``, whole and streamed (sections 2.1, 2.4, 3 and 4).

A body and the events of a stream have one shape. The answers to several prompts are one array, or mixed events of
several streams with different ``index``. Each is a choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import chain
from typing import Any, ClassVar

from crosswalk.plugins import (
    CREATED,
    ID,
    MODEL,
    TEXT,
    FieldRow,
    FieldTable,
    FinishReason,
    MappingState,
    Provenance,
    Recognition,
    ResponseDelta,
    Said,
    Totals,
    UsageInfo,
    accept_logprobs,
    accept_object,
    count,
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

_COUNT_KEYS = {"prompt_tokens": "tokens_evaluated", "completion_tokens": "tokens_predicted"}
_MARK_KEYS = frozenset({*_COUNT_KEYS.values(), "generation_settings", "stop_type", *_OLD_WORD_KEYS})
_ANSWER_KEYS = _MARK_KEYS | {
    *("completion_probabilities", "content", "has_new_line", "id_slot", "index", "model", "prompt"),
    *("prompt_progress", "stop", "stopping_word", "timings", "tokens", "tokens_cached", "truncated"),
}


def _take_logprobs(answer: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    """Take the tokens with their log probabilities. Probabilities after sampling stay in the extensions."""
    items = answer[key]
    if type(items) is list and any(type(item) is dict and "token" not in item for item in items):
        return  # old versions have a shape of their own
    said.logprobs = accept_logprobs(answer, key)


def _take_stop(answer: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    if take_boolean(answer, key):
        said.finish = ""
        if answer.get("stop_type") is None:
            answer[key] = True  # nothing else shows that it ended here


def _take_word(answer: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    if said.finish is not None:
        said.finish = take_string(answer, key) or ""


def _look_at_flag(answer: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    """Look at an old flag, which stays: only one of them can be the word."""
    if said.finish is not None and (is_set := take_boolean(answer, key)) is not None:
        answer[key] = is_set
        if is_set and not said.finish:
            said.finish = key


def _look_at_timings(answer: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    note_duration(timings_of(answer), said.choice, state)


class NativeDialect:
    """The mapping hooks for the native endpoints.

    Attributes:
        text_paths: see ``ProviderInfo``.
        pieces: see ``ProviderInfo``.
    """

    message_paths: ClassVar[tuple[str, ...]] = ("*",)
    pieces: ClassVar[tuple[str, ...]] = (
        "tokens",
        "completion_probabilities",
        "choices[].tokens",
        "choices[].completion_probabilities",
    )
    fields = FieldTable(
        {
            "content": TEXT,
            "completion_probabilities": FieldRow("logprobs", _take_logprobs),
            "id": ID,
            "model": MODEL,
            "created": CREATED,
            "stop": FieldRow("finish_reason", _take_stop),
            "stop_type": FieldRow("finish_reason", _take_word),
            **dict.fromkeys(_OLD_WORD_KEYS, FieldRow("finish_reason", _look_at_flag)),
            "timings": FieldRow("metadata.request_duration", _look_at_timings),
            **{key: count(name) for name, key in _COUNT_KEYS.items()},
        }
    )
    text_paths = fields.text_paths
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

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """The text of each answer in *event*, and its end, if it is its last event."""
        if type(event) is not list:
            return self._deltas(require_object(event), 0, state)
        answers = ((number, require_object(item, f"[{number}]")) for number, item in enumerate(event))
        return chain.from_iterable(self._deltas(answer, number, state) for number, answer in answers)

    def _deltas(self, answer: dict[str, Any], number: int, state: MappingState) -> Iterable[ResponseDelta]:
        if answer.get("error"):
            return (take_error(answer),)
        if answer.keys().isdisjoint(_ANSWER_KEYS) and _names(answer).isdisjoint(_ANSWER_KEYS):
            raise unknown_event(answer, "no field of an answer in it")
        choice = take_count(answer, "index")
        said = Said()
        said.choice = number if choice is None else choice
        if "stop" not in answer:  # the last event only has the fields that the client requested
            said.finish = ""
        state.begin(said.choice)
        self.fields.read(answer, said, state)
        answer["index"] = said.choice  # identifies the residue
        return said.speak()

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """The reason for a ``stop_type`` (section 4)."""
        return self.finish_reasons.get(reason)

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Take the counts so far, of all answers. The prompt's count includes the cached tokens (section 2.1)."""
        usage, is_sum = None, False
        counted_answers = []
        for answer in _answers(event):
            sent_counts = self.fields.accept_counts(answer)
            if not sent_counts:
                continue
            counted_answers.append((answer, sent_counts))
            cached_count = look_at_count(timings_of(answer), "cache_n")
            counts = state.usage_info(*map(sent_counts.get, _COUNT_KEYS), cached_tokens=cached_count)
            assert counts is not None, "a count makes a report"
            # It has its number, unless its counts alone are shown here, or all as it was sent. The last event of an
            # answer has its prompt.
            choice = answer.get("index") or 0
            usage = state.own(Totals).add(choice, look_at(answer, "prompt", str), counts, state)
            is_sum = usage is not counts
        if is_sum:
            # The part of this answer stays in the extensions.
            for answer, sent_counts in counted_answers:
                answer.update(
                    {key: sent_counts[name] for name, key in _COUNT_KEYS.items() if name in sent_counts}
                )
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


def timings_of(event: dict[str, Any]) -> dict[str, Any]:
    """Return the server's measurements of an answer (sections 3, 5 and 6), which stay in the extensions."""
    return accept_object(event, "timings") or {}


class _Durations(dict[int, timedelta]):
    """The duration of each answer, by choice."""


def note_duration(timings: dict[str, Any], choice: int, state: MappingState) -> None:
    """Note the duration of prompt and answer of *choice*. With several answers at once, the longest counts."""
    times = [time for name in _TIME_KEYS if (time := look_at(timings, name, float)) is not None]
    is_known = bool(times) and len(times) == sum(timings.get(name) is not None for name in _TIME_KEYS)
    if is_known and 0 <= sum(times) < _LONGEST:
        durations = state.own(_Durations)
        durations[choice] = timedelta(milliseconds=sum(times))
        state.request_duration = max(durations.values())
        state.note("metadata.request_duration", Provenance.DERIVED)
