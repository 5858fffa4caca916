"""A run of an agent. Its results so far are available, however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any, Generic, Self, TypeVar, cast

from crosswalk.agent.loop import AgentLoop
from crosswalk.agent.turn import AgentResponse, AgentTurn, OutputT, conversation_of
from crosswalk.request import Turn
from crosswalk.service.http import Nested

StepT = TypeVar("StepT", covariant=True)


class AgentRun(AsyncIterator[StepT], Generic[StepT, OutputT]):
    """A run of an agent, made by ``Agent.run``, ``Agent.stream`` or ``Agent.resume``. Iterate over it.

    The run records what it has done, whether it completes, is stopped, or its task is cancelled. Finished tools have
    their real results, the others are cancelled. Use ``async with``, so that the run stops when you leave the block.
    A run belongs to one event loop.
    """

    def __init__(self, loop: AgentLoop) -> None:
        self._loop = loop
        self._steps = loop.steps()
        self._consumer: asyncio.Task[Any] | None = None
        self._is_stopped = False
        self._is_started = False
        self._resumed: AgentRun[StepT] | None = None

    @property
    def _latest(self) -> AgentRun[StepT]:
        """The last run that resumed this one, or this run."""
        last: AgentRun[StepT] = self
        while last._resumed is not None:
            last = last._resumed
        return last

    @property
    def _is_active(self) -> bool:
        """Whether the run has started and neither completed nor been closed. Its tools may be running."""
        return self._is_started and getattr(self._steps, "ag_frame", None) is not None

    @property
    def turns(self) -> tuple[AgentTurn, ...]:
        """The turns so far, including the one in which the run was stopped."""
        return tuple(self._loop.turns)

    @property
    def response(self) -> AgentResponse[OutputT]:
        """The response so far. Its ``outcome`` is ``cancelled`` if the run has not completed.

        Raises:
            ResponseValidationError: there are no turns yet.
        """
        loop = self._loop
        text, value = loop.final
        return AgentResponse(self.turns, text, loop.open_results, value)

    @property
    def conversation(self) -> tuple[Turn, ...]:
        """The turns that the run has added to the conversation so far. Every call in it has a result."""
        return conversation_of(self._loop.open_results, self._loop.turns)

    async def __anext__(self) -> StepT:
        """Return the next step.

        Raises:
            CrosswalkError: the request cannot be sent.
        """
        if self._is_stopped:
            await self.aclose()
        self._consumer = asyncio.current_task()
        self._is_started = True
        try:
            while True:
                step = await Nested(self._steps.__anext__())
                if self._loop.streamed or isinstance(step, AgentTurn):
                    return cast(StepT, step)
        except asyncio.CancelledError:
            if self._is_stopped and self._consumer is not None and not self._consumer.uncancel():
                raise StopAsyncIteration from None
            raise
        finally:
            self._consumer = None

    def stop(self) -> None:
        """Stop the run, from any task of its event loop. The iteration over it ends.

        The answer in progress and running tools are cancelled. A thread cannot be cancelled and keeps running.
        """
        if not self._is_stopped:
            self._is_stopped = True
            if self._consumer is not None:
                # Not at once: the consumer may be the calling task, about to return a step.
                self._consumer.get_loop().call_soon(self._cancel_consumer)

    def _cancel_consumer(self) -> None:
        if self._consumer is not None:
            self._consumer.cancel()

    def _resume(self, loop: AgentLoop) -> AgentRun[StepT]:
        """Return a run of *loop* that replaces this one. This run does nothing more, even if it had not started."""
        self.stop()
        self._resumed = AgentRun(loop)
        return self._resumed

    async def finish(self) -> AgentResponse[OutputT]:
        """Run to the end.

        Raises:
            CrosswalkError: the request cannot be sent.
        """
        async for _ in self:
            pass
        return self.response

    async def aclose(self) -> None:
        """Stop the run, from the task that iterates over it."""
        await self._steps.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


async def collect(turns: AsyncIterable[AgentTurn]) -> AgentResponse:
    """Run an iterator of ``Agent.run`` to the end, and return its turns as a response.

    Raises:
        ResponseValidationError: there are no turns: the iterator was closed before the first.
    """
    if isinstance(turns, AgentRun):
        return await turns.finish()
    collected = tuple([turn async for turn in turns])
    text, value = (collected[-1].final_output, collected[-1].value) if collected else (None, None)
    return AgentResponse(collected, text, value=value)
