"""Runs that are stopped, go on, and are kept in a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from crosswalk import (
    ChatMessage,
    ChatResponse,
    CrosswalkError,
    ResponseValidationError,
    ServerError,
    StreamEvent,
    ToolCall,
)
from crosswalk.agent import (
    Agent,
    AgentError,
    AgentOutcome,
    AgentResponse,
    AgentRun,
    AgentTurn,
    ChatSession,
    Tool,
    ToolExecutionResult,
    ToolExecutionStart,
    ToolOutcome,
    ToolRunner,
    collect,
    tool,
)
from crosswalk.agent.otel import AgentTelemetry
from crosswalk.service import LLMService
from crosswalk.testing import load_capture
from crosswalk.testing.exchange import Stall
from crosswalk.testing.replay import Answer, ReplayServer
from leaving import WAYS, left_open
from pages import ROOT

Run = Callable[..., Any]
Said = Callable[..., Answer]
STREAM = load_capture(ROOT / "tests/captures/vllm/reasoning_chat_think_stream.response.sse")
STOPPED = "cancelled: the tool was stopped before its result came; it may have had its effect"


class Shop:
    """Two tools: one has its effect at once, the other waits until it is let go, or stopped."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.waits = asyncio.Event()
        self.go = asyncio.Event()

    def pay(self, amount: int) -> str:
        """Pay."""
        self.paid.append(amount)
        return f"paid {amount}"

    async def deliver(self) -> str:
        """Deliver."""
        self.waits.set()
        await self.go.wait()
        return "delivered"

    def runner(self) -> ToolRunner:
        return ToolRunner([self.pay, self.deliver], max_parallel=1)


PAY, DELIVER, AGAIN = ("1", "pay", '{"amount": 5}'), ("2", "deliver", "{}"), ("3", "pay", '{"amount": 7}')


def told(request: Any) -> list[str]:
    """The contents of a request: the role, and the text or the ids of the calls."""
    return [
        f"{one['role']}: {one['content'] or ','.join(call['id'] for call in one.get('tool_calls', ()))}"
        for one in request.json()["messages"]
    ]


async def cancelled(run: AgentRun[Any], shop: Shop) -> None:
    task = asyncio.ensure_future(run.finish())
    await shop.waits.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


async def stopped(run: AgentRun[Any], shop: Shop) -> None:
    task = asyncio.ensure_future(run.finish())
    await shop.waits.wait()
    run.stop()
    run.stop()
    assert (await task).outcome is AgentOutcome.CANCELLED


async def left(run: AgentRun[Any], shop: Shop) -> None:
    async with run:
        async for step in run:
            if step == ToolExecutionStart(ToolCall(*DELIVER)):
                return


@pytest.mark.parametrize("end", [cancelled, stopped, left])
def test_a_run_that_is_stopped_is_kept_and_goes_on(
    server: ReplayServer, run: Run, said: Said, end: Callable[..., Any]
) -> None:
    """The tool that has paid is not run again: its result stays, and the model learns which tool was stopped."""
    server.add(said(None, PAY, DELIVER, AGAIN)).add(said("All done."))
    shop = Shop()

    async def use(service: LLMService) -> tuple[AgentRun[Any], AgentRun[Any]]:
        agent = Agent(service, shop.runner())
        first = (agent.run if end is not left else agent.stream)("Buy it.")
        await end(first, shop)
        assert [_ async for _ in first] == []
        again = agent.resume(first)
        await again.finish()
        return first, again

    first, again = run(use)
    assert shop.paid == [5]
    (turn,) = first.turns
    assert [(result.outcome, result.error or result.output) for result in turn.tool_results] == [
        (ToolOutcome.OK, "paid 5"),
        (ToolOutcome.CANCELLED, STOPPED),
        (ToolOutcome.NOT_RUN, "not run: the run was stopped"),
    ]
    assert turn.outcome is first.response.outcome is AgentOutcome.CANCELLED
    assert first.response.usage.total_tokens == 15
    assert first.conversation == turn.conversation == first.response.conversation
    assert [one.final_output for one in again.turns] == [None, "All done."]
    assert again.response.usage.total_tokens == 30
    assert told(server.requests[1]) == [
        "user: Buy it.",
        "assistant: 1,2,3",
        "tool: paid 5",
        f"tool: Error: {STOPPED}",
        "tool: Error: not run: the run was stopped",
    ]


