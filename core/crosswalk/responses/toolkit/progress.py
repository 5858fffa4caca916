"""The statuses of tool calls, and the errors of tool calls."""

from __future__ import annotations

from typing import Final

import attrs

from crosswalk.responses.errors import ResponsesError
from crosswalk.text import clean_message

__all__ = [
    "StatusProgression",
    "StatusProgressionError",
    "ToolCallError",
]


class ToolCallError(ResponsesError, ValueError):
    """A tool call that is not of the tool asked for, that lacks what the other form needs, or of no registered tool.

    Attributes:
        tool: the tool, as the ``type`` of its items, or ``None`` when it is not known.
        call_id: the call, shortened, or ``None`` when it has no id.
    """

    def __init__(self, problem: str, *, tool: str | None = None, call_id: str | None = None) -> None:
        self.tool = tool
        self.call_id = None if call_id is None else clean_message(call_id, 60)
        where = " ".join(part for part in (tool, self.call_id and repr(self.call_id)) if part)
        super().__init__(f"{where}: {problem}" if where else problem)


class StatusProgressionError(ResponsesError, ValueError):
    """A call's status that cannot follow the one before.

    Attributes:
        tool: the tool, as the ``type`` of its items.
        before: the status it had, or ``None`` when it had none.
        after: the status it should have had next, shortened.
        call_id: the call, shortened, or ``None`` when it has no id.
    """

    def __init__(self, *, tool: str, before: str | None, after: str, call_id: str | None = None) -> None:
        self.tool = tool
        self.before = before
        self.after = clean_message(after, 40)
        self.call_id = None if call_id is None else clean_message(call_id, 60)
        name = tool if self.call_id is None else f"{tool} {self.call_id!r}"
        problem = f"cannot follow {before!r}" if before is not None else "is no status of this tool"
        super().__init__(f"{name}: {self.after!r} {problem}")


@attrs.frozen
class StatusProgression:
    """The steps that a tool's status takes.

    A call goes along the *path*, one step at a time, and from its last step to the *end*. It may break off at any
    step: a response that is cancelled or full ends calls that have hardly begun. A final status
    does not change. Repeating the same status is allowed.

    Attributes:
        path: the steps on the way, in order.
        end: the final status of a successful call.
        interruptions: the other final statuses.
    """

    path: tuple[str, ...]
    end: str = "completed"
    interruptions: frozenset[str] = frozenset({"incomplete"})

    @property
    def words(self) -> frozenset[str]:
        """All the statuses that there are."""
        return frozenset({*self.path, self.end, *self.interruptions})

    def allows(self, before: str | None, after: str) -> bool:
        """Return whether *after* may follow *before*. Anything may follow an unknown status."""
        if after not in self.words:
            return False
        if before is None or before == after:
            return True
        if before not in self.path:
            return False
        following = (*self.path, self.end)[self.path.index(before) + 1]
        return after == following or after in self.interruptions

    def check(self, before: str | None, after: str, *, tool: str, call_id: str | None = None) -> None:
        """Refuse an impossible step.

        Raises:
            StatusProgressionError: a call that was *before* cannot next be *after*.
        """
        if not self.allows(before, after):
            raise StatusProgressionError(
                tool=tool, before=before if after in self.words else None, after=after, call_id=call_id
            )


SEARCHING: Final = StatusProgression(
    ("in_progress", "searching"), interruptions=frozenset({"incomplete", "failed"})
)
"""Of searches: ``in_progress -> searching -> completed``."""
RUNNING: Final = StatusProgression(("in_progress",))
"""Of functions and most other tools: ``in_progress -> completed``."""
