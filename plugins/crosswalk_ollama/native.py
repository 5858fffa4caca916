"""Ollama's native dialect: ``/api/chat`` and ``/api/generate``, whole and streamed (sections 2 to 6).

Both endpoints and both forms are one shape: a body is a stream of one line.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from crosswalk.plugins import (
    CREATED,
    ID,
    MODEL,
    REASONING,
    TEXT,
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
    Segment,
    SegmentType,
    TokenLogprob,
    VendorErrors,
    accept_logprobs,
    count,
    error_info,
    look_at_count,
    look_at_time,
    ollama as wire,
    refined,
    require_object,
    same,
    take_arguments,
    take_boolean,
    take_error,
    take_object,
    take_objects,
    take_string,
    take_strings,
    unknown_event,
)

_ERRORS = VendorErrors("crosswalk_ollama", "ollama")


class _End:
    """The other keys of the last line."""

    has_generated = False


def _look_at_beginning(event: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    """Look at the time of a line, with up to nine digits and, in old versions, a local offset. The first one counts."""
    if state.created is None and not state.has_spoken(0):
        state.created = look_at_time(event, key)


def _take_calls(part: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    """Take the calls. Each element is a complete call, regardless of its index (section 3.2)."""
    for call in take_objects(part, key):
        function = take_object(call, "function") or {}
        # An object. Clones of Ollama write its text, as in OpenAI's dialect.
        arguments, _ = take_arguments(function)
        index = function.get("index")
        known_index = index if type(index) is int else None
        fragment = state.take_tool_call(call, function, arguments=arguments, index=known_index, whole=True)
        if index is None or known_index == fragment.index:
            function.pop("index", None)
        said.calls.append(fragment)


def _take_images(part: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    for image in take_strings(part, key):
        said.deltas.append(ResponseDelta(segment=Segment(SegmentType.MEDIA, image, {"encoding": "base64"})))


def _take_logprobs(event: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    said.logprobs = take_logprobs(event)


def _take_end(event: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    if take_boolean(event, key):
        if (nanoseconds := look_at_count(event, "total_duration")) is not None:
            state.request_duration = timedelta(microseconds=nanoseconds // 1000)
        state.own(_End).has_generated = bool(event.get("eval_count"))
        # A server before v0.1.35, or one that lost its runner, ends without a reason.
        said.finish = take_string(event, "done_reason") or ""


def _end_at_prompt(event: dict[str, Any], key: str, said: Said, state: MappingState) -> None:
    """End the answer at the rendered prompt, asked for instead of an answer: the only object, though not done."""
    if said.finish is None:
        state.note("finish_reason", Provenance.DERIVED)
        said.deltas.append(ResponseDelta(finish_reason=FinishReason.STOP))


_PART = {
    "thinking": REASONING,
    "tool_calls": FieldRow("tool_calls", _take_calls),
    "images": FieldRow("segments", _take_images),
}
"""The rows of a message, or of a line of ``/api/generate``, beside its text."""


def _line(said: dict[str, FieldRow]) -> FieldTable:
    """Return the table of a line that says its answer in the rows *said*."""
    return FieldTable(
        {
            "id": ID,
            "model": MODEL,
            "created": CREATED,
            "created_at": FieldRow("created", _look_at_beginning),
            **said,
            "logprobs": FieldRow("logprobs", _take_logprobs),
            "done": FieldRow("finish_reason", _take_end),
            "_debug_info": FieldRow("finish_reason", _end_at_prompt),
            **{key: count(name) for name, key in wire.COUNTS.items()},
        }
    )


class NativeDialect:
    """The mapping hooks for the native endpoints.

    ``created_at`` and the durations stay in the extensions as well: the canonical time holds microseconds, not
    nanoseconds, and a stream has a new time on every line.
    """

    message_paths = ("message", "*")
    finish_reasons = wire.FINISH_REASONS
    chat_fields = _line(
        {
            "message.role": same("assistant"),
            "message.content": TEXT,
            **{f"message.{key}": row for key, row in _PART.items()},
        }
    )
    generate_fields = _line({"message": same(None), "response": TEXT, **_PART})
    text_paths = (*chat_fields.text_paths, *generate_fields.text_paths)
    map_usage = staticmethod(chat_fields.map_usage)

    def recognizes(self, event: Any) -> Recognition:
        """Return whether *event* is a line of this dialect. An error line could come from any server."""
        if not isinstance(event, dict):
            return Recognition.NO
        if ("message" in event or "response" in event) and "done" in event:
            return Recognition.CERTAIN
        return Recognition.POSSIBLE if isinstance(event.get("error"), str) else Recognition.NO

    def map_delta(self, event: Any, state: MappingState) -> Iterable[ResponseDelta]:
        """Return reasoning, text and tool calls of one line, then its end if it is the last."""
        event = event if type(event) is dict else require_object(event)
        if "error" in event and event["error"] is not None:
            return (take_error(event, ollama_error(None, event)),)
        if "message" not in event and "response" not in event:
            raise unknown_event(event, "it has no message and no response")
        fields = self.generate_fields if event.get("message") is None else self.chat_fields
        return fields.map_delta(event, state)

    def map_finish_reason(self, reason: str, state: MappingState) -> FinishReason | None:
        """Return the reason for ``done_reason``. Without any, it depends on whether text was generated (section 4)."""
        if reason == "":
            return FinishReason.STOP if state.own(_End).has_generated else FinishReason.ERROR
        return self.finish_reasons.get(reason)


def take_logprobs(event: dict[str, Any], text: str | None = None) -> tuple[TokenLogprob, ...] | None:
    """The log probabilities of a line, whatever its *text*."""
    return accept_logprobs(event, "logprobs")


def ollama_error(status: int | None, body: Any) -> ErrorInfo:
    """Read an error: a text under ``error``, which may be the JSON answer of an upstream server (sections 7.1, 7.2).

    *status* is ``None`` for an error line inside a stream.
    """
    info = _ERRORS.refined(error_info(status, body))
    if info.kind is ErrorKind.UNKNOWN and status is None:
        # An error line comes from the runner behind the server, which has crashed or lost its model.
        return refined(info, ErrorKind.SERVER)
    return info
