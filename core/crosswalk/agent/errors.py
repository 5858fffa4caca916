"""What can go wrong around tools and agents.

ToolDefinitionError (TypeError)   a function cannot be a tool
ToolError                         a tool tells the model that it cannot do what was asked
AgentError                        an agent's run ended without an answer
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.errors import CrosswalkError

if TYPE_CHECKING:
    from crosswalk.agent.turn import AgentResponse

__all__ = ["AgentError", "ToolDefinitionError", "ToolError"]


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


class AgentError(CrosswalkError):
    """A run ended without an answer; raised by ``AgentResponse.raise_for_outcome()``.

    Attributes:
        response: all turns of the run.
    """

    def __init__(self, message: str, *, response: AgentResponse) -> None:
        super().__init__(message)
        self.response = response
