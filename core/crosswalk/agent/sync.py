"""Agents without ``await``: the same code, over a service that blocks the thread that asks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack, cast

from crosswalk.agent.agent import Agent, AgentOptions
from crosswalk.agent.results import ToolExecutionResult, ToolExecutionStart
from crosswalk.agent.run import AgentRun
from crosswalk.agent.runner import ToolRunner
from crosswalk.agent.services import SyncServiceOwner
from crosswalk.agent.session import ChatSession
from crosswalk.agent.tools import Tool
from crosswalk.agent.turn import AgentResponse, AgentTurn
from crosswalk.errors import CrosswalkError
from crosswalk.service.request import ChatRequest, Messages, Turn
from crosswalk.types.event import StreamEvent
from crosswalk.types.response import ChatResponse

if TYPE_CHECKING:
    from crosswalk.service import Endpoint, LLMService, SyncEventStream, SyncLLMService

__all__ = ["SyncAgent", "SyncAgentRun"]

T = TypeVar("T")

_MAX_INTERRUPTIONS = 4
"""How often a thread that was interrupted waits for what it has cancelled: whoever presses Ctrl-C more often leaves it."""

StepT = TypeVar("StepT", covariant=True)


class SyncAgent(SyncServiceOwner):
    """:class:`Agent` without ``await``: takes the same, but for the service, and does the same.

    Tools run side by side, asynchronous ones too, in an event loop of the run's own. While an answer is awaited, the
    thread that asks is blocked.

    Args:
        service: whom to ask: a service, or an endpoint such as ``"ollama:llama3.2"``.
        tools: what the model may call: a runner with limits of its own, or tools and functions.
        options: what :class:`Agent` takes.

    Raises:
        ConfigurationError: *service* asks asynchronously, and as from :class:`Agent`, whatever else it raises as well.
    """

    def __init__(
        self,
        service: SyncLLMService | Endpoint | str,
        tools: ToolRunner | Iterable[Tool | Callable[..., Any]] = (),
        **options: Unpack[AgentOptions],
    ) -> None:
        super().__init__(service)
        self._agent = Agent(cast("LLMService", _AsyncService(self._service)), tools, **options)

    def run(
        self,
        messages: Messages | None = None,
        *,
        session: ChatSession | None = None,
        save: Callable[[ChatSession], object] | None = None,
        approved: Mapping[str, bool | str] | None = None,
        results: Mapping[str, Any] | None = None,
    ) -> SyncAgentRun[AgentTurn]:
        """Answer *messages*: each turn when it is done; see :meth:`Agent.run`."""
        return SyncAgentRun(
            self._agent.run(messages, session=session, save=save, approved=approved, results=results)
        )

    def stream(
        self,
        messages: Messages | None = None,
        *,
        session: ChatSession | None = None,
        save: Callable[[ChatSession], object] | None = None,
        approved: Mapping[str, bool | str] | None = None,
        results: Mapping[str, Any] | None = None,
    ) -> SyncAgentRun[StreamEvent | ToolExecutionStart | ToolExecutionResult | AgentTurn]:
        """The same with all that happens before a turn is done; see :meth:`Agent.stream`."""
        return SyncAgentRun(
            self._agent.stream(messages, session=session, save=save, approved=approved, results=results)
        )

    def answer(
        self,
        messages: Messages | None = None,
        *,
        session: ChatSession | None = None,
        save: Callable[[ChatSession], object] | None = None,
        approved: Mapping[str, bool | str] | None = None,
        results: Mapping[str, Any] | None = None,
    ) -> AgentResponse:
        """Run to the end; see :meth:`Agent.answer`."""
        with self.run(messages, session=session, save=save, approved=approved, results=results) as run:
            return run.finish()

    def resume(self, run: SyncAgentRun[StepT]) -> SyncAgentRun[StepT]:
        """Go on with a run that was stopped, or ended without an answer; see :meth:`Agent.resume`."""
        given: Any = run
        return SyncAgentRun(self._agent.resume(getattr(given, "_run", given)))


class SyncAgentRun(Iterator[StepT], Generic[StepT]):
    """:class:`AgentRun` for a ``for`` loop and a ``with`` block; Ctrl-C stops it, and what was done is kept."""

    def __init__(self, run: AgentRun[StepT]) -> None:
        self._run = run
        self._loop: asyncio.AbstractEventLoop | None = None
        self._steps = self._all_steps()

    @property
    def turns(self) -> tuple[AgentTurn, ...]:
        """The turns so far; see :attr:`AgentRun.turns`."""
        return self._run.turns

    @property
    def response(self) -> AgentResponse:
        """The run as far as it has come; see :attr:`AgentRun.response`."""
        return self._run.response

    @property
    def conversation(self) -> tuple[Turn, ...]:
        """What it has added to the conversation so far; see :attr:`AgentRun.conversation`."""
        return self._run.conversation

    def __next__(self) -> StepT:
        """The next step.

        Raises:
            CrosswalkError: the request cannot be sent at all, or this thread has an event loop: use :class:`Agent` there.
        """
        return next(self._steps)

    def stop(self) -> None:
        """Stop it, from any thread: whoever iterates over it comes to its end.

        An answer that is streamed ends at once; one that is asked for whole is waited for.
        """
        loop = self._loop
        if loop is None:
            self._run.stop()
            return
        with suppress(RuntimeError):  # it has come to its end, meanwhile
            loop.call_soon_threadsafe(self._run.stop)
        events = self._run._loop.events
        if events is not None:
            events.blocking.cancel()

    def finish(self) -> AgentResponse:
        """Run to the end; see :meth:`AgentRun.finish`."""
        for _ in self:
            pass
        return self.response

    def close(self) -> None:
        """Stop it, by whoever iterates over it."""
        self._steps.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _all_steps(self) -> Generator[StepT, None, None]:
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            raise CrosswalkError("this thread has an event loop: use Agent and LLMService there")
        self._loop = loop = asyncio.new_event_loop()
        try:
            while True:
                try:
                    step = _run_until_done(loop, self._run.__anext__())
                except StopAsyncIteration:
                    return
                yield step
        finally:
            try:
                _run_until_done(loop, self._run.aclose())
                _run_until_done(loop, loop.shutdown_asyncgens())
            finally:
                loop.close()


def _run_until_done(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """What *work* gives; where this thread is interrupted, *work* is cancelled, and has ended."""
    task = loop.create_task(work)
    try:
        return loop.run_until_complete(task)
    except BaseException:
        task.cancel()
        for _ in range(
            _MAX_INTERRUPTIONS
        ):  # an interruption passes through each task that waits for the interrupted one
            with suppress(BaseException):
                loop.run_until_complete(asyncio.wait({task}))
        raise


class _AsyncService:
    """A service that blocks, where one is awaited: nothing else is to be done meanwhile."""

    def __init__(self, service: SyncLLMService) -> None:
        self._service = service

    async def complete(self, request: ChatRequest) -> ChatResponse:
        return self._service.complete(request)

    def stream(self, request: ChatRequest) -> _AsyncStream:
        return _AsyncStream(self._service.stream(request))


class _AsyncStream:
    def __init__(self, blocking: SyncEventStream) -> None:
        self.blocking = blocking

    @property
    def response(self) -> ChatResponse:
        return self.blocking.response

    async def __anext__(self) -> StreamEvent:
        try:
            return next(self.blocking)
        except StopIteration:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.blocking.close()
