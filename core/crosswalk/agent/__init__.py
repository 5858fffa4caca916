"""Conversations, tools and agents on top of the service.

- :class:`ChatAgent` and :class:`AsyncChatAgent` get the next answer of a conversation, whole or streamed.
- :class:`ChatSession` is a conversation that you can save, resume, edit and trim. A :class:`SessionStore` holds many.
- :func:`tool` and :class:`Tool` make typed functions that a model may call. :class:`ToolRunner` runs them.
- :class:`Agent` asks, runs tools and asks again until it has an answer. An :class:`AgentRun` records what happened.
  :class:`SyncAgent` is the same without ``await``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosswalk.lazy import lazy

if TYPE_CHECKING:
    from crosswalk.agent.agent import *
    from crosswalk.agent.chat import *
    from crosswalk.agent.mcp import *
    from crosswalk.agent.otel import *
    from crosswalk.agent.plan import *
    from crosswalk.agent.results import *
    from crosswalk.agent.run import *
    from crosswalk.agent.runner import *
    from crosswalk.agent.session import *
    from crosswalk.agent.session_json import *
    from crosswalk.agent.signature import *
    from crosswalk.agent.store import *
    from crosswalk.agent.sync import *
    from crosswalk.agent.tools import *
    from crosswalk.agent.trimming import *
    from crosswalk.agent.turn import *
else:
    __getattr__, __dir__ = lazy(
        __name__,
        "agent chat mcp otel plan results run runner session session_json signature store sync tools trimming turn",
    )
