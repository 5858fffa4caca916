"""What became of a tool call."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import attrs

from crosswalk.text import brief, short_repr
from crosswalk.types.message import ChatMessage, ContentPart
from crosswalk.types.tools import ToolCall

__all__ = ["ToolExecutionResult", "ToolExecutionStart", "ToolOutcome"]


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
