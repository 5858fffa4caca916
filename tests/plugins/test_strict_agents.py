"""An agent holds a conversation of several calls at each strict server, also stored, forked, and at another provider."""

from __future__ import annotations

from typing import Any

import pytest

from crosswalk import ChatMessage, normalize
from crosswalk.agent import AgentOutcome, ChatSession, SyncAgent
from crosswalk.config import Settings
from crosswalk.plugins import dump_json
from crosswalk.service import Endpoint, RetryPolicy, SyncLLMService
from crosswalk.testing import STRICT_PROVIDERS
from crosswalk.testing.replay import ReplayServer
from strict_answers import MODELS, answer_of, strict_server


def ferry(day: int) -> str:
    """When the ferry leaves on *day*."""
    return f"at nine on day {day}"


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    for name in ("AWS_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)


def service_at(server: ReplayServer, provider: str) -> SyncLLMService:
    endpoint = Endpoint(provider, model=MODELS.get(provider, "m"), base_url=server.url, api_key="k")
    return SyncLLMService(
        endpoint, settings=Settings(), retry=RetryPolicy(attempts=1), client_options={"verify": False}
    )


def talk(provider: str, session: ChatSession, first: int = 1) -> None:
    """The agent calls its tool twice before it answers; the server refuses nothing."""
    with strict_server(provider, first) as server, service_at(server, provider) as service:
        answer = SyncAgent(service, [ferry]).answer(session=session)
    assert [request.case for request in server.refusals] == []
    assert answer.outcome is AgentOutcome.ANSWERED
    assert session.messages[-1].text == "At nine."
    assert len(server.requests) == 3


def asked(*turns: Any) -> ChatSession:
    return ChatSession([ChatMessage.user("When?"), *turns])


def open_round(provider: str) -> ChatSession:
    """A conversation in the middle of a round: the tool was called and has answered, the model has not."""
    called = normalize(dump_json(answer_of(provider, 1)), provider)
    (call,) = called.tool_calls
    return asked(called, ChatMessage.tool_result(call.id, "at nine", name=call.name))


@pytest.mark.parametrize("provider", STRICT_PROVIDERS)
def test_a_conversation_goes_on_at_its_provider(provider: str) -> None:
    session = asked()
    talk(provider, session)
    for number, copy in enumerate((session, ChatSession.from_json(session.to_json()), session.fork())):
        copy.add_message(ChatMessage.user(f"And then, {number}?"))
        talk(provider, copy, first=4)


@pytest.mark.parametrize("provider", STRICT_PROVIDERS)
def test_an_open_round_goes_on_at_its_provider(provider: str) -> None:
    talk(provider, open_round(provider), first=4)


PAIRS = [(source, target) for source in STRICT_PROVIDERS for target in STRICT_PROVIDERS if source != target]


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_conversation_goes_on_at_another_provider(source: str, target: str) -> None:
    session = asked()
    talk(source, session)
    session.add_message(ChatMessage.user("And then?"))
    talk(target, session)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_an_open_round_goes_on_at_another_provider(source: str, target: str) -> None:
    talk(target, open_round(source))
