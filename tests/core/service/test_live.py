"""Against real servers, where some are running: ``CROSSWALK_TEST_VLLM_URL``, ``CROSSWALK_TEST_LLAMACPP_URL``.

They serve the tiny scripted model, whose script the last message chooses.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest

from crosswalk import (
    ChatMessage,
    ContextOverflowError,
    FinishReason,
    ModelUnavailableError,
    StreamEvent,
)
from crosswalk.config import Settings
from crosswalk.service import ChatRequest, Endpoint, LLMService, ToolDefinition

URLS = {
    "vllm": os.environ.get("CROSSWALK_TEST_VLLM_URL"),
    "llamacpp": os.environ.get("CROSSWALK_TEST_LLAMACPP_URL"),
}
WEATHER = ToolDefinition(
    "get_weather",
    "Weather of a city",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
        "required": ["city", "unit"],
        "additionalProperties": False,
    },
)


@pytest.fixture(params=URLS)
def endpoint(request: pytest.FixtureRequest) -> Endpoint:
    url = URLS[request.param]
    if not url:
        pytest.skip(f"no server: CROSSWALK_TEST_{request.param.upper()}_URL is not set")
    return Endpoint(request.param, model="tiny", base_url=url)


def asking(mode: str, **options: Any) -> ChatRequest:
    return ChatRequest(f"Please answer. mode:{mode}.", **{"temperature": 0, "max_tokens": 80, **options})


def use(endpoint: Endpoint, work: Callable[[LLMService], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with LLMService(endpoint, settings=Settings(), client_options={"verify": False}) as service:
            return await work(service)

    return asyncio.run(run())


def complete(endpoint: Endpoint, request: ChatRequest) -> Any:
    return use(endpoint, lambda service: service.complete(request))


def test_whole_and_streamed(endpoint: Endpoint) -> None:
    whole = complete(endpoint, asking("hello"))

    async def work(service: LLMService) -> tuple[list[StreamEvent], Any]:
        async with service.stream(asking("hello")) as stream:
            return [event async for event in stream], stream.response

    events, streamed = use(endpoint, work)
    assert streamed.text == whole.text == "".join(e.delta.content_delta or "" for e in events if e.delta)
    assert streamed.usage.total_tokens == whole.usage.total_tokens > 0
    assert streamed.metadata.time_to_first_token <= streamed.metadata.request_duration
    assert events[-1].event_type == "response.completed"


def test_reasoning_and_options(endpoint: Endpoint) -> None:
    request = asking("think", top_k=5, top_p=0.9, seed=1, stop=["STOPHERE"], reasoning_effort="low")
    response = complete(endpoint, request)
    assert response.reasoning
    assert response.text


def test_a_round_of_tools(endpoint: Endpoint) -> None:
    request = asking("tool", tools=[WEATHER], tool_choice="auto")
    answer = complete(endpoint, request)
    assert answer.finish_reason is FinishReason.TOOL_CALLS
    (call,) = answer.tool_calls
    assert call.parsed()["city"]
    result = ChatMessage.tool_result(call.id, '{"temperature": 20}')
    after = complete(endpoint, request.with_turns(answer, result, ChatMessage.user("mode:hello.")))
    assert after.text or after.reasoning  # what the tiny model says may be taken for either


def test_a_value(endpoint: Endpoint) -> None:
    @attrs.frozen
    class Out:
        answer: int
        ok: bool

    # Without thoughts, where the server looks for them: the tiny model never ends one.
    options = {"vllm": {"chat_template_kwargs": {"enable_thinking": False}}}
    request = asking("json", temperature=1, seed=4, provider_options=options)
    found = use(endpoint, lambda service: service.complete_json(request, Out))
    assert isinstance(found.value, Out)
    assert found.response.usage.completion_tokens > 0


def test_what_does_not_fit(endpoint: Endpoint) -> None:
    with pytest.raises(ContextOverflowError) as raised:
        complete(endpoint, ChatRequest("word " * 9000))
    assert len(raised.value.response.attempts) == 1


def test_a_model_that_is_not_there(endpoint: Endpoint) -> None:
    if endpoint.provider == "llamacpp":
        pytest.skip("llama.cpp has one model and answers whatever it is asked for")
    with pytest.raises(ModelUnavailableError):
        complete(endpoint, asking("hello", model="nobody"))


def test_leaving_in_mid_stream(endpoint: Endpoint) -> None:
    """The server is free again for the next one."""

    async def work(service: LLMService) -> Any:
        async with service.stream(asking("loop", max_tokens=1500)) as stream:
            async for event in stream:
                if event.event_type not in ("response.created", "response.in_progress"):
                    break
        return stream.response, await service.complete(asking("hello"))

    left, after = use(endpoint, work)
    assert left.finish_reason is FinishReason.CANCELLED
    assert left.text or left.reasoning
    assert after.finish_reason is FinishReason.STOP
