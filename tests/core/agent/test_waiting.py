"""Approvals and tools of others that wait: over the end of a program, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crosswalk import ConfigurationError, CrosswalkError, ToolCall
from crosswalk.agent import AgentOutcome, ChatSession, SyncAgent, Tool, ToolOutcome, final_answer, tool
from crosswalk.service import Endpoint, SyncLLMService
from crosswalk.testing import Answer, ReplayServer

DELETE = ToolCall("c1", "delete", '{"name": "a"}')
LOOK = ToolCall("c2", "look", "{}")
WHERE = ToolCall("c3", "where", "{}")
ran: list[str] = []


@tool(needs_approval=True)
def delete(name: str) -> str:
    """Delete a file."""
    ran.append(name)
    return f"deleted {name}"


@tool
def look() -> str:
    """Look around."""
    ran.append("look")
    return "two files"


where = Tool.external("where", "Where the user is.", {"type": "object", "properties": {}})


@pytest.fixture
def service(server: ReplayServer) -> Iterator[SyncLLMService]:
    ran.clear()
    with SyncLLMService(Endpoint("vllm", model="m", base_url=server.url)) as asking:
        yield asking


def agent_of(service: SyncLLMService, **options: Any) -> SyncAgent:
    return SyncAgent(service, [delete, look, where], **{"approve": lambda call: None, **options})


def told(server: ReplayServer) -> list[tuple[str, str]]:
    """The results in the last request."""
    messages = server.requests[-1].json()["messages"]
    return [(said["tool_call_id"], said["content"]) for said in messages if said["role"] == "tool"]


def test_an_approval_waits_for_another_process(
    server: ReplayServer, service: SyncLLMService, tmp_path: Path
) -> None:
    server.add(Answer.calls(DELETE, LOOK))
    session = ChatSession()
    asked = agent_of(service).answer("Tidy up", session=session)
    assert asked.outcome is AgentOutcome.WAITING
    assert asked.waiting == session.open_calls == (DELETE,)
    assert [result.outcome for result in asked.turns[0].tool_results] == [ToolOutcome.WAITING, ToolOutcome.OK]
    assert ran == ["look"]
    session.save(tmp_path / "session.json")

    server.add(Answer.text("Done."))
    session = ChatSession.load(tmp_path / "session.json")
    answered = agent_of(service).answer(session=session, approved={"c1": True})
    assert answered.final_output == "Done."
    assert ran == ["look", "a"]
    assert told(server) == [("c1", "deleted a"), ("c2", "two files")]
    assert session.open_calls == ()


def test_a_refusal_is_told_to_the_model(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(Answer.calls(DELETE)).add(Answer.text("As you like."))
    session = ChatSession()
    agent = agent_of(service)
    agent.answer("Tidy up", session=session)
    assert agent.answer(session=session, approved={"c1": "not today"}).final_output == "As you like."
    assert told(server) == [("c1", "Error: declined: not today")]
    assert ran == []


def test_a_tool_of_somebody_else(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(Answer.calls(WHERE, LOOK)).add(Answer.text("In Oslo."))
    session = ChatSession()
    agent = agent_of(service)
    assert agent.answer("Where am I?", session=session).waiting == (WHERE,)
    assert agent.answer(session=session, results={"c3": {"city": "Oslo"}}).final_output == "In Oslo."
    assert told(server) == [("c3", '{"city":"Oslo"}'), ("c2", "two files")]


def test_some_of_the_calls_can_be_decided(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(Answer.calls(DELETE, WHERE)).add(Answer.text("Done."))
    session = ChatSession()
    agent = agent_of(service)
    assert agent.answer("Go", session=session).waiting == (DELETE, WHERE)
    still = agent.answer(session=session, approved={"c1": True})
    assert (still.outcome, still.waiting, still.turns) == (AgentOutcome.WAITING, (WHERE,), ())
    assert agent.answer(session=session, results={"c3": "Oslo"}).final_output == "Done."
    assert ran == ["a"]
    assert len(server.requests) == 2


def test_a_call_that_nobody_named_is_left_open_without_a_function(
    server: ReplayServer, service: SyncLLMService
) -> None:
    other = ToolCall("c4", "delete", '{"name": "b"}')
    server.add(Answer.calls(DELETE, other))
    session = ChatSession()
    agent_of(service).answer("Go", session=session)
    still = agent_of(service, approve=None).answer(session=session, approved={"c4": True})
    assert still.waiting == (DELETE,)
    assert ran == ["b"]


def test_a_final_answer_waits_with_the_others(server: ReplayServer, service: SyncLLMService) -> None:
    final = ToolCall("c5", "final_answer", '{"answer": "Done."}')
    server.add(Answer.calls(DELETE, final))
    agent = SyncAgent(service, [delete, final_answer], approve=lambda call: None)
    asked = agent.answer("Go", session=ChatSession())
    assert asked.outcome is AgentOutcome.WAITING
    assert [result.outcome for result in asked.turns[0].tool_results] == ["waiting", "not_run"]


def test_whoever_speaks_instead_closes_the_call(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(Answer.calls(DELETE)).add(Answer.text("Fine."))
    session = ChatSession()
    agent = agent_of(service)
    agent.answer("Tidy up", session=session)
    assert agent.answer("Never mind", session=session).final_output == "Fine."
    assert told(server) == [("c1", "Error: not run: the conversation went on")]


def test_what_does_not_wait_cannot_be_answered(server: ReplayServer, service: SyncLLMService) -> None:
    server.add(Answer.calls(DELETE))
    session = ChatSession()
    agent = agent_of(service)
    with agent.run("Tidy up", session=session) as run:
        assert run.finish().conversation == session.turns[1:]
    with pytest.raises(ConfigurationError, match="no call 'c9' waits"):
        agent.answer(session=session, approved={"c9": True})
    with pytest.raises(CrosswalkError, match="approved="):
        agent.resume(run)
    with pytest.raises(CrosswalkError, match="64 letters"):
        Tool.external("not a name", "", {})
    with pytest.raises(CrosswalkError, match="elsewhere"):
        where()
