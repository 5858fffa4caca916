"""A finish word for a failed generation: the paid part is kept, and no other server is asked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator

import attrs
import pytest

from crosswalk import ChatResponse, ProviderError
from crosswalk.service import ChatRequest, Endpoint, LLMService
from crosswalk.testing.replay import Answer, ReplayServer
from wires import body, chunk

Make = Callable[..., LLMService]
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def gemini(word: str) -> Answer:
    candidate = {"content": {"parts": [{"text": "Hi"}]}, "finishReason": word, "index": 0}
    counts = {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}
    return Answer.of_json({"candidates": [candidate], "usageMetadata": counts, "modelVersion": "m"})


def chat(word: str) -> Answer:
    return Answer.of_json({**body({"content": "Hi"}, word), "usage": USAGE})


@pytest.fixture
def other() -> Iterator[ReplayServer]:
    with ReplayServer() as running:
        running.add(Answer.of_json(body({"content": "No."})))
        yield running


async def complete(service: LLMService) -> ChatResponse:
    async with service:
        return await service.complete(ChatRequest("Hello"))


async def streamed(service: LLMService) -> ChatResponse:
    async with service, service.stream(ChatRequest("Hello")) as events:
        *_, last = [event async for event in events]
    assert last.event_type == "response.error"
    return events.response


@pytest.mark.parametrize(
    ("provider", "answer", "word"),
    [
        *(("gemini", gemini(word), word) for word in ("NO_IMAGE", "IMAGE_OTHER", "OTHER")),
        ("gemini", gemini("MALFORMED_RESPONSE"), "MALFORMED_RESPONSE"),  # a retry may help, and would be paid
        ("fireworks", chat("malformed_function_call"), "malformed_function_call"),
        ("deepseek", chat("insufficient_system_resource"), "insufficient_system_resource"),
    ],
)
def test_an_answer_that_was_counted_is_not_paid_twice(
    server: ReplayServer, other: ReplayServer, service_of: Make, provider: str, answer: Answer, word: str
) -> None:
    server.add(answer)
    first = Endpoint(provider, model="m", base_url=server.url, api_key="k")
    with pytest.raises(ProviderError) as raised:
        asyncio.run(complete(service_of(first, other)))
    response = raised.value.response
    assert (response.finish_reason, response.raw_finish_reason) == ("error", word)
    assert (response.text, response.usage.total_tokens) == ("Hi", 5)
    assert (len(server.requests), len(other.requests)) == (1, 0)


def test_nor_is_a_stream(server: ReplayServer, other: ReplayServer, service_of: Make) -> None:
    server.add(
        Answer.of_events([chunk({}, "malformed_function_call"), {**chunk({}), "choices": [], "usage": USAGE}])
    )
    first = Endpoint("fireworks", model="m", base_url=server.url, api_key="k")
    response = asyncio.run(streamed(service_of(first, other)))
    assert (response.finish_reason, response.usage.total_tokens) == ("error", 5)
    assert (len(server.requests), len(other.requests)) == (1, 0)


@pytest.mark.parametrize("has_counts", [False, True])
def test_without_counts_or_if_the_server_asks_for_it_another_is_asked(
    server: ReplayServer, other: ReplayServer, service_of: Make, has_counts: bool
) -> None:
    failed = body({"content": "Hi"}, "insufficient_system_resource")
    server.add(
        attrs.evolve(Answer.of_json({**failed, "usage": USAGE}), headers={"x-should-retry": "true"})
        if has_counts
        else Answer.of_json(failed),
        times=3,
    )
    first = Endpoint("deepseek", model="m", base_url=server.url, api_key="k")
    response = asyncio.run(complete(service_of(first, other)))
    assert response.text == "No."
    assert len(server.requests) > 1


def test_the_log_line_names_a_word_that_nobody_knows(
    server: ReplayServer, service_of: Make, caplog: pytest.LogCaptureFixture
) -> None:
    server.add(Answer.of_json(body({"content": "Hi"}, "bored")))
    server.add(Answer.of_json(body({"content": "Hi"})))
    with caplog.at_level(logging.DEBUG, "crosswalk.service"):
        for _ in range(2):
            asyncio.run(complete(service_of(server)))
    unknown, known = [one for one in caplog.records if one.getMessage().startswith("call ended")]
    assert unknown.getMessage() == "call ended: stop (unknown finish reason 'bored')"
    assert (unknown.levelno, vars(unknown)["crosswalk.unknown_finish_reason"]) == (logging.INFO, "bored")
    assert (known.getMessage(), known.levelno) == ("call ended: stop", logging.DEBUG)


def test_the_log_line_names_a_word_of_the_second_answer(
    server: ReplayServer, service_of: Make, caplog: pytest.LogCaptureFixture
) -> None:
    answer = body({"content": "Hi"})
    answer["choices"].append({**answer["choices"][0], "index": 1, "finish_reason": "bored"})
    server.add(Answer.of_json(answer))
    with caplog.at_level(logging.DEBUG, "crosswalk.service"):
        asyncio.run(complete(service_of(server)))
    (ended,) = [one for one in caplog.records if one.getMessage().startswith("call ended")]
    assert ended.getMessage() == "call ended: stop (unknown finish reason 'bored')"
    assert (ended.levelno, vars(ended)["crosswalk.unknown_finish_reason"]) == (logging.INFO, "bored")
