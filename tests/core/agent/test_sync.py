"""Agents without an event loop of the program's own."""

from __future__ import annotations

import asyncio
import inspect
import signal
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from crosswalk import ConfigurationError, StreamEvent, ToolCall
from crosswalk.agent import (
    Agent,
    AgentOutcome,
    AgentTurn,
    ChatSession,
    SyncAgent,
    ToolExecutionResult,
    ToolExecutionStart,
    ToolOutcome,
)
from crosswalk.agent.agent import AgentOptions
from crosswalk.service import Endpoint, LLMService, SyncLLMService
from crosswalk.testing import load_capture
from crosswalk.testing.exchange import Stall
from crosswalk.testing.replay import Answer, ReplayServer
from pages import ROOT

Said = Callable[..., Answer]
STREAM = load_capture(ROOT / "tests/captures/vllm/reasoning_chat_think_stream.response.sse")


def look() -> str:
    """Look."""
    return "seen"


async def listen() -> str:
    """Listen."""
    await asyncio.sleep(0)
    return "heard"


BOTH = [("1", "look", "{}"), ("2", "listen", "{}")]


def test_an_agent_without_await(server: ReplayServer, service: SyncLLMService, said: Said) -> None:
    server.add(said(None, *BOTH)).add(said("42"))
    session = ChatSession()
    saved: list[int] = []
    agent = SyncAgent(service, [look, listen], instructions="Be brief.")
    response = agent.answer("?", session=session, save=lambda one: saved.append(len(one)))
    assert response.final_output == "42"
    assert [result.output for result in response.turns[0].tool_results] == ["seen", "heard"]
    assert session.turns[1:] == response.conversation
    run = agent.run(session=session)
    assert (run.conversation, run.turns) == ((), ())
    assert saved


def test_its_steps_as_they_happen(server: ReplayServer, service: SyncLLMService, said: Said) -> None:
    server.add(said(None, *BOTH)).add(STREAM).add(said("42"))
    agent = SyncAgent(service, [look, listen])
    steps = list(agent.stream("?"))
    assert sum(isinstance(step, ToolExecutionStart) for step in steps) == 2
    assert sum(isinstance(step, ToolExecutionResult) for step in steps) == 2
    assert sum(isinstance(step, StreamEvent) for step in steps) > 5
    assert [step.outcome for step in steps if isinstance(step, AgentTurn)] == [None, AgentOutcome.ANSWERED]
    assert [turn.final_output for turn in agent.run("?")] == ["42"]


def test_ctrl_c_keeps_what_was_done(server: ReplayServer, service: SyncLLMService, said: Said) -> None:
    paid: list[int] = []

    async def pay() -> str:
        paid.append(5)
        return "paid"

    async def interrupted() -> None:
        await asyncio.sleep(0)
        raise KeyboardInterrupt

    agent = SyncAgent(service, [pay, interrupted])
    server.add(said(None, ("1", "pay", "{}"), ("2", "interrupted", "{}"))).add(said("42"))
    run = agent.run("?")
    with pytest.raises(KeyboardInterrupt):
        run.finish()
    (turn,) = run.turns
    assert turn.outcome is AgentOutcome.CANCELLED
    assert [result.outcome for result in turn.tool_results] == [ToolOutcome.OK, ToolOutcome.CANCELLED]
    assert run.conversation == turn.conversation
    assert agent.resume(run).finish().final_output == "42"
    assert paid == [5]


def test_ctrl_c_in_the_first_answer_leaves_a_cancelled_run() -> None:
    class Interrupting:
        def started(self, _: object) -> Any:
            raise KeyboardInterrupt

    with SyncLLMService("vllm:m", base_url="http://127.0.0.1:9", observers=[Interrupting()]) as service:
        run = SyncAgent(service).run("?")
        with pytest.raises(KeyboardInterrupt):
            run.finish()
    assert (run.response.outcome, run.turns) == (AgentOutcome.CANCELLED, ())


@pytest.mark.parametrize("how", ["stop", "close"])
def test_a_stop_in_the_middle_of_an_answer(server: ReplayServer, service: SyncLLMService, how: str) -> None:
    server.add(STREAM, Stall(after_events=8)).add(STREAM)
    agent = SyncAgent(service)
    with agent.stream("?") as run:
        for _ in run:
            threads = [threading.Thread(target=run.stop)] if how == "stop" else []
            for thread in threads:
                thread.start()
                thread.join()
            if how == "close":
                run.close()
    assert run.response.outcome is AgentOutcome.CANCELLED
    assert run.turns[0].response.finish_reason == "cancelled"
    run.stop()  # once more does nothing
    assert list(run) == []
    assert agent.resume(run).finish().outcome is AgentOutcome.ANSWERED


def test_a_stop_while_tools_run_and_before_all(
    server: ReplayServer, service: SyncLLMService, said: Said
) -> None:
    begun, go = threading.Event(), threading.Event()

    def wait() -> str:
        begun.set()
        go.wait(60)
        return "late"

    server.add(said(None, ("1", "wait", "{}")))
    agent = SyncAgent(service, [wait])
    run = agent.run("?")
    stopper = threading.Thread(target=lambda: (begun.wait(60), run.stop(), go.set()))
    stopper.start()
    assert list(run) == []
    stopper.join()
    assert run.response.outcome is AgentOutcome.CANCELLED
    never = agent.run("?")
    never.stop()
    assert list(never) == []
    assert len(server.requests) == 1


