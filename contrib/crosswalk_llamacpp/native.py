"""llama.cpp's native dialect: ``/completion`` and ``/infill``, whole and streamed (sections 2.1, 2.4, 3 and 4).

A body and the events of a stream are one shape. The answers to several prompts are one array, or the events of
several streams mixed, told apart by ``index``: each is a choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, ClassVar

from crosswalk import (
    CONSUMED_TOKENS,
    TAKEN,
    FinishReason,
    MappingState,
    Provenance,
    Recognition,
    ResponseDelta,
    TokenLogprob,
    UnknownEventError,
    UnknownFinishReasonError,
    UsageInfo,
    error_delta,
    error_info,
    event_type,
    get_array,
    get_boolean,
    get_count,
    get_string,
    require_object,
    residue,
    taken_if,
    token_logprobs,
)
from crosswalk_llamacpp.timings import cached_tokens, note_duration
from crosswalk_llamacpp.usage import has_one_report, usage_of_all

__all__ = ["CONSUMED", "NativeDialect"]

_OLD_WORDS = ("stopped_limit", "stopped_word", "stopped_eos")
"""Before there was a ``stop_type``, one of three flags said why."""

_MARKS = frozenset({"tokens_predicted", "tokens_evaluated", "generation_settings", "stop_type", *_OLD_WORDS})
_KEYS = _MARKS | {
    *("completion_probabilities", "content", "has_new_line", "id_slot", "index", "model", "prompt"),
    *("prompt_progress", "stop", "stopping_word", "timings", "tokens", "tokens_cached", "truncated"),
}


def _ends(event: dict[str, Any]) -> bool:
    """Whether *event* is the last of its answer: it says so, or the client asked for fields and that was none of them.

    Those fields are chosen of the last event alone.
    """
    return bool(get_boolean(event, "stop")) or "stop" not in event


def _is_plain_stop(stop: Any, event: dict[str, Any], _: MappingState) -> bool:
    return type(stop) is bool and (not stop or event.get("stop_type") is not None)


def _is_the_end(_: Any, event: dict[str, Any], __: MappingState) -> bool:
    return _ends(event)


def _are_read(_: Any, event: dict[str, Any], __: MappingState) -> bool:
    return _has_tokens(event)


def _are_shown(_: Any, __: dict[str, Any], state: MappingState) -> bool:
    """Whether the response's usage shows these counts, not a sum of those of several answers."""
    return has_one_report(state)


CONSUMED = {
    "index": TAKEN,
    "content": TAKEN,
    "stop": taken_if(_is_plain_stop),
    "stop_type": taken_if(_is_the_end),
    "model": taken_if(lambda value, _, state: value is None or value == state.model),
    "tokens_predicted": taken_if(_are_shown),
    "tokens_evaluated": taken_if(_are_shown),
    "completion_probabilities": taken_if(_are_read, CONSUMED_TOKENS),
}
"""What the typed fields take of one answer."""


