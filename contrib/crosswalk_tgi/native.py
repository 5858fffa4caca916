"""TGI's native dialect: ``/generate``, ``/generate_stream`` and the compatible ``/`` (sections 2, 4, 5 and 7).

Its errors, which the OpenAI layer shares, are a text and a word. Inside a chat stream they are only the text, always with
status 422.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import attrs

from crosswalk.plugins import (
    ErrorInfo,
    ErrorKind,
    FinishReason,
    MappingState,
    Provenance,
    Recognition,
    ResponseDelta,
    SegmentType,
    TokenLogprob,
    UsageInfo,
    VendorErrors,
    accept_count,
    accept_logprobs,
    accept_number,
    accept_objects,
    error_info,
    leave_mistyped,
    require_object,
    take_boolean,
    take_error,
    take_object,
    take_objects,
    take_string,
    unknown_event,
)


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

    def map_delta(self, event: Any, state: MappingState) -> Iterator[ResponseDelta]:
        """Return the text and tokens of an answer, or the token of an event, then its end if it is the last."""
        event = _unwrapped(event)
        if event.get("error"):
            yield take_error(event, tgi_error(None, event))
            return
        if "token" in event:
            yield from _token(event, state)
        elif "generated_text" in event:
            yield from _texts(event)
        else:
            raise unknown_event(event, "it has no token and no text")

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """The reason for TGI's word (section 5)."""
        return self.finish_reasons.get(reason)

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Take the counts of the details. A body has no count of the prompt (section 6)."""
        details = _unwrapped(event).get("details")
        if not details:
            return None
        answers = (details, *accept_objects(details, "best_of_sequences"))
        counts = [accept_count(answer, "generated_tokens") for answer in answers]
        known_counts = [count for count in counts if count is not None]
        usage = state.usage_info(
            accept_count(details, "input_length"), sum(known_counts) if known_counts else None
        )
        if known_counts and len(answers) > 1:
            state.note("usage.completion_tokens", Provenance.DERIVED)
            for answer, count in zip(answers, counts, strict=True):
                if count is not None:
                    answer["generated_tokens"] = count  # one of those that were added up
        return usage

    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """Return the residue: token ids, special tokens, the seed, the prefill."""
        return _unwrapped(event)


def _unwrapped(event: Any) -> dict[str, Any]:
    """Return the answer. The compatible endpoint sends it in an array with one item (section 1)."""
    if type(event) is list and len(event) == 1:
        return require_object(event[0], "[0]")
    return require_object(event)


def _token(event: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
    """Take one token. A special one, such as the end of the sequence, is not shown (section 4)."""
    token = take_object(event, "token") or {}
    token_text, is_special = take_string(token, "text"), take_boolean(token, "special")
    if is_special is not None:
        token["special"] = is_special
    text = "" if is_special else token_text or ""
    logprobs = None
    if token_text is not None:
        top = accept_logprobs(event, "top_tokens", token="text") or ()
        logprobs = token_logprobs(token, token_text, top)
        yield ResponseDelta(content_delta=text or None, logprobs=logprobs)
    details, whole_text = take_object(event, "details") or {}, take_string(event, "generated_text")
    if whole_text is not None:
        # If the prompt was requested too, it is not the text of the tokens.
        if whole_text != state.choice(0).joined(SegmentType.TEXT) + text:
            event["generated_text"] = whole_text
        yield ResponseDelta(raw_finish_reason=take_string(details, "finish_reason") or "")


def token_logprobs(
    token: dict[str, Any], text: str | None, top: tuple[TokenLogprob, ...] = ()
) -> tuple[TokenLogprob, ...]:
    """The log probability of the one token of an event, which is its *text*, with the likeliest in its place."""
    return (TokenLogprob(text or "", accept_number(token, "logprob"), None, top),)


def _texts(event: dict[str, Any]) -> Iterator[ResponseDelta]:
    """The text of a body, and those of the answers that were not chosen as the best."""
    has_ended = event.get("generated_text") is not None
    yield from _text(event, event.get("details"), 0)
    details = take_object(event, "details") or {}
    for choice, other_answer in enumerate(take_objects(details, "best_of_sequences"), 1):
        yield from _text(other_answer, other_answer, choice)
        yield ResponseDelta(raw_finish_reason=take_string(other_answer, "finish_reason") or "", choice=choice)
    if has_ended:
        yield ResponseDelta(raw_finish_reason=take_string(details, "finish_reason") or "")


def _text(answer: dict[str, Any], details: Any, choice: int) -> Iterator[ResponseDelta]:
    """Take the text of *answer*, with the tokens in *details*."""
    text = take_string(answer, "generated_text")
    logprobs = _logprobs(details) if type(details) is dict else None
    if text or logprobs:
        yield ResponseDelta(content_delta=text or None, logprobs=logprobs, choice=choice)


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


_ERRORS = VendorErrors("crosswalk_tgi", "tgi")


def tgi_error(status: int | None, body: Any) -> ErrorInfo:
    """Read an error. *status* is ``None`` inside a stream, because its status is wrong there."""
    info = attrs.evolve(error_info(status, body), status=status)
    return info if info.kind is ErrorKind.CONTEXT_OVERFLOW else _ERRORS.refined(info)
