"""The loop of an agent run, with its options: ask the model, run the tools that it calls, and ask again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext, suppress
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakValueDictionary

import attrs

from crosswalk.agent.chat import ChatConfig
from crosswalk.agent.results import (
    ToolExecutionResult,
    ToolExecutionStart,
    calls_of,
    cut_reason,
    not_run,
    open_calls,
    result_of,
    stopped,
    with_calls,
    with_unique_ids,
)
from crosswalk.agent.runner import Approve, ToolRunner
from crosswalk.agent.session import Trimming, estimated_tokens, trim_refused_request, trimmed_request
from crosswalk.agent.turn import AgentOutcome, AgentTurn, conversation_of, messages_of, outcome_of
from crosswalk.config import COUNT_OR_NONE
from crosswalk.errors import ConfigurationError, CrosswalkError, MappingError, ProviderError
from crosswalk.request import ChatRequest, ToolChoice, Turn
from crosswalk.service.json_answer import with_schema
from crosswalk.service.turns import message_of
from crosswalk.structured import Prose, Schema, StructuredParser
from crosswalk.types.message import ChatMessage, Role, ToolCall
from crosswalk.types.response import ChatResponse
from crosswalk.types.stream import StreamEvent
from crosswalk.types.usage import ProviderAttempt, UsageInfo
from crosswalk.types.values import IncompleteReason, checks_keywords

if TYPE_CHECKING:
    from crosswalk.agent.otel import AgentTelemetry
    from crosswalk.agent.runner import ToolTracer
    from crosswalk.agent.session import ChatSession
    from crosswalk.agent.tools import ToolRegistry
    from crosswalk.service import LLMService


# ------------------------------------------------------------------------------------ plan
# The options that an agent run works with: usage limits, the output type and everything else that is fixed.


@checks_keywords()
@attrs.frozen(kw_only=True)
class UsageLimits:
    """Limits of an agent run, checked after each answer, before its tools run and the model is asked again.

    If a provider does not report tokens, they are estimated at four characters a token.

    Attributes:
        input_tokens: the run ends when all requests together reach this many tokens, or ``None`` for no limit, here and
            below.
        output_tokens: the same for all answers.
        total_tokens: the same for both.
        tool_calls: how many calls the run may execute. An answer that would exceed it gets none of its calls run.

    Raises:
        ConfigurationError: a limit is not a whole number of at least 1.
    """

    input_tokens: int | None = attrs.field(default=None, validator=COUNT_OR_NONE)
    output_tokens: int | None = attrs.field(default=None, validator=COUNT_OR_NONE)
    total_tokens: int | None = attrs.field(default=None, validator=COUNT_OR_NONE)
    tool_calls: int | None = attrs.field(default=None, validator=COUNT_OR_NONE)

    @property
    def counts_tokens(self) -> bool:
        """Whether there is a limit on tokens."""
        return any(limit is not None for limit in (self.input_tokens, self.output_tokens, self.total_tokens))

    def reached(self, usage: UsageInfo, tool_calls: int) -> str | None:
        """Return the name of a limit that *usage* reaches or *tool_calls* exceeds, or ``None``."""
        for name in ("input_tokens", "output_tokens", "total_tokens"):
            limit = getattr(self, name)
            if limit is not None and getattr(usage, name) >= limit:
                return name
        return "tool_calls" if self.tool_calls is not None and tool_calls > self.tool_calls else None


class RunUsage:
    """The tokens of a run, compared with its limits.

    Attributes:
        is_estimated: whether the tokens of the last answer count for a limit although the provider did not report them.
    """

    def __init__(self, limits: UsageLimits) -> None:
        self._limits = limits
        self._usage = UsageInfo.EMPTY
        self.is_estimated = False

    def add(self, request: ChatRequest, answer: ChatResponse) -> None:
        """Add the tokens of *answer* to *request*, estimated if the provider did not report them."""
        is_reported = bool(answer.usage.total_tokens)
        self._usage += (
            answer.usage
            if is_reported
            else UsageInfo(estimated_tokens(request.messages), estimated_tokens([answer]))
        )
        self.is_estimated = not is_reported and self._limits.counts_tokens

    def limit_reached(self, tool_calls: int) -> str | None:
        """Return the limit that the tokens have reached, or that *tool_calls* calls would exceed."""
        return self._limits.reached(self._usage, tool_calls)


@attrs.frozen
class Output:
    """The type of an agent's answer.

    Attributes:
        parser: reads the value from an answer.
        instructions: describe the required form to the model.
    """

    parser: StructuredParser[Any]
    instructions: str

    @classmethod
    def of(cls, kind: Any, prose: Any = Prose.ALLOW) -> Output:
        """Return the output type for *kind*: a type, a schema, or a parser of one schema.

        Raises:
            SchemaDefinitionError: *kind* cannot be the type of an answer.
            ConfigurationError: *kind* is a parser of several versions.
        """
        parser = kind if isinstance(kind, StructuredParser) else StructuredParser(kind, prose=prose)
        if not isinstance(parser.schema, Schema):
            raise ConfigurationError("output_type needs one schema, not several versions", key="output_type")
        return cls(parser.with_null_as_default(), parser.schema.instructions())

    def read(self, answer: ChatResponse) -> tuple[Any, str]:
        """Return the value in *answer* and ``""``, or ``None`` and what is wrong."""
        result = self.parser.parse(answer)
        return (result.value, "") if result.ok else (None, "; ".join(result.errors) or result.reason.value)


@attrs.frozen(kw_only=True)
class AgentPlan:
    """The options of an agent, described in :class:`~crosswalk.agent.Agent`."""

    service: LLMService
    runner: ToolRunner
    config: ChatConfig
    max_turns: int
    instructions: str | None
    output: Output | None
    limits: UsageLimits
    approve: Approve | None
    trim: Trimming | None
    name: str | None
    telemetry: AgentTelemetry | None

    def request(self, turns: Sequence[Turn]) -> ChatRequest:
        """Return the request that sends *turns*, with the instructions and the runner's tools of this moment."""
        config = attrs.evolve(self.config, tools=self.runner.tools.values())
        request = config.request(_with_instructions(turns, self.instructions))
        if self.output is None or request.tools:  # many servers accept a schema or tools, not both
            return request
        return with_schema(request, self.output.parser, instruct=False)


