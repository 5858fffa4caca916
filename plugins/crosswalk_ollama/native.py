"""Ollama's native dialect: ``/api/chat`` and ``/api/generate``, whole and streamed (sections 2 to 6).

Both endpoints and both forms are one shape: a body is a stream of one line.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from crosswalk import (
    CONSUMED_TOKENS,
    TAKEN,
    FinishReason,
    MappingState,
    Provenance,
    Recognition,
    ResponseDelta,
    Segment,
    SegmentType,
    ToolCallDelta,
    UnknownEventError,
    UnknownFinishReasonError,
    UsageInfo,
    WireTypeError,
    error_delta,
    get_array,
    get_boolean,
    get_count,
    get_integer,
    get_object,
    get_string,
    require_object,
    residue,
    taken_if,
    token_logprobs,
)
from crosswalk_ollama.errors import ollama_error

__all__ = ["CONSUMED", "NativeDialect"]

_TOOL_CALLS = [
    {
        "id": taken_if(lambda value, _, state: state.carries_id(value)),
        "function": {
            "index": taken_if(lambda value, _, state: state.carries_index(value)),
            "name": taken_if(lambda value, _, state: state.carries_name(value)),
            "arguments": TAKEN,
        },
    }
]


def _is_generate(_: Any, event: dict[str, Any], __: MappingState) -> bool:
    return event.get("message") is None


CONSUMED = {
    "model": taken_if(lambda value, _, state: value is None or value == state.model),
    "message": {
        "role": taken_if(lambda value, *_: value == "assistant"),
        "content": TAKEN,
        "thinking": TAKEN,
        "images": TAKEN,
        "tool_calls": _TOOL_CALLS,
    },
    "response": taken_if(_is_generate),
    "thinking": taken_if(_is_generate),
    "images": taken_if(_is_generate),
    "tool_calls": taken_if(_is_generate, _TOOL_CALLS),
    "done": TAKEN,
    "done_reason": taken_if(lambda _, event, __: event.get("done") is True),
    "logprobs": CONSUMED_TOKENS,
    "prompt_eval_count": TAKEN,
    "eval_count": TAKEN,
}
"""What the typed fields take. ``created_at`` and the durations stay as well: the canonical time holds
microseconds, not nanoseconds, and a stream has a new time on every line."""


class NativeDialect:
    """The mapping hooks for the native endpoints."""

    finish_reasons = {
        "stop": FinishReason.STOP,
        "length": FinishReason.LENGTH,
        "load": FinishReason.STOP,
        "unload": FinishReason.STOP,
    }

    def recognizes(self, event: Any) -> Recognition:
        """Whether *event* is a line of this dialect; an error line could be anybody's."""
        if not isinstance(event, dict):
            return Recognition.NO
        if ("message" in event or "response" in event) and "done" in event:
            return Recognition.CERTAIN
        return Recognition.POSSIBLE if isinstance(event.get("error"), str) else Recognition.NO

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """Reasoning, then text, then tool calls of one line; then its end, if it is the last."""
        event = require_object(event, "the event")
        if event.get("error") is not None:
            return [error_delta(ollama_error(None, event), state)]
        if "message" not in event and "response" not in event:
            raise UnknownEventError("neither a message nor a response in it")
        state.identify(model=get_string(event, "model"), created=_time(event))
        message = get_object(event, "message")
        part, place = (event, "") if message is None else (message, "message")
        logprobs = get_array(event, "logprobs")
        deltas = [
            *self._text(event, part, place, logprobs, state),
            *(
                ResponseDelta(state.next_index(), tool_call_delta=call)
                for call in _tool_calls(part, place, state)
            ),
            *(ResponseDelta(state.next_index(), segment=image) for image in _images(part, place)),
        ]
        if get_boolean(event, "done"):
            _note_duration(event, state)
            # A server before v0.1.35, or whose runner vanished, ends without a reason.
            reason = get_string(event, "done_reason") or ""
            if not reason:
                state.data["generated"] = bool(get_count(event, "eval_count"))
            deltas.append(ResponseDelta(state.next_index(), raw_finish_reason=reason))
        elif get_object(event, "_debug_info") is not None:
            # The rendered prompt, asked for instead of an answer: the only object, though not done.
            state.note("finish_reason", Provenance.DERIVED)
            deltas.append(ResponseDelta(state.next_index(), finish_reason=FinishReason.STOP))
        return deltas

    def _text(
        self,
        event: dict[str, Any],
        part: dict[str, Any],
        place: str,
        logprobs: list[Any],
        state: MappingState,
    ) -> Iterable[ResponseDelta]:
        content = get_string(part, "response" if part is event else "content", place)
        reasoning = get_string(part, "thinking", place)
        if content or reasoning or logprobs:
            yield ResponseDelta(
                state.next_index(),
                content or None,
                reasoning_delta=reasoning or None,
                logprobs=token_logprobs(logprobs, "logprobs") or None,
            )

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason:
        """The reason for ``done_reason``; where there is none, whether anything was generated decides (section 4)."""
        if reason == "":
            return FinishReason.STOP if state.data.get("generated") else FinishReason.ERROR
        known = self.finish_reasons.get(reason)
        if known is not None:
            return known
        try:
            return FinishReason(reason)  # a remote host may forward another API's word
        except ValueError:
            raise UnknownFinishReasonError(reason) from None

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """The counts of the last line; a missing one is unknown, not 0 (section 5)."""
        prompt = get_count(event, "prompt_eval_count")
        completion = get_count(event, "eval_count")
        if prompt is None and completion is None:
            return None
        state.note("usage.prompt_tokens", Provenance.ABSENT if prompt is None else None)
        state.note("usage.completion_tokens", Provenance.ABSENT if completion is None else None)
        return UsageInfo(prompt or 0, completion or 0)

    def extensions(self, event: Any, state: MappingState) -> dict[str, Any]:
        """Everything that :data:`CONSUMED` does not name."""
        return {} if event.get("error") is not None else residue(event, CONSUMED, state)