class NativeDialect:
    """The mapping hooks for the native endpoints.

    Attributes:
        text_leaves: see ``ProviderInfo``; servers that count the tokens in every event do without.
        pieces: see ``ProviderInfo``.
    """

    text_leaves: ClassVar[tuple[str, ...]] = ("content",)
    pieces: ClassVar[tuple[str, ...]] = (
        "tokens",
        "completion_probabilities",
        "choices[].tokens",
        "choices[].completion_probabilities",
    )
    finish_reasons: ClassVar[MappingProxyType[str, FinishReason]] = MappingProxyType(
        {
            "eos": FinishReason.STOP,
            "word": FinishReason.STOP,
            "limit": FinishReason.LENGTH,
            "none": FinishReason.ERROR,
            "stopped_eos": FinishReason.STOP,
            "stopped_word": FinishReason.STOP,
            "stopped_limit": FinishReason.LENGTH,
            "": FinishReason.STOP,  # the word was not among the fields that the client asked for
        }
    )

    def recognizes(self, event: Any) -> Recognition:
        """Whether *event* is of this dialect; the client may have asked for any of its fields."""
        first = event[0] if type(event) is list and event else event
        if type(first) is not dict:
            return Recognition.NO
        names = _names(first)
        if names & _MARKS and (names <= _KEYS or "stop" in names):
            return Recognition.CERTAIN
        is_answer = type(first.get("content")) is str or type(first.get("timings")) is dict
        return Recognition.POSSIBLE if is_answer and names <= _KEYS else Recognition.NO

    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """The text of each answer in *event*, and its end, if it is its last event."""
        deltas = []
        for answer, number, place in _answers(event):
            if answer.get("error"):
                deltas.append(error_delta(error_info(None, answer), state))
                continue
            if not _names(answer) & _KEYS:
                word = event_type(answer)
                raise UnknownEventError(f"no field of an answer in it ({word or 'no type'})", event_type=word)
            deltas += self._answer_deltas(answer, number, place, state)
        return deltas

    def _answer_deltas(
        self, answer: dict[str, Any], number: int, place: str, state: MappingState
    ) -> Iterator[ResponseDelta]:
        choice = _choice(answer, number, place)
        state.choices.add(choice)
        state.identify(model=get_string(answer, "model", place))
        note_duration(answer, state)
        content = get_string(answer, "content", place)
        logprobs = _logprobs(answer, place)
        if content or logprobs:
            yield ResponseDelta(state.next_index(), content or None, logprobs=logprobs, choice=choice)
        if _ends(answer):
            yield ResponseDelta(state.next_index(), raw_finish_reason=_word(answer, place), choice=choice)

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:
        """The reason for a ``stop_type`` (section 4)."""
        try:
            return self.finish_reasons[reason]
        except KeyError:
            raise UnknownFinishReasonError(reason) from None

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """The counts so far; the prompt's count includes the cached tokens (section 2.1)."""
        usage = None
        for answer, number, place in _answers(event):
            prompt = get_count(answer, "tokens_evaluated", place)
            completion = get_count(answer, "tokens_predicted", place)
            if prompt is not None or completion is not None:
                state.note("usage.prompt_tokens", Provenance.ABSENT if prompt is None else None)
                state.note("usage.completion_tokens", Provenance.ABSENT if completion is None else None)
                counts = UsageInfo(prompt or 0, completion or 0, cached_tokens(answer))
                choice = _choice(answer, number, place)
                # The last event of an answer has its prompt.
                text = get_string(answer, "prompt", place)
                usage = usage_of_all(choice, text or choice, counts, state)
        return usage

    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """Everything that :data:`CONSUMED` does not name; of answers after the first it is under ``choices``."""
        first: dict[str, Any] | None = None
        others = []
        for answer, number, place in _answers(event):
            left = {} if answer.get("error") else residue(answer, CONSUMED, state)
            choice = _choice(answer, number, place)
            if choice == 0 and first is None:
                first = left
            else:
                others.append({"index": choice, **left})
        return {**(first or {}), "choices": others} if others else first or {}


def _answers(event: Any) -> Iterator[tuple[dict[str, Any], int, str]]:
    """The answers in *event*, each with its number and its place."""
    if type(event) is not list:
        yield require_object(event, "the event"), 0, ""
        return
    for number, answer in enumerate(event):
        yield require_object(answer, f"[{number}]"), number, f"[{number}]"


def _names(answer: dict[str, Any]) -> set[str]:
    """The names of its fields; a client can ask for ``timings/predicted_n`` alone."""
    return {name.partition("/")[0] for name in answer}


def _choice(answer: dict[str, Any], number: int, place: str) -> int:
    index = get_count(answer, "index", place)
    return number if index is None else index


def _word(answer: dict[str, Any], place: str) -> str:
    """Why the answer ended; ``""`` where that is not said."""
    said = get_string(answer, "stop_type", place)
    if said is not None:
        return said
    return next((name for name in _OLD_WORDS if get_boolean(answer, name, place)), "")


def _has_tokens(answer: dict[str, Any]) -> bool:
    """Whether the probabilities are of tokens that were generated; old versions have a shape of their own."""
    items = answer.get("completion_probabilities")
    return type(items) is not list or all(type(item) is not dict or "token" in item for item in items)


def _logprobs(answer: dict[str, Any], place: str) -> tuple[TokenLogprob, ...] | None:
    """The tokens with their log probabilities; probabilities after sampling are none, and stay in the extensions."""
    items = get_array(answer, "completion_probabilities", place)
    where = f"{place}.completion_probabilities" if place else "completion_probabilities"
    return token_logprobs(items, where) or None if _has_tokens(answer) else None
