"""What can go wrong around tools and sessions; ``AgentError`` stands beside the run that it holds, in ``turn``."""

from __future__ import annotations

from crosswalk.errors import CrosswalkError

__all__ = ["SessionConflictError", "ToolDefinitionError", "ToolError"]


class SessionConflictError(CrosswalkError):
    """A session was saved by somebody else since it was loaded; nothing was written.

    Load it again, and do anew what was done.

    Attributes:
        id: the session's name.
    """

    def __init__(self, id: str) -> None:
        super().__init__("the session was saved by somebody else since it was loaded")
        self.id = id


class ToolDefinitionError(CrosswalkError, TypeError):
    """A function's signature cannot be described to a model, or two tools have one name.

    Attributes:
        tool: the tool's name.
        parameter: the parameter that is at fault; ``None`` when it is none of them.
    """

    def __init__(self, message: str, *, tool: str, parameter: str | None = None) -> None:
        super().__init__(message)
        self.tool = tool
        self.parameter = parameter


class ToolError(CrosswalkError):
    """Raised by a tool's own code: what it says is given to the model, as it is, as the call's result."""