@pytest.mark.parametrize("with_session", [False, True])
def test_an_answer_that_was_stopped_is_kept_and_asked_for_again(
    server: ReplayServer, run: Run, with_session: bool
) -> None:
    server.add(STREAM, Stall(after_events=8)).add(STREAM).add(STREAM)
    session = ChatSession() if with_session else None

    async def use(service: LLMService) -> AgentRun[Any]:
        agent = Agent(service)
        first = agent.stream("Why?", session=session)
        texts = []
        async for step in first:
            assert isinstance(step, StreamEvent)
            texts.append((step.delta and step.delta.reasoning_delta) or "")
            if len(texts) == 4:
                first.stop()
        (turn,) = first.turns
        assert turn.outcome is AgentOutcome.CANCELLED
        assert turn.response.reasoning.startswith("".join(texts))  # more may have come than was looked at
        assert session is None or session.turns[1:] == (turn.response,)
        again = agent.resume(first)
        await again.finish()
        with pytest.raises(CrosswalkError, match="has its answer"):
            agent.resume(again)
        if session is not None:
            answers = [said for said in session.turns if isinstance(said, ChatResponse)]
            assert answers == [again.turns[0].response]
        return again

    again = run(use)
    assert told(server.requests[1]) == ["user: Why?"]
    assert [turn.outcome for turn in again.turns] == [AgentOutcome.ANSWERED]


def test_what_was_said_after_a_stop_is_answered(server: ReplayServer, run: Run) -> None:
    server.add(STREAM, Stall(after_events=8)).add(STREAM)
    session = ChatSession()

    async def use(service: LLMService) -> None:
        agent = Agent(service)
        async with agent.stream("Why?", session=session) as first:
            async for _ in first:
                if len(session):
                    first.stop()
        session.add_message(ChatMessage.user("Now!"))
        await agent.resume(first).finish()

    run(use)
    assert told(server.requests[1])[-1] == "user: Now!"


def test_a_stop_before_anything_came(server: ReplayServer, run: Run) -> None:
    server.add(STREAM, Stall(after_events=0)).add(STREAM)

    async def use(service: LLMService) -> None:
        never = Agent(service).run("Why?")
        never.stop()
        assert [_ async for _ in never] == []
        assert (never.turns, never.conversation) == ((), ())
        assert never.response.outcome is AgentOutcome.CANCELLED
        with pytest.raises(ResponseValidationError, match="no turns yet"):
            _ = Agent(service).run("Why?").response
        waiting = Agent(service).run("Why?")
        task = asyncio.ensure_future(collect(waiting))
        while not server.requests:
            await asyncio.sleep(0.001)
        waiting.stop()
        assert (await task).outcome is waiting.response.outcome is AgentOutcome.CANCELLED
        with pytest.raises(AgentError, match="no answer after 0 turns: cancelled"):
            waiting.response.unwrap()
        assert (await Agent(service).resume(waiting).finish()).outcome is AgentOutcome.ANSWERED

    run(use)


def test_a_cancellation_that_comes_with_a_stop_gets_through(server: ReplayServer, run: Run) -> None:
    server.add(STREAM, Stall(after_events=0))

    async def use(service: LLMService) -> None:
        waiting = Agent(service).run("Why?")
        task = asyncio.ensure_future(waiting.finish())
        while not server.requests:
            await asyncio.sleep(0.001)
        waiting.stop()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert (waiting.response.outcome, waiting.turns) == (AgentOutcome.CANCELLED, ())

    run(use)


def test_a_stopped_answer_with_a_call_cut_in_two(server: ReplayServer, run: Run) -> None:
    capture = load_capture(
        ROOT / "tests/captures/vllm/reasoning_tool_auto_parallel_seed4_stream.response.sse"
    )
    server.add(capture, Stall(after_events=60))

    async def use(service: LLMService) -> Any:
        session = ChatSession()
        async with Agent(service).stream("Weather?", session=session) as steps:
            async for step in steps:
                if isinstance(step, StreamEvent) and step.delta and step.delta.tool_call_delta:
                    break
        return steps.turns, session

    (turn,), session = run(use)
    assert {result.error for result in turn.tool_results} == {"not run: the run was stopped"}
    assert session.turns[1:] == turn.conversation
    assert session.open_calls == ()


# ------------------------------------------------------------------------------------------ calls that are open


OPEN = ChatMessage.assistant(None, tool_calls=[ToolCall(*PAY), ToolCall(*AGAIN)])


