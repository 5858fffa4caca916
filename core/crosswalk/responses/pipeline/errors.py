"""The errors of a pipeline, other than those of its stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import attrs

from crosswalk.responses.errors import ResponsesError
from crosswalk.text import clean_message

if TYPE_CHECKING:
    from crosswalk.responses.accumulator.accumulating import ResponseSnapshot

__all__ = ["PipelineError", "StageFailure", "StageKind"]

StageKind: TypeAlias = Literal["handler", "processor", "display", "status"]
"""The stages of a pipeline. ``status`` checks the statuses of tool calls."""


@attrs.frozen(kw_only=True)
class StageFailure:
    """A handler, processor or display that failed, or an impossible step of a tool call's status.

    Attributes:
        stage: its stage.
        name: its name, or the tool for a status.
        event_type: the event at which it failed, or ``None`` at the opening or closing of a display.
        sequence_number: the event's position in the stream, or ``None`` if the server sent none.
        error: the exception that it raised.
    """

    stage: StageKind
    name: str
    event_type: str | None
    sequence_number: int | None
    error: Exception

    def __str__(self) -> str:
        location = clean_message(self.event_type or "opening or closing", 80)
        if self.sequence_number is not None:
            location = f"{location} (sequence_number {self.sequence_number})"
        # Its message may quote content, so it is only in the cause.
        return f"{self.stage} {self.name!r} failed at {location}: {type(self.error).__name__}"


class PipelineError(ResponsesError):
    """Handlers, processors or displays of a pipeline failed, or a status took an impossible step. Everything else continued.

    The first failure's error is the cause.

    Attributes:
        failures: the failures in order, at least one.
        snapshot: the response after the last event, or ``None`` before the first.
    """

    def __init__(self, failures: Sequence[StageFailure], *, snapshot: ResponseSnapshot | None) -> None:
        super().__init__(clean_message("; ".join(map(str, failures))))
        self.failures = tuple(failures)
        self.snapshot = snapshot
        self.__cause__ = failures[0].error
