"""The facts of an agent: instructions, forced tools, limits, approval, the right kind of service."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from crosswalk import ChatMessage, ConfigurationError, TextPart, ToolCall
from crosswalk.agent import (
    Agent,
    AgentOutcome,
    AgentResponse,
    AsyncChatAgent,
    ChatAgent,
    ChatConfig,
    ChatSession,
    ToolExecutionResult,
    ToolOutcome,
    ToolRunner,
    UsageLimits,
    final_answer,
    tool,
)
from crosswalk.service import ChatRequest, Endpoint, LLMService, NamedTool, SyncLLMService
from crosswalk.testing.replay import Answer, ReplayServer

from .conftest import answered

Run = Callable[..., Any]
Said = Callable[..., Answer]
LOOK = ("1", "look", "{}")


@tool
def look() -> str:
    """Look."""
    return "seen"


# --------------------------------------------------------------------------------------------- instructions


@pytest.mark.parametrize(
    ("turns", "sent"),
    [
        ([ChatMessage.user("?")], [("system", "Be kind."), ("user", "?")]),
        (
            [ChatMessage.system("Sell."), ChatMessage.user("?")],
            [("system", "Be kind.\n\nSell."), ("user", "?")],
        ),
        (
            [ChatMessage.system([TextPart("Sell.")]), ChatMessage.user("?")],
            [("system", "Be kind."), ("system", [{"type": "text", "text": "Sell."}]), ("user", "?")],
        ),
    ],
)
def test_instructions_are_told_in_each_run_and_kept_in_none(
    server: ReplayServer, run: Run, said: Said, turns: list[ChatMessage], sent: list[Any]
) -> None:
    server.add(said("42"))
    session = ChatSession(turns)
    run(lambda service: Agent(service, instructions="Be kind.").answer(session=session))
    assert [(one["role"], one["content"]) for one in server.requests[0].json()["messages"]] == sent
    assert session.turns[: len(turns)] == tuple(turns)


# ------------------------------------------------------------------------------------------- a forced tool


@pytest.mark.parametrize(
    ("choice", "tools", "sent"),
    [
        ("required", [look], ["required", None]),
        (NamedTool("look"), [look], [{"type": "function", "function": {"name": "look"}}, None]),
        ("auto", [look], ["auto", "auto"]),
        ("none", [look], ["none", "none"]),
        ("required", [look, final_answer], ["required", "required"]),  # which ends with the final answer
    ],
)
def test_a_tool_that_has_to_be_called_is_called_once(
    server: ReplayServer, run: Run, said: Said, choice: Any, tools: list[Any], sent: list[Any]
) -> None:
    server.add(said(None, LOOK)).add(said("42"))
    assert answered(run, *tools, config=ChatConfig(tool_choice=choice)).final_output == "42"
    assert [request.json().get("tool_choice") for request in server.requests] == sent


# --------------------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("limits", "turns", "error"),
    [
        ({"input_tokens": 20}, 2, "not run: the limit of input_tokens is reached"),
        ({"output_tokens": 5}, 1, "not run: the limit of output_tokens is reached"),
        ({"total_tokens": 16}, 2, "not run: the limit of total_tokens is reached"),
        ({"tool_calls": 2}, 2, "not run: the limit of tool_calls is reached"),
    ],
)
def test_a_run_uses_no_more_than_it_may(
    server: ReplayServer, run: Run, said: Said, limits: dict[str, int], turns: int, error: str
) -> None:
    ran: list[int] = []

    def count(number: int) -> str:
        """Count."""
        ran.append(number)
        return "1"

    calls = [(str(n), "count", f'{{"number": {n}}}') for n in range(2)]
    server.add(said(None, *calls), times=None)
    response = answered(run, count, limits=UsageLimits(**limits))
    assert (response.outcome, len(response.turns)) == (AgentOutcome.USAGE_LIMIT, turns)
    assert {result.error for result in response.turns[-1].tool_results} == {error}
    assert len(ran) == 2 * (turns - 1)


def test_an_answer_that_is_there_is_not_thrown_away(server: ReplayServer, run: Run, said: Said) -> None:
    server.add(said("42"))
    assert answered(run, limits=UsageLimits(total_tokens=1)).outcome is AgentOutcome.ANSWERED


def test_a_run_that_goes_on_may_use_as_much_again(server: ReplayServer, run: Run, said: Said) -> None:
    server.add(said(None, LOOK)).add(said(None, LOOK)).add(said(None, LOOK)).add(said("42"))

    async def use(service: LLMService) -> AgentResponse:
        agent = Agent(service, [look], limits=UsageLimits(total_tokens=30))
        stopped = agent.run("?")
        assert (await stopped.finish()).outcome is AgentOutcome.USAGE_LIMIT
        return await agent.resume(stopped).finish()

    response = run(use)
    assert [turn.outcome for turn in response.turns] == [None, None, AgentOutcome.ANSWERED]


@pytest.mark.parametrize("number", [0, -1, True, 1.5, "3"])
def test_a_limit_that_is_none(number: Any) -> None:
    with pytest.raises(ConfigurationError, match="tool_calls must be a whole number"):
        UsageLimits(tool_calls=number)


# ------------------------------------------------------------------------------------------------- approval


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


PAY = ToolCall("1", "pay", '{"amount": 5}')


def executed(runner: ToolRunner, *calls: ToolCall, **more: Any) -> tuple[ToolExecutionResult, ...]:
    async def main() -> tuple[ToolExecutionResult, ...]:
        async with asyncio.timeout(60):
            return await runner.run(calls, **more)

    return asyncio.run(main())


async def later(call: ToolCall) -> bool:
    await asyncio.sleep(0)
    return call == PAY


def unable(_: ToolCall) -> bool:
    raise OSError("/home/ann")


async def withdrawn(_: ToolCall) -> bool:
    raise asyncio.CancelledError  # whoever was asked has gone


class EndedError(BaseException):
    """No Exception, as some frameworks have them."""


def ended(_: ToolCall) -> bool:
    raise EndedError


@pytest.mark.parametrize(
    ("approve", "outcome", "told"),
    [
        (lambda call: call == PAY, ToolOutcome.OK, "paid 5"),
        (later, ToolOutcome.OK, "paid 5"),
        (lambda call: False, ToolOutcome.DECLINED, "declined"),
        (lambda call: "", ToolOutcome.DECLINED, "declined"),
        (lambda call: "too much", ToolOutcome.DECLINED, "declined: too much"),
        (lambda call: 1, ToolOutcome.DECLINED, "declined"),  # whoever says yes says it clearly
        (unable, ToolOutcome.DECLINED, "declined: the approval failed"),
        (withdrawn, ToolOutcome.DECLINED, "declined: the approval failed"),
        (ended, ToolOutcome.DECLINED, "declined: the approval failed"),
        (None, ToolOutcome.DECLINED, "declined: no approval is possible here"),
    ],
)
def test_a_tool_that_needs_approval_runs_with_it_alone(approve: Any, outcome: ToolOutcome, told: str) -> None:
    runner = ToolRunner([pay, look])
    first, second = executed(runner, PAY, ToolCall("2", "look"), approve=approve)
    assert (first.outcome, first.error or first.output) == (outcome, told)
    assert first.was_run is (outcome is ToolOutcome.OK)
    raised = {unable: OSError, withdrawn: asyncio.CancelledError, ended: EndedError}
    assert isinstance(first.exception, raised.get(approve, type(None)))
    assert second.output == "seen"


def test_a_question_ends_with_the_run_and_with_the_program() -> None:
    asked = asyncio.Event()

    async def waits(_: ToolCall) -> bool:
        asked.set()
        return await asyncio.Event().wait()

    async def main() -> None:
        task = asyncio.create_task(ToolRunner([pay]).run([PAY], approve=waits))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    def leaves(_: ToolCall) -> bool:
        raise SystemExit

    with pytest.raises(SystemExit):
        executed(ToolRunner([pay]), PAY, approve=leaves)


def test_what_is_wrong_is_told_before_anybody_is_asked() -> None:
    (result,) = executed(ToolRunner([pay]), ToolCall("1", "pay", "{}"), approve=unable)
    assert result.outcome is ToolOutcome.INVALID_ARGUMENTS


def test_one_call_is_asked_about_after_the_other() -> None:
    """Somebody sits before a terminal."""
    asked: list[str] = []
    lock = threading.Lock()

    def approve(call: ToolCall) -> bool:
        assert lock.acquire(blocking=False)
        asked.append(call.id)
        lock.release()
        return True

    calls = [ToolCall(str(n), "pay", '{"amount": 5}') for n in range(9)]
    executed(ToolRunner([pay]), *calls, approve=approve)
    assert asked == [str(n) for n in range(9)]


def test_an_agent_asks_before_it_runs(server: ReplayServer, run: Run, said: Said) -> None:
    server.add(said(None, ("1", "pay", '{"amount": 5}'))).add(said("As you like."))
    response = answered(run, pay, approve=lambda call: "not on a Sunday")
    assert response.turns[0].tool_results[0].outcome is ToolOutcome.DECLINED
    assert server.requests[1].json()["messages"][-1]["content"] == "Error: declined: not on a Sunday"


# -------------------------------------------------------------------------------------------- kinds of service


def test_a_service_of_ones_own_may_give_what_is_awaited(server: ReplayServer, run: Run, said: Said) -> None:
    server.add(said("42"))

    class Counting:
        def __init__(self, service: LLMService) -> None:
            self.service = service

        def complete(self, request: ChatRequest) -> Any:
            return self.service.complete(request)

    response = run(lambda service: Agent(Counting(service)).answer("?"))  # type: ignore[arg-type]
    assert response.final_output == "42"


def test_a_service_of_the_other_kind_is_refused_at_once() -> None:
    endpoint = Endpoint("ollama", model="m", base_url="http://127.0.0.1:9")
    with SyncLLMService(endpoint) as blocking:
        for make in (Agent, AsyncChatAgent):
            with pytest.raises(ConfigurationError, match="must be LLMService, not SyncLLMService"):
                make(blocking)
    with pytest.raises(ConfigurationError, match="must be LLMService, not a class"):
        Agent(LLMService)  # type: ignore[arg-type]
    for service in (LLMService(endpoint), None, 3):
        with pytest.raises(ConfigurationError, match="must be SyncLLMService, not"):
            ChatAgent(service)  # type: ignore[arg-type]
