"""The loop of an agent run: ask the model, run the tools that it calls, and ask again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, aclosing, nullcontext, suppress
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakValueDictionary

import attrs

from crosswalk.agent.calls import calls_of, cut_reason, open_calls, with_calls, with_unique_ids
from crosswalk.agent.plan import AgentPlan, RunUsage
from crosswalk.agent.results import ToolExecutionResult, not_run, result_of
from crosswalk.agent.tool_phase import ToolPhase, ToolStep, is_final_result
from crosswalk.agent.trimming import trim_refused_request, trimmed_request
from crosswalk.agent.turn import AgentOutcome, AgentTurn, conversation_of, messages_of, outcome_of
from crosswalk.errors import CrosswalkError, MappingError, ProviderError
from crosswalk.request import ChatRequest, ToolChoice, Turn
from crosswalk.types.message import ChatMessage, ToolCall
from crosswalk.types.response import ChatResponse
from crosswalk.types.stream import StreamEvent
from crosswalk.types.usage import ProviderAttempt

if TYPE_CHECKING:
    from crosswalk.agent.otel import AgentTelemetry
    from crosswalk.agent.runner import ToolTracer
    from crosswalk.agent.session import ChatSession


Step: TypeAlias = StreamEvent | ToolStep | AgentTurn

_EMPTY: Mapping[str, Any] = {}

_active_runs: WeakValueDictionary[int, AgentLoop] = WeakValueDictionary()
"""The runs between their first and last step, by the identity of their session."""


def check_is_free(session: ChatSession | None) -> None:
    """Check that no other run adds its turns to *session*: their turns would be mixed.

    Raises:
        CrosswalkError: another run does.
    """
    active = _active_runs.get(id(session))
    if session is not None and active is not None and active.session is session:
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
        approved: Mapping[str, bool | str] = _EMPTY,
        results: Mapping[str, Any] = _EMPTY,
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
        self._first_turn = len(self.turns)
        self._tools = plan.runner.tools

    @property
    def final(self) -> tuple[str | None, Any]:
        """The final answer as text and value, or ``(None, None)`` before the answer."""
        if self.turns:
            return self.turns[-1].final_output, self.turns[-1].value
        final = next(filter(self._is_final, self.open_results), None)
        return (None, None) if final is None else (final.output, final.value)

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
            span.end(self.turns[self._first_turn :], error)

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
        if pending := open_calls(request.messages):
            async with aclosing(self._run_open_calls(request.messages, pending)) as steps:
                async for step in steps:
                    yield step
            if self.final[0] is not None or any(result.is_waiting for result in self.open_results):
                return
            request = self._with_open_results(request)
        taken_ids = {call.id for turn in request.messages for call in calls_of(turn)}
        trim = self._plan.trim
        if trim is not None and self._was_refused_as_too_long(request):
            trimmed = trimmed_request(request, trim)
            if trimmed is not None:
                self._note_trimming(request, trimmed)
                request = trimmed
        turns_left = self._plan.max_turns
        while True:
            async with aclosing(self._ask(request, taken_ids)) as events:
                async for event in events:
                    yield event
            answer, failure = self._answer
            if (trimmed := trim_refused_request(request, answer, trim)) is not None:
                self._note_refusal(request, answer)
                self._note_trimming(request, trimmed)
                request, trim = trimmed, None
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

    def _note_trimming(self, request: ChatRequest, trimmed: ChatRequest) -> None:
        self._trim_note = {"sent": len(trimmed.messages), "of": len(request.messages)}

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
        turns = self.turns[self._first_turn :]
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
        renamed = [[old.id, own.id] for old, own in zip(answer.tool_calls, calls, strict=True) if old != own]
        notes: dict[str, Any] = {"renamed_calls": renamed} if renamed else {}
        if self._trim_note:
            notes["trimmed"], self._trim_note = self._trim_note, {}
        if self._usage.is_estimated:
            notes["estimated_usage"] = True
        turn = AgentTurn(answer, results, notes, outcome, error=failure)
        final = next(filter(self._is_final, results), None)
        if final is not None:
            turn = attrs.evolve(
                turn, outcome=AgentOutcome.ANSWERED, final_output=final.output, value=final.value
            )
        elif outcome is AgentOutcome.ANSWERED:
            turn = self._with_output(turn, is_last=is_last)
        self.turns.append(turn)
        if more := turn.conversation[1:]:
            self._add_to_session(*more)

    def _with_output(self, turn: AgentTurn, *, is_last: bool) -> AgentTurn:
        """Return *turn*, an answer, with its value or with a reply that asks for a valid one."""
        text, output = turn.response.text, self._plan.output
        value, problems = (text, "") if output is None else output.read(turn.response)
        if not problems:
            return attrs.evolve(turn, final_output=text, value=value)
        if is_last or any(before.reply is not None for before in self.turns[self._first_turn :]):
            return attrs.evolve(turn, outcome=AgentOutcome.INVALID_OUTPUT)
        reply = ChatMessage.user(
            f"This is not a valid answer: {problems}. Answer again, in the form that was asked for."
        )
        return attrs.evolve(turn, outcome=None, reply=reply)

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
