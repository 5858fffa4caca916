"""Conversations that are edited and made shorter: what belongs together stays together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from crosswalk import (
    ChatMessage,
    ChatResponse,
    ConfigurationError,
    ProviderError,
    ResponseMetadata,
    ResponseValidationError,
    ToolCall,
    UsageInfo,
)
from crosswalk.agent import Agent, AgentOutcome, ChatSession, Trimming, keep_tokens, keep_turns
from crosswalk.service import ChatRequest, Turn
from crosswalk.testing.replay import Answer, ReplayServer
from tries import tries

Run = Callable[..., Any]
Said = Callable[..., Answer]
SYSTEM = ChatMessage.system("s")


def answer(text: str, *ids: str, prompt: int = 0, completion: int = 0) -> ChatResponse:
    calls = [ToolCall(id, "f") for id in ids]
    return ChatResponse.success(
        ChatMessage.assistant(text, tool_calls=calls or None),
        UsageInfo(prompt, completion),
        "m",
        ResponseMetadata("p", "m"),
    )


def result(id: str) -> ChatMessage:
    return ChatMessage.tool_result(id, f"r{id}")


def told(turns: Any) -> str:
    """The role and the text, as one word a turn."""
    return " ".join((turn.message if isinstance(turn, ChatResponse) else turn).text or "-" for turn in turns)


def talk() -> ChatSession:
    """Two questions. The first takes a call and the second two."""
    return ChatSession(
        [
            *(SYSTEM, ChatMessage.user("u1"), answer("a1", "1"), result("1"), answer("b1")),
            *(ChatMessage.user("u2"), answer("a2", "2", "3"), result("2"), result("3"), answer("b2")),
        ]
    )


# ------------------------------------------------------------------------------------------------ edited


def test_the_last_turn_is_taken_away_with_what_belongs_to_it() -> None:
    session = talk()
    taken = [told(session.pop()) for _ in range(7)]
    assert taken == ["b2", "a2 r2 r3", "u2", "b1", "a1 r1", "u1", "s"]
    with pytest.raises(IndexError, match="empty"):
        session.pop()


@pytest.mark.parametrize(
    ("place", "turns", "left"),
    [
        (1, [ChatMessage.user("new")], "s new a1 r1 b1 u2 a2 r2 r3 b2"),
        (2, [answer("new")], "s u1 new b1 u2 a2 r2 r3 b2"),
        (2, [], "s u1 b1 u2 a2 r2 r3 b2"),
        (-1, [answer("new"), ChatMessage.user("more")], "s u1 a1 r1 b1 u2 a2 r2 r3 new more"),
        (7, [ChatMessage.tool_result("2", "new")], "s u1 a1 r1 b1 u2 a2 new r3 b2"),
    ],
)
def test_a_turn_is_replaced(place: int, turns: list[Turn], left: str) -> None:
    session = talk()
    session.replace(place, *turns)
    assert told(session) == left


@pytest.mark.parametrize(
    ("place", "turns", "error"),
    [
        (10, [], IndexError),
        (3, [ChatMessage.user("x")], ResponseValidationError),
        (3, [], ResponseValidationError),
        (3, [result("2")], ResponseValidationError),
        (1, ["x"], ResponseValidationError),
        (1, [ChatResponse.error("overloaded", model="m")], ProviderError),
    ],
)
def test_a_turn_that_cannot_be_replaced_so(place: int, turns: Any, error: type[Exception]) -> None:
    session = talk()
    before = session.turns
    with pytest.raises(error):
        session.replace(place, *turns)
    assert session.turns == before


@pytest.mark.parametrize(
    ("end", "left"),
    [
        (None, "s u1 a1 r1 b1 u2 a2 r2 r3 b2"),
        (4, "s u1 a1 r1"),
        (3, "s u1"),  # not without its result
        (8, "s u1 a1 r1 b1 u2"),
        (-1, "s u1 a1 r1 b1 u2 a2 r2 r3"),
        (0, ""),
    ],
)
def test_a_fork_goes_its_own_way(end: int | None, left: str) -> None:
    session = talk()
    fork = session.fork(end)
    assert told(fork) == left
    assert fork.id != session.id
    fork.add_message(ChatMessage.user("other"))
    assert len(session) == 10
    assert session.fork(id="mine").id == "mine"


def test_a_fork_before_a_result_that_belongs_to_no_answer_is_empty() -> None:
    assert len(ChatSession([ChatMessage.tool_result("t1", "1")]).fork(0)) == 0


def test_a_cleared_session_keeps_its_instructions() -> None:
    session = talk()
    session.clear()
    assert session.turns == (SYSTEM,)
    assert bool(ChatSession())


# ---------------------------------------------------------------------------------------------- trimmed


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        (keep_turns(1), "s u2 a2 r2 r3 b2"),
        (keep_turns(2), "s u1 a1 r1 b1 u2 a2 r2 r3 b2"),
        (lambda groups: groups[-1:], "s u2 b2"),  # the user speaks first
        (lambda groups: groups[2:3], "s u1 b1"),
        (lambda groups: [(answer("new"),), (), *groups[-1:]], "s new b2"),
        (lambda groups: [(ChatMessage.user("all that"),), *groups[4:5]], "s all that a2 r2 r3"),
        (lambda groups: [], "s"),
    ],
)
def test_what_is_kept(policy: Trimming, left: str) -> None:
    session = talk()
    before = session.turns
    taken = session.trim(policy)
    assert told(session) == left
    assert set(map(id, taken)) == set(map(id, before)) - set(map(id, session))


@pytest.mark.parametrize(
    "given", [None, 3, "ab", ["ab"], [3], [None], [[3]], [ChatMessage.user("u")], {"a": 1}]
)
def test_a_policy_that_gives_no_groups(given: Any) -> None:
    session = talk()
    before = session.turns
    with pytest.raises(ResponseValidationError, match="groups of turns"):
        session.trim(lambda _: given)
    assert session.turns == before


def counted(*counts: tuple[int, int]) -> ChatSession:
    """A question and an answer for each pair of counts."""
    session = ChatSession([SYSTEM])
    for number, (prompt, completion) in enumerate(counts):
        session.extend(
            [ChatMessage.user(f"u{number}"), answer(f"a{number}", prompt=prompt, completion=completion)]
        )
    return session


@pytest.mark.parametrize(
    ("counts", "budget", "left"),
    [
        ([(10, 5), (25, 5), (40, 10)], 50, "s u0 a0 u1 a1 u2 a2"),  # it fits
        ([(10, 5), (25, 5), (40, 10)], 49, "s u1 a1 u2 a2"),  # 50 - 15
        ([(10, 5), (25, 5), (40, 10)], 34, "s u2 a2"),
        ([(10, 5), (25, 5), (40, 10)], 3, "s u2 a2"),  # what was said last stays
        ([(10, 5), (0, 0), (40, 10)], 40, "s u1 a1 u2 a2"),  # one that was not counted
        ([(0, 0), (0, 0)], 1, "s u1 a1"),  # nobody counted: a token for each four characters
        # The second was asked with a longer conversation, which has been trimmed since.
        ([(900, 5), (950, 10), (60, 10), (80, 10)], 89, "s u1 a1 u2 a2 u3 a3"),
        ([(900, 5), (950, 10), (60, 10), (80, 10)], 40, "s u2 a2 u3 a3"),
    ],
)
def test_tokens_are_counted_by_the_providers(counts: Any, budget: int, left: str) -> None:
    session = counted(*counts)
    session.trim(keep_tokens(budget))
    assert told(session) == left


def test_what_was_asked_since_is_kept() -> None:
    session = counted((10, 5), (25, 5), (40, 10))
    session.add_message(ChatMessage.user("now"))
    session.trim(keep_tokens(20))
    assert told(session) == "s u2 a2 now"


TURNS = st.sampled_from([SYSTEM, ChatMessage.user("u"), answer("a", prompt=9), answer("b", "1", "2"), result("1"), result("2"), result("3")])  # fmt: skip
POLICIES = st.one_of(st.builds(keep_turns, st.integers(1, 3)), st.builds(keep_tokens, st.integers(1, 20)))


@settings(max_examples=tries(200))
@given(st.lists(TURNS, max_size=12), POLICIES)
def test_no_call_is_left_without_its_result(turns: list[Turn], policy: Trimming) -> None:
    session = ChatSession(turns)
    open_before = session.open_calls
    session.trim(policy)
    assert session.open_calls == open_before
    again = ChatSession(session)
    assert again.turns == session.turns  # nothing had to be answered for anybody
    assert ChatRequest(session).messages == session.turns if session.turns else True


@pytest.mark.parametrize("make", [keep_turns, keep_tokens])
@pytest.mark.parametrize("number", [0, -1, 1.5, True, "3"])
def test_numbers_that_keep_nothing(make: Callable[[Any], Trimming], number: Any) -> None:
    with pytest.raises(ConfigurationError, match="at least 1"):
        make(number)


# ---------------------------------------------------------------------------- a conversation that is too long

TOO_LONG = Answer.of_json(
    {"error": {"code": "context_length_exceeded", "message": "This is too long."}}, status=400
)


@pytest.mark.parametrize("method", ["run", "stream"])
def test_an_overflow_is_answered_once(server: ReplayServer, run: Run, said: Said, method: str) -> None:
    server.add(TOO_LONG).add(said("Short."))
    session = talk()
    session.add_message(ChatMessage.user("u3"))

    async def use(service: Any) -> Any:
        agent = Agent(service, trim=keep_turns(1), max_turns=1)
        return await getattr(agent, method)(session=session).finish()

    response = run(use)
    assert [turn.final_output for turn in response.turns] == ["Short."]
    assert [len(request.json()["messages"]) for request in server.requests] == [11, 2]
    assert told(session) == "s u1 a1 r1 b1 u2 a2 r2 r3 b2 u3 Short."  # it keeps everything


def test_an_overflow_that_trimming_does_not_help(server: ReplayServer, run: Run) -> None:
    server.add(TOO_LONG, times=None)
    for policy, asked in ((keep_turns(1), 2), (keep_turns(9), 1), (lambda groups: [], 1), (None, 1)):
        turns = talk().turns[1:]
        before = len(server.requests)
        response = run(lambda service, policy=policy, turns=turns: Agent(service, trim=policy).answer(turns))
        assert response.outcome is AgentOutcome.ERROR
        assert len(server.requests) - before == asked