def _tool_calls(part: dict[str, Any], place: str, state: MappingState) -> Iterable[ToolCallDelta]:
    """Each element is a whole call, whatever its index says (section 3.2)."""
    where = f"{place}.tool_calls" if place else "tool_calls"
    for number, item in enumerate(get_array(part, "tool_calls", place)):
        spot = f"{where}[{number}]"
        call = require_object(item, spot)
        function = get_object(call, "function", spot) or {}
        index = function.get("index")
        yield state.tool_call(
            index=index if type(index) is int else None,
            id=get_string(call, "id", spot),
            name=get_string(function, "name", f"{spot}.function"),
            arguments=_arguments(function, f"{spot}.function"),
            whole=True,
        )


def _arguments(function: dict[str, Any], place: str) -> str | None:
    value = function.get("arguments")
    if value is None:
        return None
    if type(value) is not dict:
        raise WireTypeError(f"{place}.arguments", expected="object", got=value)
    return orjson.dumps(value).decode()


def _images(part: dict[str, Any], place: str) -> Iterable[Segment]:
    where = f"{place}.images" if place else "images"
    for number, image in enumerate(get_array(part, "images", place)):
        if type(image) is not str:
            raise WireTypeError(f"{where}[{number}]", expected="string", got=image)
        yield Segment(SegmentType.MEDIA, image, {"encoding": "base64"})


def _time(event: dict[str, Any]) -> datetime | None:
    """``created_at``: RFC 3339 with up to nine digits and, in old versions, a local offset; ``None`` if it is no time."""
    text = get_string(event, "created_at")
    try:
        time = datetime.fromisoformat(text) if text else None
        return None if time is None or time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):  # the latter at the ends of the calendar
        return None


def _note_duration(event: dict[str, Any], state: MappingState) -> None:
    nanoseconds = get_integer(event, "total_duration")
    if nanoseconds is not None and nanoseconds < 0:
        raise WireTypeError("total_duration", expected="a count of at least 0", got=nanoseconds)
    if nanoseconds is not None:
        state.request_duration = timedelta(microseconds=nanoseconds // 1000)
