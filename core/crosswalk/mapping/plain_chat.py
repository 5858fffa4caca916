"""Answers of Chat Completions that all servers read the same, because nothing in them is anybody's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

__all__ = ["is_plain_chat"]


def is_plain_chat(events: Sequence[Any], *, has_sentinel: bool) -> bool:
    """Whether *events*, a body or the chunks of a stream, have no more than every shipped dialect reads the same.

    That is one choice with text, or in a body function calls, an ordinary finish word, and counts that add up. Chunks
    are plain only before a sentinel (``[DONE]``): without it, servers differ in whether a stream is cut off. They differ
    in when a streamed call has ended, too.
    """
    forms = {_form_of(event) for event in events}
    return forms == ({"chat.completion.chunk"} if has_sentinel else {"chat.completion"}) and (
        has_sentinel or len(events) == 1
    )


def _form_of(event: Any) -> str | None:
    """Return ``object`` of a plain body or chunk, or ``None`` if *event* is not one."""
    if not _fits(event, _EVENT) or not event.keys() >= {"id", "object", "model", "choices"}:
        return None
    form: str = event["object"]
    is_body = form == "chat.completion"
    part, other = ("message", "delta") if is_body else ("delta", "message")
    choices, usage = event["choices"], event.get("usage")
    if len(choices) > 1 or any(
        part not in choice or other in choice or "index" not in choice for choice in choices
    ):
        return None
    if usage and usage.get("total_tokens") != usage.get("prompt_tokens", 0) + usage.get(
        "completion_tokens", 0
    ):
        return None
    return form if not is_body or (choices and usage) else None


def _fits(value: Any, shape: Any) -> bool:
    if type(shape) is dict:
        return type(value) is dict and all(
            key in shape and _fits(item, shape[key]) for key, item in value.items()
        )
    if type(shape) is list:
        return type(value) is list and all(_fits(item, shape[0]) for item in value)
    if type(shape) is tuple:
        return any(_fits(value, one) for one in shape)
    return bool(shape(value))


def _one_of(*values: Any) -> Callable[[Any], bool]:
    return lambda value: any(type(value) is type(one) and value == one for one in values)


def _word(value: Any) -> bool:
    return type(value) is str and value not in ("", "null")


def _call_id(value: Any) -> bool:
    """Whether *value* is an id, not the count that TGI repeats in every answer."""
    return _word(value) and not value.removeprefix("-").isdecimal()


def _string(value: Any) -> bool:
    return type(value) is str


def _text(value: Any) -> bool:
    """Whether *value* has no tag, as some servers write around reasoning."""
    return value is None or (type(value) is str and "<" not in value)


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**53


def _time(value: Any) -> bool:
    return type(value) is int and 0 < value < 2**32


_null: Final = _one_of(None)
_CALL: Final = {
    "index": _count,
    "id": _call_id,
    "type": _one_of("function"),
    "function": {"name": _word, "arguments": _string},
}
_PART: Final = {
    "role": _one_of("assistant"),
    "content": _text,
    "refusal": _one_of(None, ""),
    "annotations": _one_of([]),
}
_EVENT: Final = {
    "id": _word,
    "object": _one_of("chat.completion", "chat.completion.chunk"),
    "created": _time,
    "model": _word,
    "system_fingerprint": (_null, _string),
    "service_tier": (_null, _string),
    "choices": [
        {
            "index": _one_of(0),
            "message": {**_PART, "tool_calls": (_null, [_CALL])},
            "delta": {**_PART, "tool_calls": (_null, _one_of([]))},
            "finish_reason": _one_of(None, "stop", "length", "tool_calls", "content_filter"),
            "logprobs": _null,
        }
    ],
    "usage": (
        _null,
        {
            **dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), _count),
            "prompt_tokens_details": dict.fromkeys(("audio_tokens", "cached_tokens"), _count),
            "completion_tokens_details": dict.fromkeys(
                (
                    "accepted_prediction_tokens",
                    "audio_tokens",
                    "reasoning_tokens",
                    "rejected_prediction_tokens",
                ),
                _count,
            ),
        },
    ),
}
