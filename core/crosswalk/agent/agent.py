"""An agent: asks the model, runs the tools that it calls, and asks again until it has an answer, as a run with results."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

import attrs

from crosswalk.agent.chat import AsyncServiceOwner, ChatConfig
from crosswalk.agent.loop import AgentLoop, AgentPlan, Output, UsageLimits, check_is_free
from crosswalk.agent.results import ToolExecutionResult, ToolExecutionStart, open_calls
from crosswalk.agent.runner import Approve, ToolRunner
from crosswalk.agent.session import ChatSession, Trimming
from crosswalk.agent.tools import Tool
from crosswalk.agent.turn import AgentOutcome, AgentResponse, AgentTurn, OutputT, conversation_of
from crosswalk.config import COUNT, check_type
from crosswalk.errors import ConfigurationError, CrosswalkError, ResponseValidationError
from crosswalk.request import ChatRequest, Messages, Turn
from crosswalk.service.http import Nested
from crosswalk.structured import Prose
from crosswalk.types.stream import StreamEvent
from crosswalk.types.values import checks_keywords
from crosswalk.words import suggests_names

if TYPE_CHECKING:
    from crosswalk.agent.otel import AgentTelemetry
    from crosswalk.service import Endpoint, LLMService
    from crosswalk.service.json_answer import AnswerType


# ------------------------------------------------------------------------------------- run
# A run of an agent. Its results so far are available, however it ends.


StepT = TypeVar("StepT", covariant=True)


@suggests_names
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
        self._resuming_run: AgentRun[StepT] | None = None

    @property
    def _latest(self) -> AgentRun[StepT]:
        """The last run that resumed this one, or this run."""
        last_run: AgentRun[StepT] = self
        while last_run._resuming_run is not None:
            last_run = last_run._resuming_run
        return last_run

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
            ResponseValidationError: there are no turns yet, and the run goes on.
        """
        loop = self._loop
        is_over = self._is_stopped or (self._is_started and not self._is_active)
        if not (is_over or loop.turns or loop.open_results):
            raise ResponseValidationError("the run has no turns yet")
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
        self._resuming_run = AgentRun(loop)
        return self._resuming_run

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
    collected_turns = tuple([turn async for turn in turns])
    if not collected_turns:
        raise ResponseValidationError("a run has at least one turn")
    last_turn = collected_turns[-1]
    return AgentResponse(collected_turns, last_turn.final_output, value=last_turn.value)


# ----------------------------------------------------------------------------------- agent
# An agent: asks the model, runs the tools that it calls, and asks again until it has an answer.


Tools: TypeAlias = ToolRunner | Iterable[Tool | Callable[..., Any]]
"""What an agent may call: a runner with its own limits, or tools and functions."""


class AgentOptions(TypedDict, total=False):
    """The options of :class:`Agent`, described there."""

    instructions: str | None
    prose: Prose | Literal["allow", "refuse"]
    config: ChatConfig | None
    max_turns: int
    limits: UsageLimits | None
    approve: Approve | None
    trim: Trimming | None
    name: str | None
    telemetry: AgentTelemetry | None


class RunOptions(TypedDict, total=False):
    """The options of one run of an agent.

    Attributes:
        session: the conversation so far. *messages* are added at once, and each later turn as it happens. A tool
            that starts is stored as cancelled until its result arrives, so that it does not run again if the program
            is killed meanwhile.
        save: called with the session after each change, in the event loop, such as ``store.save``.
        approved: decisions about open calls by their ids: ``True``, or ``False`` or a text. Calls without a decision are
            treated as any other.
        results: results of open calls that were run elsewhere, by their ids: any value that a tool may return.
        deps: any object for the tools that take a :class:`ToolContext`, such as the user or a database.
    """

    session: ChatSession | None
    save: Callable[[ChatSession], object] | None
    approved: Mapping[str, bool | str] | None
    results: Mapping[str, Any] | None
    deps: object


