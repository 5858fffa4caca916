"""Agents without ``await``: the same code over a blocking service."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine, Generator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack, cast, overload

from crosswalk.agent.agent import Agent, AgentOptions, AgentRun, RunOptions, Tools
from crosswalk.agent.chat import SyncServiceOwner
from crosswalk.agent.results import ToolExecutionResult, ToolExecutionStart
from crosswalk.agent.turn import AgentResponse, AgentTurn, OutputT
from crosswalk.request import ChatRequest, Messages, Turn
from crosswalk.types.response import ChatResponse
from crosswalk.types.stream import StreamEvent
from crosswalk.types.values import checks_keywords
from crosswalk.words import suggests_names

if TYPE_CHECKING:
    from crosswalk.service import Endpoint, LLMService, SyncEventStream, SyncLLMService
    from crosswalk.service.json_answer import AnswerType


_T = TypeVar("_T")

_MAX_INTERRUPTIONS = 4
"""How often an interrupted thread waits for the tasks that it has cancelled. Further presses of Ctrl-C abandon them."""

StepT = TypeVar("StepT", covariant=True)


@suggests_names
class SyncAgent(SyncServiceOwner, Generic[OutputT]):
    """:class:`Agent` without ``await``: the same options and behaviour, with a synchronous service.

    Tools run concurrently, asynchronous ones too, in an event loop that belongs to the run. The calling thread blocks, and
    so does the event loop that it may have already, as in a notebook.

    Args:
        service: a service, or an endpoint such as ``"ollama:llama3.2"``.
        tools: what the model may call: a runner with its own limits, or tools and functions.
        options: the options of :class:`Agent`.

    Raises:
        ConfigurationError: *service* is asynchronous. The other errors of :class:`Agent` are raised too.
    """

    @overload
    def __init__(
        self: SyncAgent[Any],
        service: SyncLLMService | Endpoint | str,
        tools: Tools = ...,
        *,
        output_type: None = None,
        **options: Unpack[AgentOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        service: SyncLLMService | Endpoint | str,
        tools: Tools = ...,
        *,
        output_type: AnswerType[OutputT],
        **options: Unpack[AgentOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: SyncAgent[Any],
        service: SyncLLMService | Endpoint | str,
        tools: Tools = ...,
        *,
        output_type: object,
        **options: Unpack[AgentOptions],
    ) -> None: ...
    def __init__(self, service: SyncLLMService | Endpoint | str, tools: Tools = (), **options: Any) -> None:
        super().__init__(service)
        self._agent: Agent[OutputT] = Agent(
            cast("LLMService", _AsyncService(self._service)), tools, **options
        )

    # So that notebooks and ``help`` show the options.
    _first, *_others = inspect.signature(Agent).parameters.values()
    __signature__ = inspect.Signature(
        [_first.replace(annotation="SyncLLMService | Endpoint | str"), *_others]
    )

    @checks_keywords(RunOptions.__annotations__)
    def run(
        self, messages: Messages | None = None, **options: Unpack[RunOptions]
    ) -> SyncAgentRun[AgentTurn, OutputT]:
        """Answer *messages*. Yields each turn when it is complete. See :meth:`Agent.run`."""
        return SyncAgentRun(self._agent.run(messages, **options))

    @checks_keywords(RunOptions.__annotations__)
    def stream(
        self, messages: Messages | None = None, **options: Unpack[RunOptions]
    ) -> SyncAgentRun[StreamEvent | ToolExecutionStart | ToolExecutionResult | AgentTurn, OutputT]:
        """:meth:`run` with everything that happens before a turn is complete. See :meth:`Agent.stream`."""
        return SyncAgentRun(self._agent.stream(messages, **options))

    @checks_keywords(RunOptions.__annotations__)
    def answer(
        self, messages: Messages | None = None, **options: Unpack[RunOptions]
    ) -> AgentResponse[OutputT]:
        """Run to the end. See :meth:`Agent.answer`."""
        with self.run(messages, **options) as run:
            return run.finish()

    run_sync = answer
    """:meth:`answer`, under the name that other agents give it."""

    def resume(self, run: SyncAgentRun[StepT]) -> SyncAgentRun[StepT, OutputT]:
        """Continue a run that was stopped or ended without an answer. See :meth:`Agent.resume`."""
        argument: Any = run
        return SyncAgentRun(self._agent.resume(getattr(argument, "_run", argument)))


@suggests_names
class SyncAgentRun(Iterator[StepT], Generic[StepT, OutputT]):
    """:class:`AgentRun` for a ``for`` loop and a ``with`` block. Ctrl-C stops it, and its results so far stay available."""

    def __init__(self, run: AgentRun[StepT, OutputT]) -> None:
        self._run = run
        self._loops: list[asyncio.AbstractEventLoop] = []  # none, or its own after the first step
        self._steps = _all_steps(run, self._loops)

    @property
    def turns(self) -> tuple[AgentTurn, ...]:
        """The turns so far. See :attr:`AgentRun.turns`."""
        return self._run.turns

    @property
    def response(self) -> AgentResponse[OutputT]:
        """The response so far. See :attr:`AgentRun.response`."""
        return self._run.response

    @property
    def conversation(self) -> tuple[Turn, ...]:
        """The turns that it has added to the conversation so far. See :attr:`AgentRun.conversation`."""
        return self._run.conversation

    def __next__(self) -> StepT:
        """Return the next step.

        Raises:
            CrosswalkError: the request cannot be sent.
        """
        return next(self._steps)

    def stop(self) -> None:
        """Stop the run, from any thread. The iteration over it ends.

        An answer that is streamed ends at once. The run waits for an answer that is not streamed, and keeps it.
        """
        if not self._loops:
            self._run.stop()
            return
        with suppress(RuntimeError):  # the run has ended meanwhile
            self._loops[0].call_soon_threadsafe(self._run.stop)
        events = self._run._loop.events
        if events is not None:
            events.blocking.cancel()

    def finish(self) -> AgentResponse[OutputT]:
        """Run to the end. See :meth:`AgentRun.finish`."""
        for _ in self:
            pass
        return self.response

    def close(self) -> None:
        """Stop the run, from the thread that iterates over it."""
        self._steps.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _all_steps(
    run: AgentRun[StepT, Any], loops: list[asyncio.AbstractEventLoop]
) -> Generator[StepT, None, None]:
    """Yield the steps of *run*, taken in an event loop that is added to *loops*."""
    loop = asyncio.new_event_loop()
    loops.append(loop)
    try:
        while True:
            try:
                step = _run_until_done(loop, run.__anext__())
            except StopAsyncIteration:
                return
            yield step
    finally:
        try:
            _run_until_done(loop, run.aclose())
            _run_until_done(loop, loop.shutdown_asyncgens())
        finally:
            loop.close()


def _run_until_done(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of *work* in *loop*. If this thread is interrupted, cancel *work* and wait until it has ended.

    The event loop that this thread may have already waits meanwhile. No other thread is needed, for which a run that is
    closed by the garbage collection could wait forever.
    """
    outer_loop = asyncio._get_running_loop()
    outer_task = None if outer_loop is None else asyncio.current_task(outer_loop)
    task = loop.create_task(work)
    try:
        if outer_loop is not None and outer_task is not None:
            asyncio._leave_task(outer_loop, outer_task)
        asyncio._set_running_loop(None)
        return loop.run_until_complete(task)
    except BaseException:
        task.cancel()
        for _ in range(
            _MAX_INTERRUPTIONS
        ):  # an interruption passes through each task that waits for the interrupted one
            with suppress(BaseException):
                loop.run_until_complete(asyncio.wait({task}))
        raise
    finally:
        asyncio._set_running_loop(outer_loop)
        if outer_loop is not None and outer_task is not None:
            asyncio._enter_task(outer_loop, outer_task)


class _AsyncService:
    """A blocking service with the interface of an asynchronous one. The event loop has nothing else to do meanwhile."""

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
