"""Conversations, tools and agents on top of the service.

- :class:`ChatAgent` and :class:`AsyncChatAgent` get the next answer of a conversation, whole or streamed.
- :class:`ChatSession` is a conversation that you can save, resume, edit and trim. A :class:`SessionStore` holds many.
- :func:`tool` and :class:`Tool` make typed functions that a model may call. :class:`ToolRunner` runs them.
- :class:`Agent` asks, runs tools and asks again until it has an answer. An :class:`AgentRun` records what happened.
  :class:`SyncAgent` is the same without ``await``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import face

if TYPE_CHECKING:
    from crosswalk.agent.agent import (
        Agent as Agent,
        AgentRun as AgentRun,
        RunOptions as RunOptions,
        collect as collect,
    )
    from crosswalk.agent.chat import (
        RETRIED as RETRIED,
        AsyncChatAgent as AsyncChatAgent,
        AsyncChatStream as AsyncChatStream,
        ChatAgent as ChatAgent,
        ChatConfig as ChatConfig,
        ChatStream as ChatStream,
    )
    from crosswalk.agent.loop import (
        UsageLimits as UsageLimits,
    )
    from crosswalk.agent.mcp import (
        mcp_tools as mcp_tools,
    )
    from crosswalk.agent.otel import (
        AgentTelemetry as AgentTelemetry,
    )
    from crosswalk.agent.results import (
        ToolError as ToolError,
        ToolExecutionResult as ToolExecutionResult,
        ToolExecutionStart as ToolExecutionStart,
        ToolOutcome as ToolOutcome,
    )
    from crosswalk.agent.runner import (
        Approve as Approve,
        ToolRunner as ToolRunner,
    )
    from crosswalk.agent.session import (
        SESSION_FORMAT_VERSION as SESSION_FORMAT_VERSION,
        ChatSession as ChatSession,
        Group as Group,
        Trimming as Trimming,
        estimated_tokens as estimated_tokens,
        keep_tokens as keep_tokens,
        keep_turns as keep_turns,
    )
    from crosswalk.agent.store import (
        DirectoryStore as DirectoryStore,
        SessionConflictError as SessionConflictError,
        SessionStore as SessionStore,
        SQLiteStore as SQLiteStore,
    )
    from crosswalk.agent.sync import (
        SyncAgent as SyncAgent,
        SyncAgentRun as SyncAgentRun,
    )
    from crosswalk.agent.tools import (
        Tool as Tool,
        ToolContext as ToolContext,
        ToolDefinitionError as ToolDefinitionError,
        ToolRegistry as ToolRegistry,
        final_answer as final_answer,
        tool as tool,
    )
    from crosswalk.agent.turn import (
        AgentError as AgentError,
        AgentOutcome as AgentOutcome,
        AgentResponse as AgentResponse,
        AgentTurn as AgentTurn,
    )
else:
    __getattr__, __dir__ = face(
        __name__,
        {
            "crosswalk.agent.agent": "Agent AgentRun RunOptions collect",
            "crosswalk.agent.chat": (
                "AsyncChatAgent AsyncChatStream ChatAgent ChatConfig ChatStream RETRIED"
            ),
            "crosswalk.agent.loop": "UsageLimits",
            "crosswalk.agent.mcp": "mcp_tools",
            "crosswalk.agent.otel": "AgentTelemetry",
            "crosswalk.agent.results": "ToolError ToolExecutionResult ToolExecutionStart ToolOutcome",
            "crosswalk.agent.runner": "Approve ToolRunner",
            "crosswalk.agent.session": (
                "ChatSession Group SESSION_FORMAT_VERSION Trimming estimated_tokens keep_tokens keep_turns"
            ),
            "crosswalk.agent.store": "DirectoryStore SQLiteStore SessionConflictError SessionStore",
            "crosswalk.agent.sync": "SyncAgent SyncAgentRun",
            "crosswalk.agent.tools": ("Tool ToolContext ToolDefinitionError ToolRegistry final_answer tool"),
            "crosswalk.agent.turn": "AgentError AgentOutcome AgentResponse AgentTurn",
        },
    )
