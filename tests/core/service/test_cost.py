"""What a call does: counted in calls of Python's functions, from the request to the answer, those of libraries included."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from crosswalk.config import Settings
from crosswalk.service import ChatRequest, Endpoint, LLMService, SyncLLMService
from crosswalk.testing import Answer, ReplayServer
from wires import body

ASK = ChatRequest("Hi")
BEFORE = 2
"""The calls before the one that is counted: they open the connection, and do what is done once for a service."""
MOST = 1_100


@contextmanager
def counted() -> Iterator[list[int]]:
    """The number of the calls in the block, as the one item of the list."""
    number, before = [0], sys.getprofile()

    def note(_: object, event: str, __: Any) -> None:
        number[0] += event == "call"

    sys.setprofile(note)
    try:
        yield number
    finally:
        sys.setprofile(before)


@pytest.fixture
def endpoint(server: ReplayServer) -> Endpoint:
    for _ in range(BEFORE + 1):
        server.add(Answer.of_json(body({"content": "Hello."})))
    return Endpoint("vllm", model="m", base_url=server.url)


def test_a_blocking_call_takes_few_function_calls(endpoint: Endpoint) -> None:
    with SyncLLMService(endpoint, settings=Settings()) as service:
        for _ in range(BEFORE):
            service.complete(ASK)
        with counted() as number:
            answer = service.complete(ASK)
    assert (answer.text, number[0] <= MOST) == ("Hello.", True), number


@pytest.mark.skipif(importlib.util.find_spec("aiohttp") is None, reason="aiohttp is not installed")
def test_a_call_over_aiohttp_takes_few_function_calls(endpoint: Endpoint) -> None:
    async def asked() -> tuple[str, int]:
        async with LLMService(endpoint, settings=Settings(), transport="aiohttp") as service:
            for _ in range(BEFORE):
                await service.complete(ASK)
            with counted() as number:
                answer = await service.complete(ASK)
        return answer.text, number[0]

    text, number = asyncio.run(asked())
    assert (text, number <= MOST) == ("Hello.", True), number