def _with_instructions(turns: Sequence[Turn], instructions: str | None) -> Sequence[Turn]:
    """Return *turns* with *instructions* in one leading system message, because many chat templates read only the first."""
    if instructions is None or not turns:
        return turns
    first_message = message_of(turns[0])
    if first_message.role is Role.SYSTEM and isinstance(first_message.content, str):
        return (ChatMessage.system(f"{instructions}\n\n{first_message.content}"), *turns[1:])
    return (ChatMessage.system(instructions), *turns)


# ------------------------------------------------------------------------------ tool phase
# The tool calls of one answer: run, approved and recorded in the session as they happen.


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
        self._started_ids: set[str] = set()
        self._runner = runner
        self._approve = approve
        self._decisions = approved
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
            self._started_ids.add(step.call.id)
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
        return stopped(call) if call.id in self._started_ids else not_run(call, "the run was stopped")

    async def run(self) -> AsyncGenerator[ToolStep, None]:
        """Run the calls that have no result yet.

        Final tools run last, one after the other, and only until one succeeds: a run has one final answer.
        """
        pending_calls = [call for call in self.calls if call.id not in self.results]
        final_calls = [call for call in pending_calls if is_final_call(self._runner.tools, call)]
        other_calls = [call for call in pending_calls if call not in final_calls]
        for calls, is_final in ((other_calls, False), *(([call], True) for call in final_calls)):
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
        queue: asyncio.Queue[ToolStep | None] = asyncio.Queue()

        def report(step: ToolStep) -> None:
            self.record(step)  # if that raises, the tool does not run
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
                yield step
            task.result()  # raises what the session's *save* or a span has raised
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _approve_function(self) -> Approve | None:
        """Return a function that looks up earlier decisions before it asks the agent's own function."""
        decisions, approve = self._decisions, self._approve
        if not decisions:
            return approve

        def decide(call: ToolCall) -> Any:
            if call.id in decisions:
                return decisions[call.id]
            return None if approve is None else approve(call)

        return decide


# ------------------------------------------------------------------------------------ loop
# The loop of an agent run: ask the model, run the tools that it calls, and ask again.


Step: TypeAlias = StreamEvent | ToolStep | AgentTurn

_EMPTY_MAPPING: Mapping[str, Any] = {}

_active_runs: WeakValueDictionary[int, AgentLoop] = WeakValueDictionary()
"""The runs between their first and last step, by the identity of their session."""


def check_is_free(session: ChatSession | None) -> None:
    """Check that no other run adds its turns to *session*: their turns would be mixed.

    Raises:
        CrosswalkError: another run does.
    """
    active_loop = _active_runs.get(id(session))
    if session is not None and active_loop is not None and active_loop.session is session:
        raise CrosswalkError("the session is in use by another run: wait for its end, or close it")