def test_calls_that_are_open_are_run_first(server: ReplayServer, run: Run, said: Said) -> None:
    server.add(said("Done."))
    shop = Shop()
    turns = [ChatMessage.user("Buy."), OPEN, ChatMessage.tool_result("1", "paid before")]

    async def use(service: LLMService) -> Any:
        agent = Agent(service, shop.runner())
        steps = [step async for step in agent.stream(turns)]
        return steps

    steps = run(use)
    assert shop.paid == [7]
    assert told(server.requests[0]) == ["user: Buy.", "assistant: 1,3", "tool: paid before", "tool: paid 7"]
    assert [step for step in steps if isinstance(step, ToolExecutionStart | ToolExecutionResult)] == [
        ToolExecutionStart(ToolCall(*AGAIN)),
        ToolExecutionResult(ToolCall(*AGAIN), "paid 7"),
    ]
    assert isinstance(steps[-1], AgentTurn)


def test_what_open_calls_give_belongs_to_the_run(server: ReplayServer, run: Run, said: Said) -> None:
    server.add(said("Done."))
    response = run(lambda service: Agent(service, Shop().runner()).answer([ChatMessage.user("Buy."), OPEN]))
    assert [result.output for result in response.open_results] == ["paid 5", "paid 7"]
    assert [turn.final_output for turn in response.turns] == ["Done."]
    session = ChatSession([ChatMessage.user("Buy."), OPEN])
    session.extend(response.conversation)
    assert [message.text for message in session.messages] == ["Buy.", "", "paid 5", "paid 7", "Done."]


def test_half_a_call_is_not_run(server: ReplayServer, run: Run, said: Said) -> None:
    server.add(said(None, PAY, finish="length")).add(said("Again, then."))
    shop = Shop()

    async def use(service: LLMService) -> AgentResponse:
        agent = Agent(service, shop.runner())
        cut = await agent.answer("Buy.")
        assert cut.outcome is AgentOutcome.TRUNCATED
        return await agent.answer([ChatMessage.user("Buy."), cut.turns[0].response])

    response = run(use)
    assert [result.error for result in response.open_results] == ["not run: the answer ended with length"]
    assert shop.paid == []


def test_an_open_call_that_is_the_final_answer(server: ReplayServer, run: Run) -> None:
    @tool(is_final=True)
    def report(degrees: int) -> str:
        return f"{degrees} degrees"

    turns = [
        ChatMessage.user("?"),
        ChatMessage.assistant(None, tool_calls=[ToolCall("1", "report", '{"degrees": 3}')]),
    ]
    response = run(lambda service: Agent(service, [report]).answer(turns))
    assert (response.outcome, response.final_output, response.turns) == ("answered", "3 degrees", ())
    assert response.raise_for_outcome() is response
    assert not server.requests


def test_open_calls_that_are_stopped(server: ReplayServer, run: Run, said: Said) -> None:
    server.add(said("Done."))
    shop = Shop()
    turns = [ChatMessage.assistant(None, tool_calls=[ToolCall(*PAY), ToolCall(*DELIVER)])]

    async def use(service: LLMService) -> Any:
        agent = Agent(service, shop.runner())
        first = agent.run(turns)
        await cancelled(first, shop)
        assert first.response.outcome is AgentOutcome.CANCELLED
        with pytest.raises(CrosswalkError, match="no answer after 0 turns"):
            first.response.raise_for_outcome()
        await agent.resume(first).finish()
        return first

    first = run(use)
    assert [result.error or result.output for result in first.response.open_results] == ["paid 5", STOPPED]
    assert shop.paid == [5]
    assert told(server.requests[0])[1:] == ["tool: paid 5", f"tool: Error: {STOPPED}"]


# ------------------------------------------------------------------------------------------------- in a session


def test_a_session_takes_what_is_said_when_it_is(server: ReplayServer, run: Run, said: Said) -> None:
    server.add(said(None, PAY, AGAIN)).add(said("Done.")).add(said("Bye."))
    shop = Shop()
    session = ChatSession([ChatMessage.system("Sell.")])
    saved: list[int] = []

    async def use(service: LLMService) -> None:
        agent = Agent(service, shop.runner())
        await agent.answer("Buy.", session=session, save=lambda one: saved.append(len(one)))
        await agent.answer("Thanks.", session=session)
        with pytest.raises(ResponseValidationError, match="at least one"):
            agent.run(session=ChatSession())

    run(use)
    assert [message.text for message in session.messages] == [
        *("Sell.", "Buy.", "", "paid 5", "paid 7", "Done.", "Thanks.", "Bye.")
    ]
    assert saved[:2] == [2, 3]  # the question is kept before there is an answer
    assert saved[-1] == 6
    assert sorted(saved) == saved
    assert told(server.requests[2])[-1] == "user: Thanks."


