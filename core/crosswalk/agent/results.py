"""Tool calls in a conversation and their results: unique ids, one result each, and values as text for the model."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, NoReturn

import attrs
import orjson

from crosswalk.codec.canonical import CanonicalConverter
from crosswalk.errors import CrosswalkError
from crosswalk.request import Turn
from crosswalk.schemas.values import new_answer_converter
from crosswalk.service.turns import message_of
from crosswalk.text import brief, short_repr
from crosswalk.types.json import dump_json, holds_non_finite
from crosswalk.types.message import (
    AudioPart,
    ChatMessage,
    ContentPart,
    DocumentPart,
    FilePart,
    ImagePart,
    Role,
    SearchResultPart,
    TextPart,
    ToolCall,
    VideoPart,
)
from crosswalk.types.response import ChatResponse
from crosswalk.types.values import IncompleteReason, Segment, SegmentType

# --------------------------------------------------------------------------------- results
# The result of a tool call, and how the value that a tool returns becomes text for the model.


class ToolError(CrosswalkError):
    """An error that a tool raises to tell the model its message, unchanged, as the result of the call."""


class ToolOutcome(StrEnum):
    """How a tool call ended: a closed set."""

    OK = "ok"
    """The tool returned a result."""
    UNKNOWN_TOOL = "unknown_tool"
    """No tool has that name."""
    INVALID_ARGUMENTS = "invalid_arguments"
    """The arguments are not a JSON object, or do not fit the tool's parameters."""
    FAILED = "failed"
    """The tool raised an error, or returned a value that cannot be sent to a model."""
    TIMED_OUT = "timed_out"
    """The tool took longer than its time limit."""
    CANCELLED = "cancelled"
    """The tool cancelled itself, or was stopped before its result arrived. It may have taken effect."""
    DECLINED = "declined"
    """The approval was refused. Nothing was run."""
    WAITING = "waiting"
    """The approval is still undecided, or the tool runs elsewhere. The call stays open."""
    NOT_RUN = "not_run"
    """The tool did not start: the answer was cut, the run was stopped or at its limit, or the final answer
    had been given.
    """


@brief
@attrs.frozen(repr=False)
class ToolExecutionStart:
    """The start of a tool call.

    Attributes:
        call: the call that the model made.
    """

    call: ToolCall

    __repr__ = short_repr("call")


@brief
@attrs.frozen(repr=False)
class ToolExecutionResult:
    """A tool call and its result.

    Attributes:
        call: the call that the model made. Its id differs from the provider's if that id was already taken.
        output: the result of the tool: text, or its value as JSON. ``""``. For parts, their texts.
        error: the error message for the model, or ``None`` on success.
        outcome: the kind of result.
        exception: the exception that the tool raised, for the application, or ``None`` if it raised none.
        value: the value that the tool returned, or ``None`` if it returned none.
        parts: images, audio, files and texts that the tool returned, empty for any other value.
    """

    call: ToolCall
    output: str
    error: str | None = None
    outcome: ToolOutcome = attrs.field(kw_only=True)
    exception: BaseException | None = attrs.field(default=None, kw_only=True, eq=False)
    value: Any = attrs.field(default=None, kw_only=True, eq=False)
    parts: tuple[ContentPart, ...] = attrs.field(default=(), kw_only=True)

    @outcome.default
    def _outcome_by_error(self) -> ToolOutcome:
        return ToolOutcome.OK if self.error is None else ToolOutcome.FAILED

    @property
    def is_waiting(self) -> bool:
        """Whether the call stays open until it is decided or its result arrives."""
        return self.outcome is ToolOutcome.WAITING

    @property
    def was_run(self) -> bool:
        """Whether the tool started."""
        return self.outcome in (
            ToolOutcome.OK,
            ToolOutcome.FAILED,
            ToolOutcome.TIMED_OUT,
            ToolOutcome.CANCELLED,
        )

    @property
    def message(self) -> ChatMessage:
        """The message for the model: the output or, if the call failed, the error."""
        call = self.call
        if self.error is None:
            return ChatMessage.tool_result(call.id, self.parts or self.output, name=call.name)
        return ChatMessage.tool_result(call.id, f"Error: {self.error}", name=call.name, is_error=True)

    __repr__ = short_repr("call", "outcome", "output", "error")


def not_run(call: ToolCall, reason: str) -> ToolExecutionResult:
    """Return the result of *call*, which is not run because of *reason*."""
    return ToolExecutionResult(call, "", f"not run: {reason}", outcome=ToolOutcome.NOT_RUN)


def waiting(call: ToolCall, reason: str) -> ToolExecutionResult:
    """Return the result of *call*, which stays open because of *reason*."""
    return ToolExecutionResult(call, "", f"waiting: {reason}", outcome=ToolOutcome.WAITING)


def stopped(call: ToolCall) -> ToolExecutionResult:
    """Return the result of *call*, which was stopped while its tool ran."""
    text = "cancelled: the tool was stopped before its result came; it may have had its effect"
    return ToolExecutionResult(call, "", text, outcome=ToolOutcome.CANCELLED)


_PART_CLASSES = (TextPart, SearchResultPart, DocumentPart, ImagePart, AudioPart, VideoPart, FilePart)
_JSON_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


