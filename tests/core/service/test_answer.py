"""A value and the response that it came from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from crosswalk import ConfigurationError
from crosswalk.service import (
    ChatRequest,
    Endpoint,
    JSONAnswer,
    JSONAnswerError,
    LLMService,
    ResponseFormat,
    adaptations_of,
)
from crosswalk.structured import Invariant, Partial, ReasonCode, Schema, Stage, StructuredParser
from crosswalk.structured.response import RESPONSE_VERSIONS
from crosswalk.testing.replay import Answer, ReplayServer
from wires import body

Make = Callable[..., LLMService]


@attrs.frozen
class Place:
    """A place."""

    lat: float


@attrs.frozen
class Weather:
    """The weather somewhere."""

    city: str
    celsius: int
    place: Place


@attrs.frozen
class Loose:
    """With a default, which OpenAI's strict mode does not know."""

    city: str
    note: str = "none"


SUNNY = '{"city": "Paris", "celsius": 20, "place": {"lat": 48.9}}'
PARIS = Weather("Paris", 20, Place(48.9))
ASK = ChatRequest("The weather?")


def openai(server: ReplayServer) -> Endpoint:
    return Endpoint("openai", model="m", base_url=server.url, api_key="k")


def answer(
    server: ReplayServer,
    service: LLMService,
    text: str,
    of: Any,
    finish: str = "stop",
    *,
    request: ChatRequest = ASK,
    **options: Any,
) -> JSONAnswer[Any]:
    server.add(Answer.of_json(body({"content": text}, finish)))

    async def run() -> JSONAnswer[Any]:
        async with service:
            return await service.complete_json(request, of, **options)

    return asyncio.run(run())


@pytest.mark.parametrize("of", [Weather, Schema(Weather), StructuredParser(Weather)])
def test_a_value_of_a_class(server: ReplayServer, service_of: Make, of: Any) -> None:
    found = answer(server, service_of(server), SUNNY, of)
    assert found.value == PARIS
    assert found.response.text == SUNNY
    assert found.response.attempts[0].outcome == "success"
    assert found.result.stage is Stage.DIRECT
    assert "Paris" in repr(found)
    sent = server.requests[0].json()["response_format"]["json_schema"]
    assert (sent["name"], sent["strict"]) == ("Weather", True)
    assert sent["schema"]["required"] == ["city", "celsius", "place"]
    assert sent["schema"]["additionalProperties"] is False


@pytest.mark.parametrize("text", ['{"city": "Paris"}', '{"city": "Paris", "note": null}'])
def test_a_default_is_nullable_in_strict_mode(server: ReplayServer, service_of: Make, text: str) -> None:
    assert answer(server, service_of(openai(server)), text, Loose).value == Loose("Paris")
    sent = server.requests[0].json()["response_format"]["json_schema"]
    assert sent["strict"] is True
    assert sent["schema"]["required"] == ["city", "note"]
    assert sent["schema"]["properties"]["note"] == {
        "anyOf": [{"type": "string"}, {"type": "null"}],
        "description": '{default: "none"}',
    }


def test_what_is_no_object_is_asked_for_in_one(server: ReplayServer, service_of: Make) -> None:
    assert answer(server, service_of(server), '{"value": ["a"]}', list[str]).value == ["a"]
    sent = server.requests[0].json()["response_format"]["json_schema"]
    assert (sent["name"], sent["strict"]) == ("answer", True)
    assert sent["schema"] == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"value": {"type": "array", "items": {"type": "string"}}},
        "required": ["value"],
        "additionalProperties": False,
    }


def test_a_model_is_asked_again_with_what_is_wrong(server: ReplayServer, service_of: Make) -> None:
    server.add(Answer.of_json(body({"content": '{"city": "Paris"}'}, "stop")))
    found = answer(server, service_of(server), SUNNY, Weather, retries=1)
    assert found.value == PARIS
    first, again = (request.json()["messages"] for request in server.requests)
    assert [message["role"] for message in again] == ["user", "assistant", "user"]
    assert again[0] == first[0]
    assert "- a required field is missing @ $.celsius" in again[2]["content"]


@pytest.mark.parametrize(("finish", "requests"), [("stop", 3), ("content_filter", 1)])
def test_a_model_is_asked_no_more_often(
    server: ReplayServer, service_of: Make, finish: str, requests: int
) -> None:
    server.add(Answer.of_json(body({"content": "No."}, finish)), times=None)

    async def run() -> None:
        async with service_of(server) as service:
            await service.complete_json(ASK, Weather, retries=2)

    with pytest.raises(JSONAnswerError):
        asyncio.run(run())
    assert len(server.requests) == requests


