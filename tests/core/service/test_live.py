"""Against real servers, where some are running: ``CROSSWALK_TEST_VLLM_URL``, ``CROSSWALK_TEST_LLAMACPP_URL``.

They serve the tiny scripted model. The last message chooses its script.
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
    ChatResponse,
    ContextOverflowError,
    FinishReason,
    ImagePart,
    InvalidRequestError,
    ModelUnavailableError,
    StreamEvent,
    TextPart,
    ToolCall,
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
    return Endpoint(request.param, model="tiny", base_url=url, takes_media=False)


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


# A conversation that began elsewhere, and did not go well: nothing of it may make the server refuse it.

BROKEN = '{"city": "Par'
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IDS = ("toolu_01A09q90qw90lq917835lq9", "D681PevKs", "functions.get_weather:0", "call_0")


def called(*ids: str, arguments: str = '{"city": "Paris", "unit": "celsius"}') -> list[ChatMessage]:
    calls = [ToolCall(id, "get_weather", arguments) for id in ids]
    return [
        ChatMessage.assistant(None, tool_calls=calls),
        *(ChatMessage.tool_result(id, "18 degrees", name="get_weather") for id in ids),
    ]


REFUSED = ChatResponse.refused("I would rather not.", model="m")
CONVERSATIONS: dict[str, list[Any]] = {
    "a broken call": called("call_1", arguments=BROKEN),
    "a call that is no object": called("call_1", arguments="[1]"),
    "a call without arguments": called("call_1", arguments=""),
    "ids of three other providers, and one made up": called(*IDS),
    "the same ids twice": [*called("call_0"), ChatMessage.assistant("18."), *called("call_0")],
    "a refusal": [REFUSED],
    "an empty turn": [ChatMessage.assistant("")],
    "an empty turn behind a result": [*called("call_1"), ChatMessage.assistant("")],
    "an answer that failed": [
        ChatResponse.error("cut", model="m", message=ChatMessage.assistant("Once upon"))
    ],
    "an image for a result, to a model of texts": [
        *called("call_1")[:1],
        ChatMessage.tool_result("call_1", [TextPart("Look."), ImagePart(data=PNG)], name="get_weather"),
    ],
    "a call that nobody ran": called("call_1", "call_2")[:2],
    "a result that came late": [*called("call_1")[:1], ChatMessage.user("Well?"), *called("call_1")[1:]],
    "a call that was cut": [
        ChatResponse.error("cut", model="m", message=called("call_1", arguments=BROKEN)[0])
    ],
    "the system in the middle": [ChatMessage.assistant("Hm."), ChatMessage.system("Be brief.")],
    "empty parts": [
        ChatMessage.assistant("Hm."),
        ChatMessage.user([TextPart(""), TextPart("well"), TextPart("")]),
    ],
}


@pytest.mark.parametrize("turns", CONVERSATIONS.values(), ids=CONVERSATIONS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_conversation_from_elsewhere_goes_on(endpoint: Endpoint, turns: list[Any], stream: bool) -> None:
    last = ChatMessage.user("Please answer. mode:hello.")
    request = ChatRequest(
        [ChatMessage.user("Hi."), *turns, last], temperature=0, max_tokens=40, tools=[WEATHER], stream=stream
    )
    answer = complete(endpoint, request)
    assert [attempt.outcome for attempt in answer.attempts] == ["success"]
    assert answer.text or answer.reasoning  # to a parser of reasoning all of it is that


def test_a_model_that_talks_first(endpoint: Endpoint) -> None:
    for dialect in (endpoint.provider, "anthropic"):
        other = attrs.evolve(endpoint, provider=dialect, api_key="none")
        turns = [ChatMessage.assistant("How can I help?"), ChatMessage.user("Please answer. mode:hello.")]
        answer = complete(other, ChatRequest(turns, max_tokens=20))
        assert [attempt.outcome for attempt in answer.attempts] == ["success"]


def test_an_image_that_the_model_cannot_be_shown(endpoint: Endpoint) -> None:
    """It is not a failure of the server, which is not asked again."""
    turn = ChatMessage.user([TextPart("mode:hello."), ImagePart(data=PNG)])
    with pytest.raises(InvalidRequestError) as raised:
        complete(attrs.evolve(endpoint, takes_media=True), ChatRequest([turn]))
    assert len(raised.value.response.attempts) == 1


def test_many_answers_over_connections_that_the_server_may_close(endpoint: Endpoint) -> None:
    """Some servers close one behind a stream: that costs no attempt."""

    async def work(service: LLMService) -> list[str]:
        outcomes: list[str] = []
        for _ in range(10):
            async with service.stream(asking("hello", max_tokens=5)) as stream:
                async for _event in stream:
                    pass
            whole = await service.complete(asking("hello", max_tokens=2))
            outcomes += [a.outcome for a in (*stream.response.attempts, *whole.attempts)]
        return outcomes

    assert use(endpoint, work) == ["success"] * 20


def test_a_call_that_the_server_itself_has_cut_goes_back(endpoint: Endpoint) -> None:
    """A small model's broken call, and one that the limit of tokens cut, each reported and asked again."""
    for options in ({"max_tokens": 200}, {"max_tokens": 30}):
        asked = asking("badtool", tools=[WEATHER], **options)
        answer = complete(endpoint, asked)
        results = [
            ChatMessage.tool_result(call.id, "the arguments are no JSON") for call in answer.tool_calls
        ]
        again = asked.with_turns(answer, *results, ChatMessage.user("Please answer. mode:hello."))
        last = complete(endpoint, again)
        assert last.text or last.reasoning
        assert [attempt.outcome for attempt in last.attempts] == ["success"]


@pytest.mark.parametrize("turns", CONVERSATIONS.values(), ids=CONVERSATIONS)
@pytest.mark.parametrize("dialect", ["openai_responses", "anthropic"])
def test_it_goes_on_in_the_servers_other_dialects(endpoint: Endpoint, dialect: str, turns: list[Any]) -> None:
    other = attrs.evolve(endpoint, provider=dialect, api_key="none")
    last = ChatMessage.user("Please answer. mode:hello.")
    request = ChatRequest(
        [ChatMessage.user("Hi."), *turns, last], temperature=0, max_tokens=40, tools=[WEATHER]
    )
    answer = complete(other, request)
    assert [attempt.outcome for attempt in answer.attempts] == ["success"]
    assert answer.text or answer.reasoning  # to a parser of reasoning all of it is that


@pytest.mark.parametrize("mode", ["think", "tool", "thinktool"])
def test_what_the_responses_api_said_goes_back_to_it(endpoint: Endpoint, mode: str) -> None:
    other = attrs.evolve(endpoint, provider="openai_responses", api_key="none")
    asked = asking(mode, tools=[WEATHER], max_tokens=200)
    answer = complete(other, asked)
    results = [ChatMessage.tool_result(call.id, "18 degrees") for call in answer.tool_calls]
    again = asked.with_turns(answer, *results, ChatMessage.user("Please answer. mode:hello."))
    assert complete(other, again).finish_reason in (FinishReason.STOP, FinishReason.LENGTH)
