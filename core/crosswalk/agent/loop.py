"""What a run of an agent does: asks the model, runs the tools that it asks for, and asks again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from crosswalk.agent.calls import calls_of, cut_by, open_calls, own_calls, with_calls
from crosswalk.agent.plan import Plan
from crosswalk.agent.results import ToolExecutionResult, ToolExecutionStart, not_run, result_of, stopped
from crosswalk.agent.runner import Approve, ToolTracer
from crosswalk.agent.session import ChatSession
from crosswalk.agent.trimming import estimated_tokens, shortened, shorter
from crosswalk.agent.turn import AgentOutcome, AgentTurn, conversation_of, messages_of
from crosswalk.errors import CrosswalkError, MappingError, ProviderError
from crosswalk.service.answer import with_schema
from crosswalk.service.request import ChatRequest, ToolChoice, Turn
from crosswalk.service.turns import message_of
from crosswalk.types.event import StreamEvent
from crosswalk.types.finish import IncompleteReason
from crosswalk.types.message import ChatMessage, Role
from crosswalk.types.metadata import ProviderAttempt
from crosswalk.types.response import ChatResponse
from crosswalk.types.tools import ToolCall
from crosswalk.types.usage import UsageInfo

if TYPE_CHECKING:
    from crosswalk.agent.otel import AgentTelemetry

__all__ = ["Loop", "Step"]

Step: TypeAlias = StreamEvent | ToolExecutionStart | ToolExecutionResult | AgentTurn

_NOTHING: Mapping[str, Any] = {}

_ENDINGS = {
    IncompleteReason.LENGTH: AgentOutcome.TRUNCATED,
    IncompleteReason.CONTENT_FILTER: AgentOutcome.CONTENT_FILTER,
    IncompleteReason.CANCELLED: AgentOutcome.CANCELLED,
    IncompleteReason.ERROR: AgentOutcome.ERROR,
    IncompleteReason.UNKNOWN_FINISH_REASON: AgentOutcome.UNMAPPED,
    IncompleteReason.UNKNOWN_EVENT: AgentOutcome.UNMAPPED,
    IncompleteReason.REFUSAL: AgentOutcome.REFUSED,
    IncompleteReason.MISSING_CALL: AgentOutcome.MISSING_CALL,
}
"""How a run ends with an answer that is not whole; one that only pauses is sent back as it is."""


class Loop:
    """What a run does, and what it has done.

    Args:
        plan: how.
        messages: the conversation that it goes on with.
        streamed: whether answers are asked for as streams.
        session: takes what is said, at once; ``None`` for none.
        save: is called with the session when that has changed; ``None`` where nobody wants to know.
        turns: what it did before it was stopped.
        open_results: what became of calls that were open when it began.
        approved: what was decided of open calls, by their ids.
        results: what open calls gave that somebody else has run, by their ids.

    Attributes:
        events: the answer that is streamed, or was last; ``None`` before the first.
    """

    def __init__(
        self,
        plan: Plan,
        messages: tuple[Turn, ...],
        *,
        streamed: bool,
        session: ChatSession | None = None,
        save: Callable[[ChatSession], object] | None = None,
        turns: Iterable[AgentTurn] = (),
        open_results: Iterable[ToolExecutionResult] = (),
        approved: Mapping[str, bool | str] = _NOTHING,
        results: Mapping[str, Any] = _NOTHING,
    ) -> None:
        self._approved = approved
        self._results = results
        self.messages = messages
        self.streamed = streamed
        self.session = session
        self.save = save
        self.turns = list(turns)
        self.open_results = tuple(open_results)
        self.events: Any = None
        self._current: Callable[[], AbstractContextManager[object]] = nullcontext
        self._executed: ToolTracer | None = None
        self._refused: tuple[ProviderAttempt, ...] = ()
        self._trimmed: dict[str, int] = {}
        self._spent = UsageInfo.EMPTY
        self._estimated = False
        self._request: ChatRequest
        self._answered: tuple[ChatResponse, CrosswalkError | None]
        self._plan = plan
        self._begun = len(self.turns)
        self._runner = plan.runner

    @property
    def final(self) -> tuple[str | None, Any]:
        """The answer to the user as text and value, once it is there."""
        if self.turns:
            return self.turns[-1].final_output, self.turns[-1].value
        found = next(filter(self._is_final, self.open_results), None)
        return (None, None) if found is None else (found.output, found.value)

    def steps(self) -> AsyncGenerator[Step, None]:
        """Everything that happens, as it happens."""
        return self._all_steps() if self._plan.telemetry is None else self._traced(self._plan.telemetry)

    async def _traced(self, telemetry: AgentTelemetry) -> AsyncGenerator[Step, None]:
        span = telemetry.begin(self._plan.name, None if self.session is None else self.session.id)
        self._current, self._executed = span.current, span.trace_tool
        error: BaseException | None = None
        try:
            async with aclosing(self._all_steps()) as steps:
                async for step in steps:
                    yield step
        except Exception as raised:
            error = raised
            raise
        finally:
            span.end(self.turns[self._begun :], error)

    async def _all_steps(self) -> AsyncGenerator[Step, None]:
        self._tell_session()  # what was asked is not to be lost if the program ends before there is an answer
        request = self._first_request()
        if opened := open_calls(request.messages):
            async with aclosing(self._finish_open(request.messages, opened)) as steps:
                async for step in steps:
                    yield step
            if self.final[0] is not None or any(result.is_waiting for result in self.open_results):
                return
            request = self._with_open_results(request)
        taken = {call.id for turn in request.messages for call in calls_of(turn)}
        trim = self._plan.trim
        if trim is not None and self._is_known_as_too_long(request):
            less = shortened(request, trim)
            if less is not None:
                self._note_trimming(request, less)
                request = less
        left = self._plan.max_turns
        while True:
            async with aclosing(self._ask(request, taken)) as events:
                async for event in events:
                    yield event
            answer, failure = self._answered
            if (less := shorter(request, answer, trim)) is not None:
                self._note_refusal(request, answer)
                self._note_trimming(request, less)
                request, trim = less, None
                continue
            self._request = request
            left -= 1
            async with aclosing(self._finish_turn(answer, failure, taken, is_last=left < 1)) as steps:
                async for step in steps:
                    yield step
            turn = self.turns[-1]
            yield turn
            if turn.outcome is not None:
                return
            request = self._next_request(request, turn)

    def _first_request(self) -> ChatRequest:
        plan = self._plan
        said: Sequence[Turn] = (*self.messages, *conversation_of(self.open_results, self.turns))
        if self.session is not None:
            said = self.session.turns
        # The tools that the runner has now: one may have been added to its registry since the last run.
        config = attrs.evolve(plan.config, tools=self._runner.tools.values())
        request = config.request(_instructed(said, plan.instructions))
        if plan.output is None or request.tools:  # many servers take a schema or tools, not both
            return request
        return with_schema(request, plan.output.parser, instruct=False)

    def _is_known_as_too_long(self, request: ChatRequest) -> bool:
        """Whether a conversation of this session that was no longer was refused before."""
        if self.session is None:
            return False
        length = self.session.refused_lengths.get(request.model or "")
        return length is not None and len(request.messages) >= length

    def _note_refusal(self, request: ChatRequest, answer: ChatResponse) -> None:
        self._refused += answer.attempts
        if self.session is not None:
            self.session.refused_lengths[request.model or ""] = len(request.messages)

    def _note_trimming(self, request: ChatRequest, less: ChatRequest) -> None:
        self._trimmed = {"sent": len(less.messages), "of": len(request.messages)}

    def _with_open_results(self, request: ChatRequest) -> ChatRequest:
        if self.session is not None:  # it has the results in the order of the calls
            return self._first_request()
        return request.with_turns(*messages_of(self.open_results))

    def _next_request(self, request: ChatRequest, turn: AgentTurn) -> ChatRequest:
        """What goes on with *turn*. What had to be called has been then: asked so again, the model could never answer."""
        request = request.with_turns(*turn.conversation)
        is_free = request.tool_choice in (None, ToolChoice.AUTO, ToolChoice.NONE)
        if is_free or not turn.tool_results or any(one.is_final for one in self._runner.tools.values()):
            return request
        return attrs.evolve(request, tool_choice=None)

    async def _ask(self, request: ChatRequest, taken: set[str]) -> AsyncGenerator[StreamEvent, None]:
        """The events of the answer, which is there afterwards, with what was raised."""
        service, failure = self._plan.service, None
        try:
            if self.streamed:
                self.events = events = service.stream(request)
                try:
                    async with events:
                        while True:
                            with self._current():
                                event = await anext(events, None)
                            if event is None:
                                break
                            yield event
                except (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit):
                    self._add_stopped_turn(events, taken)
                    raise
                answer: ChatResponse | None = events.response
            else:
                with self._current():
                    answer = await service.complete(request)
        except (ProviderError, MappingError) as error:
            answer, failure = error.response if isinstance(error, ProviderError) else error.partial, error
            if answer is None:
                raise
        assert answer is not None, "else it was raised"
        self._answered = answer, failure

    # What comes of an answer.

    async def _finish_turn(
        self, answer: ChatResponse, failure: CrosswalkError | None, taken: set[str], *, is_last: bool
    ) -> AsyncGenerator[Step, None]:
        """Run what *answer* asks for; the turn is there afterwards, also where it is stopped meanwhile."""
        if self._refused:
            answer = attrs.evolve(answer, attempts=(*self._refused, *answer.attempts))
            self._refused = ()
        calls = own_calls(answer.tool_calls, taken)
        self._count(answer)
        ending = _ending(answer, calls)
        cause = f"the answer ended with {cut_by(answer) or ending}"
        if ending is None and (limit := self._limit_reached(calls)) is not None:
            ending, cause = AgentOutcome.USAGE_LIMIT, f"the limit of {limit} is reached"
        self._tell_session(with_calls(answer, calls))
        if ending is not None or not calls:
            results = tuple(not_run(call, cause) for call in calls)
            if ending is None and is_last:
                ending = AgentOutcome.MAX_TURNS
            self._add_turn(answer, calls, results, ending, failure, is_last=is_last)
            return
        work = _Work(self, calls)
        ending = AgentOutcome.CANCELLED  # unless it comes to its end
        try:
            async with aclosing(self._run_tools(work)) as steps:
                async for step in steps:
                    yield step
            ending = AgentOutcome.MAX_TURNS if is_last else None
            if any(result.is_waiting for result in work.results.values()):
                ending = AgentOutcome.WAITING
        finally:
            self._add_turn(answer, calls, work.closed(), ending, failure)

    def _limit_reached(self, calls: tuple[ToolCall, ...]) -> str | None:
        """The limit that the run is at, or would exceed with *calls*."""
        ran = sum(result.was_run for turn in self.turns[self._begun :] for result in turn.tool_results)
        return self._plan.limits.reached(self._spent, ran + len(calls))

    def _count(self, answer: ChatResponse) -> None:
        """Add the tokens of *answer* to those of the run, estimated where nobody has counted them."""
        self._estimated = not answer.usage.total_tokens
        if self._estimated:
            counts = estimated_tokens(self._request.messages), estimated_tokens([answer])
            self._spent += UsageInfo(*counts)
        else:
            self._spent += answer.usage

    async def _finish_open(
        self, said: tuple[Turn, ...], calls: tuple[ToolCall, ...]
    ) -> AsyncGenerator[Step, None]:
        """Run the *calls* with which the conversation ended; those of a cut answer get a result without."""
        work = _Work(self, calls)
        asked = next(turn for turn in reversed(said) if calls_of(turn))
        cause = cut_by(asked)
        try:
            if cause is not None:
                for call in calls:
                    work.report(not_run(call, f"the answer ended with {cause}"))
            else:
                for call in calls:
                    if call.id in self._results:
                        work.report(result_of(call, self._results[call.id]))
                        yield work.results[call.id]
                async with aclosing(self._run_tools(work)) as steps:
                    async for step in steps:
                        yield step
        finally:
            self.open_results = work.closed()

    def _add_stopped_turn(self, events: Any, taken: set[str]) -> None:
        """Keep what came of an answer in whose middle the run was stopped."""
        with suppress(CrosswalkError):  # nothing came: nothing was sent, even
            answer: ChatResponse = events.response
            calls = own_calls(answer.tool_calls, taken)
            results = tuple(not_run(call, "the run was stopped") for call in calls)
            self._tell_session(with_calls(answer, calls))
            self._add_turn(answer, calls, results, _ending(answer, calls) or AgentOutcome.CANCELLED, None)

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
        if self._trimmed:
            notes["trimmed"], self._trimmed = self._trimmed, {}
        if self._estimated and self._plan.limits.counts_tokens:
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
            self._tell_session(*more)

    def _with_output(self, turn: AgentTurn, *, is_last: bool) -> AgentTurn:
        """*turn*, whose answer is the last, with its value; or with what is to be told about it."""
        text, output = turn.response.text, self._plan.output
        value, problems = (text, "") if output is None else output.read(turn.response)
        if not problems:
            return attrs.evolve(turn, final_output=text, value=value)
        if is_last or any(before.reply is not None for before in self.turns[self._begun :]):
            return attrs.evolve(turn, outcome=AgentOutcome.INVALID_OUTPUT)
        reply = ChatMessage.user(
            f"This is no valid answer: {problems}. Answer again, in the form that was asked for."
        )
        return attrs.evolve(turn, outcome=None, reply=reply)

    # The tools.

    async def _run_tools(self, work: _Work) -> AsyncGenerator[Step, None]:
        """Run the calls; of several final answers only the first that succeeds, so that none is given twice."""
        open_calls = [call for call in work.calls if call.id not in work.results]
        finals = [call for call in open_calls if self._is_final_call(call)]
        groups = [[call for call in open_calls if call not in finals], *([call] for call in finals)]
        for calls in groups:
            if calls and calls[0] in finals and any(one.is_waiting for one in work.results.values()):
                for call in calls:
                    work.report(not_run(call, "another call waits"))
                continue
            if any(map(self._is_final, work.results.values())):
                for call in calls:
                    work.report(not_run(call, "the final answer had been given"))
                continue
            queue: asyncio.Queue[Step | Exception | None] = asyncio.Queue()
            work_on = self._runner.run(
                calls, report=work.telling(queue), approve=self._approve, trace_tool=self._executed
            )
            with self._current():
                task = asyncio.create_task(work_on)
            task.add_done_callback(lambda _, queue=queue: queue.put_nowait(None))  # type: ignore[misc]
            try:
                while (step := await queue.get()) is not None:
                    if isinstance(step, Exception):
                        raise step
                    yield step
                task.result()  # raises what a span did
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    @property
    def _approve(self) -> Approve | None:
        """Who is asked about calls: what was decided before, then the agent's own function."""
        approved, approve = self._approved, self._plan.approve
        if not approved:
            return approve

        def decided(call: ToolCall) -> Any:
            if call.id in approved:
                return approved[call.id]
            return None if approve is None else approve(call)

        return decided

    def _is_final_call(self, call: ToolCall) -> bool:
        one = self._runner.tools.get(call.name)
        return one is not None and one.is_final

    def _is_final(self, result: ToolExecutionResult) -> bool:
        return result.error is None and self._is_final_call(result.call)

    # The session.

    def _tell_session(self, *turns: Turn) -> None:
        if self.session is None or any(
            isinstance(t, ChatResponse) and t.error_info is not None for t in turns
        ):
            return
        self.session.extend(turns)
        if self.save is not None:
            self.save(self.session)


