"""TGI's native dialect: ``/generate``, ``/generate_stream`` and the compatible ``/`` (sections 2, 4, 5 and 7)."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, ClassVar

from crosswalk import (
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
    event_type,
    get_array,
    get_boolean,
    get_count,
    get_object,
    get_string,
    require_object,
    residue,
    taken_if,
)
from crosswalk_tgi.errors import tgi_error
from crosswalk_tgi.tokens import CONSUMED_TOKEN, as_logprobs

__all__ = ["CONSUMED", "NativeDialect"]


def _is_the_text(text: Any, event: dict[str, Any], state: MappingState) -> bool:
    """Whether the whole text is that of the tokens; where the prompt was asked for too, it is not."""
    return text is None or "token" not in event or text == "".join(state.data["said"])


_ANSWER = {"finish_reason": TAKEN, "tokens": [CONSUMED_TOKEN]}
CONSUMED = {
    "token": CONSUMED_TOKEN,
    "top_tokens": [CONSUMED_TOKEN],
    "generated_text": taken_if(_is_the_text),
    "details": {
        **_ANSWER,
        "generated_tokens": taken_if(lambda _, details, __: not details.get("best_of_sequences")),
        "input_length": TAKEN,
        "best_of_sequences": [{**_ANSWER, "generated_text": TAKEN}],
    },
}
"""What the typed fields take. The likeliest tokens of a body are lists in a list and stay, with their ids."""


class NativeDialect:
    """The mapping hooks for the native endpoints.

    Attributes:
        pieces: see ``ProviderInfo``.
    """

    pieces: ClassVar[tuple[str, ...]] = ("top_tokens",)
    finish_reasons: ClassVar[MappingProxyType[str, FinishReason]] = MappingProxyType(
        {
            "length": FinishReason.LENGTH,
            "eos_token": FinishReason.STOP,
            "stop_sequence": FinishReason.STOP,
            "": FinishReason.STOP,  # the details, with the word in them, were not asked for
        }
    )

    def recognizes(self, event: Any) -> Recognition:
        """Whether *event* is of this dialect; a text alone is what other services of Hugging Face answer, too."""
        first = event[0] if type(event) is list and len(event) == 1 else event
        if type(first) is not dict:
            return Recognition.NO
        if type(first.get("error")) is str and type(first.get("error_type")) is str:
            return Recognition.CERTAIN
        if "generated_text" not in first:
            return Recognition.NO
        marked = type(first.get("token")) is dict or type(first.get("details")) is dict
        return Recognition.CERTAIN if marked else Recognition.POSSIBLE

    def map_delta(self, event: Any, state: MappingState) -> list[ResponseDelta]:
        """The text and tokens of an answer, or the one token of an event; then its end, if it is the last."""
        event = _unwrapped(event)
        if event.get("error"):
            return [error_delta(tgi_error(None, event), state)]
        if "generated_text" not in event and "token" not in event:
            word = event_type(event)
            raise UnknownEventError(
                f"neither a token nor a text in it ({word or 'no type'})", event_type=word
            )
        deltas = list(_token_deltas(event, state) if "token" in event else _text_deltas(event, state))
        if get_string(event, "generated_text") is not None:
            details = get_object(event, "details") or {}
            word = get_string(details, "finish_reason", "details") or ""
            deltas.append(ResponseDelta(state.next_index(), raw_finish_reason=word))
        return deltas

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:
        """The reason for TGI's word (section 5)."""
        try:
            return self.finish_reasons[reason]
        except KeyError:
            raise UnknownFinishReasonError(reason) from None

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """The counts of the details; a body does not say how long the prompt was (section 6)."""
        details = get_object(_unwrapped(event), "details") or {}
        prompt = get_count(details, "input_length", "details")
        completion = get_count(details, "generated_tokens", "details")
        if prompt is None and completion is None:
            return None
        state.note("usage.prompt_tokens", Provenance.ABSENT if prompt is None else None)
        state.note("usage.completion_tokens", Provenance.ABSENT if completion is None else None)
        for other, place in _others(details):
            completion = (completion or 0) + (get_count(other, "generated_tokens", place) or 0)
            state.note("usage.completion_tokens", Provenance.DERIVED)
        return UsageInfo(prompt or 0, completion or 0)

    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """Everything that :data:`CONSUMED` does not name: ids of tokens, which are special, the seed, the prefill."""
        event = _unwrapped(event)
        return {} if event.get("error") else residue(event, CONSUMED, state)


def _unwrapped(event: Any) -> dict[str, Any]:
    """The answer; the compatible endpoint sends it in an array, which has no second item (section 1)."""
    if type(event) is list and len(event) == 1:
        return require_object(event[0], "[0]")
    return require_object(event, "the event")


def _others(details: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """The answers that the best one was chosen from, each with its place."""
    for number, item in enumerate(get_array(details, "best_of_sequences", "details")):
        place = f"details.best_of_sequences[{number}]"
        yield require_object(item, place), place


def _token_deltas(event: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
    """One token; a special one, such as the end of the sequence, is not shown (section 4)."""
    said: list[str] = state.data.setdefault("said", [])
    token = get_object(event, "token") or {}
    top = get_array(event, "top_tokens")
    logprobs = as_logprobs([token], [top], "token") if token else None
    text = get_string(token, "text", "token") or ""
    if get_boolean(token, "special", "token"):
        text = ""
    said.append(text)
    if text or logprobs:
        yield ResponseDelta(state.next_index(), text or None, logprobs=logprobs)


def _text_deltas(event: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
    """The text of a body, and those of the answers that were not chosen as the best."""
    details = get_object(event, "details") or {}
    answers = [(event, details, "details"), *((other, other, place) for other, place in _others(details))]
    for choice, (answer, about, place) in enumerate(answers):
        text = get_string(answer, "generated_text", place if choice else "")
        logprobs = _logprobs(about, place)
        if text or logprobs:
            yield ResponseDelta(state.next_index(), text or None, logprobs=logprobs, choice=choice)
        if choice:
            word = get_string(about, "finish_reason", place) or ""
            yield ResponseDelta(state.next_index(), raw_finish_reason=word, choice=choice)


def _logprobs(details: dict[str, Any], place: str) -> tuple[TokenLogprob, ...] | None:
    tokens = get_array(details, "tokens", place)
    tops = get_array(details, "top_tokens", place)
    return as_logprobs(tokens, tops, f"{place}.tokens") or None