def result_of(call: ToolCall, value: Any) -> ToolExecutionResult:
    """Return the result of *call* for the *value* that its tool returned: text, parts, or any value as JSON.

    Raises:
        ToolError: *value* cannot be written as JSON.
    """
    values = value if isinstance(value, list | tuple) else (value,)
    if not any(isinstance(one, _PART_CLASSES) for one in values):
        return ToolExecutionResult(call, _as_text(value), value=value)
    parts = [one if isinstance(one, _PART_CLASSES) else TextPart(_as_text(one)) for one in values]
    text = "".join(part.text for part in parts if isinstance(part, TextPart))
    return ToolExecutionResult(call, text, value=value, parts=tuple(parts))


@functools.cache
def _converter() -> CanonicalConverter:
    """The converter of answers, which reads a tool's arguments, for the value of a tool."""
    tool_converter = new_answer_converter()
    for kind in (*_PART_CLASSES, bytes):
        tool_converter.register_unstructure_hook(kind, _refuse)
    # orjson writes a key that is not text, such as None, as JSON names it.
    tool_converter.register_unstructure_hook(
        dict,
        lambda value: {
            tool_converter.unstructure(key): tool_converter.unstructure(item) for key, item in value.items()
        },
    )
    return tool_converter


def _refuse(value: object) -> NoReturn:
    raise TypeError(type(value).__name__)  # as JSON it would be an encoding of bytes


def _as_list(value: Any) -> list[Any]:
    """Return a collection that orjson does not support as a list."""
    return [*value] if isinstance(value, set | frozenset | deque) else _refuse(value)


def _as_text(value: Any) -> str:
    """Return *value* as text for a model: a string unchanged, anything else as JSON.

    Raises:
        ToolError: *value* cannot be written as JSON.
    """
    try:
        if isinstance(value, str):
            value.encode()
            return value
        json_value = _converter().unstructure(value)
        text = dump_json(json_value, default=_as_list, option=_JSON_OPTIONS).decode()
    except UnicodeEncodeError:
        raise ToolError("the tool's result contains an unpaired surrogate") from None
    except (TypeError, RecursionError):
        raise ToolError(f"the tool's result, a {type(value).__name__}, cannot be written as JSON") from None
    if "null" in text and holds_non_finite(json_value):
        raise ToolError("the tool's result contains NaN or an infinity, which JSON does not have")
    return text


# ----------------------------------------------------------------------------------- calls
# Tool calls in a conversation: unique ids, and a result for each call.
#
# Servers repeat ids from answer to answer, and so do the ids that mapping assigns when a server sends none. Some
# providers refuse a conversation with duplicate ids, and all refuse one with a call that has no result.


_CUT_REASONS: dict[IncompleteReason | None, str] = {
    IncompleteReason.ERROR: "error",
    IncompleteReason.CANCELLED: "cancelled",
    IncompleteReason.CONTENT_FILTER: "content_filter",
    IncompleteReason.LENGTH: "length",
    IncompleteReason.UNKNOWN_FINISH_REASON: "an unknown finish reason",
    IncompleteReason.UNKNOWN_EVENT: "an unknown event",
}


def calls_of(turn: Turn) -> tuple[ToolCall, ...]:
    """Return the tool calls of *turn*."""
    return message_of(turn).tool_calls or ()


def cut_reason(turn: Turn) -> str | None:
    """Return why *turn* was cut, or ``None`` if it was not.

    The calls of a cut answer must not run: one may be incomplete.
    """
    if not isinstance(turn, ChatResponse):
        return None
    return _CUT_REASONS.get(turn.incomplete_reason)


def open_calls(turns: Sequence[Turn]) -> tuple[ToolCall, ...]:
    """Return the calls at the end of *turns* that have no result."""
    answered_ids: set[str | None] = set()
    for turn in reversed(turns):
        message = message_of(turn)
        if message.role is not Role.TOOL:
            return tuple(call for call in calls_of(turn) if call.id not in answered_ids)
        answered_ids.add(message.tool_call_id)
    return ()


def with_unique_ids(calls: Iterable[ToolCall], taken_ids: set[str]) -> tuple[ToolCall, ...]:
    """Return *calls* with ids that are not in *taken_ids*, renamed where necessary, and add them to *taken_ids*."""
    unique_calls: list[ToolCall] = []
    for call in calls:
        id, number = call.id, 1
        while id in taken_ids:
            number += 1
            id = f"{call.id}_{number}"
        taken_ids.add(id)
        unique_calls.append(call if id == call.id else attrs.evolve(call, id=id))
    return tuple(unique_calls)


def with_calls(answer: ChatResponse, calls: Sequence[ToolCall]) -> ChatResponse:
    """Return *answer* with *calls*, which differ from its own only in their ids."""
    if tuple(calls) == answer.tool_calls:
        return answer
    message = attrs.evolve(answer.message, tool_calls=calls)
    return attrs.evolve(answer, message=message, segments=_renamed_segments(answer, calls))


def _renamed_segments(answer: ChatResponse, calls: Sequence[ToolCall]) -> list[Segment]:
    """Return the segments of *answer* with the ids of *calls*. Tool call segments have the order of the calls."""
    pairs = list(zip(answer.tool_calls, calls, strict=True))
    segments = []
    for segment in answer.segments:
        if segment.type is SegmentType.TOOL_CALL:
            segment_id = segment.metadata.get("id")
            pair = next((pair for pair in pairs if pair[0].id == segment_id), None)
            if pair is not None:
                pairs.remove(pair)
                segment = attrs.evolve(segment, metadata={**segment.metadata, "id": pair[1].id})
        segments.append(segment)
    return segments
