"""What can go wrong with a tool call.

ResponsesError
├── ToolCallError (ValueError)            a call that is not of the tool asked for, or of no registered one
└── StatusProgressionError (ValueError)   a status that cannot follow the one before
"""

from __future__ import annotations

from crosswalk.responses.errors import ResponsesError
from crosswalk.text import clean_message

__all__ = ["StatusProgressionError", "ToolCallError"]


class ToolCallError(ResponsesError, ValueError):
    """A tool call that is not of the tool asked for, that lacks what the other form needs, or of no registered tool.

    Attributes:
        tool: the tool, as the ``type`` of its items; ``None`` when it is not known.
        call_id: the call, shortened; ``None`` when it has no id.
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
        before: the status it had; ``None`` when it had none.
        after: the status it should have had next, shortened.
        call_id: the call, shortened; ``None`` when it has no id.
    """

    def __init__(self, *, tool: str, before: str | None, after: str, call_id: str | None = None) -> None:
        self.tool = tool
        self.before = before
        self.after = clean_message(after, 40)
        self.call_id = None if call_id is None else clean_message(call_id, 60)
        name = tool if self.call_id is None else f"{tool} {self.call_id!r}"
        problem = f"cannot follow {before!r}" if before is not None else "is no status of this tool"
        super().__init__(f"{name}: {self.after!r} {problem}")