def test_a_number_of_retries_is_not_negative(server: ReplayServer, service_of: Make) -> None:
    with pytest.raises(ConfigurationError, match="retries must be"):
        answer(server, service_of(server), SUNNY, Weather, retries=-1)


def test_prose_may_be_refused(server: ReplayServer, service_of: Make) -> None:
    with pytest.raises(JSONAnswerError) as raised:
        answer(server, service_of(server), f"Here: {SUNNY}", Weather, prose="refuse")
    assert (raised.value.result.reason, raised.value.result.before) == (ReasonCode.PROSE, "Here:")


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"type": "object", "additionalProperties": False}, True),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "integer", "default": 1}},
                "additionalProperties": False,
            },
            True,
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "string", "enum": ["x"]}, "b": {}},
                "additionalProperties": False,
            },
            False,
        ),
    ],
    ids=str,
)
def test_whether_a_schema_is_strict(
    server: ReplayServer, service_of: Make, schema: Any, strict: bool
) -> None:
    found = answer(server, service_of(openai(server)), "{}", schema)
    assert server.requests[0].json()["response_format"]["json_schema"]["strict"] is strict
    assert [each.field for each in adaptations_of(found.response)] == (
        [] if strict else ["response_format.strict"]
    )


def test_a_json_schema(server: ReplayServer, service_of: Make) -> None:
    schema = {"type": "object", "properties": {"n": {"anyOf": [{"type": "integer"}, {"type": "object"}]}}}
    found = answer(server, service_of(openai(server)), '```json\n{"n": 1}\n```', schema)
    assert found.value == {"n": 1}
    assert found.result.stage is Stage.EXTRACT
    sent = server.requests[0].json()["response_format"]["json_schema"]
    assert sent == {"name": "answer", "schema": schema, "strict": False}


def test_the_requests_own_format_is_sent(server: ReplayServer, service_of: Make) -> None:
    request = attrs.evolve(ASK, response_format=ResponseFormat())
    answer(server, service_of(server), SUNNY, Weather, request=request)
    assert server.requests[0].json()["response_format"] == {"type": "json_object"}


def test_the_schema_in_words(server: ReplayServer, service_of: Make) -> None:
    warm = Schema(Weather, [Invariant("it must be warm", lambda weather: weather.celsius > 10)])
    answer(server, service_of(server), SUNNY, warm, instruct=True)
    system, user = server.requests[0].json()["messages"]
    assert system["role"] == "system"
    assert "it must be warm" in system["content"]
    assert user["content"] == "The weather?"


@pytest.mark.parametrize(
    ("text", "finish", "reason"),
    [
        ("It is sunny.", "stop", ReasonCode.EXTRACTION_FAILED),
        ('{"city": "Paris"}', "stop", ReasonCode.SCHEMA_MISSING_FIELD),
        (SUNNY, "length", ReasonCode.TRUNCATED),
    ],
)
def test_no_valid_value_is_an_error_with_the_response(
    server: ReplayServer, service_of: Make, text: str, finish: str, reason: ReasonCode
) -> None:
    with pytest.raises(JSONAnswerError) as raised:
        answer(server, service_of(server), text, Weather, finish)
    assert raised.value.result.reason is reason
    assert raised.value.response.text == text
    assert len(server.requests) == 1


def test_a_partial_value_for_who_wants_it(server: ReplayServer, service_of: Make) -> None:
    found = answer(server, service_of(server), SUNNY[:-1], Weather, "length", partial=Partial.ACCEPT)
    assert found.result.partial
    assert found.value == PARIS


def test_a_json_schema_is_checked_and_said(server: ReplayServer, service_of: Make) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    with pytest.raises(JSONAnswerError, match=r"expected integer, got string @ \$.n"):
        answer(server, service_of(server), '{"n": "1"}', schema, instruct=True)
    assert "n: integer;" in server.requests[0].json()["messages"][0]["content"]


def test_what_has_no_schema_to_send(server: ReplayServer, service_of: Make) -> None:
    with pytest.raises(ConfigurationError, match="several versions"):
        answer(server, service_of(server), SUNNY, StructuredParser(RESPONSE_VERSIONS))
