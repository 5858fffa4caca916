"""The result of a tool call, and how the value that a tool returns becomes text for the model."""

from __future__ import annotations

from collections import deque
from decimal import Decimal
from enum import StrEnum
from typing import Any

import attrs
import cattrs
import orjson

from crosswalk.errors import CrosswalkError
from crosswalk.text import brief, short_repr
from crosswalk.types.json import dump_json, holds_non_finite
from crosswalk.types.message import AudioPart, ChatMessage, ContentPart, FilePart, ImagePart, TextPart
from crosswalk.types.tools import ToolCall

__all__ = ["ToolError", "ToolExecutionResult", "ToolExecutionStart", "ToolOutcome"]


class ToolError(CrosswalkError):
    """Raised by a tool's own code: what it says is given to the model, as it is, as the call's result."""


class ToolOutcome(StrEnum):
    """How a tool call ended: a closed set."""

    OK = "ok"
    """The tool gave its result."""
    UNKNOWN_TOOL = "unknown_tool"
    """No tool has that name."""
    INVALID_ARGUMENTS = "invalid_arguments"
    """The arguments are no JSON object, or do not fit the tool's parameters."""
    FAILED = "failed"
    """The tool raised an error, or gave a result that cannot be told to a model."""
    TIMED_OUT = "timed_out"
    """The tool took longer than its time limit."""
    CANCELLED = "cancelled"
    """The tool cancelled itself, or was stopped before its result came; it may have had its effect."""
    DECLINED = "declined"
    """Whoever was asked did not approve of it; nothing was run."""
    WAITING = "waiting"
    """Nobody has decided yet whether the tool may run, or somebody else runs it; the call stays open."""
    NOT_RUN = "not_run"
    """The tool was not begun: the answer was cut, the run was stopped or at its limit, or the final answer
    had been given."""


@brief
@attrs.frozen(repr=False)
class ToolExecutionStart:
    """A tool begins to run.

    Attributes:
        call: what the model asked for.
    """

    call: ToolCall

    __repr__ = short_repr("call")


@brief
@attrs.frozen(repr=False)
class ToolExecutionResult:
    """A tool call and what came of it.

    Attributes:
        call: what the model asked for; its id differs from the provider's where that one was taken.
        output: what the tool gave: its text, or its value as JSON; ``""`` when it gave none. Of parts, their texts.
        error: what went wrong, as it is told to the model; ``None`` when nothing did.
        outcome: the same as a word.
        exception: what the tool raised, for the application; ``None`` when it raised nothing.
        value: what the tool gave, as it is; ``None`` where it gave nothing.
        parts: images, sounds, files and texts that the tool gave; empty where it gave something else.
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
        """Whether the call stays open, until it is decided or its result is there."""
        return self.outcome is ToolOutcome.WAITING

    @property
    def was_run(self) -> bool:
        """Whether the tool was begun."""
        return self.outcome in (
            ToolOutcome.OK,
            ToolOutcome.FAILED,
            ToolOutcome.TIMED_OUT,
            ToolOutcome.CANCELLED,
        )

    @property
    def message(self) -> ChatMessage:
        """What the model is told: the output or, where the call failed, the error."""
        call = self.call
        if self.error is None:
            return ChatMessage.tool_result(call.id, self.parts or self.output, name=call.name)
        return ChatMessage.tool_result(call.id, f"Error: {self.error}", name=call.name, is_error=True)

    __repr__ = short_repr("call", "outcome", "output", "error")


def not_run(call: ToolCall, reason: str) -> ToolExecutionResult:
    """The result of *call*, which is not run."""
    return ToolExecutionResult(call, "", f"not run: {reason}", outcome=ToolOutcome.NOT_RUN)


def waiting(call: ToolCall, reason: str) -> ToolExecutionResult:
    """The state of *call*, which stays open."""
    return ToolExecutionResult(call, "", f"waiting: {reason}", outcome=ToolOutcome.WAITING)


def stopped(call: ToolCall) -> ToolExecutionResult:
    text = "cancelled: the tool was stopped before its result came; it may have had its effect"
    return ToolExecutionResult(call, "", text, outcome=ToolOutcome.CANCELLED)


_MEDIA = (TextPart, ImagePart, AudioPart, FilePart)
_JSON_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


def result_of(call: ToolCall, value: Any) -> ToolExecutionResult:
    """What *value*, given by the tool, is for the model: a text, parts, or JSON.

    Raises:
        ToolError: it is none of these.
    """
    values = value if isinstance(value, list | tuple) else (value,)
    if not any(isinstance(one, _MEDIA) for one in values):
        return ToolExecutionResult(call, _as_text(value), value=value)
    parts = [one if isinstance(one, _MEDIA) else TextPart(_as_text(one)) for one in values]
    texts = "".join(part.text for part in parts if isinstance(part, TextPart))
    return ToolExecutionResult(call, texts, value=value, parts=tuple(parts))


def _make_converter() -> cattrs.Converter:
    """A converter from the value of a tool to what orjson can write."""
    converter = cattrs.Converter()
    for part in _MEDIA:
        converter.register_unstructure_hook(part, _refuse_media)
    converter.register_unstructure_hook(Decimal, str)
    converter.register_unstructure_hook_func(  # pydantic models, without importing pydantic
        lambda cls: hasattr(cls, "model_dump") and hasattr(cls, "model_fields"),
        lambda model: model.model_dump(mode="json", by_alias=True),
    )
    return converter


def _refuse_media(part: object) -> None:
    raise TypeError(type(part).__name__)  # as JSON it would be base64 text


_CONVERTER = _make_converter()


def _as_list(value: Any) -> list[Any]:
    """A collection that orjson does not know, as a list."""
    if isinstance(value, set | frozenset | deque):
        return list(value)
    raise TypeError


def _as_text(value: Any) -> str:
    """*value* as a model is told it: a text as it is, anything else as JSON.

    Raises:
        ToolError: it is no JSON.
    """
    try:
        if isinstance(value, str):
            value.encode()
            return value
        plain = _CONVERTER.unstructure(value)
        text = dump_json(plain, default=_as_list, option=_JSON_OPTIONS).decode()
    except UnicodeEncodeError:
        raise ToolError("the tool's result holds text that is no Unicode") from None
    except (TypeError, RecursionError):
        raise ToolError(f"the tool's result, a {type(value).__name__}, cannot be written as JSON") from None
    if "null" in text and holds_non_finite(plain):
        raise ToolError("the tool's result holds a number that JSON has not: NaN or an infinity")
    return text
