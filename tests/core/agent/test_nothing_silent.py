"""Conversations that are too long, and tokens that are not counted: the agent reports how it handles them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crosswalk import ChatMessage, ToolCall, UsageInfo
from crosswalk.agent import ChatSession, SyncAgent, UsageLimits, keep_tokens, keep_turns, tool
from crosswalk.service import Endpoint, SyncLLMService
from crosswalk.testing import Answer, ReplayServer

TOO_LONG = Answer.of_json(
    {"error": {"message": "too long", "code": "context_length_exceeded", "type": "invalid_request_error"}},
    status=400,
)
NOT_COUNTED = UsageInfo(0, 0)


@tool
def look() -> str:
    """Look around."""
    return "two files"


@pytest.fixture
def service(server: ReplayServer) -> Iterator[SyncLLMService]:
    with SyncLLMService(Endpoint("vllm", model="m", base_url=server.url)) as asking:
        yield asking


def long_session() -> ChatSession:
    turns = [m for n in range(4) for m in (ChatMessage.user(f"q{n}"), ChatMessage.assistant(f"a{n}"))]
    return ChatSession(turns)


def sent(server: ReplayServer) -> list[int]:
    """How many messages each request has."""
    return [len(request.json()["messages"]) for request in server.requests]


def test_what_is_left_out_is_told_and_remembered(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(TOO_LONG).add(Answer.text("Hello."), times=None)
    agent = SyncAgent(service, trim=keep_turns(1))
    session = long_session()
    first = agent.answer("And now?", session=session).turns[0]
    assert first.annotations["trimmed"] == {"sent": 1, "of": 9}
    assert [attempt.outcome for attempt in first.response.attempts] == ["error", "success"]
    again = ChatSession.from_json(session.to_json())
    second = agent.answer("And then?", session=again).turns[0]
    assert second.annotations["trimmed"] == {"sent": 1, "of": 11}
    assert sent(server) == [9, 1, 1]
    assert len(again) == 12


def test_it_is_forgotten_when_the_session_is_edited(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(TOO_LONG).add(Answer.text("Hello."), times=None)
    agent = SyncAgent(service, trim=keep_turns(1))
    session = long_session()
    agent.answer("And now?", session=session)
    session.trim(keep_turns(2))
    assert "trimmed" not in agent.answer("And then?", session=session).turns[0].annotations
    assert sent(server) == [9, 1, 5]


def test_a_policy_that_leaves_all_sends_all(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(Answer.text("Hello."))
    session = ChatSession([], refused_lengths={"": 1})
    turn = SyncAgent(service, trim=keep_turns(9)).answer("Hi", session=session).turns[0]
    assert turn.annotations == {}


def test_without_counts_tokens_are_estimated() -> None:
    turns = [
        m for _ in range(50) for m in (ChatMessage.user("word " * 40), ChatMessage.assistant("word " * 40))
    ]
    session = ChatSession(turns)
    assert len(session.trim(keep_tokens(500))) == 90  # 50 tokens each: ten are left
    assert len(session) == 10
    assert ChatSession().trim(keep_tokens(5)) == ()


def test_a_budget_holds_where_nobody_counts(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(Answer.calls(ToolCall("c", "look", "{}"), usage=NOT_COUNTED), times=None)
    agent = SyncAgent(service, [look], limits=UsageLimits(total_tokens=20))
    done = agent.answer("word " * 8)
    assert done.outcome == "usage_limit"
    assert [turn.annotations["estimated_usage"] for turn in done.turns] == [True] * len(done.turns)
    assert len(server.requests) == 2


def test_without_a_budget_nothing_is_estimated(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(Answer.text("Hi", usage=NOT_COUNTED))
    assert SyncAgent(service).answer("Hi").turns[0].annotations == {}
