"""Workers AI's own answers, whole and streamed, and the errors of Cloudflare's API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from crosswalk.plugins import (
    ErrorInfo,
    FinishReason,
    MappingState,
    OpenAIChatDialect,
    Provenance,
    Recognition,
    ResponseDelta,
    ToolCallDelta,
    UsageInfo,
    VendorErrors,
    dump_json,
    error_info,
    take_arguments,
    take_object,
    take_objects,
    take_same,
    take_string,
    unknown_event,
)

_ERRORS = VendorErrors("crosswalk_cloudflare", "cloudflare")
_CHAT_DIALECT = OpenAIChatDialect()


class Envelope:
    """Whether the present event is inside the envelope, which only a whole answer has."""

    is_around = False


class NativeDialect:
    """The mapping hooks for an answer with its text under ``response``: a body is a stream of one event."""

    text_paths = ("response",)
    sentinel = True

    def recognizes(self, event: Any) -> Recognition:
        """Whether *event* has a response, which the padding ``p`` of a stream marks as Cloudflare's."""
        if not isinstance(event, dict) or "done" in event or "type" in event:
            return Recognition.NO  # lines of Ollama and events of the Responses API have a response, too
        if "response" not in event:
            return Recognition.NO
        return Recognition.CERTAIN if "p" in event else Recognition.POSSIBLE

    def map_delta(self, event: dict[str, Any], state: MappingState) -> Iterator[ResponseDelta]:
        """Return the text and the calls of *event*. The event with token counts is the last one with content."""
        if "response" not in event:
            raise unknown_event(event, "no response in it")
        if type(event.get("response")) is dict:  # JSON mode
            state.note("message.content", Provenance.DERIVED)
            text: str | None = dump_json(event.pop("response")).decode()
        else:
            text = take_string(event, "response")
        if text:
            yield ResponseDelta(content_delta=text)
        calls = take_objects(event, "tool_calls")
        for call in calls:
            yield ResponseDelta(tool_call_delta=_tool_call(call, state))
        if not any(calls):
            event.pop("tool_calls", None)
        if event.get("usage") is not None or state.own(Envelope).is_around:
            yield ResponseDelta(raw_finish_reason="")

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """Read the end of an answer, which has no word, as ``stop``."""
        return FinishReason.STOP if reason == "" else None

    def map_usage(self, event: dict[str, Any], state: MappingState) -> UsageInfo | None:
        """The counts, under OpenAI's names."""
        return _CHAT_DIALECT.map_usage(event, state)


def _tool_call(call: dict[str, Any], state: MappingState) -> ToolCallDelta:
    """A whole call: its name and arguments, bare or under ``function``."""
    take_same(call, "type", "function")
    function = take_object(call, "function")
    holder = function or call
    arguments, _ = take_arguments(holder)
    delta = state.take_tool_call(call, holder, arguments=arguments, whole=True)
    if not function:
        call.pop("function", None)
    return delta


def is_failure(event: dict[str, Any]) -> bool:
    """Return whether *event* is the envelope of a failed request, or an error in OpenAI's form."""
    return event.get("success") is False or bool(event.get("errors")) or bool(event.get("error"))


def cloudflare_error(status: int | None, body: Any) -> ErrorInfo:
    """Read the first error of an envelope, or one in OpenAI's form. *status* is ``None`` inside a stream."""
    errors = body.get("errors") if isinstance(body, dict) else None
    first_error = errors[0] if isinstance(errors, list) and errors else None
    if not isinstance(first_error, dict):
        return error_info(status, body)
    code = first_error.get("code")
    info = error_info(status, first_error)
    info = attrs.evolve(info, code=info.code if code is None else str(code)[:60], raw=body)
    return _ERRORS.refined(info) if type(code) is int else info
