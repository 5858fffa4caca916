"""An agent holds a conversation of several calls at each strict server, also stored, forked, trimmed, and at another provider."""

from __future__ import annotations

import functools
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from crosswalk import ChatMessage, ChatResponse, normalize, registry
from crosswalk.agent import AgentOutcome, ChatSession, SyncAgent, keep_turns
from crosswalk.config import Settings
from crosswalk.plugins import dump_json
from crosswalk.service import ChatRequest, Endpoint, RetryPolicy, SyncLLMService, build_http_request
from crosswalk.testing import STRICT_PROVIDERS, strict_rules
from crosswalk.testing.replay import Answer, ReplayServer
from crosswalk.testing.strict.rules import Issued, StrictRequest
from strict_answers import MODELS, answer_of, strict_server
from tries import tries


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
    """The agent calls its tool twice before it answers. The server refuses nothing."""
    with strict_server(provider, first) as server, service_at(server, provider) as service:
        answer = SyncAgent(service, [ferry]).answer(session=session)
    assert [request.case for request in server.refusals] == []
    assert answer.outcome is AgentOutcome.ANSWERED
    assert session.messages[-1].text == "At nine."
    assert len(server.requests) == 3


def asked(*turns: Any) -> ChatSession:
    return ChatSession([ChatMessage.user("When?"), *turns])


@functools.cache
def answered(provider: str, number: int) -> ChatResponse:
    return normalize(dump_json(answer_of(provider, number)), provider)


def open_round(provider: str) -> ChatSession:
    """A conversation in the middle of a round: the tool was called and has answered, the model has not."""
    called = answered(provider, 1)
    (call,) = called.tool_calls
    return asked(called, ChatMessage.tool_result(call.id, "at nine", name=call.name))


@pytest.mark.untraced
@pytest.mark.parametrize("provider", STRICT_PROVIDERS)
def test_a_conversation_goes_on_at_its_provider(provider: str) -> None:
    session = asked()
    talk(provider, session)
    for number, copy in enumerate((session, ChatSession.from_json(session.to_json()), session.fork())):
        copy.add_message(ChatMessage.user(f"And then, {number}?"))
        talk(provider, copy, first=4)


@pytest.mark.untraced
@pytest.mark.parametrize("provider", STRICT_PROVIDERS)
def test_an_open_round_goes_on_at_its_provider(provider: str) -> None:
    talk(provider, open_round(provider), first=4)


NEXT = dict(zip(STRICT_PROVIDERS, STRICT_PROVIDERS[1:] + STRICT_PROVIDERS[:1], strict=True))
PAIRS = [
    pytest.param(source, target, marks=() if target == NEXT[source] else pytest.mark.sweep)
    for source, target in permutations(STRICT_PROVIDERS, 2)
]
"""All pairs. A plain run tries those in which each provider is once the source and once the target."""


@pytest.mark.untraced
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_conversation_goes_on_at_another_provider(source: str, target: str) -> None:
    session = asked()
    talk(source, session)
    session.add_message(ChatMessage.user("And then?"))
    talk(target, session)


@pytest.mark.untraced
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_an_open_round_goes_on_at_another_provider(source: str, target: str) -> None:
    talk(target, open_round(source))


TARGETS = sorted({entry.name for entry in registry.providers()} - {"perplexity"})
"""Perplexity has no tools: it takes calls and results as texts."""
ROUNDS = st.lists(st.tuples(st.sampled_from(STRICT_PROVIDERS), st.integers(0, 2), st.booleans()), min_size=1, max_size=4)  # fmt: skip
"""The user's questions: who answers, how many calls that takes, and whether a text ends it."""
CUTS = st.lists(
    st.one_of(
        st.tuples(st.just("fork"), st.integers(-9, 9)),
        st.tuples(st.just("trim"), st.integers(1, 3)),
        st.tuples(st.just("pop"), st.just(0)),
        st.tuples(st.just("store"), st.just(0)),
    ),
    max_size=3,
)


def cut(session: ChatSession, how: str, number: int) -> ChatSession:
    if how == "fork":
        return session.fork(number)
    if how == "store":
        return ChatSession.from_json(session.to_json())
    if how == "trim":
        session.trim(keep_turns(number))
    elif session.turns:
        session.pop()
    return session


@settings(max_examples=tries(10))
@pytest.mark.parametrize("target", TARGETS)
@given(rounds=ROUNDS, cuts=CUTS)
def test_nothing_is_sent_without_what_it_belongs_to(
    target: str, rounds: list[tuple[str, int, bool]], cuts: list[tuple[str, int]]
) -> None:
    """No result without its call, no signature without its block, whatever was cut from the conversation."""
    rules = strict_rules(target if target in STRICT_PROVIDERS else "openai")
    issued = Issued(rules.framing)
    session = ChatSession()
    for place, (provider, calls, ends) in enumerate(rounds):
        session.add_message(ChatMessage.user(f"When, {place}?"))
        numbers = [*range(3 * place + 1, 3 * place + 1 + calls), *([3 * place + 3] if ends else [])]
        for number in numbers:
            answer = answered(provider, number)
            session.add_response(answer)
            for call in answer.tool_calls:
                session.add_message(ChatMessage.tool_result(call.id, "at nine", name=call.name))
            if provider == target:
                issued.add(Answer.of_json(answer_of(provider, number)))
    for how, number in cuts:
        session = cut(session, how, number)
    session.add_message(ChatMessage.user("And then?"))
    request = ChatRequest(session.turns, model=MODELS.get(target, "m"))
    built = build_http_request(request, target, on_unsupported="drop")
    strict = StrictRequest(built.path.partition("?")[0], built.body, issued)
    broken = [(rule.name, refusal.message) for rule, refusal in rules.violations(strict)]
    assert [
        one for one in broken if target != "perplexity"
    ] == []  # it has no tools, and takes calls as texts
