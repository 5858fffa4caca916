"""Values while they are written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from crosswalk import ConfigurationError, ProviderError, ResponseValidationError, ServerError
from crosswalk.service import (
    ChatRequest,
    Endpoint,
    JSONAnswerError,
    JSONStream,
    LLMService,
    RetryPolicy,
    SyncJSONStream,
    SyncLLMService,
)
from crosswalk.structured import Partial, ReasonCode, Schema, StructuredParser
from crosswalk.structured.response import RESPONSE_VERSIONS
from crosswalk.testing.exchange import Cut, Stall
from crosswalk.testing.replay import Answer, ReplayServer
from wires import chunk

Make = Callable[..., LLMService]
ASK = ChatRequest("The weather?")


@attrs.frozen
class Weather:
    """The weather somewhere."""

    city: str
    note: str = ""


PIECES = ['{"city": "Par', 'is", "no', 'te": "mild', ' and dry"}']
VALUES = [Weather("Paris", "mild"), Weather("Paris", "mild and dry")]
"""A default never stands for a note that has not come yet."""


def written(*pieces: str, finish: str = "stop", **more: Any) -> Answer:
    return Answer.of_events([*(chunk({"content": piece}) for piece in pieces), chunk({}, finish)])


def values(
    service: LLMService, kind: Any = Weather, **options: Any
) -> tuple[list[Any], JSONStream[Any], BaseException | None]:
    """The deltas, their stream, and the error that ended it."""
    error: BaseException | None = None
    seen: list[Any] = []

    async def run() -> JSONStream[Any]:
        nonlocal error
        async with asyncio.timeout(60), service, service.stream_json(ASK, kind, **options) as stream:
            try:
                async for value in stream:
                    seen.append(value)
            except Exception as raised:
                error = raised
        return stream

    return seen, asyncio.run(run()), error


@pytest.mark.parametrize("kind", [Weather, Schema(Weather), StructuredParser(Weather)])
def test_a_value_grows(server: ReplayServer, service_of: Make, kind: Any) -> None:
    server.add(written(*PIECES))
    seen, stream, error = values(service_of(server), kind)
    assert error is None
    # The last one is the whole value, which was there as a partial one before.
    assert seen == [*VALUES, VALUES[-1]]
    assert (stream.answer.value, stream.answer.response) == (VALUES[-1], stream.response)
    assert stream.response.text == "".join(PIECES)
    assert stream.answer.result.ok
    sent = server.requests[0].json()
    assert (sent["stream"], sent["response_format"]["json_schema"]["name"]) == (True, "Weather")


def test_a_value_of_a_json_schema(server: ReplayServer, service_of: Make) -> None:
    server.add(written(*PIECES))
    seen, stream, _ = values(service_of(server), {"type": "object"})
    assert seen[0] == {"city": "Par"}
    assert seen[-1] == stream.answer.value == {"city": "Paris", "note": "mild and dry"}


def test_the_final_text_of_a_responses_stream_replaces_the_streamed_one(
    server: ReplayServer, service_of: Make
) -> None:
    about = {"item_id": "msg_1", "output_index": 0}
    content = [{"type": "output_text", "text": '{"city": "Rome", "note": "dry"}'}]
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    pieces = [
        {
            "type": "response.output_text.delta",
            "content_index": 0,
            "delta": '{"city": "Oslo", "note": "", ',
            **about,
        },
        {"type": "response.output_item.done", "item": item, **about},
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [item]}},
    ]
    server.add(Answer.of_events(pieces, done=False))
    seen, stream, error = values(service_of(Endpoint("openai_responses", model="m", base_url=server.url)))
    assert (seen, error) == ([Weather("Oslo"), Weather("Rome", "dry"), Weather("Rome", "dry")], None)
    assert stream.response.text == '{"city": "Rome", "note": "dry"}'


def test_fields_are_there_before_there_is_a_value(server: ReplayServer, service_of: Make) -> None:
    server.add(written('{"city": "Par', 'is"', ', "note": "mild"}'))
    seen: list[Any] = []

    async def run() -> None:
        async with service_of(server) as service, service.stream_json(ASK, Forecast) as stream:
            assert stream.step is None
            async for value in stream:
                assert stream.step is not None
                seen.append((value.note, stream.step.fields, stream.step.final))

    asyncio.run(run())
    assert seen[0] == ("mild", {"city": "Paris", "note": "mild"}, {"$.city", "$.note"})
    assert [note for note, _, _ in seen] == ["mild", "mild"]


@attrs.frozen
class Forecast:
    city: str
    note: str


def test_the_schema_is_told_where_it_is_to_be(server: ReplayServer, service_of: Make) -> None:
    server.add(written(*PIECES))
    assert values(service_of(server), instruct=True)[2] is None
    assert server.requests[0].json()["messages"][0]["role"] == "system"
    with pytest.raises(ConfigurationError):
        service_of(server).stream_json(ASK, StructuredParser(RESPONSE_VERSIONS))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (written(*PIECES[:3], finish="length"), ReasonCode.TRUNCATED),
        (written(*PIECES, finish="guardrail_intervened"), ReasonCode.TRUNCATED),
        (written('{"city": "Paris", "note": 3}'), ReasonCode.SCHEMA_TYPE_ERROR),
        (written("I do not know."), ReasonCode.EXTRACTION_FAILED),
    ],
    ids=["cut", "unknown end", "wrong type", "no value"],
)
def test_the_whole_one_is_checked(
    server: ReplayServer, service_of: Make, answer: Answer, reason: ReasonCode
) -> None:
    """After any earlier events it is not an answer, and the earlier answer is there."""
    server.add(answer)
    _, stream, error = values(service_of(server))
    assert isinstance(error, JSONAnswerError)
    assert error.result.reason is reason
    assert error.response is stream.response
    with pytest.raises(JSONAnswerError):
        _ = stream.answer


def test_a_partial_one_where_the_caller_takes_it(server: ReplayServer, service_of: Make) -> None:
    server.add(written(*PIECES[:3], finish="length"))
    seen, stream, error = values(service_of(server), partial=Partial.ACCEPT)
    assert (seen[-1], error) == (Weather("Paris", "mild"), None)
    assert stream.answer.result.partial


def test_a_server_that_fails(server: ReplayServer, service_of: Make) -> None:
    server.add(written(*PIECES), Cut(after_events=3))
    seen, stream, error = values(service_of(server))
    assert seen == VALUES[:1]
    assert isinstance(error, ServerError)
    assert stream.response.error_info is not None
    with pytest.raises(ProviderError):
        _ = stream.answer


def test_what_is_void_does_not_count(server: ReplayServer, service_of: Make) -> None:
    server.add(written('{"city": "Rome", "note": "wet"', "}"), Cut(after_events=1)).add(written(*PIECES))
    retry = RetryPolicy(after_first_token=True, initial_seconds=0, max_seconds=0)
    seen, stream, error = values(service_of(server, retry=retry))
    assert seen == [Weather("Rome", "wet"), *VALUES, VALUES[-1]]
    assert error is None
    assert len(stream.response.attempts) == 2


def test_it_is_left_early(server: ReplayServer, service_of: Make) -> None:
    server.add(written(*PIECES), Stall(after_events=3))

    async def run() -> JSONStream[Weather]:
        async with service_of(server) as service, service.stream_json(ASK, Weather) as stream:
            assert await anext(stream) == VALUES[0]
            with pytest.raises(ResponseValidationError, match="not been read"):
                _ = stream.answer
        return stream

    stream = asyncio.run(run())
    assert stream.response.finish_reason == "cancelled"
    with pytest.raises(JSONAnswerError) as raised:
        _ = stream.answer
    assert raised.value.result.reason is ReasonCode.CANCELLED


def test_other_choices_are_none_of_it(server: ReplayServer, service_of: Make) -> None:
    events = [
        chunk({"content": '{"city": "Oslo"}'}, choice=1),
        *(chunk({"content": piece}) for piece in PIECES),
        chunk({}, "stop", choice=1),
        chunk({}, "stop"),
    ]
    server.add(Answer.of_events(events))
    assert values(service_of(server))[0] == [*VALUES, VALUES[-1]]


def test_without_await(server: ReplayServer) -> None:
    server.add(written(*PIECES)).add(written(*PIECES), Stall(after_events=3))
    endpoint = Endpoint("vllm", model="m", base_url=server.url)
    with SyncLLMService(endpoint, client_options={"verify": False}) as service:
        with service.stream_json(ASK, Weather) as stream:
            assert stream.step is None
            assert list(stream) == [*VALUES, VALUES[-1]]
        assert (stream.answer.value, stream.answer.response) == (VALUES[-1], stream.response)
        left: SyncJSONStream[Weather]
        with service.stream_json(ASK, Weather) as left:
            assert next(left) == VALUES[0]
        assert left.response.finish_reason == "cancelled"
