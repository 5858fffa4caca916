"""An agent with two tools against real servers, where some are running (see ``tests/core/service/test_live.py``)."""

from __future__ import annotations

import asyncio
import os

import pytest

from crosswalk.agent import Agent, AgentResponse, ChatConfig, ToolOutcome
from crosswalk.config import Settings
from crosswalk.service import Endpoint, LLMService

URLS = {
    "vllm": os.environ.get("CROSSWALK_TEST_VLLM_URL"),
    "llamacpp": os.environ.get("CROSSWALK_TEST_LLAMACPP_URL"),
}


def get_weather(city: str, unit: str) -> dict[str, object]:
    """The weather of a city."""
    return {"city": city, "degrees": 18, "unit": unit}


def get_time(zone: str) -> str:
    """The time in a zone."""
    return f"12:00 in {zone}"


@pytest.mark.parametrize("provider", URLS)
def test_an_agent_with_two_tools(provider: str) -> None:
    """The tiny model calls one tool or several, by seed. Their results go back, and the server reads them."""
    url = URLS[provider]
    if not url:
        pytest.skip(f"no server: CROSSWALK_TEST_{provider.upper()}_URL is not set")

    async def run(seed: int) -> AgentResponse:
        config = ChatConfig(temperature=1.0, seed=seed, max_tokens=200)
        endpoint = Endpoint(provider, model="tiny", base_url=url)
        options = {"settings": Settings(), "client_options": {"verify": False}}
        async with LLMService(endpoint, **options) as service:
            agent = Agent(service, [get_weather, get_time], config=config, max_turns=2)
            return await agent.answer("Please answer. mode:para.")

    called = set()
    for seed in range(1, 9):
        first, *later = asyncio.run(run(seed)).turns
        called |= {result.call.name for result in first.tool_results}
        assert all(result.outcome is ToolOutcome.OK for result in first.tool_results)
        assert all(turn.response.error_info is None for turn in later)
        if called == {"get_weather", "get_time"}:
            return
    pytest.fail(f"only {called} were called")
