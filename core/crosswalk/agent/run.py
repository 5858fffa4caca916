"""A run of an agent: what it did is kept, however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any, Generic, Self, TypeVar, cast

from crosswalk.agent.loop import AgentLoop
from crosswalk.agent.turn import AgentResponse, AgentTurn, conversation_of
from crosswalk.service.nested import Nested
from crosswalk.service.request import Turn

__all__ = ["AgentRun", "collect"]

StepT = TypeVar("StepT", covariant=True)


class AgentRun(AsyncIterator[StepT], Generic[StepT]):
    """A run of an agent, made by ``Agent.run``, ``Agent.stream`` or ``Agent.resume``: iterate over it.

    It keeps what it has done, whether it comes to its end, is stopped, or its task is cancelled: tools that have ended
    with their true results, the others as cancelled. Use it in ``async with``, so that it is stopped where it is left.
    Belongs to one event loop.
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
        """The run that goes on with it, as far as it was resumed; else itself."""
        last = self
        while last._resumed is not None:
            last = last._resumed
        return last

    @property
    def _is_active(self) -> bool:
        """Whether it has neither come to its end nor been left: its tools may be running."""
        return self._is_started and getattr(self._steps, "ag_frame", None) is not None

    @property
    def turns(self) -> tuple[AgentTurn, ...]:
        """The turns so far, the one in which it was stopped included."""
        return tuple(self._loop.turns)

    @property
    def response(self) -> AgentResponse:
        """The run as far as it has come; its ``outcome`` is ``cancelled`` where it has not come to its end.

        Raises:
            ResponseValidationError: nothing has come yet.
        """
        loop = self._loop
        text, value = loop.final
        return AgentResponse(self.turns, text, loop.open_results, value)

    @property
    def conversation(self) -> tuple[Turn, ...]:
        """What it has added to the conversation so far; every call in it has a result."""
        return conversation_of(self._loop.open_results, self._loop.turns)

    async def __anext__(self) -> StepT:
        """The next step.

        Raises:
            CrosswalkError: the request cannot be sent at all.
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
        """Stop it, from any task of its event loop: whoever iterates over it comes to its end.

        An answer that is coming is cancelled, and so are tools that run; a thread cannot be, and runs on.
        """
        if not self._is_stopped:
            self._is_stopped = True
            if (
                self._consumer is not None
            ):  # soon: where that is the task that says it, it may be about to give a step
                self._consumer.get_loop().call_soon(self._cancel_consumer)

    def _cancel_consumer(self) -> None:
        if self._consumer is not None:
            self._consumer.cancel()

    def _resume(self, loop: AgentLoop) -> AgentRun[StepT]:
        """A run of *loop* in its place: it does nothing more itself, also where it had not begun."""
        self.stop()
        self._resumed = AgentRun(loop)
        return self._resumed

    async def finish(self) -> AgentResponse:
        """Run to the end.

        Raises:
            CrosswalkError: the request cannot be sent at all.
        """
        async for _ in self:
            pass
        return self.response

    async def aclose(self) -> None:
        """Stop it, by whoever iterates over it."""
        await self._steps.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


async def collect(turns: AsyncIterable[AgentTurn]) -> AgentResponse:
    """Run to the end what ``Agent.run`` gives, and put the turns together.

    Raises:
        ResponseValidationError: there are none: the iterator had been closed before its first turn.
    """
    if isinstance(turns, AgentRun):
        return await turns.finish()
    collected = tuple([turn async for turn in turns])
    text, value = (collected[-1].final_output, collected[-1].value) if collected else (None, None)
    return AgentResponse(collected, text, value=value)