class AgentLoop:
    """The work of one agent run, and its results so far.

    Args:
        plan: the options of the agent.
        messages: the conversation so far.
        streamed: whether to ask for answers as streams.
        session: receives each turn at once, or ``None`` for no session.
        save: called with the session after each change, or ``None`` for no call.
        turns: the turns of the run that this one resumes.
        open_results: the results of calls that were open when that run began.
        approved: decisions about open calls, by call id.
        results: results of open calls that were run elsewhere, by call id.
        deps: given to each tool that takes a ``ToolContext``.

    Attributes:
        events: the stream of the current or last answer, or ``None`` before the first.
    """

    def __init__(
        self,
        plan: AgentPlan,
        messages: tuple[Turn, ...],
        *,
        streamed: bool,
        session: ChatSession | None = None,
        save: Callable[[ChatSession], object] | None = None,
        turns: Iterable[AgentTurn] = (),
        open_results: Iterable[ToolExecutionResult] = (),
        approved: Mapping[str, bool | str] = _EMPTY_MAPPING,
        results: Mapping[str, Any] = _EMPTY_MAPPING,
        deps: object = None,
    ) -> None:
        self.deps = deps
        self._approved = approved
        self._results = results
        self.messages = messages
        self.streamed = streamed
        self.session = session
        self.save = save
        self.turns = list(turns)
        self.open_results = tuple(open_results)
        self.events: Any = None
        self._current_span: Callable[[], AbstractContextManager[object]] = nullcontext
        self._trace_tool: ToolTracer | None = None
        self._refused_attempts: tuple[ProviderAttempt, ...] = ()
        self._trim_note: dict[str, int] = {}
        self._usage = RunUsage(plan.limits)
        self._request: ChatRequest
        self._answer: tuple[ChatResponse, CrosswalkError | None]
        self._plan = plan
        self._first_turn_index = len(self.turns)
        self._tools = plan.runner.tools

    @property
    def final(self) -> tuple[str | None, Any]:
        """The final answer as text and value, or ``(None, None)`` before the answer."""
        if self.turns:
            return self.turns[-1].final_output, self.turns[-1].value
        final_result = next(filter(self._is_final, self.open_results), None)
        return (None, None) if final_result is None else (final_result.output, final_result.value)

    def steps(self) -> AsyncGenerator[Step, None]:
        """Yield every step of the run as it happens."""
        return self._all_steps() if self._plan.telemetry is None else self._traced(self._plan.telemetry)

    async def _traced(self, telemetry: AgentTelemetry) -> AsyncGenerator[Step, None]:
        span = telemetry.begin(self._plan.name, None if self.session is None else self.session.id)
        self._current_span, self._trace_tool = span.current, span.trace_tool
        error: BaseException | None = None
        try:
            async with aclosing(self._all_steps()) as steps:
                async for step in steps:
                    yield step
        except Exception as raised:
            error = raised
            raise
        finally:
            span.end(self.turns[self._first_turn_index :], error)

    async def _all_steps(self) -> AsyncGenerator[Step, None]:
        check_is_free(self.session)
        if self.session is not None:
            _active_runs[id(self.session)] = self
        try:
            async with aclosing(self._ask_and_run_tools()) as steps:
                async for step in steps:
                    yield step
        finally:
            _active_runs.pop(id(self.session), None)

    async def _ask_and_run_tools(self) -> AsyncGenerator[Step, None]:
        self._add_to_session()  # saves the question, in case the program ends before the answer
        request = self._first_request()
        if pending_calls := open_calls(request.messages):
            async with aclosing(self._run_open_calls(request.messages, pending_calls)) as steps:
                async for step in steps:
                    yield step
            if self.final[0] is not None or any(result.is_waiting for result in self.open_results):
                return
            request = self._with_open_results(request)
        taken_ids = {call.id for turn in request.messages for call in calls_of(turn)}
        trim = self._plan.trim
        if trim is not None and self._was_refused_as_too_long(request):
            shorter_request = trimmed_request(request, trim)
            if shorter_request is not None:
                self._note_trimming(request, shorter_request)
                request = shorter_request
        turns_left = self._plan.max_turns
        while True:
            async with aclosing(self._ask(request, taken_ids)) as events:
                async for event in events:
                    yield event
            answer, failure = self._answer
            if (shorter_request := trim_refused_request(request, answer, trim)) is not None:
                self._note_refusal(request, answer)
                self._note_trimming(request, shorter_request)
                request, trim = shorter_request, None
                continue
            self._request = request
            turns_left -= 1
            async with aclosing(
                self._finish_turn(answer, failure, taken_ids, is_last=turns_left < 1)
            ) as steps:
                async for step in steps:
                    yield step
            turn = self.turns[-1]
            yield turn
            if turn.outcome is not None:
                return
            request = self._next_request(request, turn)

    def _first_request(self) -> ChatRequest:
        if self.session is not None:
            return self._plan.request(self.session.turns)
        return self._plan.request((*self.messages, *conversation_of(self.open_results, self.turns)))

    def _with_open_results(self, request: ChatRequest) -> ChatRequest:
        if self.session is not None:  # it has the results in the order of the calls
            return self._first_request()
        return request.with_turns(*messages_of(self.open_results))

    def _next_request(self, request: ChatRequest, turn: AgentTurn) -> ChatRequest:
        """Return the request that follows *turn*.

        A ``tool_choice`` that forces a call is dropped after the first call. Otherwise the model could never answer.
        """
        request = request.with_turns(*turn.conversation)
        is_free = request.tool_choice in (None, ToolChoice.AUTO, ToolChoice.NONE)
        if is_free or not turn.tool_results or any(tool.is_final for tool in self._tools.values()):
            return request
        return attrs.evolve(request, tool_choice=None)

    def _was_refused_as_too_long(self, request: ChatRequest) -> bool:
        """Whether the model refused a conversation of this session that was no longer than *request*."""
        if self.session is None:
            return False
        length = self.session.refused_lengths.get(request.model or "")
        return length is not None and len(request.messages) >= length

    def _note_refusal(self, request: ChatRequest, answer: ChatResponse) -> None:
        self._refused_attempts += answer.attempts
        if self.session is not None:
            self.session.refused_lengths[request.model or ""] = len(request.messages)

    def _note_trimming(self, request: ChatRequest, shorter_request: ChatRequest) -> None:
        self._trim_note = {"sent": len(shorter_request.messages), "of": len(request.messages)}

    async def _ask(self, request: ChatRequest, taken_ids: set[str]) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of the answer, and set ``_answer`` to the answer and the error that the service raised."""
        service, failure = self._plan.service, None
        try:
            if self.streamed:
                self.events = events = service.stream(request)
                try:
                    async with events:
                        while True:
                            with self._current_span():
                                event = await anext(events, None)
                            if event is None:
                                break
                            yield event
                except (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit):
                    self._add_stopped_turn(events, taken_ids)
                    raise
                answer: ChatResponse | None = events.response.raise_for_error()
            else:
                with self._current_span():
                    answer = await service.complete(request)
        except (ProviderError, MappingError) as error:
            answer, failure = error.response if isinstance(error, ProviderError) else error.partial, error
            if answer is None:
                raise
        assert answer is not None, "a missing answer raises"
        self._answer = answer, failure

    async def _finish_turn(
        self, answer: ChatResponse, failure: CrosswalkError | None, taken_ids: set[str], *, is_last: bool
    ) -> AsyncGenerator[Step, None]:
        """Run the calls of *answer* and add the turn, even if the run is stopped meanwhile."""
        if self._refused_attempts:
            answer = attrs.evolve(answer, attempts=(*self._refused_attempts, *answer.attempts))
            self._refused_attempts = ()
        calls = with_unique_ids(answer.tool_calls, taken_ids)
        self._usage.add(self._request, answer)
        outcome = outcome_of(answer, calls)
        cause = f"the answer ended with {cut_reason(answer) or outcome}"
        if outcome is None and (limit := self._usage.limit_reached(len(calls) + self._tools_run)) is not None:
            outcome, cause = AgentOutcome.USAGE_LIMIT, f"the limit of {limit} is reached"
        self._add_to_session(with_calls(answer, calls))
        if outcome is not None or not calls:
            results = tuple(not_run(call, cause) for call in calls)
            if outcome is None and is_last:
                outcome = AgentOutcome.MAX_TURNS
            self._add_turn(answer, calls, results, outcome, failure, is_last=is_last)
            return
        phase = self._tool_phase(calls)
        outcome = AgentOutcome.CANCELLED  # unless the phase completes
        try:
            async with aclosing(phase.run()) as steps:
                async for step in steps:
                    yield step
            outcome = AgentOutcome.MAX_TURNS if is_last else None
            if phase.is_waiting:
                outcome = AgentOutcome.WAITING
        finally:
            self._add_turn(answer, calls, phase.all_results(), outcome, failure)

    async def _run_open_calls(
        self, turns: tuple[Turn, ...], calls: tuple[ToolCall, ...]
    ) -> AsyncGenerator[Step, None]:
        """Run *calls*, with which *turns* ended. The calls of a cut answer are marked as not run instead."""
        phase = self._tool_phase(calls)
        cause = cut_reason(next(turn for turn in reversed(turns) if calls_of(turn)))
        try:
            if cause is not None:
                for call in calls:
                    phase.record(not_run(call, f"the answer ended with {cause}"))
            else:
                for call in calls:
                    if call.id in self._results:
                        phase.record(result_of(call, self._results[call.id]))
                        yield phase.results[call.id]
                async with aclosing(phase.run()) as steps:
                    async for step in steps:
                        yield step
        finally:
            self.open_results = phase.all_results()

    @property
    def _tools_run(self) -> int:
        turns = self.turns[self._first_turn_index :]
        return sum(result.was_run for turn in turns for result in turn.tool_results)

    def _tool_phase(self, calls: tuple[ToolCall, ...]) -> ToolPhase:
        return ToolPhase(
            calls,
            runner=self._plan.runner,
            approve=self._plan.approve,
            approved=self._approved,
            trace_tool=self._trace_tool,
            current_span=self._current_span,
            add_message=self._add_to_session,
            deps=self.deps,
        )

    def _add_stopped_turn(self, events: Any, taken_ids: set[str]) -> None:
        """Add the partial answer of a stream that was stopped."""
        with suppress(CrosswalkError):  # nothing arrived, or nothing was sent
            answer: ChatResponse = events.response
            calls = with_unique_ids(answer.tool_calls, taken_ids)
            results = tuple(not_run(call, "the run was stopped") for call in calls)
            self._add_to_session(with_calls(answer, calls))
            outcome = outcome_of(answer, calls) or AgentOutcome.CANCELLED
            self._add_turn(answer, calls, results, outcome, None)

    def _add_turn(
        self,
        answer: ChatResponse,
        calls: tuple[ToolCall, ...],
        results: tuple[ToolExecutionResult, ...],
        outcome: AgentOutcome | None,
        failure: CrosswalkError | None,
        *,
        is_last: bool = False,
    ) -> None:
        renamed_ids = [
            [old_call.id, new_call.id]
            for old_call, new_call in zip(answer.tool_calls, calls, strict=True)
            if old_call != new_call
        ]
        notes: dict[str, Any] = {"renamed_calls": renamed_ids} if renamed_ids else {}
        if self._trim_note:
            notes["trimmed"], self._trim_note = self._trim_note, {}
        if self._usage.is_estimated:
            notes["estimated_usage"] = True
        turn = AgentTurn(answer, results, notes, outcome, error=failure)
        final_result = next(filter(self._is_final, results), None)
        if final_result is not None:
            turn = attrs.evolve(
                turn,
                outcome=AgentOutcome.ANSWERED,
                final_output=final_result.output,
                value=final_result.value,
            )
        elif outcome is AgentOutcome.ANSWERED:
            turn = self._with_output(turn, is_last=is_last)
        self.turns.append(turn)
        if following_turns := turn.conversation[1:]:
            self._add_to_session(*following_turns)

    def _with_output(self, turn: AgentTurn, *, is_last: bool) -> AgentTurn:
        """Return *turn*, an answer, with its value or with a reply that asks for a valid one."""
        answer, output = turn.response, self._plan.output
        if paused_text := "".join(self._paused_texts()):
            message = attrs.evolve(answer.message, content=paused_text + answer.text)
            answer = attrs.evolve(answer, message=message)
        text = answer.text
        value, problem_text = (text, "") if output is None else output.read(answer)
        if not problem_text:
            return attrs.evolve(turn, final_output=text, value=value)
        if is_last or any(
            earlier_turn.reply is not None for earlier_turn in self.turns[self._first_turn_index :]
        ):
            return attrs.evolve(turn, outcome=AgentOutcome.INVALID_OUTPUT)
        reply = ChatMessage.user(
            f"This is not a valid answer: {problem_text}. Answer again, in the form that was asked for."
        )
        return attrs.evolve(turn, outcome=None, reply=reply)

    def _paused_texts(self) -> Iterator[str]:
        """Yield the texts of the answers before this one that only paused: it continues them."""
        is_paused = [turn.response.incomplete_reason is IncompleteReason.PAUSED for turn in self.turns]
        start = len(is_paused) - sum(takewhile(bool, reversed(is_paused)))
        yield from (turn.response.text for turn in self.turns[start:])

    def _is_final(self, result: ToolExecutionResult) -> bool:
        return is_final_result(self._tools, result)

    def _add_to_session(self, *turns: Turn) -> None:
        if self.session is None or any(
            isinstance(turn, ChatResponse) and turn.error_info is not None for turn in turns
        ):
            return
        self.session.extend(turns)
        if self.save is not None:
            self.save(self.session)