def test_a_program_that_was_killed_goes_on_and_runs_nothing_twice(
    server: ReplayServer, run: Run, said: Said, tmp_path: Path
) -> None:
    """Its file while a tool runs: that one may have had its effect, the next one has not been run."""
    server.add(said(None, PAY, DELIVER, AGAIN)).add(said("Done."))
    file = tmp_path / "session.json"
    shop, later = Shop(), Shop()

    async def use(service: LLMService) -> None:
        killed = Agent(service, shop.runner()).run(
            "Buy.", session=ChatSession(), save=lambda one: one.save(file)
        )
        task = asyncio.ensure_future(killed.finish())
        await shop.waits.wait()
        restarted = ChatSession.load(file)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert restarted.open_calls == (ToolCall(*AGAIN),)
        await Agent(service, later.runner()).answer(session=restarted)

    run(use)
    assert (shop.paid, later.paid) == ([5], [7])
    assert told(server.requests[1])[2:] == ["tool: paid 5", f"tool: Error: {STOPPED}", "tool: paid 7"]


class Killed(BaseException):
    """What is no failure of a program, but its end."""


@pytest.mark.parametrize("kind", [OSError, Killed])
@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
def test_what_cannot_be_saved_is_not_run(
    server: ReplayServer, run: Run, said: Said, at: int, kind: type[BaseException]
) -> None:
    """Whatever the run does then, the error itself is raised."""
    server.add(said(None, PAY)).add(said("Done."))
    shop = Shop()
    calls = 0

    def save(_: ChatSession) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            raise kind("the disk is full")

    with pytest.raises(kind, match="the disk is full"):
        run(lambda service: Agent(service, shop.runner()).answer("Buy.", session=ChatSession(), save=save))
    assert shop.paid == ([] if at < 4 else [5])


def test_a_run_that_goes_on_cannot_be_taken_up_by_another(server: ReplayServer, run: Run) -> None:
    """The effects of its tools are not known yet, so they would be run again."""
    call = {"index": 0, "id": "2", "type": "function", "function": {"name": "deliver", "arguments": "{}"}}
    choice = {"index": 0, "delta": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "tool_calls"}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    server.add(Answer.of_events([chunk])).add(STREAM)
    shop = Shop()

    async def use(service: LLMService) -> AgentOutcome:
        agent = Agent(service, shop.runner())
        first = agent.stream("Deliver.")
        async for step in first:
            if isinstance(step, ToolExecutionStart):
                break
        with pytest.raises(CrosswalkError, match="still active"):
            agent.resume(first)
        await first.aclose()
        async with agent.resume(first) as second:
            return (await second.finish()).outcome

    assert run(use) is AgentOutcome.ANSWERED


@pytest.mark.parametrize("with_session", [False, True])
def test_a_run_that_is_resumed_twice_runs_no_tool_twice(
    server: ReplayServer, run: Run, said: Said, with_session: bool
) -> None:
    """It goes on where it was left the last time, not where it was stopped at first."""
    server.add(said(None, DELIVER)).add(said(None, PAY)).add(Answer.failure(500)).add(said("Done."))
    shop = Shop()
    session = ChatSession() if with_session else None

    async def use(service: LLMService) -> AgentRun[Any]:
        agent = Agent(service, shop.runner())
        first = agent.run("Buy it.", session=session)
        await stopped(first, shop)
        assert (await agent.resume(first).finish()).outcome is AgentOutcome.ERROR
        again = agent.resume(first)
        await again.finish()
        with pytest.raises(CrosswalkError, match="has its answer"):
            agent.resume(first)
        return again

    again = run(use)
    assert shop.paid == [5]
    assert told(server.requests[3])[-2:] == ["assistant: 1", "tool: paid 5"]
    assert [turn.final_output for turn in again.turns] == [None, None, "Done."]


def test_of_two_runs_that_go_on_with_one_that_never_began_the_last_one_does(
    server: ReplayServer, run: Run, said: Said
) -> None:
    """Each of the three would run the open call."""
    server.add(said("Done."))
    shop = Shop()

    async def use(service: LLMService) -> None:
        agent = Agent(service, shop.runner())
        never = agent.run(
            [ChatMessage.user("Buy."), ChatMessage.assistant(None, tool_calls=[ToolCall(*PAY)])]
        )
        second, last = agent.resume(never), agent.resume(never)
        assert (await last.finish()).outcome is AgentOutcome.ANSWERED
        for other in (never, second):
            assert [_ async for _ in other] == []

    run(use)
    assert shop.paid == [5]
    assert len(server.requests) == 1


