"""An agent with tools, a session and limits."""

from __future__ import annotations

from pathlib import Path

from crosswalk import StreamEvent
from crosswalk.agent import (
    Agent,
    AgentTurn,
    ChatSession,
    SQLiteStore,
    SyncAgent,
    ToolError,
    UsageLimits,
    tool,
)
from crosswalk.service import Endpoint, LLMService, SyncLLMService


@tool
def price(item: str, count: int = 1) -> float:
    """The price of some items."""
    if count < 1:
        raise ToolError("at least one")
    return 2.5 * count


@tool
async def stock(item: str) -> dict[str, int]:
    """How many are left."""
    return {item: 3}


service = SyncLLMService(Endpoint("vllm", model="tiny"))
agent = SyncAgent(service, tools=[price, stock], limits=UsageLimits(tool_calls=5))
store = SQLiteStore(Path("sessions.db"))
session = store.load("ann")
response = agent.answer("What do three cost?", session=session)
print(response.final_output, response.usage.total_tokens)
store.save(session)
for turn in agent.run("And four?", session=ChatSession()):
    print(turn.response.text, turn.outcome)
    for result in turn.tool_results:
        print(result.call.name, result.output, result.error)
with agent.stream("And five?") as events:
    for event in events:
        match event:
            case StreamEvent(delta=delta) if delta is not None:
                print(delta.content_delta or "", end="")
            case AgentTurn(final_output=output):
                print(output)
            case _:
                pass


async def later() -> str:
    agent = Agent(LLMService("ollama"), tools=[price])
    answer = await agent.answer("What do three cost?")
    return answer.final_output or ""