def in_a_notebook(cell: Callable[[], Any]) -> Any:
    """The result of *cell* in a thread whose event loop runs."""

    async def running() -> Any:
        return cell()

    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(running())
    finally:
        loop.close()


def test_it_works_in_a_notebook(server: ReplayServer, service: SyncLLMService, said: Said) -> None:
    user: ContextVar[str] = ContextVar("user")

    async def who() -> str:
        await asyncio.sleep(0)
        return user.get()

    server.add(said(None, ("1", "who", "{}"))).add(said("42"))
    user.set("Ann")
    response = in_a_notebook(lambda: SyncAgent(service, [who]).answer("?"))
    assert response.final_output == "42"
    assert [result.value for turn in response.turns for result in turn.tool_results] == ["Ann"]


def test_ctrl_c_in_a_notebook_stops_the_run(
    server: ReplayServer, service: SyncLLMService, said: Said
) -> None:
    here = threading.get_ident()

    async def pressed() -> None:
        signal.pthread_kill(here, signal.SIGINT)
        await asyncio.sleep(3600)

    server.add(said(None, ("1", "pressed", "{}")))
    run = SyncAgent(service, [pressed]).run("?")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            in_a_notebook(run.finish)
    finally:
        signal.signal(signal.SIGINT, before)
    assert run.response.outcome is AgentOutcome.CANCELLED


@pytest.mark.parametrize("is_streamed", [False, True])
def test_ctrl_c_in_a_notebook_ends_the_wait_for_an_answer(
    server: ReplayServer, service: SyncLLMService, is_streamed: bool
) -> None:
    server.add(STREAM, Stall(after_events=0))
    agent, here, is_pressed = SyncAgent(service), threading.get_ident(), threading.Event()
    run = agent.stream("?") if is_streamed else agent.run("?")

    def interrupt(*_: object) -> None:
        if not is_pressed.is_set():
            is_pressed.set()
            raise KeyboardInterrupt

    def press() -> None:
        """Press until it is noticed: a signal just before the thread begins to wait does not end the wait."""
        server.wait_for(lambda it: bool(it.requests))
        while not is_pressed.wait(0.01):
            signal.pthread_kill(here, signal.SIGINT)
        server.wait_for(lambda it: bool(it.disconnects))

    before = signal.signal(signal.SIGINT, interrupt)
    ctrl_c = threading.Thread(target=press)
    ctrl_c.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            in_a_notebook(run.finish)
    finally:
        ctrl_c.join()
        signal.signal(signal.SIGINT, before)
    assert run.response.outcome is AgentOutcome.CANCELLED


@pytest.mark.parametrize("place", [in_a_notebook, lambda cell: cell()])
def test_a_run_that_is_left_and_forgotten_is_closed_at_once(
    server: ReplayServer, service: SyncLLMService, said: Said, place: Callable[[Callable[[], Any]], Any]
) -> None:
    ended: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("tool")

    def cell() -> None:
        for step in SyncAgent(service, [forever]).stream("?", session=session):
            if isinstance(step, ToolExecutionStart):
                break

    server.add(Answer.calls(ToolCall("1", "forever", "{}")))
    session = ChatSession()
    place(cell)
    assert ended == ["tool"]
    assert [turn.role.value for turn in session.messages] == ["user", "assistant", "tool"]
    server.add(said("42"))
    assert SyncAgent(service).answer("?", session=session).final_output == "42"


def test_a_run_may_move_to_a_notebook(server: ReplayServer, service: SyncLLMService, said: Said) -> None:
    server.add(said(None, ("1", "listen", "{}"))).add(said(None, ("2", "listen", "{}"))).add(said("42"))
    run = SyncAgent(service, [listen]).run("?")
    assert next(run).outcome is None
    assert in_a_notebook(lambda: next(run)).outcome is None
    assert run.finish().final_output == "42"
    left = SyncAgent(service).stream("?")
    server.add(STREAM, Stall(after_events=8))
    next(left)
    in_a_notebook(left.close)
    server.wait_for(lambda it: bool(it.disconnects))
    assert left.response.outcome is AgentOutcome.CANCELLED


def test_it_wants_a_service_that_blocks(endpoint: Endpoint) -> None:
    with pytest.raises(ConfigurationError, match="must be SyncLLMService, not LLMService"):
        SyncAgent(LLMService(endpoint))  # type: ignore[arg-type]


def test_it_takes_what_an_agent_takes() -> None:
    taken = set(inspect.signature(Agent).parameters) - {"service", "tools", "output_type"}
    assert taken == AgentOptions.__annotations__.keys()


@pytest.mark.parametrize("wrong", [None, "run", ChatSession()])
def test_what_is_no_run_cannot_be_resumed(service: SyncLLMService, wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="resume needs an AgentRun, not"):
        SyncAgent(service).resume(wrong)
