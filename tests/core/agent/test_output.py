"""Answers as values: of the agent's output type, or of its final tool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from crosswalk import ChatMessage, ConfigurationError
from crosswalk.agent import Agent, AgentError, AgentOutcome, AgentResponse, ChatSession, collect, tool
from crosswalk.service import LLMService
from crosswalk.structured import (
    Invariant,
    Schema,
    SchemaDefinitionError,
    SchemaVersions,
    StructuredParser,
)
from crosswalk.testing.replay import Answer, ReplayServer

Run = Callable[..., Any]
Said = Callable[..., Answer]


@attrs.frozen
class Weather:
    """The weather of a day."""

    degrees: int
    sky: str = "clear"


WARM = Schema(Weather, [Invariant("it is warm", lambda weather: weather.degrees > 20)])


@tool
def look() -> str:
    """Look."""
    return "seen"


def answered(run: Run, *tools: Any, **options: Any) -> AgentResponse:
    async def use(service: LLMService) -> AgentResponse:
        return await Agent(service, tools, **options).answer("Weather?")

    response: AgentResponse = run(use)
    return response


@pytest.mark.parametrize(
    "output_type", [Weather, WARM, StructuredParser(Weather)], ids=["class", "schema", "parser"]
)
def test_the_answer_is_a_value(server: ReplayServer, run: Run, said: Said, output_type: Any) -> None:
    text = 'Here it is:\n```json\n{"degrees": 25}\n```'
    server.add(said(text))
    response = answered(run, output_type=output_type, instructions="Be brief.")
    assert (response.value, response.final_output) == (Weather(25), text)
    assert response.raise_for_outcome() is response
    body = server.requests[0].json()
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["degrees"]
    system = body["messages"][0]
    assert (system["role"], system["content"][:41]) == (
        "system",
        "Be brief.\n\nAnswer with one JSON object an",
    )
    assert ("it is warm" in system["content"]) is (output_type is WARM)


def test_with_tools_the_form_is_told_in_words_alone(server: ReplayServer, run: Run, said: Said) -> None:
    """Many servers take a schema or tools, and refuse both."""
    server.add(said(None, ("1", "look", "{}"))).add(said('{"degrees": 3, "sky": "grey"}'))
    assert answered(run, look, output_type=Weather).value == Weather(3, "grey")
    body = server.requests[1].json()
    assert "response_format" not in body
    assert body["messages"][0]["content"].startswith("Answer with one JSON object")


def test_an_answer_of_another_form_is_told_once(server: ReplayServer, run: Run, said: Said) -> None:
    server.add(said('{"degrees": "warm"}')).add(said('{"degrees": 30}'))
    session = ChatSession()

    async def use(service: LLMService) -> AgentResponse:
        return await Agent(service, output_type=WARM).answer("Weather?", session=session)

    response = run(use)
    first, second = response.turns
    told = "This is not a valid answer: expected integer, got string @ $.degrees. Answer again, in the form that was asked for."
    assert (first.outcome, first.final_output, first.value) == (None, None, None)
    assert first.reply == ChatMessage.user(told)
    assert (second.value, response.value) == (Weather(30), Weather(30))
    assert [message.text for message in session.messages] == [
        "Weather?",
        '{"degrees": "warm"}',
        told,
        '{"degrees": 30}',
    ]
    assert session.turns[1:] == response.conversation
    assert server.requests[1].json()["messages"][-1] == {"role": "user", "content": told}


@pytest.mark.parametrize(("max_turns", "asked"), [(10, 2), (1, 1)])
def test_an_answer_that_stays_of_another_form(
    server: ReplayServer, run: Run, said: Said, max_turns: int, asked: int
) -> None:
    server.add(said("It is warm."), times=None)
    response = answered(run, output_type=Weather, max_turns=max_turns)
    assert (response.outcome, response.value, response.final_output) == (
        AgentOutcome.INVALID_OUTPUT,
        None,
        None,
    )
    assert len(server.requests) == asked
    assert response.turns[-1].reply is None
    with pytest.raises(AgentError, match="invalid_output"):
        response.raise_for_outcome()


def test_a_cut_answer_is_no_value(server: ReplayServer, run: Run, said: Said) -> None:
    server.add(said('{"degrees": 2', finish="length"))
    response = answered(run, output_type=Weather)
    assert (response.outcome, response.value) == (AgentOutcome.TRUNCATED, None)


def test_without_a_type_the_value_is_the_text_and_a_final_tools_is_what_it_gave(
    server: ReplayServer, run: Run, said: Said
) -> None:
    @tool(is_final=True)
    def report(degrees: int) -> Weather:
        return Weather(degrees)

    server.add(said("Hello.")).add(said(None, ("1", "report", '{"degrees": 18}')), times=None)
    assert answered(run).value == "Hello."
    response = answered(run, report)
    assert (response.value, response.final_output) == (Weather(18), '{"degrees":18,"sky":"clear"}')
    assert run(lambda service: collect(Agent(service, [report]).run("?"))).value == Weather(18)

    async def one_by_one(service: LLMService) -> AgentResponse:
        async def turns() -> Any:
            async for turn in Agent(service, [report]).run("?"):
                yield turn

        return await collect(turns())

    assert run(one_by_one).value == Weather(18)


def test_what_cannot_be_the_type_of_an_answer(run: Run) -> None:
    def made(output_type: Any) -> Any:
        async def use(service: LLMService) -> None:
            Agent(service, output_type=output_type)

        return run(use)

    with pytest.raises(SchemaDefinitionError):
        made(complex)
    versions: Any = SchemaVersions("version")
    versions.register("1.0", Weather)
    with pytest.raises(ConfigurationError, match="one schema, not several"):
        made(StructuredParser(versions))
