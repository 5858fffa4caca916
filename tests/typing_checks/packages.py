"""A strict type checker's view of the packages that import their names on use."""

from __future__ import annotations

from typing import assert_type

import crosswalk
import crosswalk.responses as responses
from crosswalk.agent import AgentResponse, ChatSession, SyncAgent
from crosswalk.convert import Conversion, convert
from crosswalk.responses import Response, ResponseTextDeltaEvent, make_id, parse_response
from crosswalk.service import ChatRequest, JSONAnswer, SyncJSONStream, SyncLLMService


def names_have_their_types(body: bytes, service: SyncLLMService, answer: crosswalk.ChatResponse) -> None:
    """Those of a package are those of its modules."""
    assert_type(parse_response(body), Response)
    assert_type(responses.parse_response(body), Response)
    assert_type(make_id(responses.IdKind.RESPONSE), str)
    assert_type(service.complete(ChatRequest("hi")), crosswalk.ChatResponse)
    assert_type(convert(answer, "openai-chat"), Conversion[bytes])
    assert_type(ChatSession(), ChatSession)
    assert_type(ResponseTextDeltaEvent.__name__, str)


def options_have_their_types(service: SyncLLMService, agent: SyncAgent[int]) -> None:
    """Each one, in whichever call."""
    assert_type(service.complete_json("hi", int, retries=1, instruct=True, temperature=0), JSONAnswer[int])
    assert_type(service.stream_json("hi", int, prose="refuse", timeout=3), SyncJSONStream[int])
    assert_type(agent.answer("hi", session=ChatSession(), deps=3), AgentResponse[int])
    service.complete_json("hi", int, retries="1")  # type: ignore[call-overload]
    service.stream_json("hi", int, retries=1)  # type: ignore[call-overload]
    agent.answer("hi", session=3)  # type: ignore[arg-type]
    agent.run("hi", sesion=ChatSession())  # type: ignore[call-arg]
    SyncLLMService("ollama", retry=2, timeout=3.0)
    SyncLLMService("ollama", retry="2")  # type: ignore[arg-type]
    SyncLLMService("ollama", retries=2)  # type: ignore[call-arg]


def what_is_not_there_is_an_error() -> None:
    """A misspelt name is found before the program runs."""
    _ = responses.Respons  # type: ignore[attr-defined]
    _ = crosswalk.normalise  # type: ignore[attr-defined]
    from crosswalk.service import LLMServise  # type: ignore[attr-defined]  # noqa: F401
