"""A server to ask, and the proof that nothing of a test outlives it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest

from crosswalk.agent import Agent, AgentResponse
from crosswalk.service import Endpoint, LLMService, RetryPolicy, SyncLLMService
from crosswalk.testing.replay import Answer, ReplayServer
from strict_answers import every_api

T = TypeVar("T")
Run = Callable[[Callable[[LLMService], Awaitable[Any]]], Any]
Said = Callable[..., Answer]


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    """A server without answers, which takes no conversation that a real one would refuse.

    After the test no thread is left that was not there before, and no connection.
    """
    before = set(threading.enumerate())
    with every_api() as server:
        yield server
        server.wait_for(lambda server: not server.open_connections)
    for thread in set(threading.enumerate()) - before:
        thread.join(60)  # a function that still ran when its turn was left ends by itself
    assert set(threading.enumerate()) <= before


@pytest.fixture
def endpoint(server: ReplayServer) -> Endpoint:
    return Endpoint("vllm", model="m", base_url=server.url)


@pytest.fixture
def run(endpoint: Endpoint) -> Run:
    """Runs a coroutine function with a service that asks the server. Nothing may be left of it."""

    def run(use: Callable[[LLMService], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            # Without certificates, whose loading would take most of a test's time.
            options = {"retry": RetryPolicy(attempts=1), "client_options": {"verify": False}}
            async with asyncio.timeout(60), LLMService(endpoint, **options) as service:
                given = await use(service)
            for _ in range(5):
                await asyncio.sleep(0)  # generators that were left are closed by the event loop, in tasks
            assert asyncio.all_tasks() == {asyncio.current_task()}
            return given

        return asyncio.run(main())

    return run


@pytest.fixture
def said() -> Said:
    """Makes an answer in OpenAI's form: text, or calls as (id, name, arguments)."""

    def said(
        text: str | None = None,
        *calls: tuple[str, str, str],
        finish: str | None = None,
        **more: Any,
    ) -> Answer:
        tool_calls = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id, name, arguments in calls
        ]
        message = {"role": "assistant", "content": text, **more}
        choice = {
            "index": 0,
            "message": {**message, "tool_calls": tool_calls} if calls else message,
            "finish_reason": finish or ("tool_calls" if calls else "stop"),
        }
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        return Answer.of_json(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1767225600,
                "model": "m",
                "choices": [choice],
                "usage": usage,
            }
        )

    return said


@pytest.fixture
def service(endpoint: Endpoint) -> Iterator[SyncLLMService]:
    plain = {"verify": False}  # no certificates to load
    with SyncLLMService(endpoint, retry=RetryPolicy(attempts=1), client_options=plain) as service:
        yield service


def answered(run: Run, *tools: Any, messages: Any = "Hello?", **options: Any) -> AgentResponse:
    async def use(service: LLMService) -> AgentResponse:
        return await Agent(service, tools, **options).answer(messages)

    response: AgentResponse = run(use)
    return response
