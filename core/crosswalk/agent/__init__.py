"""Conversations, tools and agents on top of the service.

- :class:`ChatAgent` and :class:`AsyncChatAgent`: the next answer of a conversation, whole or as it comes.
- :class:`ChatSession`: a conversation that is saved, resumed, edited and trimmed; a :class:`SessionStore` keeps many.
- :func:`tool`, :class:`Tool`: typed functions that a model may call; :class:`ToolRunner` runs them.
- :class:`Agent`: asks, runs tools and asks again, turn by turn; an :class:`AgentRun` keeps what was done.
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
