"""TGI's native dialect: ``/generate``, ``/generate_stream`` and the compatible ``/`` (sections 2, 4, 5 and 7).

Its errors, which the OpenAI layer shares, are a text and a word. Inside a chat stream they are only the text, always with
status 422.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import attrs

from crosswalk.plugins import (
    ErrorInfo,
    ErrorKind,
    FieldRow,
    FieldTable,
    FinishReason,
    MappingState,
    Provenance,
    Recognition,
    ResponseDelta,
    Said,
    SegmentType,
    TokenLogprob,
    UsageInfo,
    VendorErrors,
    accept_logprobs,
    accept_number,
    accept_objects,
    count,
    counted,
    error_info,
    leave_mistyped,
    look_at_count,
    require_object,
    take_boolean,
    take_error,
    take_objects,
    take_string,
    unknown_event,
)


def _take_token(token: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    """Take one token. A special one, such as the end of the sequence, is not shown (section 4), and stays marked."""
    text, is_special = take_string(token, key), token.get("special")
    if type(is_special) is not bool:
        is_special = take_boolean(token, "special")
    if text is not None:
        said.text = "" if is_special else text
        said.logprobs = (TokenLogprob(text, accept_number(token, "logprob")),)


def _take_likeliest(event: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    if said.logprobs:
        likeliest_tokens = accept_logprobs(event, key, token="text") or ()
        said.logprobs = (attrs.evolve(said.logprobs[0], top=likeliest_tokens),)


def _compare_text(event: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    """Take the text of the whole answer. If the prompt was requested too, it is not the text of the tokens."""
    text = take_string(event, key)
    if text is not None:
        said.finish = ""
        if text != state.choice(0).joined(SegmentType.TEXT) + (said.text or ""):
            event[key] = text


def _take_text(event: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    said.text = take_string(event, key)
    if said.text is not None:
        said.finish = ""


def _take_word(details: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    if said.finish is not None:
        said.finish = take_string(details, key) or ""


def _take_tokens(details: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    said.logprobs = _logprobs(details)


def _take_others(details: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    """Take the answers that were not chosen as the best."""
    for choice, answer in enumerate(take_objects(details, key), 1):
        text, logprobs = take_string(answer, "generated_text"), _logprobs(answer)
        if text or logprobs:
            said.deltas.append(ResponseDelta(content_delta=text or None, logprobs=logprobs, choice=choice))
        word = take_string(answer, "finish_reason") or ""
        said.deltas.append(ResponseDelta(raw_finish_reason=word, choice=choice))


def _logprobs(details: dict[str, Any]) -> tuple[TokenLogprob, ...] | None:
    """Take the tokens of a body, with the likeliest at each position, a list of lists that stays with their ids."""
    tokens = accept_logprobs(details, "tokens", token="text")
    top_lists = details.get("top_tokens")
    if not tokens or top_lists is None:
        return tokens
    if type(top_lists) is not list or len(top_lists) != len(tokens):
        leave_mistyped(details, "top_tokens")
        return tokens
    entries = []
    for token, top in zip(tokens, top_lists, strict=True):
        details["top_tokens"] = top
        likeliest_tokens = accept_logprobs(details, "top_tokens", token="text")
        entries.append(TokenLogprob(token.token, token.logprob, None, likeliest_tokens or ()))
    details["top_tokens"] = top_lists
    return tuple(entries)


_DETAILS = {
    "details.finish_reason": FieldRow("finish_reason", _take_word),
    "details.input_length": count("prompt_tokens"),
    "details.generated_tokens": count("completion_tokens"),
}
"""The rows of the last event of a stream, and of a body."""


class NativeDialect:
    """The mapping hooks for the native endpoints.

    Attributes:
        pieces: see ``ProviderInfo``.
    """

    message_paths: ClassVar[tuple[str, ...]] = ("*",)
    pieces: ClassVar[tuple[str, ...]] = ("top_tokens",)
    text_paths: ClassVar[
        tuple[str, ...]
    ] = ()  # a text and its log probability are one object, next to its number
    finish_reasons: ClassVar[Mapping[str, FinishReason]] = {
        "length": FinishReason.LENGTH,
        "eos_token": FinishReason.STOP,
        "stop_sequence": FinishReason.STOP,
        "": FinishReason.STOP,  # the details, with the word in them, were not asked for
    }

    token_fields = FieldTable(
        {
            "token.text": FieldRow("text", _take_token),
            "top_tokens": FieldRow("logprobs", _take_likeliest),
            "generated_text": FieldRow("text", _compare_text),
            **_DETAILS,
        }
    )
    body_fields = FieldTable(
        {
            "generated_text": FieldRow("text", _take_text),
            "details.tokens": FieldRow("logprobs", _take_tokens),
            "details.best_of_sequences": FieldRow("alternatives", _take_others),
            **_DETAILS,
        }
    )

    def recognizes(self, event: Any) -> Recognition:
        """Return whether *event* is of this dialect. Other services of Hugging Face also answer with only a text."""
        match event[0] if type(event) is list and len(event) == 1 else event:
            case {"error": str(), "error_type": str()}:
                return Recognition.CERTAIN
            case {"generated_text": _, "token": dict()} | {"generated_text": _, "details": dict()}:
                return Recognition.CERTAIN
            case {"generated_text": _}:
                return Recognition.POSSIBLE
        return Recognition.NO

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """Return the text and tokens of an answer, or the token of an event, then its end if it is the last."""
        event = _unwrapped(event)
        if event.get("error"):
            return (take_error(event, tgi_error(None, event)),)
        if "token" not in event and "generated_text" not in event:
            raise unknown_event(event, "it has no token and no text")
        return (self.token_fields if "token" in event else self.body_fields).map_delta(event, state)

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """The reason for TGI's word (section 5)."""
        return self.finish_reasons.get(reason)

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Take the counts of the details. A body has no count of the prompt (section 6)."""
        event = _unwrapped(event)
        details = event.get("details")
        if not details:
            return None
        counts = self.body_fields.accept_counts(event)
        other_answers = accept_objects(details, "best_of_sequences")
        other_counts = [look_at_count(answer, "generated_tokens") for answer in other_answers]
        is_sum = bool(other_counts) and (
            "completion_tokens" in counts or other_counts.count(None) < len(other_counts)
        )
        if is_sum:
            if "completion_tokens" in counts:
                details["generated_tokens"] = counts["completion_tokens"]  # one of those that were added up
            counts["completion_tokens"] = sum(filter(None, (counts.get("completion_tokens"), *other_counts)))
        usage = counted(counts, state)
        if is_sum:
            state.note("usage.completion_tokens", Provenance.DERIVED)
        return usage

    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """Return the residue: token ids, special tokens, the seed, the prefill."""
        return _unwrapped(event)


def _unwrapped(event: Any) -> dict[str, Any]:
    """Return the answer. The compatible endpoint sends it in an array with one item (section 1)."""
    if type(event) is list and len(event) == 1:
        return require_object(event[0], "[0]")
    return require_object(event)


_ERRORS = VendorErrors("crosswalk_tgi", "tgi")


def tgi_error(status: int | None, body: Any) -> ErrorInfo:
    """Read an error. *status* is ``None`` inside a stream, because its status is wrong there."""
    info = attrs.evolve(error_info(status, body), status=status)
    return info if info.kind is ErrorKind.CONTEXT_OVERFLOW else _ERRORS.refined(info)
