"""The tool calls of one answer: run, approved and recorded in the session as they happen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractContextManager, aclosing
from typing import TYPE_CHECKING, Any, TypeAlias

from crosswalk.agent.results import ToolExecutionResult, ToolExecutionStart, not_run, stopped
from crosswalk.types.message import ChatMessage, ToolCall

if TYPE_CHECKING:
    from crosswalk.agent.runner import Approve, ToolRunner, ToolTracer
    from crosswalk.agent.tools import ToolRegistry


ToolStep: TypeAlias = ToolExecutionStart | ToolExecutionResult


def is_final_call(tools: ToolRegistry, call: ToolCall) -> bool:
    """Whether *call* calls a tool that gives the final answer."""
    tool = tools.get(call.name)
    return tool is not None and tool.is_final


def is_final_result(tools: ToolRegistry, result: ToolExecutionResult) -> bool:
    """Whether *result* is a final answer."""
    return result.error is None and is_final_call(tools, result.call)


class ToolPhase:
    """Runs the tool calls of one answer.

    Args:
        calls: the calls, in the order of the answer.
        runner: runs them.
        approve: asked before a tool runs that needs approval, or ``None``.
        approved: decisions made before the run, by call id. They replace *approve* for these calls.
        trace_tool: returns the span of a tool, or ``None`` without telemetry.
        current_span: returns a block in which the span of the run is current.
        add_message: adds a message to the session.
        deps: given to each tool that takes a ``ToolContext``.

    Attributes:
        calls: the calls.
        results: the results so far, by call id.
    """

    def __init__(
        self,
        calls: tuple[ToolCall, ...],
        *,
        runner: ToolRunner,
        approve: Approve | None,
        approved: Mapping[str, bool | str],
        trace_tool: ToolTracer | None,
        current_span: Callable[[], AbstractContextManager[object]],
        add_message: Callable[[ChatMessage], None],
        deps: object,
    ) -> None:
        self.calls = calls
        self.results: dict[str, ToolExecutionResult] = {}
        self._started: set[str] = set()
        self._runner = runner
        self._approve = approve
        self._approved = approved
        self._trace_tool = trace_tool
        self._current_span = current_span
        self._add_message = add_message
        self._deps = deps

    @property
    def is_waiting(self) -> bool:
        """Whether a call waits for an approval or a result."""
        return any(result.is_waiting for result in self.results.values())

    def record(self, step: ToolStep) -> None:
        """Record that a tool started, or its result.

        A started tool is added to the session as cancelled. If the program ends now, the session already says so.
        """
        if isinstance(step, ToolExecutionStart):
            self._started.add(step.call.id)
            step = stopped(step.call)
        else:
            self.results[step.call.id] = step
            if step.is_waiting:
                return  # the call stays open in the session
        self._add_message(step.message)

    def all_results(self) -> tuple[ToolExecutionResult, ...]:
        """Return a result for each call. Calls without one were stopped."""
        return tuple(self.results.get(call.id) or self._unfinished(call) for call in self.calls)

    def _unfinished(self, call: ToolCall) -> ToolExecutionResult:
        return stopped(call) if call.id in self._started else not_run(call, "the run was stopped")

    async def run(self) -> AsyncGenerator[ToolStep, None]:
        """Run the calls that have no result yet.

        Final tools run last, one after the other, and only until one succeeds: a run has one final answer.
        """
        pending = [call for call in self.calls if call.id not in self.results]
        finals = [call for call in pending if is_final_call(self._runner.tools, call)]
        others = [call for call in pending if call not in finals]
        for calls, is_final in ((others, False), *(([call], True) for call in finals)):
            if is_final and self.is_waiting:
                reason = "another call waits"
            elif any(is_final_result(self._runner.tools, result) for result in self.results.values()):
                reason = "the final answer had been given"
            else:
                async with aclosing(self._run_together(calls)) as steps:
                    async for step in steps:
                        yield step
                continue
            for call in calls:
                self.record(not_run(call, reason))

    async def _run_together(self, calls: list[ToolCall]) -> AsyncGenerator[ToolStep, None]:
        queue: asyncio.Queue[ToolStep | Exception | None] = asyncio.Queue()

        def report(step: ToolStep) -> None:
            try:
                self.record(step)
            except Exception as error:  # raised here too, so that the tool does not run
                queue.put_nowait(error)
                raise
            queue.put_nowait(step)

        run = self._runner.run(
            calls,
            report=report,
            approve=self._approve_function(),
            trace_tool=self._trace_tool,
            deps=self._deps,
        )
        with self._current_span():
            task = asyncio.create_task(run)
        task.add_done_callback(lambda _: queue.put_nowait(None))
        try:
            while (step := await queue.get()) is not None:
                if isinstance(step, Exception):
                    raise step
                yield step
            task.result()  # raises an error of a span
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _approve_function(self) -> Approve | None:
        """Return a function that looks up earlier decisions before it asks the agent's own function."""
        approved, approve = self._approved, self._approve
        if not approved:
            return approve

        def decide(call: ToolCall) -> Any:
            if call.id in approved:
                return approved[call.id]
            return None if approve is None else approve(call)

        return decide
