"""Ollama's native dialect: ``/api/chat`` and ``/api/generate``, whole and streamed (sections 2 to 6).

Both endpoints and both forms are one shape: a body is a stream of one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from crosswalk.plugins import (
    ErrorInfo,
    ErrorKind,
    FinishReason,
    MappingState,
    Provenance,
    Recognition,
    ResponseDelta,
    Segment,
    SegmentType,
    TokenLogprob,
    ToolCallDelta,
    UsageInfo,
    VendorErrors,
    accept_count,
    accept_logprobs,
    error_info,
    look_at_count,
    look_at_time,
    ollama as wire,
    refined,
    require_object,
    take_arguments,
    take_boolean,
    take_error,
    take_object,
    take_objects,
    take_same,
    take_string,
    take_strings,
    unknown_event,
)

_ERRORS = VendorErrors("crosswalk_ollama", "ollama")


class _End:
    """The other keys of the last line."""

    has_generated = False


class NativeDialect:
    """The mapping hooks for the native endpoints.

    ``created_at`` and the durations stay in the extensions as well: the canonical time holds microseconds, not
    nanoseconds, and a stream has a new time on every line.
    """

    message_paths = ("message", "*")
    text_paths = ("message.content", "message.thinking", "response", "thinking")
    finish_reasons = wire.FINISH_REASONS

    def recognizes(self, event: Any) -> Recognition:
        """Return whether *event* is a line of this dialect. An error line could come from any server."""
        if not isinstance(event, dict):
            return Recognition.NO
        if ("message" in event or "response" in event) and "done" in event:
            return Recognition.CERTAIN
        return Recognition.POSSIBLE if isinstance(event.get("error"), str) else Recognition.NO

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """Return reasoning, text and tool calls of one line, then its end if it is the last."""
        event = require_object(event)
        if "error" in event and event["error"] is not None:
            yield take_error(event, ollama_error(None, event))
            return
        if "message" not in event and "response" not in event:
            raise unknown_event(event, "it has no message and no response")
        state.take_identity(event)
        if state.created is None and not state.has_spoken(0):  # what comes later is not when it began
            # With up to nine digits and, in old versions, a local offset.
            state.identify(created=look_at_time(event, "created_at"))
        part = take_object(event, "message")
        if part is None:
            part, content = event, take_string(event, "response")
        else:
            content = take_string(part, "content")
            if "role" in part:
                take_same(part, "role", "assistant")
        reasoning = take_string(part, "thinking") if "thinking" in part else None
        logprobs = take_logprobs(event) if "logprobs" in event else None
        if content or reasoning or logprobs:
            yield ResponseDelta(
                content_delta=content or None, reasoning_delta=reasoning or None, logprobs=logprobs
            )
        if part:
            for call in _tool_calls(part, state):
                yield ResponseDelta(tool_call_delta=call)
            for image in take_strings(part, "images"):
                yield ResponseDelta(segment=Segment(SegmentType.MEDIA, image, {"encoding": "base64"}))
        if take_boolean(event, "done"):
            nanoseconds = look_at_count(event, "total_duration")
            if nanoseconds is not None:
                state.request_duration = timedelta(microseconds=nanoseconds // 1000)
            # A server before v0.1.35, or one that lost its runner, ends without a reason.
            reason = take_string(event, "done_reason") or ""
            state.own(_End).has_generated = bool(event.get("eval_count"))
            yield ResponseDelta(raw_finish_reason=reason)
        elif "_debug_info" in event:
            # The rendered prompt, asked for instead of an answer: the only object, though not done.
            state.note("finish_reason", Provenance.DERIVED)
            yield ResponseDelta(finish_reason=FinishReason.STOP)

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """Return the reason for ``done_reason``. Without any, it depends on whether text was generated (section 4)."""
        if reason == "":
            return FinishReason.STOP if state.own(_End).has_generated else FinishReason.ERROR
        return self.finish_reasons.get(reason)

    def map_usage(self, event: Any, state: MappingState) -> UsageInfo | None:
        """Take the counts of the last line. A missing one is unknown, not 0 (section 5)."""
        if "eval_count" not in event and "prompt_eval_count" not in event:
            return None
        return state.usage_info(*(accept_count(event, name) for name in wire.COUNTS.values()))


def take_logprobs(event: dict[str, Any], text: str | None = None) -> tuple[TokenLogprob, ...] | None:
    """The log probabilities of a line, whatever its *text*."""
    return accept_logprobs(event, "logprobs")


def _tool_calls(part: dict[str, Any], state: MappingState) -> Iterator[ToolCallDelta]:
    """Take the calls. Each element is a complete call, regardless of its index (section 3.2)."""
    for call in take_objects(part, "tool_calls"):
        function = take_object(call, "function") or {}
        # An object. Clones of Ollama write its text, as in OpenAI's dialect.
        arguments, _ = take_arguments(function)
        index = function.get("index")
        known_index = index if type(index) is int else None
        fragment = state.take_tool_call(call, function, arguments=arguments, index=known_index, whole=True)
        take_same(function, "index", fragment.index)
        yield fragment


def ollama_error(status: int | None, body: Any) -> ErrorInfo:
    """Read an error: a text under ``error``, which may be the JSON answer of an upstream server (sections 7.1, 7.2).

    *status* is ``None`` for an error line inside a stream.
    """
    info = _ERRORS.refined(error_info(status, body))
    if info.kind is ErrorKind.UNKNOWN and status is None:
        # An error line comes from the runner behind the server, which has crashed or lost its model.
        return refined(info, ErrorKind.SERVER)
    return info