@pytest.mark.parametrize("at", range(1, 9))
def test_whoever_saves_may_stop_the_run(server: ReplayServer, run: Run, said: Said, at: int) -> None:
    """Whatever the run is about to do then: nothing of it gets into the task that iterates."""
    server.add(said(None, PAY), times=2).add(said("Done."))
    session = ChatSession()
    saved = 0

    async def use(service: LLMService) -> None:
        def save(_: ChatSession) -> None:
            nonlocal saved
            saved += 1
            if saved == at:
                stopped.stop()

        stopped = Agent(service, Shop().runner()).run("Buy.", session=session, save=save)
        async for _ in stopped:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert stopped.conversation == session.turns[1:]
        assert session.open_calls == ()

    run(use)
    assert saved >= at


def test_what_breaks_around_a_tool_is_raised(server: ReplayServer, run: Run, said: Said) -> None:
    """Not taken for a tool that was stopped: the model would learn so, and go on."""
    server.add(said(None, PAY))

    class Broken(AgentTelemetry):
        def trace_tool(self, call: ToolCall, one: Tool) -> Any:
            raise LookupError("no span")

    shop = Shop()
    with pytest.raises(LookupError, match="no span"):
        run(lambda service: Agent(service, shop.runner(), telemetry=Broken()).answer("Buy."))
    assert shop.paid == []


def test_an_error_is_no_part_of_a_session(server: ReplayServer, run: Run) -> None:
    server.add(Answer.failure(500))
    session = ChatSession()
    response = run(lambda service: Agent(service).answer("Buy.", session=session))
    assert response.outcome is AgentOutcome.ERROR
    assert [message.text for message in session.messages] == ["Buy."]


def test_an_error_of_a_stream_is_the_turns_error(server: ReplayServer, run: Run) -> None:
    server.add(Answer.failure(500))

    async def use(service: LLMService) -> Any:
        async with Agent(service).stream("Buy.") as steps:
            return await steps.finish()

    response = run(use)
    assert isinstance(response.turns[0].error, ServerError)
    with pytest.raises(ServerError):
        response.unwrap()


def test_one_run_at_a_time_uses_a_session(server: ReplayServer, run: Run, said: Said) -> None:
    """Two requests of a double click would mix their turns."""
    server.add(said("Yes."), times=None)
    session = ChatSession()

    async def use(service: LLMService) -> None:
        agent = Agent(service)
        both = await asyncio.gather(
            *(agent.answer("Buy.", session=session) for _ in range(2)), return_exceptions=True
        )
        assert isinstance(both[1], CrosswalkError)
        assert "in use by another run" in str(both[1])
        async with agent.run("One.", session=session) as one, agent.run("Two.", session=session) as two:
            await anext(one)
            with pytest.raises(CrosswalkError, match="in use"):
                await anext(two)
        await agent.answer("Buy.", session=session)

    run(use)
    roles = [message.role.value for message in session.messages]
    assert roles[:2] == ["user", "assistant"]


# ---------------------------------------------------------------------------- runs that nobody closes


@pytest.mark.untraced
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("telemetry", [None, AgentTelemetry()], ids=["plain", "traced"])
def test_a_run_that_nobody_closes_ends_quietly_with_its_loop(
    caplog: pytest.LogCaptureFixture, way: str, telemetry: Any
) -> None:
    run = left_open(
        way, lambda service: Agent(service, telemetry=telemetry).stream("Why?"), STREAM, 3, caplog
    )
    if run is not None:
        assert run.response.outcome is AgentOutcome.CANCELLED


def test_a_call_without_a_name_ends_the_run_and_resume_asks_again(
    server: ReplayServer, run: Run, said: Said
) -> None:
    server.add(said(None, ("1", "", "{}"))).add(said("Done."))

    async def use(service: LLMService) -> tuple[AgentResponse, AgentResponse]:
        agent = Agent(service)
        first = agent.run("Hello?")
        ended = await first.finish()
        return ended, await agent.resume(first).finish()

    ended, again = run(use)
    assert ended.outcome is AgentOutcome.ERROR
    assert "tool call 0 has no name" in str(ended.turns[-1].error)
    assert again.final_output == "Done."
