"""Conversations, tools and agents on top of the service (seeds 003 and 004; design, section 7).

- :class:`ChatAgent` and :class:`AsyncChatAgent`: the next answer of a conversation, whole or as it comes.
- :class:`ChatSession`: a conversation that is saved and resumed.
- :func:`tool`, :class:`Tool`: typed functions that a model may call; :class:`ToolRunner` runs them.
- :class:`Agent`: asks, runs tools and asks again, turn by turn.
"""

from __future__ import annotations

from crosswalk.agent.agent import Agent
from crosswalk.agent.chat import AsyncChatAgent, ChatAgent, ChatConfig
from crosswalk.agent.errors import ToolDefinitionError, ToolError
from crosswalk.agent.result import ToolExecutionResult, ToolOutcome
from crosswalk.agent.runner import ToolRunner
from crosswalk.agent.session import SESSION_FORMAT_VERSION, ChatSession
from crosswalk.agent.tools import Tool, ToolRegistry, final_answer, tool
from crosswalk.agent.turn import AgentError, AgentOutcome, AgentResponse, AgentTurn, collect

__all__ = [
    "SESSION_FORMAT_VERSION",
    "Agent",
    "AgentError",
    "AgentOutcome",
    "AgentResponse",
    "AgentTurn",
    "AsyncChatAgent",
    "ChatAgent",
    "ChatConfig",
    "ChatSession",
    "Tool",
    "ToolDefinitionError",
    "ToolError",
    "ToolExecutionResult",
    "ToolOutcome",
    "ToolRegistry",
    "ToolRunner",
    "collect",
    "final_answer",
    "tool",
]
