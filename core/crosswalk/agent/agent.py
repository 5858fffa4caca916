"""An agent: asks the model, runs the tools that it asks for, and asks again until it has an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from crosswalk.agent.calls import open_calls
from crosswalk.agent.chat import ChatConfig
from crosswalk.agent.loop import AgentLoop
from crosswalk.agent.plan import AgentPlan, Output, UsageLimits
from crosswalk.agent.results import ToolExecutionResult, ToolExecutionStart
from crosswalk.agent.run import AgentRun, StepT
from crosswalk.agent.runner import Approve, ToolRunner
from crosswalk.agent.services import AsyncServiceOwner, check_type
from crosswalk.agent.session import ChatSession
from crosswalk.agent.tools import Tool
from crosswalk.agent.trimming import Trimming
from crosswalk.agent.turn import AgentOutcome, AgentResponse, AgentTurn
from crosswalk.errors import ConfigurationError, CrosswalkError
from crosswalk.service.request import ChatRequest, Messages
from crosswalk.structured import Prose
from crosswalk.types.event import StreamEvent

if TYPE_CHECKING:
    from crosswalk.agent.otel import AgentTelemetry
    from crosswalk.service import Endpoint, LLMService

__all__ = ["Agent"]


class AgentOptions(TypedDict, total=False):
    """The options of :class:`Agent`, which says what they are."""

    instructions: str | None
    output_type: object
    prose: Prose | Literal["allow", "refuse"]
    config: ChatConfig | None
    max_turns: int
    limits: UsageLimits | None
    approve: Approve | None
    trim: Trimming | None
    name: str | None
    telemetry: AgentTelemetry | None


class Agent(AsyncServiceOwner):
    """Asks a service, runs tools, asks again.

    Args:
        service: whom to ask: a service, or an endpoint such as ``"ollama:llama3.2"``.
        tools: what the model may call: a runner with limits of its own, or tools and functions.
        instructions: what the model is told before everything else, in each run; no part of a session. ``None`` for nothing.
        output_type: what the answer has to be: any type that a ``Schema`` knows, such as an attrs class, a dataclass, a
            pydantic model, an enum, a list or a JSON Schema, or a ``Schema`` with invariants, or a ``StructuredParser``. The
            model is told the schema in words and, where there are no tools, the server is asked to hold it to that; set
            ``response_format`` in *config* to ask for more. If an answer is not such a value, the model is told, once.
            ``None`` for any text.
        prose: whether text may stand around a value of the *output_type*: ``"allow"`` or ``"refuse"``.
        config: sampling and the rest, but no tools: an agent has to have what it is asked to run. A ``tool_choice`` that
            makes the model call a tool holds until it has, or, with a final tool, to the end.
        max_turns: how often the model may be asked in one run.
        limits: how much a run may use; ``None`` for no limits.
        approve: is asked before a tool runs that ``needs_approval``, one call after the other, with the ``ToolCall``:
            ``True``, or ``False`` or a text, which tells the model why not. May be asynchronous; if it is not, it runs in
            a thread and may wait for somebody. For ``None`` the call waits: the run ends as ``waiting``, the call is
            open in the session, and ``approved=`` of a later run decides. Without a function no such tool is run.
        trim: what to send of a conversation that is too long for the model, once in a run: ``keep_turns(10)``,
            ``keep_tokens(8000)``, or a function of one's own; a session keeps everything. ``None``: the run ends.
        name: what it is called in traces.
        telemetry: makes OpenTelemetry's spans of runs and tools; ``None`` for none.

    Raises:
        ToolDefinitionError: a function cannot be a tool, or two tools have one name.
        SchemaDefinitionError: *output_type* cannot be the type of an answer.
        ConfigurationError: *service* asks synchronously, *max_turns* is no whole number from 1 on, *config* has tools, or
            something else is not what it has to be.
    """

    def __init__(
        self,
        service: LLMService | Endpoint | str,
        tools: ToolRunner | Iterable[Tool | Callable[..., Any]] = (),
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
        if type(max_turns) is not int or max_turns < 1:
            raise ConfigurationError("max_turns must be a whole number of at least 1", key="max_turns")
        wanted = {
            "instructions": (instructions, str),
            "config": (config, ChatConfig),
            "limits": (limits, UsageLimits),
            "approve": (approve, Callable),
            "trim": (trim, Callable),
            "name": (name, str),
        }
        for option, (given, kind) in wanted.items():
            check_type(option, given, kind)
        if telemetry is not None:
            from crosswalk.agent.otel import AgentTelemetry

            check_type("telemetry", telemetry, AgentTelemetry)
        config = config or ChatConfig()
        if config.tools:
            raise ConfigurationError("give the tools to the agent, not in its config", key="tools")
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

    def run(
        self,
        messages: Messages | None = None,
        *,
        session: ChatSession | None = None,
        save: Callable[[ChatSession], object] | None = None,
        approved: Mapping[str, bool | str] | None = None,
        results: Mapping[str, Any] | None = None,
    ) -> AgentRun[AgentTurn]:
        """Answer *messages*: each turn when it is done; the last one has an ``outcome``.

        A refusal, an error response, a cut answer and too many turns are outcomes, not exceptions. A conversation that ends
        with calls that nobody has answered goes on with these.

        Args:
            messages: the conversation, or the user's message alone; with a session, what is said now, ``None`` to go on.
            session: the conversation so far. It takes *messages* at once, and whatever is said later when it is. A tool that
                begins stands in it as cancelled until its result is there, so that a program that is killed meanwhile
                does not run it again.
            save: is called with the session whenever that has changed, such as ``store.save``; in the event loop.
            approved: what was decided of calls with which the conversation ended, by their ids: ``True``, or ``False`` or a
                text. A call that nobody names is asked about as any other.
            results: what such calls gave that somebody else has run, by their ids: any value that a tool may give.

        Raises:
            ResponseValidationError: *messages* are no conversation.
            ConfigurationError: *session* is no session, or *save* no function.
        """
        return AgentRun(self._loop(messages, session, save, approved, results, streamed=False))

    def stream(
        self,
        messages: Messages | None = None,
        *,
        session: ChatSession | None = None,
        save: Callable[[ChatSession], object] | None = None,
        approved: Mapping[str, bool | str] | None = None,
        results: Mapping[str, Any] | None = None,
    ) -> AgentRun[StreamEvent | ToolExecutionStart | ToolExecutionResult | AgentTurn]:
        """The same as :meth:`run`, with all that happens before a turn is done.

        Each answer's events as they come, a :class:`ToolExecutionStart` when a tool begins, its
        :class:`ToolExecutionResult` when it has ended, and then the turn.
        """
        return AgentRun(self._loop(messages, session, save, approved, results, streamed=True))

    async def answer(
        self,
        messages: Messages | None = None,
        *,
        session: ChatSession | None = None,
        save: Callable[[ChatSession], object] | None = None,
        approved: Mapping[str, bool | str] | None = None,
        results: Mapping[str, Any] | None = None,
    ) -> AgentResponse:
        """Run to the end; takes what :meth:`run` takes.

        Raises:
            CrosswalkError: the request cannot be sent at all.
        """
        async with self.run(messages, session=session, save=save, approved=approved, results=results) as run:
            return await run.finish()

    def resume(self, run: AgentRun[StepT]) -> AgentRun[StepT]:
        """Go on with a run that was stopped, or ended without an answer, by this agent or another one.

        No tool is run again: the model is told what came of its calls, cancelled ones included. An answer that was stopped
        in its middle, cut or refused is asked for again. ``max_turns`` counts anew. Resumed once more, the same run goes on
        where it was left the last time.

        Raises:
            CrosswalkError: the run has its answer, or still goes on, resumed or not: a tool of its could run twice.
            ConfigurationError: *run* is none.
        """
        if not isinstance(run, AgentRun):
            raise ConfigurationError(f"what goes on is an AgentRun, not {type(run).__name__}", key="run")
        run = run._latest
        if run._is_active:
            raise CrosswalkError("the run still goes on: leave it first, by async with or aclose()")
        done = run._loop
        turns, session = list(done.turns), done.session
        if done.final[0] is not None:
            raise CrosswalkError("the run has its answer; ask the next question")
        if run.turns and run.turns[-1].outcome is AgentOutcome.WAITING:
            raise CrosswalkError("calls wait: answer them with approved= or results=")
        if turns and turns[-1].is_void:
            void = turns.pop().conversation
            if session is not None and void and session.turns[-len(void) :] == void:
                session.pop()
        return run._resume(
            AgentLoop(
                self._plan,
                done.messages,
                streamed=done.streamed,
                session=session,
                save=done.save,
                turns=turns,
                open_results=done.open_results,
            )
        )

    def _loop(
        self,
        messages: Messages | None,
        session: ChatSession | None,
        save: Callable[[ChatSession], object] | None,
        approved: Mapping[str, bool | str] | None,
        results: Mapping[str, Any] | None,
        *,
        streamed: bool,
    ) -> AgentLoop:
        check_type("session", session, ChatSession)
        check_type("save", save, Callable)
        said = () if messages is None else ChatRequest(messages).messages
        if session is not None:
            session.extend(said)
            said = ChatRequest(session).messages
        approved, results = approved or {}, results or {}
        waiting = {call.id for call in open_calls(said)}
        for id in (*approved, *results):
            if id not in waiting:
                raise ConfigurationError(
                    f"no call {id[:80]!r} waits: it was answered, or never asked for", key=id
                )
        return AgentLoop(
            self._plan,
            said,
            streamed=streamed,
            session=session,
            save=save,
            approved=approved,
            results=results,
        )