class _Work:
    """Calls that are run, and what has come of them."""

    def __init__(self, loop: Loop, calls: tuple[ToolCall, ...]) -> None:
        self.calls = calls
        self.results: dict[str, ToolExecutionResult] = {}
        self._begun: set[str] = set()
        self._loop = loop

    def telling(self, queue: asyncio.Queue[Step | Exception | None]) -> Callable[[Any], None]:
        """What a runner tells goes into *queue*, too, or why it cannot be kept: then the tool is not run."""

        def report(step: ToolExecutionStart | ToolExecutionResult) -> None:
            try:
                self.report(step)
            except Exception as error:
                queue.put_nowait(error)
                raise
            queue.put_nowait(step)

        return report

    def report(self, step: ToolExecutionStart | ToolExecutionResult) -> None:
        """A tool begins, or there is a result.

        To the session, one that begins is one that was stopped: should the program end now, that is what it reads.
        """
        if isinstance(step, ToolExecutionStart):
            self._begun.add(step.call.id)
            step = stopped(step.call)
        else:
            self.results[step.call.id] = step
            if step.is_waiting:
                return  # it stays open in the session
        self._loop._tell_session(step.message)

    def closed(self) -> tuple[ToolExecutionResult, ...]:
        """A result for each call: where none came, that it was stopped."""
        return tuple(self.results.get(call.id) or self._unfinished(call) for call in self.calls)

    def _unfinished(self, call: ToolCall) -> ToolExecutionResult:
        return stopped(call) if call.id in self._begun else not_run(call, "the run was stopped")


def _instructed(turns: Sequence[Turn], instructions: str | None) -> Sequence[Turn]:
    """*turns* with *instructions* before them, in one system message: of several, many templates take the first alone."""
    if instructions is None or not turns:
        return turns
    first = message_of(turns[0])
    if first.role is Role.SYSTEM and isinstance(first.content, str):
        return (ChatMessage.system(f"{instructions}\n\n{first.content}"), *turns[1:])
    return (ChatMessage.system(instructions), *turns)


def _ending(answer: ChatResponse, calls: tuple[ToolCall, ...]) -> AgentOutcome | None:
    """How the run ends with *answer*; ``None`` where it goes on."""
    reason = answer.incomplete_reason
    if reason in _ENDINGS:
        return _ENDINGS[reason]
    return None if calls or reason is IncompleteReason.PAUSED else AgentOutcome.ANSWERED
