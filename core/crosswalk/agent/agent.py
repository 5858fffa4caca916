"""An agent: asks the model, runs the tools that it asks for, and asks again until it has an answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import attrs

from crosswalk.agent.calls import calls_of, not_run, own_calls
from crosswalk.agent.chat import ChatConfig
from crosswalk.agent.result import ToolExecutionResult
from crosswalk.agent.runner import ToolRunner
from crosswalk.agent.tools import Tool
from crosswalk.agent.turn import AgentOutcome, AgentResponse, AgentTurn, collect
from crosswalk.errors import ConfigurationError, MappingError, ProviderError
from crosswalk.service.request import Turn
from crosswalk.types import ChatResponse, FinishReason, StreamEvent, ToolCall

if TYPE_CHECKING:
    from crosswalk.service import LLMService

__all__ = ["Agent"]

_ENDINGS = {
    FinishReason.LENGTH: AgentOutcome.TRUNCATED,
    FinishReason.CONTENT_FILTER: AgentOutcome.CONTENT_FILTER,
    FinishReason.CANCELLED: AgentOutcome.CANCELLED,
    FinishReason.ERROR: AgentOutcome.ERROR,
}
"""The finish reasons with which a run ends, whatever else the answer holds."""


_PAUSES = frozenset({"pause_turn"})
"""The providers' words for an answer that they go on with when it is sent back as it is (Anthropic's server tools)."""


class Agent:
    """Asks a service, runs tools, asks again (seed 003, section "Agent").

    Args:
        service: whom to ask.
        tools: what the model may call: a runner with limits of its own, or tools and functions.
        config: sampling and the rest, but no tools: an agent has to have what it is asked to run.
        max_turns: how often the model may be asked in one run.

    Raises:
        ToolDefinitionError: a function cannot be a tool, or two tools have one name.
        ConfigurationError: *max_turns* is no whole number from 1 on, or *config* has tools.
    """

    def __init__(
        self,
        service: LLMService,
        tools: ToolRunner | Iterable[Tool | Callable[..., Any]] = (),
        *,
        config: ChatConfig | None = None,
        max_turns: int = 10,
    ) -> None:
        if type(max_turns) is not int or max_turns < 1:
            raise ConfigurationError("max_turns must be a whole number of at least 1", key="max_turns")
        self._service = service
        self._runner = tools if isinstance(tools, ToolRunner) else ToolRunner(tools)
        config = config or ChatConfig()
        if config.tools:
            raise ConfigurationError("give the tools to the agent, not in its config", key="tools")
        self._config = config
        self._max_turns = max_turns

    async def run(self, messages: str | Iterable[Turn]) -> AsyncGenerator[AgentTurn, None]:
        """Answer *messages*: each turn when it is done; the last one has an ``outcome``.

        A refusal, an error response, a cut answer and too many turns are outcomes, not exceptions. Close the
        iterator (``contextlib.aclosing``), or cancel its task, to stop it; tools that run are cancelled.

        Args:
            messages: the conversation, or the user's message alone.

        Raises:
            CrosswalkError: the request cannot be sent at all.
        """
        async with aclosing(self._steps(messages, streamed=False)) as steps:
            async for step in steps:
                assert isinstance(step, AgentTurn)  # only a stream has events
                yield step

    async def stream(self, messages: str | Iterable[Turn]) -> AsyncGenerator[StreamEvent | AgentTurn, None]:
        """The same as :meth:`run`, with each answer's events as they come, before its turn.

        Args:
            messages: the conversation, or the user's message alone.

        Raises:
            CrosswalkError: the request cannot be sent at all.
        """
        async with aclosing(self._steps(messages, streamed=True)) as steps:
            async for step in steps:
                yield step

    async def answer(self, messages: str | Iterable[Turn]) -> AgentResponse:
        """Run to the end.

        Args:
            messages: the conversation, or the user's message alone.

        Raises:
            CrosswalkError: the request cannot be sent at all.
        """
        return await collect(self.run(messages))

    async def _steps(
        self, messages: str | Iterable[Turn], *, streamed: bool
    ) -> AsyncGenerator[StreamEvent | AgentTurn, None]:
        # The tools that the runner has now: one may have been added to its registry since the last run.
        config = attrs.evolve(self._config, tools=self._runner.tools.values())
        request = config.request(messages)
        taken = {call.id for turn in request.messages for call in calls_of(turn)}
        number = 0
        while True:
            number += 1
            failure: ProviderError | MappingError | None = None
            try:
                if streamed:
                    async with self._service.stream(request) as events:
                        async for event in events:
                            yield event
                    answer = events.response
                else:
                    answer = await self._service.complete(request)
            except (ProviderError, MappingError) as error:
                kept = error.response if isinstance(error, ProviderError) else error.partial
                if kept is None:
                    raise
                answer, failure = kept, error
            calls = own_calls(answer.tool_calls, taken)
            turn = await self._turn(answer, calls, is_last=number >= self._max_turns)
            renamed = [
                [old.id, own.id] for old, own in zip(answer.tool_calls, calls, strict=True) if old != own
            ]
            yield attrs.evolve(turn, annotations={"renamed_calls": renamed} if renamed else {}, error=failure)
            if turn.outcome is not None:
                return
            request = request.with_turns(*turn.conversation)

    async def _turn(self, answer: ChatResponse, calls: tuple[ToolCall, ...], *, is_last: bool) -> AgentTurn:
        """Run *calls*, which *answer* asks for, and say whether the run goes on."""
        outcome = _ENDINGS.get(answer.finish_reason)
        if outcome is None and answer.refusal is not None:
            outcome = AgentOutcome.REFUSED
        if outcome is not None:
            reason = f"the answer ended with {outcome}"
            return AgentTurn(answer, tuple(not_run(call, reason) for call in calls), outcome=outcome)
        goes_on = AgentOutcome.MAX_TURNS if is_last else None
        if not calls and answer.raw_finish_reason in _PAUSES:
            return AgentTurn(answer, outcome=goes_on)
        if not calls:
            return AgentTurn(answer, outcome=AgentOutcome.ANSWERED, final_output=answer.text)
        results = await self._run_tools(calls)
        final = next(filter(self._is_final, results), None)
        if final is not None:
            return AgentTurn(answer, results, outcome=AgentOutcome.ANSWERED, final_output=final.output)
        return AgentTurn(answer, results, outcome=goes_on)

    async def _run_tools(self, calls: tuple[ToolCall, ...]) -> tuple[ToolExecutionResult, ...]:
        """Run *calls*; of several final answers only the first that succeeds, so that none is given twice."""
        finals = [call for call in calls if self._is_final_call(call)]
        others = [call for call in calls if not self._is_final_call(call)]
        results = {result.call.id: result for result in await self._runner.run(others)}
        is_answered = False
        for call in finals:
            if is_answered:
                results[call.id] = not_run(call, "the final answer had been given")
            else:
                (results[call.id],) = await self._runner.run([call])
                is_answered = results[call.id].error is None
        return tuple(results[call.id] for call in calls)

    def _is_final_call(self, call: ToolCall) -> bool:
        one = self._runner.tools.get(call.name)
        return one is not None and one.is_final

    def _is_final(self, result: ToolExecutionResult) -> bool:
        return result.error is None and self._is_final_call(result.call)
