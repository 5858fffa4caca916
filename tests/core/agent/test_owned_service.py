"""An agent closes the service that it made of an endpoint, and leaves alone one that it was given."""

from __future__ import annotations

import asyncio

from crosswalk.agent import Agent, AsyncChatAgent, ChatAgent, SyncAgent
from crosswalk.service import Endpoint, LLMService, SyncLLMService
from crosswalk.testing import Answer, ReplayServer


def test_a_given_service_stays_open(server: ReplayServer) -> None:
    server.add(Answer.text("Hi"), times=None)
    with SyncLLMService(Endpoint("vllm", model="m", base_url=server.url)) as service:
        ChatAgent(service).close()
        SyncAgent(service).close()
        assert service.complete("Hi").text == "Hi"


def test_so_does_one_of_an_event_loop(server: ReplayServer) -> None:
    server.add(Answer.text("Hi"), times=None)

    async def main() -> None:
        async with LLMService(Endpoint("vllm", model="m", base_url=server.url)) as service:
            await Agent(service).aclose()
            await AsyncChatAgent(service).aclose()
            assert (await service.complete("Hi")).text == "Hi"
            assert service.stream("Hi").sent is None  # nothing is sent before the first event is asked for

    asyncio.run(main())