@suggests_names
class Agent(AsyncServiceOwner, Generic[OutputT]):
    """Asks a service, runs tools, and asks again. ``OutputT`` is the type of its answers.

    Args:
        service: a service, or an endpoint such as ``"ollama:llama3.2"``.
        tools: what the model may call: a runner with its own limits, or tools and functions.
        instructions: a system message put before the conversation in each run, not stored in a session. ``None`` for none.
        output_type: the type of the answer: any type that a ``Schema`` supports, such as an attrs class, a dataclass, a
            pydantic model, an enum, a list or a JSON Schema, or a ``Schema`` with invariants, or a ``StructuredParser``. The
            schema is described to the model in words. If there are no tools, the server is also asked to enforce it. Set
            ``response_format`` in *config* to ask for more. If an answer does not fit, the model gets one correction.
            ``None`` for any text.
        prose: whether text may surround a value of the *output_type*: ``"allow"`` or ``"refuse"``.
        config: sampling and other options, without tools: pass those to the agent, which must be able to run them. A
            ``tool_choice`` that forces a call applies until the first call, or with a final tool to the end.
        max_turns: how often the model may be asked in one run.
        limits: the usage limits of a run, or ``None`` for no limits.
        approve: called with the ``ToolCall`` before a tool runs that ``needs_approval``, for one call at a time. It returns
            ``True``, or ``False`` or a text that tells the model why not. It may be asynchronous. Otherwise it runs in a
            thread and may wait for an answer. If it returns ``None``, the run ends as ``waiting``, the call stays open
            in the session, and ``approved=`` of a later run decides. Without *approve* no such tool runs.
        trim: a policy for a conversation that is too long for the model, used once in a run: ``keep_turns(10)``,
            ``keep_tokens(8000)``, or a custom function. A session keeps everything. With ``None`` the run ends.
        name: the agent's name in traces.
        telemetry: creates OpenTelemetry spans of runs and tools, or ``None`` for no spans.

    Raises:
        ToolDefinitionError: a function cannot be a tool, or two tools have the same name.
        SchemaDefinitionError: *output_type* cannot be the type of an answer.
        ConfigurationError: *service* is synchronous, *max_turns* is not a whole number of at least 1, *config* has tools, or
            another option has the wrong type.
    """

    @overload
    def __init__(
        self: Agent[Any],
        service: LLMService | Endpoint | str,
        tools: Tools = ...,
        *,
        output_type: None = None,
        **options: Unpack[AgentOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        service: LLMService | Endpoint | str,
        tools: Tools = ...,
        *,
        output_type: AnswerType[OutputT],
        **options: Unpack[AgentOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: Agent[Any],
        service: LLMService | Endpoint | str,
        tools: Tools = ...,
        *,
        output_type: object,
        **options: Unpack[AgentOptions],
    ) -> None: ...
    @checks_keywords(
        elsewhere={"ChatConfig": attrs.fields_dict(ChatConfig), "Endpoint": ("api_key", "base_url")}
    )
    def __init__(
        self,
        service: LLMService | Endpoint | str,
        tools: Tools = (),
        *,
        instructions: str | None = None,
        output_type: object = None,
        prose: Prose | Literal["allow", "refuse"] = Prose.ALLOW,
        config: ChatConfig | None = None,
        max_turns: int = 10,
        limits: UsageLimits | None = None,
        approve: Approve | None = None,
        trim: Trimming | None = None,
        name: str | None = None,
        telemetry: AgentTelemetry | None = None,
    ) -> None:
        COUNT.check("max_turns", max_turns)
        types = {
            "instructions": (instructions, str),
            "config": (config, ChatConfig),
            "limits": (limits, UsageLimits),
            "approve": (approve, Callable),
            "trim": (trim, Callable),
            "name": (name, str),
        }
        for option, (value, kind) in types.items():
            check_type(option, value, kind)
        if telemetry is not None:
            from crosswalk.agent.otel import AgentTelemetry

            check_type("telemetry", telemetry, AgentTelemetry)
        config = config or ChatConfig()
        if config.tools:
            raise ConfigurationError("pass the tools to the agent, not in its config", key="tools")
        runner = tools if isinstance(tools, ToolRunner) else ToolRunner(tools)
        super().__init__(service)
        output = None if output_type is None else Output.of(output_type, prose)
        if output is not None:
            instructions = "\n\n".join(filter(None, (instructions, output.instructions)))
        self._plan = AgentPlan(
            service=self._service,
            runner=runner,
            instructions=instructions,
            output=output,
            config=config,
            max_turns=max_turns,
            limits=limits or UsageLimits(),
            approve=approve,
            trim=trim,
            name=name,
            telemetry=telemetry,
        )

    @checks_keywords(RunOptions.__annotations__)
    def run(
        self, messages: Messages | None = None, **options: Unpack[RunOptions]
    ) -> AgentRun[AgentTurn, OutputT]:
        """Answer *messages*. Yields each turn when it is complete. The last one has an ``outcome``.

        A refusal, an error response, a cut answer and too many turns are outcomes, not exceptions. If the conversation
        ends with open calls, the run begins with these.

        Args:
            messages: the conversation, or the user's message alone. With a session, the new messages, or ``None`` to
                continue.
            options: what the run goes on from, and what it may use. See :class:`RunOptions`.

        Raises:
            ResponseValidationError: *messages* is not a conversation.
            CrosswalkError: another run uses the *session*.
            ConfigurationError: *session* is not a session, *save* is not a function, or a tool needs *deps* of another type.
        """
        return AgentRun(self._loop(messages, streamed=False, **options))

    @checks_keywords(RunOptions.__annotations__)
    def stream(
        self, messages: Messages | None = None, **options: Unpack[RunOptions]
    ) -> AgentRun[StreamEvent | ToolExecutionStart | ToolExecutionResult | AgentTurn, OutputT]:
        """:meth:`run` with everything that happens before a turn is complete.

        Yields the events of each answer as they arrive, a :class:`ToolExecutionStart` when a tool starts, its
        :class:`ToolExecutionResult` when it ends, and then the turn.
        """
        return AgentRun(self._loop(messages, streamed=True, **options))

    @checks_keywords(RunOptions.__annotations__)
    async def answer(
        self, messages: Messages | None = None, **options: Unpack[RunOptions]
    ) -> AgentResponse[OutputT]:
        """Run to the end. Takes the arguments of :meth:`run`.

        Raises:
            CrosswalkError: the request cannot be sent.
        """
        async with self.run(messages, **options) as run:
            return await run.finish()

    def resume(self, run: AgentRun[StepT]) -> AgentRun[StepT, OutputT]:
        """Continue a run that was stopped or ended without an answer, of this agent or another one.

        No tool runs again: the model gets the results of its calls, including cancelled ones. An answer that was
        stopped, cut or refused is requested again. ``max_turns`` starts from zero. If the same run is resumed again, it
        continues from where the last resumption ended.

        Raises:
            CrosswalkError: the run has its answer, or is still active, so that one of its tools could run twice.
            ConfigurationError: *run* is not a run.
        """
        if not isinstance(run, AgentRun):
            raise ConfigurationError(f"resume needs an AgentRun, not {type(run).__name__}", key="run")
        run = run._latest
        if run._is_active:
            raise CrosswalkError("the run is still active: close it first, with async with or aclose()")
        loop = run._loop
        turns, session = list(loop.turns), loop.session
        if loop.final[0] is not None:
            raise CrosswalkError("the run has its answer; start a new run for the next question")
        if run.turns and run.turns[-1].outcome is AgentOutcome.WAITING:
            raise CrosswalkError("calls wait: answer them with approved= or results=")
        if turns and turns[-1].is_void:
            void_turns = turns.pop().conversation
            if session is not None and void_turns and session.turns[-len(void_turns) :] == void_turns:
                session.pop()
        return run._resume(
            AgentLoop(
                self._plan,
                loop.messages,
                streamed=loop.streamed,
                session=session,
                save=loop.save,
                turns=turns,
                open_results=loop.open_results,
                deps=loop.deps,
            )
        )

    def _loop(
        self,
        messages: Messages | None,
        *,
        streamed: bool,
        session: ChatSession | None = None,
        save: Callable[[ChatSession], object] | None = None,
        approved: Mapping[str, bool | str] | None = None,
        results: Mapping[str, Any] | None = None,
        deps: object = None,
    ) -> AgentLoop:
        check_type("session", session, ChatSession)
        check_type("save", save, Callable)
        check_is_free(session)
        self._plan.runner.check_deps(deps)
        new_turns = turns = () if messages is None else ChatRequest(messages).messages
        if session is not None:
            turns = ChatRequest((*session.turns, *new_turns)).messages
        approved, results = approved or {}, results or {}
        waiting_ids = {call.id for call in open_calls(turns)}
        for id in (*approved, *results):
            if id not in waiting_ids:
                raise ConfigurationError(
                    f"no call {id[:80]!r} waits: it already has a result, or does not exist", key=id
                )
        if session is not None:
            session.extend(new_turns)
        return AgentLoop(
            self._plan,
            turns,
            streamed=streamed,
            session=session,
            save=save,
            approved=approved,
            results=results,
            deps=deps,
        )
