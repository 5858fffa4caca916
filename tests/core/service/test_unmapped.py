"""An unknown finish word: the paid part is kept, no other server is asked, and it is not taken for whole."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator

import attrs
import pytest

from crosswalk import ChatResponse, Provenance, UnknownFinishReasonError
from crosswalk.service import ChatRequest, JSONAnswerError, LLMService
from crosswalk.structured import Partial, ReasonCode, StructuredParser
from crosswalk.testing.replay import Answer, ReplayServer
from wires import body, chunk

Make = Callable[..., LLMService]
WORD = "guardrail_intervened"
TEXT = '{"city": "Paris"}'
WHOLE = Answer.of_json(body({"content": TEXT}, WORD))
STREAM = Answer.of_events([chunk({"content": TEXT}), chunk({}, WORD)])


@attrs.frozen
class City:
    """A city."""

    city: str


@pytest.fixture
def other() -> Iterator[ReplayServer]:
    with ReplayServer() as running:
        running.add(Answer.of_json(body({"content": "No."})))
        yield running


async def complete(service: LLMService) -> ChatResponse:
    async with service:
        return await service.complete(ChatRequest("Which city?"))


async def streamed(service: LLMService) -> ChatResponse:
    async with service, service.stream(ChatRequest("Which city?")) as events:
        *_, last = [event async for event in events]
    # Who trusts the event must not trust more than the response.
    assert last.event_type == "response.incomplete"
    return events.response


ways = pytest.mark.parametrize(("way", "answer"), [(complete, WHOLE), (streamed, STREAM)])


@ways
def test_the_answer_is_kept_and_nobody_else_is_asked(
    server: ReplayServer,
    other: ReplayServer,
    service_of: Make,
    caplog: pytest.LogCaptureFixture,
    way: Callable[[LLMService], object],
    answer: Answer,
) -> None:
    server.add(answer)
    with caplog.at_level(logging.WARNING, "crosswalk"):
        response = asyncio.run(way(service_of(server, other)))  # type: ignore[arg-type,var-annotated]
    assert (response.text, response.raw_finish_reason) == (TEXT, WORD)
    assert response.metadata.provenance["finish_reason"] is Provenance.UNMAPPED
    assert not response.is_complete
    assert [attempt.outcome for attempt in response.attempts] == ["success"]
    assert (len(server.requests), len(other.requests)) == (1, 0)
    assert sum(WORD in record.getMessage() for record in caplog.records) <= 1  # once a process


@ways
def test_where_it_is_to_raise_it_does_so_at_once(
    server: ReplayServer,
    other: ReplayServer,
    service_of: Make,
    way: Callable[[LLMService], object],
    answer: Answer,
) -> None:
    """No other server is asked: the answer had been received whole, and it is there."""
    server.add(answer)
    with pytest.raises(UnknownFinishReasonError, match=WORD) as raised:
        asyncio.run(way(service_of(server, other, unknown="raise")))  # type: ignore[arg-type]
    partial = raised.value.partial
    assert isinstance(partial, ChatResponse)
    assert partial.text == TEXT
    assert (len(server.requests), len(other.requests)) == (1, 0)


def test_a_value_in_it_is_none_unless_the_caller_takes_partial_ones(
    server: ReplayServer, service_of: Make
) -> None:
    server.add(WHOLE, times=2)

    async def ask(partial: Partial) -> ChatResponse:
        async with service_of(server) as service:
            answer = await service.complete_json(ChatRequest("Which city?"), City, partial=partial)
            assert answer.value == City("Paris")
            assert answer.result.partial
            return answer.response

    with pytest.raises(JSONAnswerError) as raised:
        asyncio.run(ask(Partial.REFUSE))
    assert raised.value.result.reason is ReasonCode.TRUNCATED
    response = asyncio.run(ask(Partial.ACCEPT))
    assert StructuredParser(City).parse(response).reason is ReasonCode.TRUNCATED
    assert StructuredParser(City).parse(response.text).ok
