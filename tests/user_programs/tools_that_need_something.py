"""Tools with dependencies of the program, and an answer of a type."""

from __future__ import annotations

import attrs

from crosswalk.agent import SyncAgent, ToolContext, tool
from crosswalk.service import SyncLLMService


@attrs.define
class Shop:
    prices: dict[str, float]


@attrs.frozen
class Offer:
    """What we offer."""

    item: str
    price: float


@tool
def price(context: ToolContext[Shop], item: str) -> float:
    """The price of an item."""
    return context.deps.prices[item]


agent = SyncAgent(SyncLLMService("vllm"), tools=[price], output_type=Offer)
answer = agent.answer("What is tea?", deps=Shop({"tea": 2.5}))
if (offer := answer.value) is not None:
    print(offer.item.upper(), offer.price * 2)
for turn in answer.turns:
    print(turn.response.text, [call.name for call in turn.response.tool_calls])
